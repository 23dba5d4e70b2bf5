//! From decoded events to a log that a session accepts. `spec/session.md` §9.8, the middle of the pipeline:
//! removed vocabulary, migration, message shape, known kinds.

use std::sync::Arc;

use crate::{Error, Event, Header, Stored};

/// A decoded log that passed the reader's checks.
pub struct Interpreted {
    /// The events, upgraded where they had an older shape.
    pub events: Vec<Arc<Event>>,
    /// How many were upgraded.
    pub migrated: usize,
}

/// Upgrades and checks a decoded log.
///
/// # Errors
/// The first fault, in the order of §9.8; see [`Error::class`] for how to report it.
pub fn interpret(header: &Header, stored: Vec<Stored>) -> Result<Interpreted, Error> {
    let _ = (header, stored);
    todo!()
}

/// Refuses a required event of an unknown kind (§1.4).
///
/// # Errors
/// [`Error::UnknownKind`].
pub fn check_known(events: &[Arc<Event>]) -> Result<(), Error> {
    let _ = events;
    todo!()
}
