//! `inbox`: input put in front of the agent. Granted by `inbox`, with how often
//! in a row it may start an idle one.
//!
//! A draft never speaks for a person, the model or a tool: id, role and source
//! are the host's, and the source kinds that a row may name are those of its
//! manifest, which may name none of the host's.

use super::{Missing, Phase};
use crate::api::PluginError;
use crate::contract::v0_1::{inbox, types};
use crate::instance::State;
use crate::port::{Sender, Target};

super::capability!(inbox, "inbox");

impl inbox::Host for State {
    fn send(
        &mut self,
        message: String,
        target: inbox::Target,
        wake: bool,
    ) -> wasmtime::Result<Result<String, types::Error>> {
        self.require(Phase::Work, "inbox.send")?;
        self.takes(message.len())?;
        let Some(port) = self.ctx.ports.inbox.clone() else {
            return Ok(Err(PluginError::unavailable("agent to send to").into()));
        };
        let sender = Sender {
            row: &self.row.id,
            sources: &self.row.sources,
            wakes: self.row.grants.wakes,
        };
        let target = match target {
            inbox::Target::NextStep => Target::NextStep,
            inbox::Target::NextTurn => Target::NextTurn,
        };
        Ok(port.send(sender, message, target, wake).map_err(Into::into))
    }

    fn pending(&mut self) -> wasmtime::Result<Vec<String>> {
        self.require(Phase::Work, "inbox.pending")?;
        let port = self.ctx.ports.inbox.clone();
        let port = port.ok_or(Missing {
            interface: "inbox.pending",
        })?;
        Ok(port.pending(&self.row.id))
    }

    fn cancel(&mut self, id: String) -> wasmtime::Result<bool> {
        self.require(Phase::Work, "inbox.cancel")?;
        let port = self.ctx.ports.inbox.clone();
        let port = port.ok_or(Missing {
            interface: "inbox.cancel",
        })?;
        Ok(port.cancel(&self.row.id, &id))
    }
}
