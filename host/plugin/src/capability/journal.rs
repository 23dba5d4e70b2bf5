//! `journal`: appending beside the surface. Granted by `journal`, kind by kind.

use super::Phase;
use crate::api::{PluginError, code};
use crate::contract::v0_1::{journal, types};
use crate::grants::may_append;
use crate::instance::State;
use crate::port::NewEvent;

super::capability!(journal, "journal");

impl State {
    fn may_append(&self, kind: &str) -> Result<(), PluginError> {
        if may_append(
            kind,
            &self.row.grants.kinds,
            &self.row.appends,
            &self.row.namespace,
        ) {
            return Ok(());
        }
        Err(PluginError::new(
            code::DENIED,
            format!(
                "row {} may not append {kind}: its manifest or its grant `journal` must name it",
                self.row.id
            ),
        ))
    }
}

impl journal::Host for State {
    async fn append(
        &mut self,
        events: Vec<journal::NewEvent>,
        at: Option<u32>,
    ) -> wasmtime::Result<Result<u32, types::Error>> {
        self.require(Phase::Work, "journal.append")?;
        self.takes(
            events
                .iter()
                .map(|event| event.kind.len() + event.data.len())
                .sum(),
        )?;
        let Some(port) = self.ctx.ports.journal.clone() else {
            return Ok(Err(PluginError::unavailable("log to append to").into()));
        };
        if let Some(refused) = events
            .iter()
            .find_map(|event| self.may_append(&event.kind).err())
        {
            return Ok(Err(refused.into()));
        }
        let events = events
            .into_iter()
            .map(|event| NewEvent {
                kind: event.kind,
                data: event.data,
            })
            .collect();
        Ok(self
            .answer(port.append(&self.row.id, events, at))
            .await
            .map_err(Into::into))
    }
}
