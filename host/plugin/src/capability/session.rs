//! `session`: the log and its folds, read only. Granted by `session`.
//!
//! Nothing here waits but `projection`, for the fold; where a call has no session,
//! or an old part of its log cannot be read, it traps.

use std::sync::Arc;

use super::{Missing, Phase};
use crate::api::code;
use crate::contract::v0_1::session;
use crate::instance::State;
use crate::port::SessionView;

super::capability!(session, "session");

impl State {
    fn session(&self, function: &'static str) -> wasmtime::Result<Arc<dyn SessionView>> {
        self.require(Phase::Work, function)?;
        self.ctx.ports.session.clone().ok_or_else(|| {
            Missing {
                interface: function,
            }
            .into()
        })
    }
}

impl session::Host for State {
    fn header(&mut self) -> wasmtime::Result<String> {
        Ok(self.session("session.header")?.header())
    }

    fn length(&mut self) -> wasmtime::Result<u32> {
        Ok(self.session("session.length")?.length())
    }

    fn events(
        &mut self,
        first: u32,
        limit: u32,
        kinds: Vec<String>,
    ) -> wasmtime::Result<Vec<String>> {
        Ok(self
            .session("session.events")?
            .events(first, limit, &kinds)?)
    }

    fn last(
        &mut self,
        kinds: Vec<String>,
        before: Option<u32>,
    ) -> wasmtime::Result<Option<String>> {
        Ok(self.session("session.last")?.last(&kinds, before)?)
    }

    fn surface(&mut self) -> wasmtime::Result<session::SurfaceView> {
        let view = self.session("session.surface")?.surface()?;
        let node = |node: crate::port::Node| session::Node {
            seq: node.seq,
            tokens: node.tokens,
            calls: node.calls,
        };
        Ok(session::SurfaceView {
            nodes: view.nodes.into_iter().map(node).collect(),
            generation: view.generation,
        })
    }

    fn messages(&mut self, first: u32, limit: u32) -> wasmtime::Result<Vec<String>> {
        Ok(self.session("session.messages")?.messages(first, limit)?)
    }

    fn measure(&mut self) -> wasmtime::Result<session::Charge> {
        let charge = self.session("session.measure")?.measure()?;
        Ok(session::Charge {
            tokens: charge.tokens,
            context_window: charge.context_window,
        })
    }

    fn estimate(&mut self, messages: Vec<String>) -> wasmtime::Result<Vec<u32>> {
        Ok(self.session("session.estimate")?.estimate(&messages))
    }

    async fn projection(&mut self, key: String) -> wasmtime::Result<Option<String>> {
        let session = self.session("session.projection")?;
        match self.answer(session.projection(&key)).await {
            // There is no other way to say it, and the component is to end by itself.
            Err(error) if error.code == code::CANCELLED => Ok(None),
            answer => Ok(answer?),
        }
    }
}
