//! When the cache is written, as a state machine without a clock, a thread or a disk: at every end of a turn, after so
//! many events, some time after the first unwritten one, and when the session goes (spec/session.md §10.3). One write
//! at a time: what becomes due meanwhile follows it.

use std::time::{Duration, Instant};

use dsh_session::Kind;

/// Upstream's `writeEveryEvents`.
pub const WRITE_EVERY_EVENTS: u64 = 200;
/// Upstream's `writeIntervalMs`.
pub const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// What to do after an input.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Due {
    /// Set a timer for this moment and call [`WritePoints::fired`] with it. A timer set before is of no use any more.
    pub arm: Option<Instant>,
    /// Write now, between [`WritePoints::begin`] and [`WritePoints::finish`].
    pub write: bool,
}

/// The write points of one session.
#[derive(Clone, Debug)]
pub struct WritePoints {
    every: u64,
    interval: Duration,
    /// Events since the last write began.
    unwritten: u64,
    timer: Option<Instant>,
    /// Whether a write was asked for or is going on.
    busy: bool,
    /// Whether another one is due after it.
    again: bool,
    /// Whether the last write failed, so that what it should have written still is to be.
    failed: bool,
}

impl Default for WritePoints {
    fn default() -> WritePoints {
        WritePoints::new(WRITE_EVERY_EVENTS, WRITE_INTERVAL)
    }
}

impl WritePoints {
    /// A write after every `every` events and `interval` after the first unwritten one.
    pub fn new(every: u64, interval: Duration) -> WritePoints {
        WritePoints {
            every,
            interval,
            unwritten: 0,
            timer: None,
            busy: false,
            again: false,
            failed: false,
        }
    }

    /// An event was committed.
    pub fn event(&mut self, kind: &Kind, now: Instant) -> Due {
        self.unwritten += 1;
        if *kind == Kind::TurnEnd || self.unwritten >= self.every {
            return self.ask();
        }
        if self.timer.is_some() {
            return Due::default();
        }
        self.timer = Some(now + self.interval);
        Due {
            arm: self.timer,
            write: false,
        }
    }

    /// A timer fired; one that is not set any more does nothing.
    pub fn fired(&mut self, deadline: Instant) -> Due {
        if self.timer != Some(deadline) {
            return Due::default();
        }
        self.timer = None;
        self.ask()
    }

    /// The session goes. Nothing is asked for when nothing is unwritten.
    pub fn dispose(&mut self) -> Due {
        if self.unwritten == 0 && !self.failed {
            return Due::default();
        }
        self.ask()
    }

    fn ask(&mut self) -> Due {
        self.again = self.busy;
        self.busy = true;
        Due {
            arm: None,
            write: !self.again,
        }
    }

    /// The checkpoint is taken: counting starts again.
    pub fn begin(&mut self) {
        self.busy = true;
        self.again = false;
        self.failed = false;
        self.unwritten = 0;
        self.timer = None;
    }

    /// The write is over, well or not. A failed one is not tried again by itself: the next write point does it.
    pub fn finish(&mut self, written: bool) -> Due {
        self.busy = false;
        self.failed = !written;
        if std::mem::take(&mut self.again) {
            return self.ask();
        }
        Due::default()
    }
}
