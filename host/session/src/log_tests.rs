use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::{Draft, Header, Json, Kind, Session};

fn events(count: u64) -> Vec<Arc<Event>> {
    let event = |seq| Arc::new(Event::plain(Kind::TodoWrite, Seq(seq), 0, Json::null()));
    (0..count).map(event).collect()
}

/// Pieces of four events; counts how often one is read, and fails at one seq.
struct Fours {
    events: Vec<Arc<Event>>,
    reads: AtomicUsize,
    fails_at: Mutex<Option<u64>>,
}

impl Archive for Fours {
    fn end(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    fn piece(&self, seq: Seq) -> Result<Piece, Error> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        let first = seq.0 / 4 * 4;
        if *self.fails_at.lock().unwrap() == Some(first) {
            return Err(Error::Archive {
                seq,
                reason: "on order".to_owned(),
            });
        }
        let end = (first as usize + 4).min(self.events.len());
        Ok(Piece {
            first: Seq(first),
            events: self.events[first as usize..end].into(),
        })
    }
}

fn log(stored: u64, all: u64) -> (Arc<Fours>, Log) {
    let mut events = events(all);
    let tail = events.split_off(stored as usize);
    let fours = Arc::new(Fours {
        events,
        reads: AtomicUsize::new(0),
        fails_at: Mutex::new(None),
    });
    let mut log = Log::stored(
        fours.clone(),
        HashMap::from([(Seq(2), fours.events[2].clone())]),
    );
    tail.into_iter().for_each(|event| log.push(event));
    (fours, log)
}

fn seqs(events: impl Iterator<Item = Result<Arc<Event>, Error>>) -> Vec<u64> {
    events.map(|event| event.unwrap().seq.0).collect()
}

#[test]
fn events_come_in_order_both_ways_wherever_they_are() {
    for (stored, all) in [(0, 5), (10, 10), (10, 13), (8, 9), (0, 0)] {
        let (_, log) = log_or_empty(stored, all);
        for from in 0..=all + 1 {
            let up: Vec<u64> = (from..all).collect();
            assert_eq!(seqs(log.events_from(Seq(from))), up);
            let down: Vec<u64> = (0..from.min(all)).rev().collect();
            assert_eq!(seqs(log.events_before(Seq(from))), down);
            let event = log.event(Seq(from)).unwrap();
            assert_eq!(event.map(|event| event.seq.0), (from < all).then_some(from));
        }
        assert_eq!(log.len(), all);
    }
}

fn log_or_empty(stored: u64, all: u64) -> (Option<Arc<Fours>>, Log) {
    if stored == 0 {
        return (None, events(all).into());
    }
    let (fours, log) = log(stored, all);
    (Some(fours), log)
}

#[test]
fn a_piece_is_read_once_on_the_way_and_a_kept_event_never() {
    let (fours, log) = log(10, 12);
    assert_eq!(seqs(log.events_from(Seq(0))).len(), 12);
    assert_eq!(fours.reads.load(Ordering::Relaxed), 3);
    log.event(Seq(2)).unwrap();
    assert_eq!(fours.reads.load(Ordering::Relaxed), 3);
}

#[test]
fn a_failed_read_is_an_error_and_ends_the_way() {
    let (fours, log) = log(10, 12);
    *fours.fails_at.lock().unwrap() = Some(4);
    let mut up = log.events_from(Seq(3));
    assert_eq!(up.next().unwrap().unwrap().seq, Seq(3));
    assert_eq!(
        up.next().unwrap().unwrap_err().code(),
        "SESSION_READ_FAILED"
    );
    assert!(up.next().is_none());
    let mut down = log.events_before(Seq(9));
    assert_eq!(down.next().unwrap().unwrap().seq, Seq(8));
    assert!(down.next().unwrap().is_err());
    assert!(down.next().is_none());
    assert!(log.event(Seq(5)).is_err() && log.event(Seq(11)).is_ok());
}

#[test]
fn what_lives_is_told_from_what_was_there() {
    let header = Header::new("s", 0);
    let mut session = Session::with_seed(header, events(3), 7).unwrap();
    assert_eq!(session.live_events()[0].kind, Kind::SessionEndSeed);
    session
        .append(Draft::new(Kind::TodoWrite, Json::null()), 8)
        .unwrap();
    let live: Vec<u64> = session.live_events().iter().map(|e| e.seq.0).collect();
    assert_eq!(live, [3, 4]);
    assert_eq!(session.live_from(Seq(4)).len(), 1);
    assert_eq!(session.live_from(Seq(0)).len(), 2);
}
