//! `wasi:random`: bytes that come of the session, the row and the call, or real
//! ones under the grant `random`.
//!
//! Ungranted they are the same whenever the call is made again, and are nobody's
//! secret: a component that makes keys needs the grant, and is not told that it
//! has not got it, as none of its toolchain's start-up code could tell anybody.

use blake3::OutputReader;
use wasmtime_wasi::p2::bindings::random::{insecure, insecure_seed, random};

use crate::capability::Phase;
use crate::instance::State;

/// Bytes of a call, one after another.
pub(super) struct Generator(OutputReader);

impl Generator {
    pub(super) fn new(row: &str, seed: u64) -> Self {
        let mut hasher = blake3::Hasher::new_derive_key("dsh wasi random 1");
        hasher.update(&seed.to_le_bytes());
        hasher.update(row.as_bytes());
        Self(hasher.finalize_xof())
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        self.0.fill(bytes);
    }
}

/// More bytes were asked for than a call may be handed at once.
#[derive(Debug, thiserror::Error)]
#[error("it asked for {0} random bytes at once")]
struct TooMany(u64);

/// The machine has none to give.
#[derive(Debug, thiserror::Error)]
#[error("the machine gives no random bytes: {0}")]
struct NoBytes(String);

impl State {
    fn random(&mut self, bytes: &mut [u8]) -> wasmtime::Result<()> {
        let real = self.phase >= Phase::Work && self.row.grants.has("random");
        let generator = &mut self.standing().random;
        if real {
            getrandom::fill(bytes).map_err(|error| NoBytes(error.to_string()))?;
        } else {
            generator.fill(bytes);
        }
        Ok(())
    }

    fn random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        let allowed = self.row.limits.text;
        let length = usize::try_from(count).ok().filter(|_| count <= allowed);
        let mut bytes = vec![0; length.ok_or(TooMany(count))?];
        self.random(&mut bytes)?;
        Ok(bytes)
    }

    fn random_number(&mut self) -> wasmtime::Result<u64> {
        let mut bytes = [0; 8];
        self.random(&mut bytes)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

impl random::Host for State {
    fn get_random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        self.random_bytes(count)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.random_number()
    }
}

impl insecure::Host for State {
    fn get_insecure_random_bytes(&mut self, count: u64) -> wasmtime::Result<Vec<u8>> {
        self.random_bytes(count)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        self.random_number()
    }
}

impl insecure_seed::Host for State {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.random_number()?, self.random_number()?))
    }
}
