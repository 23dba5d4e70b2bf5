//! Write-behind as a state machine without a clock, a thread or a disk.
//!
//! It says when to arm a timer and when to write; somebody else does. So its rules
//! (spec/session.md §9.5) are tested as plain values:
//! - the first event into an idle, empty queue arms one timer; later ones do not move it;
//! - everything queued when it fires is one batch; a timer that fires during a write lets the next one follow at once;
//! - a failed background write puts its batch back to the front and pauses; the next event arms the timer again;
//! - a barrier drops the timer, outlasts an active write whatever becomes of it, and drains the queue, events that
//!   come meanwhile included. A failed drain answers all its waiters and keeps the events.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// What to do after an input.
#[derive(Debug)]
pub(crate) struct Step<W, E> {
    /// Arm a timer for this moment and call [`Behind::fired`] with it.
    pub(crate) arm: Option<Instant>,
    /// Start a write: take the batch from [`Behind::begin`].
    pub(crate) write: bool,
    /// Barriers that are over.
    pub(crate) done: Vec<(W, Result<(), E>)>,
    /// A background write failed.
    pub(crate) failed: Option<E>,
}

impl<W, E> Default for Step<W, E> {
    fn default() -> Self {
        Self {
            arm: None,
            write: false,
            done: Vec::new(),
            failed: None,
        }
    }
}

/// The queue of one writer. `T` is what is written, `W` waits for it, `E` is why it failed.
#[derive(Debug)]
pub(crate) struct Behind<T, W, E> {
    delay: Duration,
    queue: VecDeque<T>,
    /// The batch being written.
    active: Option<Vec<T>>,
    /// Whether the write (the active one, or the one asked for) is on behalf of the barriers.
    draining: bool,
    /// Whether a write was asked for and not begun.
    asked: bool,
    timer: Option<Instant>,
    /// A timer fired while a write was active.
    due: bool,
    barriers: Vec<W>,
    /// Why background writing is paused.
    paused: Option<E>,
}

impl<T: Clone, W, E: Clone> Behind<T, W, E> {
    pub(crate) fn new(delay: Duration) -> Self {
        Self {
            delay,
            queue: VecDeque::new(),
            active: None,
            draining: false,
            asked: false,
            timer: None,
            due: false,
            barriers: Vec::new(),
            paused: None,
        }
    }

    /// Whether anything is not durable yet.
    pub(crate) fn has_work(&self) -> bool {
        self.active.is_some() || !self.queue.is_empty()
    }

    pub(crate) fn paused(&self) -> Option<&E> {
        self.paused.as_ref()
    }

    fn busy(&self) -> bool {
        self.active.is_some() || self.asked
    }

    fn ask(&mut self, draining: bool) -> Step<W, E> {
        self.asked = true;
        self.draining = draining;
        self.timer = None;
        self.due = false;
        Step {
            write: true,
            ..Step::default()
        }
    }

    /// An event came. The clock is looked at only by one that arms the timer.
    pub(crate) fn push(&mut self, item: T, now: impl FnOnce() -> Instant) -> Step<W, E> {
        let first = self.queue.is_empty() || self.paused.is_some();
        self.queue.push_back(item);
        let waits_for_more =
            self.timer.is_none() && !self.due && self.barriers.is_empty() && !self.asked;
        if !(first && waits_for_more) {
            return Step::default();
        }
        self.paused = None;
        self.timer = Some(now() + self.delay);
        Step {
            arm: self.timer,
            ..Step::default()
        }
    }

    /// A timer fired; one that is not armed any more does nothing.
    pub(crate) fn fired(&mut self, deadline: Instant) -> Step<W, E> {
        if self.timer != Some(deadline) {
            return Step::default();
        }
        self.timer = None;
        if self.busy() {
            self.due = true;
            return Step::default();
        }
        self.ask(false)
    }

    /// A barrier.
    pub(crate) fn flush(&mut self, waiter: W) -> Step<W, E> {
        if !self.has_work() {
            return Step {
                done: vec![(waiter, Ok(()))],
                ..Step::default()
            };
        }
        self.barriers.push(waiter);
        self.timer = None;
        self.due = false;
        if self.asked {
            self.draining = true;
        }
        if self.busy() {
            Step::default()
        } else {
            self.ask(true)
        }
    }

    /// The write that was asked for starts: the batch is everything queued.
    pub(crate) fn begin(&mut self) -> Vec<T> {
        self.asked = false;
        let batch: Vec<T> = self.queue.drain(..).collect();
        self.active = Some(batch.clone());
        batch
    }

    /// The write is over.
    pub(crate) fn finish(&mut self, result: Result<(), E>) -> Step<W, E> {
        let batch = self.active.take().unwrap_or_default();
        let drained = std::mem::take(&mut self.draining);
        match result {
            Ok(()) => {
                self.paused = None;
                if !self.barriers.is_empty() {
                    if !self.queue.is_empty() {
                        return self.ask(true);
                    }
                    return Step {
                        done: self.barriers.drain(..).map(|w| (w, Ok(()))).collect(),
                        ..Step::default()
                    };
                }
                if self.due && !self.queue.is_empty() {
                    self.ask(false)
                } else {
                    Step::default()
                }
            }
            Err(e) => {
                for item in batch.into_iter().rev() {
                    self.queue.push_front(item);
                }
                self.timer = None;
                self.due = false;
                if drained {
                    self.paused = Some(e.clone());
                    let done = self
                        .barriers
                        .drain(..)
                        .map(|w| (w, Err(e.clone())))
                        .collect();
                    return Step {
                        done,
                        ..Step::default()
                    };
                }
                let mut step = if self.barriers.is_empty() {
                    self.paused = Some(e.clone());
                    Step::default()
                } else {
                    self.ask(true)
                };
                step.failed = Some(e);
                step
            }
        }
    }

    /// Gives up: answers all barriers with the cause. What is queued stays queued.
    pub(crate) fn stop(&mut self, cause: &E) -> Vec<(W, Result<(), E>)> {
        if let Some(batch) = self.active.take() {
            for item in batch.into_iter().rev() {
                self.queue.push_front(item);
            }
        }
        self.timer = None;
        self.asked = false;
        self.due = false;
        self.paused = Some(cause.clone());
        self.barriers
            .drain(..)
            .map(|w| (w, Err(cause.clone())))
            .collect()
    }
}

#[cfg(test)]
#[path = "behind_tests.rs"]
mod tests;
