//! Files behind the session's write fence, and commands under the session's
//! sandbox mode.
//!
//! One [`Sandbox`] a process knows the machine: where `$DSH_HOME` is, which
//! runner confines commands here, what environment they start from. It makes a
//! [`SessionSandbox`] for each agent, which is what the ports `workspace`,
//! `process` and `spill` of the plugin contract are linked to.
//!
//! What it promises:
//! - Nothing is written below `$DSH_HOME`, and its secrets are not read, by any
//!   file access, nor by a command that is confined (`fence`; for what Landlock
//!   alone leaves readable see `helper`).
//! - A file is replaced whole or not at all, and only if it still is what its
//!   writer took it for (`write`).
//! - A command that cannot be confined as its mode says is not run.
//! - When a command has ended, so has everything that it started.
//!
//! The host's `main` must hand its arguments to [`landlock_exec_main`] first of
//! all when [`HELPER_ARGUMENT`] leads them: confining and supervising a command
//! is done by a re-exec of the same program.

#![forbid(unsafe_code)]

mod bwrap;
mod capabilities;
mod capture;
mod check;
mod environment;
mod error;
mod fence;
mod files;
mod glob;
mod grep;
mod helper;
mod job;
mod mode;
mod names;
mod observe;
mod ports;
mod resolve;
mod runner;
mod search;
mod session;
mod spill;
mod tree;
mod write;

pub use error::Error;
pub use fence::{Fence, Refusal, is_secret};
pub use helper::{HELPER_ARGUMENT, landlock_exec_main};
pub use mode::{Mode, UnknownMode};
pub use names::Alias;
pub use observe::{Expect, Intent, Operation, Unguarded, WritePolicy};
pub use session::{
    Enforcement, Escalation, OutputSink, RunnerKind, Sandbox, SandboxConfig, SessionConfig,
    SessionSandbox, Stream,
};
