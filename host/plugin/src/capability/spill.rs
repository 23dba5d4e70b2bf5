//! `spill`: where text too long for the model is kept. Granted by `spill`.

use super::Phase;
use crate::api::PluginError;
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
