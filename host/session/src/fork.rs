//! Where a session may be cut to start another. `spec/session.md` §6.
//!
//! A fork inherits a prefix of the log as its seed. Whether an id is free or a session is live is known to whoever holds
//! the sessions; that is not checked here. Only the length of the prefix is found: whoever forks takes the events from the
//! log one by one.

use crate::{Error, Header, Kind, Log, MAX_SAFE_INTEGER, Seq, Session};

/// Header of a core fork, which says in `seed_length` how many events it inherits: everything up to `boundary` (default:
/// the last event). `boundary` is a number as a caller gave it; only a seq of the log passes, and only outside a turn.
///
/// # Errors
/// [`Error::Fork`] with code `INVALID_BOUNDARY` or `OPEN_TURN`; [`Error::Archive`].
pub fn core_fork(
    source: &Session,
    boundary: Option<f64>,
    child_id: &str,
    created_at: u64,
) -> Result<Header, Error> {
    let length = source.next_seq().0;
    let fault = |code, what| Error::Fork {
        code,
        session: source.id().to_string(),
        what,
    };
    let count = match boundary {
        None => length,
        Some(at)
            if at.fract() != 0.0 || at < 0.0 || at > MAX_SAFE_INTEGER as f64 || at.is_nan() =>
        {
            let what = format!("boundary must be a non-negative safe integer, got {at}");
            return Err(fault("INVALID_BOUNDARY", what));
        }
        Some(at) if at >= length as f64 => {
            let what = format!("boundary {at} does not exist, the log has {length} events");
            return Err(fault("INVALID_BOUNDARY", what));
        }
        Some(at) => at as u64 + 1,
    };
    let mut edge = None;
    for event in source.log().events_before(Seq(count)) {
        let event = event?;
        if matches!(event.kind, Kind::TurnStart | Kind::TurnEnd) {
            edge = Some(event);
            break;
        }
    }
    if edge.is_some_and(|event| event.kind == Kind::TurnStart) {
        let what = "the boundary lies inside an open turn; fork after its turn/end".to_owned();
        return Err(fault("OPEN_TURN", what));
    }
    let mut header = Header::new(child_id, created_at);
    header.cwd = source.header().cwd.clone();
    header.parent_session = Some(source.id().clone());
    header.seed_length = Some(count);
    Ok(header)
}

/// How many events a fork at a point of the conversation inherits: through the first `turn/end` at or after `at` (the
/// last one without `at` or past the end), and on to the next `turn/start`, so that a title right after the turn comes
/// along. `None` when there is no such turn end.
///
/// # Errors
/// [`Error::Archive`].
pub fn prompt_fork_cut(log: &Log, at: Option<Seq>) -> Result<Option<u64>, Error> {
    let end = match at.filter(|at| at.0 < log.len()) {
        Some(at) => first(log, at, &Kind::TurnEnd)?,
        None => last_turn_end(log)?,
    };
    let Some(end) = end else {
        return Ok(None);
    };
    let next = first(log, end, &Kind::TurnStart)?;
    Ok(Some(next.map_or(log.len(), |seq| seq.0)))
}

/// How many events a forked subagent inherits: through the last `turn/end`, 0 when there is none.
///
/// # Errors
/// [`Error::Archive`].
pub fn subagent_fork_cut(log: &Log) -> Result<u64, Error> {
    Ok(last_turn_end(log)?.map_or(0, |end| end.0 + 1))
}

fn first(log: &Log, from: Seq, kind: &Kind) -> Result<Option<Seq>, Error> {
    for event in log.events_from(from) {
        let event = event?;
        if event.kind == *kind {
            return Ok(Some(event.seq));
        }
    }
    Ok(None)
}

fn last_turn_end(log: &Log) -> Result<Option<Seq>, Error> {
    for event in log.events_before(Seq(log.len())) {
        let event = event?;
        if event.kind == Kind::TurnEnd {
            return Ok(Some(event.seq));
        }
    }
    Ok(None)
}
