//! `work`: the call under way. Always granted.

use crate::contract::v0_1::work;
use crate::instance::State;

super::capability!(work, "work");

/// Bytes of an update; a larger one is dropped, as the contract allows.
const UPDATE: usize = 64 << 10;

impl work::Host for State {
    fn cancelled(&mut self) -> wasmtime::Result<bool> {
        self.called()?;
        Ok(self.ctx.cancel.is_cancelled())
    }

    fn progress(&mut self, update: String) -> wasmtime::Result<()> {
        self.called()?;
        self.takes(update.len())?;
        if let Some(progress) = &self.ctx.ports.progress
            && update.len() <= UPDATE
        {
            progress.progress(&self.row.id, update);
        }
        Ok(())
    }
}
