//! The units of `dsh-session`, as the registry takes them.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_session::projection::{Look, State, Unit as Native};
use dsh_session::{Json, Kind, Seq};
use tokio_util::sync::CancellationToken;

use super::unit::{Fault, Stretch, Unit};

/// A unit of the host's own.
pub(super) struct HostUnit(pub(super) Arc<dyn Native>);

impl HostUnit {
    fn state(&self, state: &Json, as_of: Option<Seq>) -> Result<Box<dyn State>, Fault> {
        self.0
            .parse(state.value(), as_of)
            .ok_or_else(|| Fault::Failed("its state is malformed".to_owned()))
    }
}

#[async_trait]
impl Unit for HostUnit {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn version(&self) -> u64 {
        self.0.version()
    }

    fn reads(&self, kind: &Kind) -> bool {
        self.0.reads().contains(kind)
    }

    /// A price that compaction names is good for the next event alone.
    fn sees_all(&self) -> bool {
        true
    }

    fn maker(&self) -> Option<&str> {
        None
    }

    async fn fold(&self, stretch: Stretch<'_>) -> Result<Json, Fault> {
        let mut state = match stretch.state {
            None => self.0.init(),
            Some(state) => self.state(state, stretch.as_of)?,
        };
        for event in stretch.events {
            state
                .apply(&Look::new(event))
                .map_err(|error| Fault::NoValue(error.to_string()))?;
        }
        Ok(state.json(stretch.end))
    }

    async fn view(
        &self,
        state: &Json,
        as_of: Option<Seq>,
        _: &CancellationToken,
    ) -> Result<Json, Fault> {
        Ok(self.state(state, as_of)?.view())
    }
}
