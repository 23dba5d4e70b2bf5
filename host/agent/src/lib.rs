//! The turn driver: what happens between a message in the inbox and an answer
//! in the log.
//!
//! An [`Agent`] owns one session's run. Input waits in its inbox; a driver takes
//! it up in *turns*, a turn is a sequence of *steps*, and a step is one model
//! answer with the tools that it calls. Read `step.rs` for the way of the data,
//! `turn.rs` for what strings steps together, `agent.rs` for who starts and ends
//! turns, `tools/` for how calls run.
//!
//! What this crate promises:
//! - **The order is the contract.** Events come in the order of `spec/loop.md`
//!   §3 on every path; each `turn/start` has one `turn/end`, each `step/start`
//!   one `step/end`, each call of an answer one result (but where the log itself
//!   fails).
//! - **Model-visible means logged.** A request is made of the surface, and is
//!   compared with the log once more before it goes out.
//! - **Nothing that was sent in is lost.** Input is claimed, put back, discarded
//!   on request or refused, and the log says which.
//! - **Cancelling works from anywhere**: every wait of a turn watches its
//!   [`Signal`]; what was started is waited for, what was not is not started.
//! - **Delegation is the default.** A listener that does nothing changes
//!   nothing; one that fails refuses what it guards or is left out, by the
//!   event's rule.
//!
//! The parts come from outside: [`Parts`] takes the session's [`Log`], the
//! routes (`dsh-model`), the tools, prompts and listeners that rows provide, and
//! who they run for. Nothing here does I/O.

#![forbid(unsafe_code)]

mod agent;
mod approval;
mod auxiliary;
mod cancel;
mod check;
mod config;
mod error;
mod greeting;
mod inbox;
mod inbox_port;
mod last_request;
mod log;
mod message;
mod outcome;
mod ports;
mod request;
mod retry;
mod row_watch;
mod session_start;
mod state;
mod step;
mod stream;
mod titles;
mod turn;

pub mod compaction;
pub mod dispatch;
pub mod projection;
pub mod prompt;
pub mod tools;

pub use agent::{Agent, AgentConfig, Parts, StartSource};
pub use approval::{ApprovalOutcome, Approvals, Ask};
pub use auxiliary::{LLM_REQUEST, LLM_RESPONSE, LlmPort};
pub use cancel::{CancelCause, Signal};
pub use check::check;
pub use dsh_session::Target;
pub use error::AgentError;
pub use inbox_port::InboxPort;
pub use last_request::last_request;
pub use log::{Clock, Durability, EventSink, Log, NoDurability, SystemClock};
pub use message::{Message, text_block};
pub use outcome::{RunError, RunOutcome};
pub use ports::{CallIdentity, JournalPort, SessionPort};
pub use row_watch::{ROW_QUARANTINED, RowWatch};
pub use session_start::{Preset, pin_permissions};
pub use state::Status;
pub use titles::{Proposer, TitleParts, Titler};

#[cfg(test)]
mod tests;
