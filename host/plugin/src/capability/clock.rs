//! `clock`: real time. Granted by `clock`.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::Phase;
use crate::contract::v0_1::{clock, types};
use crate::instance::State;

super::capability!(clock, "clock");

impl clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<f64> {
        self.require(Phase::Translate, "clock.now")?;
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        Ok((now.as_secs_f64() * 1000.0).floor())
    }

    async fn wait(&mut self, ms: u32) -> wasmtime::Result<Result<(), types::Error>> {
        self.require(Phase::Work, "clock.wait")?;
        let time = Duration::from_millis(ms.into());
        self.meter.waits(time);
        let slept = async {
            tokio::time::sleep(time).await;
            Ok(())
        };
        Ok(self.answer(slept).await.map_err(Into::into))
    }
}
