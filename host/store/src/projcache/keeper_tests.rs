use std::cell::Cell;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dsh_session::projection::{Registry, Rows};
use dsh_session::{Archive, Error, Event, Header, Log, Piece, Seq};

use super::*;
use crate::testing::{cases, quick_dir};

fn cache(dir: &Path) -> ProjectionCache {
    ProjectionCache::open(dir).unwrap()
}

fn file(dir: &Path) -> Option<String> {
    std::fs::read_to_string(dir.join(CACHE_DIR).join(CACHE_FILE)).ok()
}

fn event(value: &serde_json::Value) -> Event {
    Event::parse(&value.to_string()).unwrap()
}

fn title(seq: u64, text: &str) -> Arc<Event> {
    let line = format!(
        r#"{{"type":"session/title","seq":{seq},"time":{seq},"data":{{"title":"{text}","messageSeqs":[],"source":{{"kind":"user"}}}}}}"#
    );
    Arc::new(Event::parse(&line).unwrap())
}

fn keeper(dir: &Path, header: &Header) -> Keeper {
    let points = WritePoints::new(3, Duration::from_millis(50));
    Keeper::new(
        cache(dir),
        header.clone(),
        Registry::standard().start(),
        points,
    )
}

/// The whole recorded case: what upstream's cache had on disk after which event, and the file byte for byte.
#[test]
fn the_file_is_written_when_and_as_upstream_writes_it() {
    let case = crate::testing::json("projcache-file", "expected.json");
    let want = cases().join("projcache-file/session_projcache.json");
    let dir = quick_dir();
    let mut header = Header::new("s-1", 1_699_999_999_999);
    header.cwd = Some("/work/p".into());
    let mut keeper = keeper(dir.path(), &header);
    let events: Vec<Event> = case["events"]
        .as_array()
        .unwrap()
        .iter()
        .map(event)
        .collect();
    let mut now = Instant::now();
    let mut timer = None;
    let mut states = case["states"].as_array().unwrap().iter();
    let settle = |keeper: &mut Keeper, mut due: Due, timer: &mut Option<Instant>| {
        while due.write {
            let (next, written) = keeper.write(|| Ok(()));
            written.unwrap();
            due = next;
        }
        if due.arm.is_some() {
            *timer = due.arm;
        }
    };
    let mut check = |at: &str| {
        let state = states.next().unwrap();
        assert_eq!(state["at"], at);
        let rows = cache(dir.path()).rows(&header).unwrap();
        let seq = rows.and_then(|rows| rows.get("title").unwrap().as_of);
        assert_eq!(file(dir.path()).is_some(), state["exists"] == true, "{at}");
        assert_eq!(seq.map(|seq| seq.0), state["rows"].as_u64(), "{at}");
    };
    let mut feed = |keeper: &mut Keeper,
                    range: std::ops::Range<usize>,
                    wait: u64,
                    timer: &mut Option<Instant>| {
        for event in &events[range] {
            let due = keeper.event(event, now);
            settle(keeper, due, timer);
        }
        now += Duration::from_millis(wait);
        if let Some(deadline) = timer.filter(|deadline| *deadline <= now) {
            let due = keeper.fired(deadline);
            settle(keeper, due, timer);
        }
    };
    check("start");
    feed(&mut keeper, 0..1, 10, &mut timer);
    check("1 event, 10 ms");
    feed(&mut keeper, 1..3, 0, &mut timer);
    check("3 events (count threshold)");
    feed(&mut keeper, 3..4, 120, &mut timer);
    check("1 more event, 120 ms (interval)");
    feed(&mut keeper, 4..6, 0, &mut timer);
    check("turn/end");
    assert_eq!(file(dir.path()), std::fs::read_to_string(want).ok());
}

#[test]
fn the_cache_is_never_ahead_of_the_log() {
    let dir = quick_dir();
    let header = Header::new("s", 1);
    let mut keeper = keeper(dir.path(), &header);
    keeper.event(&title(0, "durable"), Instant::now());
    // What comes during the flush is not in the checkpoint, though the flush may have written it.
    let (_, written) = keeper.write(|| {
        assert_eq!(file(dir.path()), None, "first the log, then the cache");
        Ok(())
    });
    written.unwrap();
    keeper.event(&title(1, "lost"), Instant::now());
    let refused = || Err(StoreError::Closed { id: "s".to_owned() });
    let (due, written) = keeper.write(refused);
    assert_eq!(written.unwrap_err().code(), "SESSION_WRITER_CLOSED");
    assert!(!due.write);
    let rows = cache(dir.path()).rows(&header).unwrap().unwrap();
    assert_eq!(rows.get("title").unwrap().state.as_str(), "\"durable\"");
    assert!(keeper.dispose().write, "what failed is still to be written");
    let (_, written) = keeper.write(|| Ok(()));
    written.unwrap();
    let rows = cache(dir.path()).rows(&header).unwrap().unwrap();
    assert_eq!(rows.get("title").unwrap().as_of, Some(Seq(1)));
}

/// A stored log that remembers from where it was read.
struct Spy {
    events: Vec<Arc<Event>>,
    read: Mutex<Vec<u64>>,
    broken: AtomicBool,
}

impl Archive for Spy {
    fn end(&self) -> Seq {
        Seq(self.events.len() as u64)
    }
    fn piece(&self, seq: Seq) -> Result<Piece, Error> {
        self.read.lock().unwrap().push(seq.0);
        if self.broken.load(Ordering::Relaxed) {
            return Event::parse("{").map(|_| unreachable!());
        }
        Ok(Piece {
            first: seq,
            events: [self.events[seq.0 as usize].clone()].into(),
        })
    }
}

impl Spy {
    fn new(titles: &[&str]) -> Arc<Spy> {
        let titles = titles.iter().enumerate();
        Arc::new(Spy {
            events: titles.map(|(at, text)| title(at as u64, text)).collect(),
            read: Mutex::default(),
            broken: AtomicBool::new(false),
        })
    }

    fn log(self: &Arc<Self>) -> Log {
        Log::stored(self.clone(), std::collections::HashMap::new())
    }

    /// The title, as of which event, and what was read for it.
    fn ask(
        self: &Arc<Self>,
        cache: &ProjectionCache,
        header: &Header,
    ) -> (String, Option<Seq>, Vec<u64>) {
        let warn = |e: &StoreError| panic!("{e}");
        let registry = Registry::standard();
        let snapshot = cold_snapshot(cache, &registry, header, &self.log(), warn).unwrap();
        let title = snapshot.get("title").unwrap().to_string();
        let read = std::mem::take(&mut *self.read.lock().unwrap());
        (title, snapshot.as_of, read)
    }
}

#[test]
fn a_cold_session_is_read_from_where_its_cache_ends() {
    let dir = quick_dir();
    let (cache, header) = (cache(dir.path()), Header::new("s", 1));
    let at = |title: &str, seq: u64, from: &[u64]| {
        (format!("\"{title}\""), Some(Seq(seq)), from.to_vec())
    };
    let short = Spy::new(&["a", "b"]);
    assert_eq!(
        short.ask(&cache, &header),
        at("b", 1, &[0, 1]),
        "nothing is cached"
    );
    assert_eq!(
        short.ask(&cache, &header),
        at("b", 1, &[1]),
        "and then it is"
    );
    let longer = Spy::new(&["a", "b", "c"]);
    assert_eq!(longer.ask(&cache, &header), at("c", 2, &[1, 2]));
    let views = cache
        .snapshot(&Registry::standard(), &header)
        .unwrap()
        .unwrap();
    assert_eq!(views.as_of, Some(Seq(2)));
    // A log that is shorter than the cache says is read as if there were none.
    let cut = Spy::new(&["a"]);
    assert_eq!(cut.ask(&cache, &header), at("a", 0, &[0]));
    assert_eq!(cut.ask(&cache, &header), at("a", 0, &[0]));
    // So is one whose record is another session's.
    let mut other = Header::new("s", 2);
    other.cwd = Some("/w".into());
    assert_eq!(short.ask(&cache, &other), at("b", 1, &[0, 1]));
    let empty = Spy::new(&[]);
    assert_eq!(
        empty.ask(&cache, &Header::new("e", 1)),
        ("null".to_owned(), None, vec![])
    );
}

#[test]
fn a_state_that_is_none_costs_a_whole_fold_and_a_cache_that_fails_costs_a_warning() {
    let dir = quick_dir();
    let (cache, header) = (cache(dir.path()), Header::new("s", 1));
    let log = Spy::new(&["a", "b"]);
    log.ask(&cache, &header);
    let path = dir.path().join(CACHE_DIR).join(CACHE_FILE);
    let text = file(dir.path()).unwrap();
    std::fs::write(&path, text.replace("\"val\": \"b\"", "\"val\": 7")).unwrap();
    assert_eq!(
        log.ask(&cache, &header).2,
        [0, 1],
        "the malformed state is met before the log is"
    );
    assert_eq!(file(dir.path()).unwrap(), text, "and is mended");
    std::fs::write(&path, "somebody else's").unwrap();
    let warnings = Cell::new(0);
    let warn = |e: &StoreError| {
        assert_eq!(e.code(), "PROJECTION_CACHE_UNUSABLE");
        warnings.set(warnings.get() + 1);
    };
    let snapshot = cold_snapshot(&cache, &Registry::standard(), &header, &log.log(), warn).unwrap();
    assert_eq!(snapshot.get("title").unwrap().as_str(), "\"b\"");
    assert_eq!(warnings.get(), 2, "neither read nor written");
    assert_eq!(file(dir.path()).unwrap(), "somebody else's");
    log.broken.store(true, Ordering::Relaxed);
    let failed = cold_snapshot(&cache, &Registry::standard(), &header, &log.log(), |_| {});
    assert_eq!(failed.unwrap_err().code(), "JSON_INVALID");
}

#[test]
fn what_is_cached_equals_the_fold_of_the_log() {
    let dir = quick_dir();
    let header = Header::new("s", 1);
    let mut keeper = keeper(dir.path(), &header);
    let mut folded = Registry::standard().start();
    for seq in 0..5 {
        let event = title(seq, &format!("t{seq}"));
        folded.fold(&event);
        keeper.event(&event, Instant::now());
    }
    keeper.write(|| Ok(())).1.unwrap();
    let rows: Rows = cache(dir.path()).rows(&header).unwrap().unwrap();
    assert_eq!(rows, folded.checkpoint());
    assert_eq!(keeper.projections().snapshot(), folded.snapshot());
    let file = file(dir.path()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&file).unwrap();
    let title = &document["tables"]["sessions"]["s"]["rows"]["title"];
    assert_eq!(title["seq"], 4);
}
