//! Chunk rows: runs of streamed chunks written as one line. `spec/session.md` §7. Storage only, decided per batch.

use std::sync::Arc;

use crate::{Error, Event, Stored, Value};

/// Appends the lines of one batch to `out`, each with its newline, runs of three and more chunks as rows when `pack`.
/// Returns the number of lines.
pub fn write_batch(events: &[Arc<Event>], pack: bool, out: &mut String) -> usize {
    let _ = (events, pack, out);
    todo!()
}

/// Decodes one stored value: a row gives its events, anything else gives itself.
///
/// # Errors
/// [`Error::Envelope`] for a malformed row.
pub fn decode(value: Value<'_>, out: &mut Vec<Stored>) -> Result<(), Error> {
    let _ = (value, out);
    todo!()
}
