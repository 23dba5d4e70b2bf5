//! Where a session may be cut to start another. `spec/session.md` §6.

use std::sync::Arc;

use crate::{Error, Event, Header, Seq, Session};

/// Header and seed of a core fork: everything up to `boundary` (default: the last event). The caller has checked that
/// `child_id` is free. `boundary` is a number as a caller gave it; only a non-negative integer below the length passes.
///
/// # Errors
/// [`Error::Fork`] with code `INVALID_BOUNDARY` or `OPEN_TURN`.
pub fn core_fork(
    source: &Session,
    boundary: Option<f64>,
    child_id: &str,
    created_at: u64,
) -> Result<(Header, Vec<Arc<Event>>), Error> {
    let _ = (source, boundary, child_id, created_at);
    todo!()
}

/// How many events a fork at a point of the conversation inherits: through the first `turn/end` at or after `at` (the
/// last one without `at` or past the end), and on to the next `turn/start`. `None` when no turn ended.
pub fn prompt_fork_cut(log: &[Arc<Event>], at: Option<Seq>) -> Option<usize> {
    let _ = (log, at);
    todo!()
}

/// How many events a forked subagent inherits: through the last `turn/end`, 0 when there is none.
pub fn subagent_fork_cut(log: &[Arc<Event>]) -> usize {
    let _ = log;
    todo!()
}
