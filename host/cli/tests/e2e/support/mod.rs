//! What the tests share: a place to run in, the process, the provider's words,
//! the log that is left.

mod log;
mod machine;
mod plugin;
mod run;
mod say;
mod scratch;
mod shelf;
mod sign;

pub(crate) use log::{Record, data, kinds, kinds_with_one_chunk};
pub(crate) use machine::can_confine;
pub(crate) use plugin::{CORE, COUNTER, TODO, counter, greedy, made, replaced, todo, with_section};
pub(crate) use run::{Dsh, Ended, Running, wait_until};
pub(crate) use say::say;
pub(crate) use scratch::{Scratch, root};
pub(crate) use shelf::{event, header, photograph, said, spoken, turn};
pub(crate) use sign::Signer;
