//! Read models of a running session: views that are folded from its log, by the
//! host or by components (`spec/session.md` §10.2).
//!
//! Nobody waits for a fold but who asks for a view. The log is the queue: a cell
//! knows how far it has come, and takes what is new when [`BATCH`] events have
//! gathered, when the cache is due (`keep`), or when it is asked; so a state is
//! never older than the cache's interval, and a burst of chunks costs one call. A
//! session that is taken up again goes on from the cache's mark in the same way: to
//! a cell, what is old of a log and what is new of it differ only in where they are
//! read from.
//!
//! Cells do not wait for each other. One that fails has no value in this log; what
//! fails for good is the row's, which is put out of use and reported as any other
//! ([`dsh_plugin::port::Watch`]). The run never hears of it.
//!
//! The host folds `title` and `contextBreakdown` itself; all else comes from rows.

mod cell;
mod component;
mod keep;
mod native;
mod registry;
mod unit;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Mutex, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use dsh_session::projection::{Rows, Snapshot};
use dsh_session::{Event, Json, Seq};
use dsh_store::projcache::WritePoints;
use futures_util::future::join_all;
use tokio::sync::{Notify, OnceCell};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::log::{EventSink, Log};
use cell::{At, Cell};

pub use component::ComponentUnit;
pub use keep::{Keep, LAST_WRITE};
pub use registry::{Registry, Taken};
pub use unit::{DEEPEST, Fault, LARGEST, Stretch, Unit};

/// Events that gather before they are folded.
pub const BATCH: u64 = 128;

/// Bytes of events that are handed over in one go; a single one may have more.
const BATCH_BYTES: usize = 1 << 20;

/// The read models of one session.
pub struct Projections {
    log: Arc<Log>,
    cells: Vec<Cell>,
    keep: Option<Keep>,
    points: Mutex<Points>,
    wake: Notify,
    /// The follower is to end.
    closing: CancellationToken,
    /// What it waits for is to be given up.
    ended: CancellationToken,
    follower: Mutex<Option<JoinHandle<()>>>,
    /// Done once: cells were set to what is cached.
    restored: OnceCell<()>,
    /// The log as it was when this process took it up, to read old events from
    /// without holding the session.
    stored: OnceLock<dsh_session::Log>,
}

/// When to fold and when to write.
struct Points {
    /// Events since the start.
    events: u64,
    write: WritePoints,
    timer: Option<Instant>,
    due: bool,
}

impl Projections {
    /// Follows a log from now on, what is in it already included. With `keep`,
    /// states come from the cache and go there. Must be called inside a runtime.
    pub fn start(log: Arc<Log>, registry: Registry, keep: Option<Keep>) -> Arc<Self> {
        let points = keep
            .as_ref()
            .map_or_else(WritePoints::default, |keep| keep.points.clone());
        let projections = Arc::new(Self {
            cells: registry.into_units().map(Cell::new).collect(),
            points: Mutex::new(Points {
                events: 0,
                write: points,
                timer: None,
                due: false,
            }),
            wake: Notify::new(),
            closing: CancellationToken::new(),
            ended: CancellationToken::new(),
            follower: Mutex::default(),
            restored: OnceCell::new(),
            stored: OnceLock::new(),
            keep,
            log,
        });
        let follower = tokio::spawn(Arc::clone(&projections).follow());
        *lock(&projections.follower) = Some(follower);
        let sink = Counting(Arc::downgrade(&projections));
        projections.log.attach(Arc::new(sink));
        projections
    }

    /// The view of a key, folded up to the log's end as it is now; none where
    /// nothing folds the key, or this log has no such value.
    pub async fn view(&self, key: &str) -> Option<Json> {
        let cell = self.cells.iter().find(|cell| cell.unit.key() == key)?;
        let until = self.length();
        // A cached state that turns out to be none costs a second round.
        for _ in 0..2 {
            self.bring(&[cell], until).await.ok()?;
            if let Some(view) = cell.view(&self.ended).await {
                return Some(view);
            }
        }
        None
    }

    /// All views, folded up to the log's end as it is now.
    pub async fn snapshot(&self) -> Snapshot {
        let until = self.length();
        let mut values = Vec::new();
        for cell in &self.cells {
            if let Some(view) = self.view(cell.unit.key()).await {
                values.push((Arc::from(cell.unit.key()), view));
            }
        }
        Snapshot {
            as_of: until.checked_sub(1).map(Seq),
            values,
        }
    }

    /// Why a key has no value in this log.
    pub async fn fault(&self, key: &str) -> Option<Fault> {
        let cell = self.cells.iter().find(|cell| cell.unit.key() == key)?;
        cell.fault().await
    }

    /// Ends following; what is not in the cache yet is written, within a bound.
    /// Views can be asked for still.
    pub async fn close(&self) {
        self.close_within(LAST_WRITE).await;
    }

    async fn close_within(&self, limit: Duration) {
        self.closing.cancel();
        let follower = lock(&self.follower).take();
        if let Some(mut follower) = follower
            && tokio::time::timeout(limit, &mut follower).await.is_err()
        {
            self.ended.cancel();
            follower.abort();
        }
    }

    fn length(&self) -> u64 {
        self.log.read(|session| session.next_seq().0)
    }

    /// Waits for what is to be done, and does it.
    async fn follow(self: Arc<Self>) {
        loop {
            let timer = lock(&self.points).timer;
            let alarm = async {
                match timer {
                    Some(at) => tokio::time::sleep_until(at.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                () = self.closing.cancelled() => break,
                () = self.wake.notified() => {}
                () = alarm => self.fired(timer),
            }
            self.catch_up().await;
        }
        let last = {
            let mut points = lock(&self.points);
            points.due |= points.write.dispose().write;
            points.due
        };
        if last {
            self.catch_up().await;
        }
    }

    fn fired(&self, timer: Option<Instant>) {
        let mut points = lock(&self.points);
        let Some(at) = timer else { return };
        points.due |= points.write.fired(at).write;
        if points.timer == timer {
            points.timer = None;
        }
    }

    /// Folds what there is, and writes it where that is due.
    async fn catch_up(&self) {
        let cells: Vec<&Cell> = self.cells.iter().collect();
        loop {
            // Counting starts again before the log's end is looked at: what comes
            // later is for the next write.
            let write = self.begins();
            let brought = self.bring(&cells, self.length()).await;
            if !write {
                return;
            }
            let written = brought.is_ok() && self.write().await;
            let mut points = lock(&self.points);
            points.due |= points.write.finish(written).write;
            if brought.is_err() {
                return;
            }
        }
    }

    /// Whether a write is due, which then begins.
    fn begins(&self) -> bool {
        let mut points = lock(&self.points);
        let due = std::mem::take(&mut points.due);
        if due {
            points.write.begin();
        }
        due
    }

    /// Brings cells up to `until`, which is no further than the log's end.
    async fn bring(&self, cells: &[&Cell], until: u64) -> Result<(), Fault> {
        self.restored.get_or_init(|| self.restore()).await;
        loop {
            let mut from = until;
            for cell in cells {
                if let At::Next(next) = cell.at().await {
                    from = from.min(next);
                }
            }
            if from >= until {
                return Ok(());
            }
            self.feed(cells, from, until).await?;
        }
    }

    /// Hands the events from `from` on to cells, a batch at a time.
    async fn feed(&self, cells: &[&Cell], from: u64, until: u64) -> Result<(), Fault> {
        let live = self.log.read(|session| session.first_live_seq().0);
        let unreadable = |error: dsh_session::Error| Fault::Failed(error.to_string());
        let mut first = from;
        if first < live {
            let stored = self
                .stored
                .get_or_init(|| self.log.read(|session| session.log().clone()));
            let mut events = stored.events_from(Seq(first));
            while first < live.min(until) {
                let batch = batch(&mut events, live.min(until) - first).map_err(unreadable)?;
                first = self.hand(cells, first, &batch).await?;
            }
        }
        while first < until {
            let batch = self.log.read(|session| {
                let mut events = session.live_from(Seq(first)).iter().cloned().map(Ok);
                batch(&mut events, until - first)
            });
            first = self.hand(cells, first, &batch.map_err(unreadable)?).await?;
        }
        Ok(())
    }

    async fn hand(&self, cells: &[&Cell], first: u64, batch: &[Arc<Event>]) -> Result<u64, Fault> {
        if batch.is_empty() {
            return Err(Fault::Failed("the log ends before its end".to_owned()));
        }
        let taken = cells
            .iter()
            .map(|cell| cell.take(first, batch, &self.ended));
        for taken in join_all(taken).await {
            taken?;
        }
        Ok(first + batch.len() as u64)
    }

    /// Sets cells to what the cache has of this very log.
    async fn restore(&self) {
        let Some(keep) = &self.keep else { return };
        let rows = keep.read().await;
        let length = self.length();
        for cell in &self.cells {
            if let Some(row) = keep::usable(&rows, &*cell.unit, length) {
                cell.restore(row.clone()).await;
            }
        }
    }

    /// One write: checkpoint, flush, file. The cache is never ahead of the log.
    async fn write(&self) -> bool {
        let Some(keep) = &self.keep else { return true };
        let mut rows = Rows::default();
        for cell in &self.cells {
            if let Some(checkpoint) = cell.checkpoint(&self.ended).await {
                keep::put(&mut rows, &*cell.unit, checkpoint);
            }
        }
        // Who cannot write the log says so itself.
        self.log.barrier().await.is_ok() && keep.write(rows).await
    }
}

/// The next events, as many as go in one batch.
fn batch(
    events: &mut dyn Iterator<Item = Result<Arc<Event>, dsh_session::Error>>,
    most: u64,
) -> Result<Vec<Arc<Event>>, dsh_session::Error> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    while (batch.len() as u64) < most.min(BATCH) && bytes < BATCH_BYTES {
        let Some(event) = events.next().transpose()? else {
            break;
        };
        bytes += event.data.as_str().len();
        batch.push(event);
    }
    Ok(batch)
}

/// Counts events as they are committed.
struct Counting(Weak<Projections>);

impl EventSink for Counting {
    fn event(&self, event: &Arc<Event>) {
        let Some(projections) = self.0.upgrade() else {
            return;
        };
        let mut points = lock(&projections.points);
        points.events += 1;
        let mut wake = points.events.is_multiple_of(BATCH);
        if projections.keep.is_some() {
            let due = points.write.event(&event.kind, Instant::now());
            points.due |= due.write;
            if due.arm.is_some() {
                points.timer = due.arm;
            }
            wake |= due.write || due.arm.is_some();
        }
        if wake {
            projections.wake.notify_one();
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
