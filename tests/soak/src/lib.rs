//! Does a call survive, and does the harness last?
//!
//! Real parts from the adapter component to the file: components, transport, routes, the retry component, the agent, its
//! log and the store. Only the provider is made up: a server on loopback that speaks all four protocols.
//!
//! - [`rig`]: the parts, put together for conversations with any protocol.
//! - [`weather`]: what the provider does to a request, by a seeded throw.
//! - [`soak`]: conversations until so many requests were made; afterwards every session is sound and nothing is left
//!   over: no descriptor, task, attempt or memory.
//!
//! `tests/retry.rs` has the matrix of failures and protocols on the same rig. The test run takes a small dose of the
//! soak; `cargo xtask soak` the whole.

#![forbid(unsafe_code)]

pub mod leaks;
pub mod rig;
pub mod soak;
pub mod weather;
