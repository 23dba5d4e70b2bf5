//! `spill`: where text too long for the model is kept. Granted by `spill`.

use std::sync::atomic::Ordering;

use super::Phase;
use crate::api::{PluginError, code};
use crate::contract::v0_1::{spill, types};
use crate::instance::State;

super::capability!(spill, "spill");

impl spill::Host for State {
    async fn store(
        &mut self,
        name: String,
        content: Vec<u8>,
    ) -> wasmtime::Result<Result<String, types::Error>> {
        self.require(Phase::Work, "spill.store")?;
        self.takes(name.len() + content.len())?;
        if let Some(quota) = self.row.grants.spill_quota {
            let bytes = content.len() as u64;
            let before = self.row.spilled.fetch_add(bytes, Ordering::Relaxed);
            if before.saturating_add(bytes) > quota {
                self.row.spilled.fetch_sub(bytes, Ordering::Relaxed);
                let message = format!(
                    "row {} may keep {quota} bytes in all: its grant `spill` says so",
                    self.row.id
                );
                return Ok(Err(PluginError::new(code::LIMIT, message).into()));
            }
        }
        let Some(port) = self.ctx.ports.spill.clone() else {
            return Ok(Err(
                PluginError::unavailable("place for spilled text").into()
            ));
        };
        Ok(self
            .answer(port.store(&name, content))
            .await
            .map_err(Into::into))
    }
}
