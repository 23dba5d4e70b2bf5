//! Where a session may be cut to start another. `spec/session.md` §6.
//!
//! A fork inherits a prefix of the log as its seed. Whether an id is free or a session is live is known to whoever holds
//! the sessions; that is not checked here.

use std::sync::Arc;

use crate::{Error, Event, Header, Kind, MAX_SAFE_INTEGER, Seq, Session};

/// Header and seed of a core fork: everything up to `boundary` (default: the last event). `boundary` is a number as a
/// caller gave it; only a seq of the log passes, and only outside a turn.
///
/// # Errors
/// [`Error::Fork`] with code `INVALID_BOUNDARY` or `OPEN_TURN`.
pub fn core_fork(
    source: &Session,
    boundary: Option<f64>,
    child_id: &str,
    created_at: u64,
) -> Result<(Header, Vec<Arc<Event>>), Error> {
    let log = source.events();
    let fault = |code, what| Error::Fork {
        code,
        session: source.id().to_string(),
        what,
    };
    let count = match boundary {
        None => log.len(),
        Some(at)
            if at.fract() != 0.0 || at < 0.0 || at > MAX_SAFE_INTEGER as f64 || at.is_nan() =>
        {
            let what = format!("boundary must be a non-negative safe integer, got {at}");
            return Err(fault("INVALID_BOUNDARY", what));
        }
        Some(at) if at >= log.len() as f64 => {
            let what = format!(
                "boundary {at} does not exist, the log has {} events",
                log.len()
            );
            return Err(fault("INVALID_BOUNDARY", what));
        }
        Some(at) => at as usize + 1,
    };
    let seed = &log[..count];
    let edge = seed
        .iter()
        .rfind(|event| matches!(event.kind, Kind::TurnStart | Kind::TurnEnd));
    if edge.is_some_and(|event| event.kind == Kind::TurnStart) {
        let what = "the boundary lies inside an open turn; fork after its turn/end".to_owned();
        return Err(fault("OPEN_TURN", what));
    }
    let mut header = Header::new(child_id, created_at);
    header.cwd = source.header().cwd.clone();
    header.parent_session = Some(source.id().clone());
    header.seed_length = Some(count as u64);
    Ok((header, seed.to_vec()))
}

/// How many events a fork at a point of the conversation inherits: through the first `turn/end` at or after `at` (the
/// last one without `at` or past the end), and on to the next `turn/start`, so that a title right after the turn comes
/// along. `None` when there is no such turn end.
pub fn prompt_fork_cut(log: &[Arc<Event>], at: Option<Seq>) -> Option<usize> {
    let is_end = |event: &Arc<Event>| event.kind == Kind::TurnEnd;
    let start = at
        .and_then(|seq| usize::try_from(seq.0).ok())
        .filter(|start| *start < log.len());
    let end = match start {
        Some(start) => start + log[start..].iter().position(is_end)?,
        None => log.iter().rposition(is_end)?,
    };
    let next = log[end..]
        .iter()
        .position(|event| event.kind == Kind::TurnStart);
    Some(next.map_or(log.len(), |offset| end + offset))
}

/// How many events a forked subagent inherits: through the last `turn/end`, 0 when there is none.
pub fn subagent_fork_cut(log: &[Arc<Event>]) -> usize {
    log.iter()
        .rposition(|event| event.kind == Kind::TurnEnd)
        .map_or(0, |end| end + 1)
}
