//! Closers: the events that close a turn that a crash left open. `spec/session.md` §5.1.
//!
//! A pure function of the log, so doing it again gives the same events.

use std::sync::Arc;

use crate::Event;

/// The sentences that tell the model what became of an unfinished call.
#[derive(Clone, Copy, Debug)]
pub struct RepairTexts<'a> {
    /// The call was logged as started; its effect is unknown.
    pub outcome_unknown: &'a str,
    /// The call was never started.
    pub not_started: &'a str,
}

/// The closers of a log, none when its last turn is closed.
pub fn closers(log: &[Arc<Event>]) -> Vec<Arc<Event>> {
    closers_with(
        log,
        RepairTexts {
            outcome_unknown: "",
            not_started: "",
        },
    )
}

/// [`closers`] with other sentences.
pub fn closers_with(log: &[Arc<Event>], texts: RepairTexts<'_>) -> Vec<Arc<Event>> {
    let _ = (log, texts);
    todo!()
}
