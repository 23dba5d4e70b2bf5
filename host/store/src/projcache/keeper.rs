//! Keeping one session's record current, and answering for a session that is not live.

use std::time::Instant;

use dsh_session::projection::{Projections, Registry, Rows, Snapshot};
use dsh_session::{Error, Event, Header, Log, Seq};

use super::{Due, ProjectionCache, WritePoints};
use crate::StoreError;

/// Follows a live session and writes its record at the write points. It has no clock and no thread: the caller says
/// what time it is, sets the timers and calls [`Keeper::write`] when that is due.
pub struct Keeper {
    cache: ProjectionCache,
    header: Header,
    projections: Projections,
    points: WritePoints,
}

impl Keeper {
    /// Follows a session from `projections` on, which are as of the last event that it has now.
    pub fn new(
        cache: ProjectionCache,
        header: Header,
        projections: Projections,
        points: WritePoints,
    ) -> Keeper {
        Keeper {
            cache,
            header,
            projections,
            points,
        }
    }

    /// An event was committed.
    pub fn event(&mut self, event: &Event, now: Instant) -> Due {
        self.projections.fold(event);
        self.points.event(&event.kind, now)
    }

    /// A timer fired.
    pub fn fired(&mut self, deadline: Instant) -> Due {
        self.points.fired(deadline)
    }

    /// The session goes: one last write may be due.
    pub fn dispose(&mut self) -> Due {
        self.points.dispose()
    }

    /// The values as they are now.
    pub fn projections(&self) -> &Projections {
        &self.projections
    }

    /// One write: takes the checkpoint, flushes the log by `flush`, then replaces the record. Blocks. What is due next
    /// is right whether or not it worked.
    ///
    /// # Errors
    /// What `flush` gave, in which case the cache was not touched, or why the file could not be replaced. Worth a
    /// warning and no more.
    pub fn write(
        &mut self,
        flush: impl FnOnce() -> Result<(), StoreError>,
    ) -> (Due, Result<(), StoreError>) {
        let rows = self.projections.checkpoint();
        self.points.begin();
        let result = flush().and_then(|()| self.cache.put(&self.header, &rows));
        (self.points.finish(result.is_ok()), result)
    }
}

/// The values of a session that is not live: what is cached, and the events after it. A cache that does not help, for
/// whatever reason, costs a fold of the whole log. What comes out is written back; `warn` hears why that failed.
///
/// # Errors
/// The log cannot be read.
pub fn cold_snapshot(
    cache: &ProjectionCache,
    registry: &Registry,
    header: &Header,
    log: &Log,
    warn: impl Fn(&StoreError),
) -> Result<Snapshot, Error> {
    let cached = cache.rows(header).unwrap_or_else(|e| {
        warn(&e);
        None
    });
    let cached = cached.unwrap_or_default();
    let next = Seq(log.len());
    let restore =
        |rows: &Rows, base: Seq| registry.restore(rows, base, next, log.events_from(base));
    let floor = registry.restore_floor(&cached).unwrap_or_default();
    let projections = restore(&cached, floor).or_else(|_| restore(&Rows::default(), Seq(0)))?;
    let rows = projections.checkpoint();
    if rows != cached
        && let Err(e) = cache.put(header, &rows)
    {
        warn(&e);
    }
    Ok(projections.snapshot())
}
