//! Policies that every run has, as listeners: they come in by the same door as
//! a component's, and may become one.

mod spill;
mod timeout;

pub use spill::{MAX_INLINE_BYTES, SpillPolicy};
pub use timeout::TimeoutPolicy;
