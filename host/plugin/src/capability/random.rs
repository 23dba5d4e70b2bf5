//! `random`: bytes that nobody can guess. Granted by `random`.

use super::Phase;
use crate::contract::v0_1::random;
use crate::instance::State;

super::capability!(random, "random");

/// Bytes of one call.
const MAX: u32 = 1 << 20;

impl random::Host for State {
    fn bytes(&mut self, count: u32) -> wasmtime::Result<Vec<u8>> {
        self.require(Phase::Work, "random.bytes")?;
        wasmtime::ensure!(
            count <= MAX,
            "it asked for {count} random bytes, and {MAX} are allowed"
        );
        let mut bytes = vec![0; count as usize];
        getrandom::fill(&mut bytes)
            .map_err(|error| wasmtime::format_err!("no randomness: {error}"))?;
        Ok(bytes)
    }

    fn uuid(&mut self) -> wasmtime::Result<String> {
        self.require(Phase::Work, "random.uuid")?;
        Ok(uuid::Uuid::new_v4().to_string())
    }
}
