//! Torture for the session store: what a crash, a full disk or a rival can do to it, enumerated rather than sampled.
//!
//! - [`memory`]: a file system in memory that journals every change, and the model of what a crash leaves.
//! - [`crash`]: all crash states of a moment.
//! - [`faults`]: every call fails, in every way.
//! - [`play`]: realistic sessions. [`script`]: what is done with them. [`check`]: what must hold afterwards.
//! - [`writers`]: rival processes.
//!
//! The test run takes a small dose; `cargo xtask torture` the whole.

#![forbid(unsafe_code)]

pub mod check;
pub mod crash;
pub mod faults;
pub mod memory;
pub mod play;
pub mod random;
pub mod script;
pub mod writers;
