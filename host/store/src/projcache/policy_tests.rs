use std::time::{Duration, Instant};

use dsh_session::Kind;

use super::{Due, WritePoints};

const NOTHING: Due = Due {
    arm: None,
    write: false,
};
const WRITE: Due = Due {
    arm: None,
    write: true,
};

fn arm(at: Instant) -> Due {
    Due {
        arm: Some(at),
        write: false,
    }
}

/// Write points of 3 events and 50 ms, as the recorded case has them, and a clock.
struct Rig {
    points: WritePoints,
    now: Instant,
}

impl Rig {
    fn new() -> Rig {
        Rig {
            points: WritePoints::new(3, Duration::from_millis(50)),
            now: Instant::now(),
        }
    }

    fn event(&mut self) -> Due {
        self.points.event(&Kind::TodoWrite, self.now)
    }

    fn later(&mut self, ms: u64) -> Instant {
        self.now += Duration::from_millis(ms);
        self.now
    }

    fn write(&mut self) -> Due {
        self.points.begin();
        self.points.finish(true)
    }
}

#[test]
fn upstreams_numbers_are_the_default() {
    let mut points = WritePoints::default();
    let now = Instant::now();
    let due = points.event(&Kind::TurnStart, now);
    assert_eq!(due, arm(now + Duration::from_millis(5000)));
    for _ in 0..198 {
        assert_eq!(points.event(&Kind::AssistantChunk, now), NOTHING);
    }
    assert_eq!(points.event(&Kind::AssistantChunk, now), WRITE);
}

#[test]
fn so_many_events_or_the_end_of_a_turn_are_a_write_point() {
    let mut rig = Rig::new();
    assert!(rig.event().arm.is_some());
    assert_eq!(rig.event(), NOTHING);
    assert_eq!(rig.event(), WRITE);
    assert_eq!(rig.write(), NOTHING);
    assert_eq!(rig.points.event(&Kind::TurnEnd, rig.now), WRITE);
}

#[test]
fn the_deadline_is_that_of_the_first_unwritten_event() {
    let mut rig = Rig::new();
    let first = rig.now + Duration::from_millis(50);
    assert_eq!(rig.event(), arm(first));
    rig.later(40);
    assert_eq!(rig.event(), NOTHING, "later events do not move it");
    assert_eq!(
        rig.points.fired(rig.now),
        NOTHING,
        "another timer is none of it"
    );
    assert_eq!(rig.points.fired(first), WRITE);
    rig.write();
    rig.later(30);
    let second = rig.now + Duration::from_millis(50);
    assert_eq!(rig.event(), arm(second));
    assert_eq!(rig.points.fired(first), NOTHING, "a timer is good once");
}

#[test]
fn a_write_resets_the_count_and_the_deadline_when_it_begins() {
    let mut rig = Rig::new();
    let old = rig.now + Duration::from_millis(50);
    for _ in 0..3 {
        rig.event();
    }
    rig.points.begin();
    assert_eq!(rig.points.fired(old), NOTHING);
    let new = rig.later(10) + Duration::from_millis(50);
    assert_eq!(rig.event(), arm(new), "counted for the next write");
    assert_eq!(rig.event(), NOTHING);
    assert_eq!(rig.points.finish(true), NOTHING);
    assert_eq!(rig.event(), WRITE);
}

#[test]
fn writes_follow_one_another_and_do_not_overlap() {
    let mut rig = Rig::new();
    assert_eq!(rig.points.event(&Kind::TurnEnd, rig.now), WRITE);
    rig.points.begin();
    assert_eq!(rig.points.event(&Kind::TurnEnd, rig.now), NOTHING);
    assert_eq!(rig.points.dispose(), NOTHING);
    assert_eq!(rig.points.finish(true), WRITE, "what became due meanwhile");
    assert_eq!(rig.write(), NOTHING);
    assert_eq!(rig.points.event(&Kind::TurnEnd, rig.now), WRITE);
    assert_eq!(
        rig.points.event(&Kind::TurnEnd, rig.now),
        NOTHING,
        "asked for, not begun yet"
    );
    assert_eq!(rig.write(), NOTHING);
}

#[test]
fn disposal_writes_what_is_unwritten_or_what_failed() {
    let mut rig = Rig::new();
    assert_eq!(rig.points.dispose(), NOTHING);
    rig.event();
    assert_eq!(rig.points.dispose(), WRITE);
    rig.points.begin();
    assert_eq!(
        rig.points.finish(false),
        NOTHING,
        "a failure is not tried again by itself"
    );
    assert_eq!(rig.points.dispose(), WRITE);
    rig.write();
    assert_eq!(rig.points.dispose(), NOTHING);
}
