//! The tick by which components are interrupted.
//!
//! One thread raises the engine's epoch every [`TICK`], but only while a
//! component runs and a little longer: an idle process wakes up for nothing.
//! Entering costs two atomic operations while the thread is awake, which on a
//! stream of chunks it always is.
//!
//! Time is counted in these ticks: reading the counter costs nothing, and a
//! component that computes for less than a tick between two waits is charged the
//! right amount on average. How many ticks have passed is the clock's to say, as
//! the thread wakes up late, and always a little.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use wasmtime::EngineWeak;

/// Between two ticks: how late an interruption may be.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Ticks that the thread stays awake for when nothing runs.
const LINGER: u32 = 20;

/// How many ticks a duration is, at least one.
pub(crate) fn ticks(of: Duration) -> u64 {
    u64::try_from(of.as_millis().div_ceil(TICK.as_millis()))
        .unwrap_or(u64::MAX)
        .max(1)
}

/// The counter and its thread.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
}

struct Shared {
    engine: EngineWeak,
    ticks: AtomicU64,
    running: AtomicUsize,
    parked: AtomicBool,
    stop: AtomicBool,
    thread: OnceLock<Thread>,
}

impl Ticker {
    pub(crate) fn new(engine: EngineWeak) -> Self {
        Self {
            shared: Arc::new(Shared {
                engine,
                ticks: AtomicU64::new(0),
                running: AtomicUsize::new(0),
                parked: AtomicBool::new(false),
                stop: AtomicBool::new(false),
                thread: OnceLock::new(),
            }),
        }
    }

    /// Ticks so far.
    pub(crate) fn now(&self) -> u64 {
        self.shared.ticks.load(Ordering::Relaxed)
    }

    /// A component runs until the guard is dropped.
    pub(crate) fn enter(&self) -> Running<'_> {
        self.shared.running.fetch_add(1, Ordering::SeqCst);
        let thread = self
            .shared
            .thread
            .get_or_init(|| start(Arc::clone(&self.shared)));
        if self.shared.parked.load(Ordering::SeqCst) {
            thread.unpark();
        }
        Running {
            shared: &self.shared,
        }
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.shared.thread.get() {
            thread.unpark();
        }
    }
}

/// While it lives, the thread ticks.
pub(crate) struct Running<'a> {
    shared: &'a Shared,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.shared.running.fetch_sub(1, Ordering::SeqCst);
    }
}

fn start(shared: Arc<Shared>) -> Thread {
    thread::Builder::new()
        .name("dsh-ticker".to_owned())
        .spawn(move || tick(&shared))
        .expect("a process that cannot start one thread cannot run anything")
        .thread()
        .clone()
}

fn tick(shared: &Shared) {
    let mut idle = 0;
    let mut clock = Clock::start();
    while !shared.stop.load(Ordering::SeqCst) {
        if shared.running.load(Ordering::SeqCst) > 0 {
            idle = 0;
        } else {
            idle += 1;
        }
        if idle > LINGER {
            // Whoever enters after this store sees it and unparks; whoever
            // entered before is seen here.
            shared.parked.store(true, Ordering::SeqCst);
            if shared.running.load(Ordering::SeqCst) == 0 && !shared.stop.load(Ordering::SeqCst) {
                thread::park();
            }
            shared.parked.store(false, Ordering::SeqCst);
            idle = 0;
            clock = Clock::start();
            continue;
        }
        thread::sleep(clock.left(Instant::now()));
        let passed = clock.passed(Instant::now());
        if passed == 0 {
            continue;
        }
        shared.ticks.fetch_add(passed, Ordering::Relaxed);
        let Some(engine) = shared.engine.upgrade() else {
            return;
        };
        // One is enough for whoever looks: it then reads the ticks.
        engine.increment_epoch();
    }
}

/// Ticks since it was started, each counted once.
struct Clock {
    started: Instant,
    counted: u64,
}

impl Clock {
    fn start() -> Self {
        Self {
            started: Instant::now(),
            counted: 0,
        }
    }

    /// Until the next tick.
    fn left(&self, now: Instant) -> Duration {
        let next = u32::try_from(self.counted + 1).unwrap_or(u32::MAX);
        (self.started + TICK.saturating_mul(next)).saturating_duration_since(now)
    }

    /// Ticks that were not counted yet.
    fn passed(&mut self, now: Instant) -> u64 {
        let all = now.saturating_duration_since(self.started).as_nanos() / TICK.as_nanos();
        let all = u64::try_from(all).unwrap_or(u64::MAX);
        let passed = all.saturating_sub(self.counted);
        self.counted += passed;
        passed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_wakes_up_late_counts_what_it_missed_and_aims_at_the_next_tick() {
        let mut clock = Clock::start();
        let at = |milliseconds| clock.started + Duration::from_millis(milliseconds);
        let times = [at(9), at(10), at(12), at(41), at(50)];
        assert_eq!(clock.left(times[0]), Duration::from_millis(1));
        assert_eq!(times.map(|time| clock.passed(time)), [0, 1, 0, 3, 1]);
        assert_eq!(clock.left(times[4]), TICK);
    }
}
