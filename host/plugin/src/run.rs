//! How a call runs: where, and for how long.
//!
//! A component's code never blocks: it runs on a fiber inside a future, which
//! gives way at every tick and whenever an import waits. The caller polls that
//! future once, in place, so a call that needs no more costs no thread switch.
//! What is not done by then moves to a runtime of the components' own, where one
//! that computes for ever takes its turn with others of its kind and leaves the
//! host's I/O alone.
//!
//! Three things end a call early. Its *cpu* bound is checked at each tick from
//! inside (`Meter`). Its *call* bound on the wall clock, and cancelling, are
//! watched from outside and drop the future; after cancelling there is a grace,
//! in which waiting imports answer `CANCELLED` and the component may still
//! return what it has. A future that was dropped takes its instance with it.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::engine::Inner;
use crate::ticker::TICK;

/// Between cancelling and interrupting.
pub(crate) const GRACE: Duration = Duration::from_millis(250);

/// Why a call was ended from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    Timeout,
    Cancelled,
}

/// The bounds that are watched from outside.
pub(crate) struct Bounds<'a> {
    /// The whole call on the wall clock.
    pub(crate) call: Option<Duration>,
    pub(crate) cancel: &'a CancellationToken,
}

/// Ticks that a call has spent inside its future. Shared between the future,
/// which counts, and the store's epoch callback, which looks.
#[derive(Debug, Default)]
pub(crate) struct Meter {
    entered: AtomicU64,
    spent: AtomicU64,
    allowed: AtomicU64,
    /// Milliseconds that the component asked to wait, which its call's bound
    /// does not count.
    waited: AtomicU64,
}

impl Meter {
    /// Starts anew with this many ticks allowed.
    pub(crate) fn reset(&self, allowed: u64) {
        self.spent.store(0, Ordering::Relaxed);
        self.allowed.store(allowed, Ordering::Relaxed);
        self.waited.store(0, Ordering::Relaxed);
    }

    /// The component asked to wait for so long.
    pub(crate) fn waits(&self, time: Duration) {
        self.waited.fetch_add(
            u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
            Ordering::Relaxed,
        );
    }

    fn waited(&self) -> Duration {
        Duration::from_millis(self.waited.load(Ordering::Relaxed))
    }

    /// Whether more than allowed is spent, asked from inside at tick `now`.
    pub(crate) fn exhausted(&self, now: u64) -> bool {
        let here = now.saturating_sub(self.entered.load(Ordering::Relaxed));
        self.spent.load(Ordering::Relaxed) + here > self.allowed.load(Ordering::Relaxed)
    }

    /// Time inside, in whole ticks.
    fn time_spent(&self) -> Duration {
        let spent = u32::try_from(self.spent.load(Ordering::Relaxed)).unwrap_or(u32::MAX);
        TICK.saturating_mul(spent)
    }

    fn enter(&self, now: u64) {
        self.entered.store(now, Ordering::Relaxed);
    }

    fn leave(&self, now: u64) {
        let here = now.saturating_sub(self.entered.load(Ordering::Relaxed));
        self.spent.fetch_add(here, Ordering::Relaxed);
    }
}

/// The future of a call, with its time counted.
struct Metered<T> {
    engine: Arc<Inner>,
    meter: Arc<Meter>,
    future: Pin<Box<dyn Future<Output = T> + Send>>,
}

impl<T> Future for Metered<T> {
    type Output = T;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let this = self.get_mut();
        poll_metered(&this.engine, &this.meter, &mut this.future, cx)
    }
}

/// Polls once, and counts the ticks that it takes.
fn poll_metered<T>(
    engine: &Inner,
    meter: &Meter,
    future: &mut Pin<Box<dyn Future<Output = T> + Send>>,
    cx: &mut Context<'_>,
) -> Poll<T> {
    let running = engine.ticker().enter();
    meter.enter(engine.ticker().now());
    let polled = future.as_mut().poll(cx);
    meter.leave(engine.ticker().now());
    drop(running);
    polled
}

/// Runs a call to its end or to its bounds.
pub(crate) async fn run<T: Send + 'static>(
    engine: &Arc<Inner>,
    meter: Arc<Meter>,
    bounds: Bounds<'_>,
    mut future: Pin<Box<dyn Future<Output = T> + Send>>,
) -> Result<T, Stopped> {
    // Most calls end here, so that nothing is made that only the others need.
    let first = poll_fn(|cx| Poll::Ready(poll_metered(engine, &meter, &mut future, cx))).await;
    if let Poll::Ready(output) = first {
        return Ok(output);
    }
    // It began as many ticks ago as it has spent.
    let started = Instant::now()
        .checked_sub(meter.time_spent())
        .unwrap_or_else(Instant::now);
    let (call, cancel) = (bounds.call, bounds.cancel.clone());
    let mut future = Metered {
        engine: Arc::clone(engine),
        meter: Arc::clone(&meter),
        future,
    };
    let bounded = async move {
        let cancelled = async {
            cancel.cancelled().await;
            tokio::time::sleep(GRACE).await;
        };
        let late = async {
            let Some(call) = call else {
                return std::future::pending().await;
            };
            // What the component waits meanwhile moves the end.
            loop {
                let left = (call + meter.waited()).saturating_sub(started.elapsed());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left).await;
            }
        };
        tokio::select! {
            biased;
            output = &mut future => Ok(output),
            () = cancelled => Err(Stopped::Cancelled),
            () = late => Err(Stopped::Timeout),
        }
    };
    let mut task = Attached(engine.guests().spawn(bounded));
    match (&mut task.0).await {
        Ok(result) => result,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The engine is going away under the call.
        Err(_) => Err(Stopped::Cancelled),
    }
}

/// A task that ends when its owner stops waiting for it.
struct Attached<T>(JoinHandle<T>);

impl<T> Drop for Attached<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

#[cfg(test)]
#[path = "run_tests.rs"]
mod tests;
