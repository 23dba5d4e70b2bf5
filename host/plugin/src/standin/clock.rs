//! `wasi:clocks`: time that stands still, or real time under the grant `clock`.
//!
//! The wall clock shows the time of the session's newest event. The monotonic
//! clock starts at the same reading in every instance, and moves only when the
//! component waits: waiting ends at once and the clock is on by what was waited,
//! so that a loop until a deadline ends, and no time can be measured. Of several
//! waits at once the earliest ends first, as it would.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wasmtime::component::Resource;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::p2::bindings::clocks::{monotonic_clock, wall_clock};
use wasmtime_wasi::p2::{DynPollable, Pollable, subscribe};

use crate::capability::Phase;
use crate::instance::State;

/// Where there is no event: the first day of 2025, in milliseconds since 1970.
/// Programs that check dates take years before their own for a broken clock.
const FIXED: i64 = 1_735_689_600_000;

/// The monotonic clock's first reading: Go takes 0 for a broken one.
const START: u64 = 1_000_000_000;

/// A wait of more than a century has no end.
const NEVER: u64 = 100 * 366 * 86_400 * 1_000_000_000;

/// A monotonic clock that only waiting moves.
pub(super) struct Standing {
    started: Instant,
    inner: Mutex<Waits>,
}

struct Waits {
    now: u64,
    next: u64,
    /// Waits under way, by their end and a number.
    ends: BTreeSet<(u64, u64)>,
}

impl Default for Standing {
    fn default() -> Self {
        Self {
            started: Instant::now(),
            inner: Mutex::new(Waits {
                now: START,
                next: 0,
                ends: BTreeSet::new(),
            }),
        }
    }
}

impl Standing {
    fn lock(&self) -> std::sync::MutexGuard<'_, Waits> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn now(&self) -> u64 {
        self.lock().now
    }

    fn real(&self) -> u64 {
        let since = self.started.elapsed().as_nanos();
        u64::try_from(since)
            .unwrap_or(u64::MAX)
            .saturating_add(START)
    }
}

/// A wait until a reading of the clock that stands still.
pub(super) struct Wait {
    pub(super) clock: Arc<Standing>,
    pub(super) until: u64,
}

/// One that is under way.
struct Entered<'a> {
    clock: &'a Standing,
    end: (u64, u64),
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        self.clock.lock().ends.remove(&self.end);
    }
}

impl Wait {
    fn enter(&self) -> Entered<'_> {
        let mut waits = self.clock.lock();
        let end = (self.until, waits.next);
        waits.next += 1;
        waits.ends.insert(end);
        drop(waits);
        Entered {
            clock: &self.clock,
            end,
        }
    }
}

#[async_trait]
impl Pollable for Wait {
    async fn ready(&mut self) {
        let entered = self.enter();
        loop {
            // All that is waited for together is looked at once before time moves:
            // what is ready without it comes first.
            tokio::task::yield_now().await;
            let mut waits = self.clock.lock();
            if waits.now >= self.until {
                return;
            }
            if waits.ends.first() == Some(&entered.end) {
                waits.now = self.until;
                return;
            }
        }
    }
}

/// A wait in real time.
struct RealWait(tokio::time::Instant);

#[async_trait]
impl Pollable for RealWait {
    async fn ready(&mut self) {
        tokio::time::sleep_until(self.0).await;
    }
}

/// A wait without an end.
struct Endless;

#[async_trait]
impl Pollable for Endless {
    async fn ready(&mut self) {
        std::future::pending::<()>().await;
    }
}

impl State {
    fn real_time(&self) -> bool {
        self.phase >= Phase::Translate && self.row.grants.has("clock")
    }

    fn wait(&mut self, nanoseconds: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let real = self.real_time();
        let wasi = self.standing();
        if nanoseconds >= NEVER {
            let wait = wasi.table().push(Endless)?;
            return subscribe(wasi.table(), wait);
        }
        if real {
            let end = tokio::time::Instant::now() + Duration::from_nanos(nanoseconds);
            let wait = wasi.table().push(RealWait(end))?;
            return subscribe(wasi.table(), wait);
        }
        let wait = Wait {
            until: wasi.clock.now().saturating_add(nanoseconds),
            clock: Arc::clone(&wasi.clock),
        };
        let wait = wasi.table().push(wait)?;
        subscribe(wasi.table(), wait)
    }
}

impl wall_clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        self.standing();
        let now = if self.real_time() {
            let now = SystemTime::now().duration_since(UNIX_EPOCH);
            now.unwrap_or_default()
        } else {
            still(self.ctx.time_ms)
        };
        Ok(wall_clock::Datetime {
            seconds: now.as_secs(),
            nanoseconds: now.subsec_nanos(),
        })
    }

    fn resolution(&mut self) -> wasmtime::Result<wall_clock::Datetime> {
        Ok(wall_clock::Datetime {
            seconds: 0,
            nanoseconds: 1_000_000,
        })
    }
}

/// What the wall clock shows that stands still, since 1970.
pub(super) fn still(time_ms: i64) -> Duration {
    let time = if time_ms > 0 { time_ms } else { FIXED };
    Duration::from_millis(time.unsigned_abs())
}

impl monotonic_clock::Host for State {
    fn now(&mut self) -> wasmtime::Result<u64> {
        let real = self.real_time();
        let clock = &self.standing().clock;
        Ok(if real { clock.real() } else { clock.now() })
    }

    fn resolution(&mut self) -> wasmtime::Result<u64> {
        Ok(1)
    }

    fn subscribe_instant(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        let now = monotonic_clock::Host::now(self)?;
        self.wait(when.saturating_sub(now))
    }

    fn subscribe_duration(&mut self, when: u64) -> wasmtime::Result<Resource<DynPollable>> {
        self.wait(when)
    }
}
