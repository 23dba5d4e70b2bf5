//! The event log of an agent session, and everything that folds from it.
//!
//! A session is an append-only list of [`Event`]s. Three kinds of them are *surface* events: what the model sees is
//! derived from those and from nothing else ([`Session::messages`]). All other state of a run (request header, inbox,
//! title, …) is a fold over the same list, so whoever holds the log holds the session.
//!
//! What this crate promises:
//! - [`Session::append`] is the only mutator. It validates, then commits; a refused draft leaves no trace.
//! - Event data is text ([`Json`]): always valid, always in the one normal form that the log is written in. Typed views
//!   ([`Value`], [`JStr`]) are read from it on demand; no tree is kept.
//! - What is old of a long [`Log`] may stay where it is stored (an [`Archive`]); reading it can fail, folding it was done.
//! - [`Messages`] can only be made by a session. Its digest covers every message, and costs what is new to keep.
//! - What a list or a client shows of a session is a read model ([`projection`]): folded event by event, or taken up
//!   again from a cached state.
//! - Nothing here does I/O, reads a clock, allocates ids, or blocks: time and ids are arguments.
//! - Bad input is an [`Error`] with a stable [`Error::code`], never a panic; nesting depth is not limited by the stack.
//!
//! The rules are those of `spec/session.md`; the sections are named where they are embodied.

#![forbid(unsafe_code)]

mod closers;
mod error;
mod event;
mod fold;
mod fold_bytes;
mod fork;
mod header;
mod inbox;
mod interpret;
mod json;
mod kind;
mod legacy;
mod log;
mod message;
mod messages;
mod request;
mod session;
mod stretch;
mod surface;
mod unentered;
mod work;

pub mod estimate;
pub mod meter;
pub mod projection;
pub mod rows;
pub mod scan;
pub mod title;

pub use closers::{OpenTurn, REPAIR_TEXTS, RepairTexts, closers, closers_with};
pub use error::{Error, ErrorClass, SurfaceFault};
pub use event::{Draft, Event, Seq, Stored, SurfaceOp};
pub use fold::Fold;
pub use fork::{core_fork, prompt_fork_cut, subagent_fork_cut};
pub use header::{Header, Origin};
pub use inbox::{Claimed, Inbox, Splice, Target};
pub use interpret::{Interpreted, check_known, interpret, interpret_prefix, is_current};
#[doc(hidden)]
pub use json::json_judged;
pub use json::{
    ArrayWriter, Entries, Items, JStr, Json, JsonError, Kind as ValueKind, ObjectWriter, Value,
};
pub use kind::Kind;
pub use log::{Archive, Events, EventsBefore, Log, Piece};
pub use messages::{Digest, Message, Messages};
pub use request::{RequestContext, RequestHeader};
pub use session::Session;
pub use stretch::{Stretch, StretchScanner};
pub use surface::Surface;
pub use work::ConsumedWork;

/// What [`Session::append`] fails with.
pub type AppendError = Error;

/// The largest integer that every reader of the log holds exactly: 2^53 - 1.
pub const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;
