//! The rows of `tbl-write-behind`, each as the inputs that upstream's timers and disk would have given. Order is
//! compared, time is only a number.

use super::*;

const WINDOW: Duration = Duration::from_millis(40);

/// Drives a queue the way the threads do and writes down what happens.
struct Bench {
    behind: Behind<u32, &'static str, &'static str>,
    start: Instant,
    armed: Option<Instant>,
    asked: bool,
    log: Vec<String>,
}

impl Bench {
    fn new() -> Self {
        Self {
            behind: Behind::new(WINDOW),
            start: Instant::now(),
            armed: None,
            asked: false,
            log: Vec::new(),
        }
    }

    fn follow(&mut self, step: Step<&'static str, &'static str>) {
        if step.arm.is_some() {
            self.armed = step.arm;
        }
        for (waiter, answer) in step.done {
            self.log.push(match answer {
                Ok(()) => waiter.to_owned(),
                Err(e) => format!("{waiter} rejected: {e}"),
            });
        }
        if let Some(e) = step.failed {
            self.log.push(format!("background-failure {e}"));
        }
        assert!(!(step.write && self.asked), "asked twice");
        self.asked |= step.write;
    }

    fn push(&mut self, item: u32, at_ms: u64) {
        let step = self
            .behind
            .push(item, || self.start + Duration::from_millis(at_ms));
        self.follow(step);
    }

    fn flush(&mut self, name: &'static str) {
        let step = self.behind.flush(name);
        self.follow(step);
    }

    /// The armed timer fires.
    fn fire(&mut self) {
        let deadline = self.armed.expect("no timer is armed");
        let step = self.behind.fired(deadline);
        self.follow(step);
    }

    fn begin(&mut self) -> Vec<u32> {
        assert!(std::mem::take(&mut self.asked), "no write was asked for");
        let batch = self.behind.begin();
        self.log.push(format!("write {batch:?}"));
        batch
    }

    fn end(&mut self, batch: &[u32], result: Result<(), &'static str>) {
        if result.is_ok() {
            self.log.push(format!("durable {batch:?}"));
        }
        let step = self.behind.finish(result);
        self.follow(step);
    }

    fn write(&mut self, result: Result<(), &'static str>) {
        let batch = self.begin();
        self.end(&batch, result);
    }

    fn log(&mut self) -> Vec<String> {
        std::mem::take(&mut self.log)
    }
}

#[test]
fn quick_events_are_one_batch() {
    let mut b = Bench::new();
    (0..3).for_each(|i| b.push(i, u64::from(i)));
    b.fire();
    b.write(Ok(()));
    assert_eq!(b.log(), ["write [0, 1, 2]", "durable [0, 1, 2]"]);
    assert!(!b.behind.has_work());
}

#[test]
fn later_events_do_not_move_the_window() {
    let mut b = Bench::new();
    b.push(0, 0);
    let first = b.armed;
    b.push(1, 30);
    assert_eq!(b.armed, first);
    assert_eq!(first, Some(b.start + WINDOW));
    b.fire();
    b.write(Ok(()));
    b.push(2, 55);
    assert_eq!(b.armed, Some(b.start + Duration::from_millis(55) + WINDOW));
    b.fire();
    b.write(Ok(()));
    assert_eq!(
        b.log(),
        ["write [0, 1]", "durable [0, 1]", "write [2]", "durable [2]"]
    );
}

#[test]
fn a_flush_writes_now_and_drops_the_timer() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.push(1, 1);
    b.flush("flushed");
    b.write(Ok(()));
    b.fire();
    assert!(!b.asked, "a stale timer wrote");
    assert_eq!(b.log(), ["write [0, 1]", "durable [0, 1]", "flushed"]);
}

#[test]
fn a_flush_of_nothing_is_over_at_once() {
    let mut b = Bench::new();
    b.flush("flushed");
    assert_eq!(b.log(), ["flushed"]);
}

#[test]
fn events_during_a_write_wait_for_their_own_window() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.fire();
    let batch = b.begin();
    b.push(1, 50);
    b.end(&batch, Ok(()));
    assert!(!b.asked);
    b.fire();
    b.write(Ok(()));
    assert_eq!(
        b.log(),
        ["write [0]", "durable [0]", "write [1]", "durable [1]"]
    );
}

#[test]
fn a_window_that_passes_during_a_write_lets_the_next_follow_at_once() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.fire();
    let batch = b.begin();
    b.push(1, 45);
    b.fire();
    b.push(2, 90);
    b.end(&batch, Ok(()));
    b.write(Ok(()));
    assert_eq!(
        b.log(),
        ["write [0]", "durable [0]", "write [1, 2]", "durable [1, 2]"]
    );
}

#[test]
fn a_background_failure_keeps_pauses_and_the_next_event_arms_again() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.push(1, 1);
    b.fire();
    b.armed = None;
    b.write(Err("disk"));
    assert_eq!(b.log(), ["write [0, 1]", "background-failure disk"]);
    assert!(b.armed.is_none() && !b.asked, "paused means no timer");
    assert_eq!(b.behind.paused(), Some(&"disk"));
    b.push(2, 100);
    b.fire();
    b.write(Ok(()));
    assert_eq!(b.log(), ["write [0, 1, 2]", "durable [0, 1, 2]"]);
}

#[test]
fn a_failed_flush_rejects_and_keeps() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.flush("flush");
    b.write(Err("disk"));
    assert!(!b.asked);
    b.flush("second flush ok");
    b.write(Ok(()));
    assert_eq!(
        b.log(),
        [
            "write [0]",
            "flush rejected: disk",
            "write [0]",
            "durable [0]",
            "second flush ok"
        ]
    );
}

#[test]
fn a_flush_outlasts_a_failing_background_write_and_tries_again() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.fire();
    let batch = b.begin();
    b.push(1, 50);
    b.flush("flushed");
    b.end(&batch, Err("disk"));
    b.write(Ok(()));
    assert_eq!(
        b.log(),
        [
            "write [0]",
            "background-failure disk",
            "write [0, 1]",
            "durable [0, 1]",
            "flushed"
        ]
    );
}

#[test]
fn events_during_a_barrier_are_drained_by_it() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.flush("flushed");
    let batch = b.begin();
    b.push(1, 1);
    b.flush("joined");
    b.end(&batch, Ok(()));
    b.write(Ok(()));
    assert_eq!(
        b.log(),
        [
            "write [0]",
            "durable [0]",
            "write [1]",
            "durable [1]",
            "flushed",
            "joined"
        ]
    );
}

#[test]
fn stopping_answers_every_barrier_and_keeps_the_order() {
    let mut b = Bench::new();
    b.push(0, 0);
    b.flush("flush");
    b.begin();
    b.push(1, 1);
    let done = b.behind.stop(&"gone");
    assert_eq!(done, [("flush", Err("gone"))]);
    assert_eq!(b.behind.begin(), [0, 1]);
}
