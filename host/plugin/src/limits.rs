//! What a row may use up.

use std::time::Duration;

use serde_json::Value;

use crate::error::Error;

/// Bounds on an instance and on each call of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all linear memories of an instance together.
    pub memory: u64,
    /// Time in the component, without time in imports.
    pub cpu: Duration,
    /// The whole call on the wall clock; a tool's run has none of it.
    pub call: Duration,
    /// Bytes that a call may hand over, in one import or as its result.
    pub output: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            memory: 64 << 20,
            cpu: Duration::from_secs(5),
            call: Duration::from_secs(30),
            output: 16 << 20,
        }
    }
}

impl Limits {
    /// From a row's or a manifest's `limits`, laid over `self`.
    ///
    /// # Errors
    /// A name that no limit has, or a value that is not of its shape.
    pub fn with(self, _value: &Value) -> Result<Self, Error> {
        todo!()
    }
}
