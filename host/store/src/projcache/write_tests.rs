//! Writes at upstream's points come to upstream's file.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_session::projection::{Projections, Registry, Rows};
use dsh_session::{Event, Header};

use super::*;
use crate::testing::{cases, quick_dir};

/// A session whose record is kept as a run keeps it, without threads and time.
struct Keeper {
    cache: ProjectionCache,
    header: Header,
    projections: Projections,
    points: WritePoints,
}

impl Keeper {
    fn event(&mut self, event: &Event, now: Instant) -> Due {
        self.projections.fold(event);
        self.points.event(&event.kind, now)
    }

    fn write(&mut self) -> Due {
        self.points.begin();
        let rows = self.projections.checkpoint();
        let written = self.cache.put(&self.header, &rows);
        self.points.finish(written.is_ok())
    }
}

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
    Keeper {
        cache: cache(dir),
        header: header.clone(),
        projections: Registry::standard().start(),
        points,
    }
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
            due = keeper.write();
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
            let due = keeper.points.fired(deadline);
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
    keeper.write();
    let rows: Rows = cache(dir.path()).rows(&header).unwrap().unwrap();
    assert_eq!(rows, folded.checkpoint());
    assert_eq!(keeper.projections.snapshot(), folded.snapshot());
    let file = file(dir.path()).unwrap();
    let document: serde_json::Value = serde_json::from_str(&file).unwrap();
    let title = &document["tables"]["sessions"]["s"]["rows"]["title"];
    assert_eq!(title["seq"], 4);
}
