//! States that outlive the process: `spec/session.md` §10.3.
//!
//! They go into upstream's cache file, under upstream's keys, where upstream may go
//! on from them. What its format has no place for stands in rows beside them
//! (`dsh_store::projcache::made`): which component with which configuration made a
//! state, as another one's states mean something else, and what is shown of it, as
//! a list of sessions loads no component.
//!
//! All of it can be folded again, so a cache that cannot be read or written costs a
//! warning, once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dsh_session::Header;
use dsh_session::projection::{Row, Rows};
use dsh_store::projcache::{ProjectionCache, WritePoints, made};

use super::cell::Checkpoint;
use super::unit::Unit;

/// How long the last write of a session may take.
pub const LAST_WRITE: Duration = Duration::from_secs(2);

/// Where the states of one session are kept.
pub struct Keep {
    cache: ProjectionCache,
    header: Header,
    /// Whether the session was there before this process.
    old: bool,
    pub(super) points: WritePoints,
    warn: Box<dyn Fn(&str) + Send + Sync>,
    warned: AtomicBool,
}

impl Keep {
    /// In this cache. Of a session that is new (`old` is false) nothing is looked
    /// for. `warn` hears the first thing that goes wrong.
    pub fn new(
        cache: ProjectionCache,
        header: Header,
        old: bool,
        points: WritePoints,
        warn: impl Fn(&str) + Send + Sync + 'static,
    ) -> Self {
        Self {
            cache,
            header,
            old,
            points,
            warn: Box::new(warn),
            warned: AtomicBool::new(false),
        }
    }

    /// What is kept of this session.
    pub(super) async fn read(&self) -> Rows {
        if !self.old {
            return Rows::default();
        }
        let (cache, header) = (self.cache.clone(), self.header.clone());
        let rows = blocking(move || cache.rows(&header)).await;
        match rows {
            Some(Ok(rows)) => rows.unwrap_or_default(),
            Some(Err(error)) => {
                self.warn(&error.to_string());
                Rows::default()
            }
            None => Rows::default(),
        }
    }

    /// Whether it was written.
    pub(super) async fn write(&self, rows: Rows) -> bool {
        let (cache, header) = (self.cache.clone(), self.header.clone());
        match blocking(move || cache.put(&header, &rows)).await {
            Some(Ok(())) => true,
            Some(Err(error)) => {
                self.warn(&error.to_string());
                false
            }
            None => false,
        }
    }

    fn warn(&self, text: &str) {
        if !self.warned.swap(true, Ordering::Relaxed) {
            (self.warn)(text);
        }
    }
}

/// Nothing where the runtime ends meanwhile.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// The row that a unit may go on from in a log of so many events.
pub(super) fn usable<'r>(rows: &'r Rows, unit: &dyn Unit, length: u64) -> Option<&'r Row> {
    let row = rows.get(unit.key())?;
    let fits = row.version == unit.version() && row.as_of.is_none_or(|seq| seq.0 < length);
    let same = unit
        .maker()
        .is_none_or(|maker| made::by(rows, unit.key()) == Some(maker.to_owned()));
    (fits && same).then_some(row)
}

/// Puts a state where the cache has it.
pub(super) fn put(rows: &mut Rows, unit: &dyn Unit, checkpoint: Checkpoint) {
    let Checkpoint { row, view } = checkpoint;
    let made = unit.maker().map(|by| made::row(&row, by, &view));
    rows.set(unit.key(), row);
    if let Some(made) = made {
        rows.set(&made::key(unit.key()), made);
    }
}
