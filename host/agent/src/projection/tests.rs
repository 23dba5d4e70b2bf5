//! Rules of the registry, the follower and the cache, over units of the tests' own.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use dsh_session::projection::Row;
use dsh_session::{Draft, Header, Kind, Session};
use dsh_store::projcache::ProjectionCache;
use tokio::sync::{Semaphore, watch};

use super::*;
use crate::log::{Durability, NoDurability, SystemClock};

/// Counts `tool/call` events, and does as it is told.
struct Counter {
    key: &'static str,
    maker: Option<&'static str>,
    /// How the next folds end, last first.
    faults: Mutex<Vec<Fault>>,
    /// Events of each fold.
    calls: watch::Sender<Vec<usize>>,
    /// A fold waits for one of these.
    permits: Semaphore,
    views: AtomicUsize,
}

impl Counter {
    fn new(key: &'static str) -> Arc<Self> {
        Self::made(key, None, &[])
    }

    fn made(key: &'static str, maker: Option<&'static str>, faults: &[Fault]) -> Arc<Self> {
        Arc::new(Self {
            key,
            maker,
            faults: Mutex::new(faults.to_vec()),
            calls: watch::Sender::default(),
            permits: Semaphore::new(Semaphore::MAX_PERMITS),
            views: AtomicUsize::new(0),
        })
    }

    fn calls(&self) -> Vec<usize> {
        self.calls.borrow().clone()
    }
}

#[async_trait]
impl Unit for Counter {
    fn key(&self) -> &str {
        self.key
    }
    fn version(&self) -> u64 {
        1
    }
    fn reads(&self, kind: &Kind) -> bool {
        *kind == Kind::ToolCall
    }
    fn maker(&self) -> Option<&str> {
        self.maker
    }
    async fn fold(&self, stretch: Stretch<'_>) -> Result<Json, Fault> {
        self.calls
            .send_modify(|calls| calls.push(stretch.events.len()));
        let permit = self.permits.acquire().await.unwrap();
        drop(permit);
        if let Some(fault) = lock(&self.faults).pop() {
            return Err(fault);
        }
        let before = match stretch.state {
            None => 0,
            Some(state) => state
                .value()
                .u64()
                .ok_or(Fault::NoValue("its state is malformed".to_owned()))?,
        };
        Ok(number(before + stretch.events.len() as u64))
    }
    async fn view(
        &self,
        state: &Json,
        _: Option<Seq>,
        _: &CancellationToken,
    ) -> Result<Json, Fault> {
        self.views.fetch_add(1, Ordering::Relaxed);
        Ok(Json::object(|o| {
            o.json("calls", state);
        }))
    }
}

fn number(number: u64) -> Json {
    Json::normalise(&number.to_string()).unwrap()
}

fn shows(calls: u64) -> Option<Json> {
    Some(Json::object(|o| {
        o.u64("calls", calls);
    }))
}

fn header() -> Header {
    Header::new("s", 1)
}

fn log_of(session: Session, durability: Arc<dyn Durability>) -> Arc<Log> {
    let session = Arc::new(Mutex::new(session));
    Arc::new(Log::new(session, Arc::new(SystemClock), vec![], durability))
}

fn log() -> Arc<Log> {
    log_of(Session::new(header()).unwrap(), Arc::new(NoDurability))
}

fn append(log: &Log, kind: Kind) {
    log.append(Draft::new(kind, Json::empty_object())).unwrap();
}

fn registry(units: &[Arc<Counter>]) -> Registry {
    let mut registry = Registry::host();
    for unit in units {
        assert_eq!(registry.register(Arc::clone(unit) as _), Ok(Taken::First));
    }
    registry
}

fn keep(home: &Path, old: bool) -> Option<Keep> {
    let points = WritePoints::new(1000, Duration::from_secs(3600));
    let warn = |text: &str| panic!("{text}");
    Some(Keep::new(
        ProjectionCache::at(home),
        header(),
        old,
        points,
        warn,
    ))
}

fn cached(home: &Path, key: &str) -> Option<Row> {
    let rows = ProjectionCache::at(home).rows(&header()).unwrap()?;
    rows.get(key).cloned()
}

#[tokio::test]
async fn a_view_is_folded_up_to_the_end_of_the_log_when_it_is_asked_for() {
    let log = log();
    let calls = Counter::new("calls");
    let projections = Projections::start(Arc::clone(&log), registry(&[Arc::clone(&calls)]), None);
    assert_eq!(projections.view("calls").await, shows(0));
    append(&log, Kind::ToolCall);
    append(&log, Kind::StepStart);
    append(&log, Kind::ToolCall);
    assert_eq!(projections.view("calls").await, shows(2));
    assert_eq!(projections.view("calls").await, shows(2));
    assert_eq!(calls.calls(), [0, 2], "what it does not read is not sent");
    assert_eq!(
        calls.views.load(Ordering::Relaxed),
        2,
        "the second is remembered"
    );
    let data = Json::normalise(r#"{"title":"T"}"#).unwrap();
    log.record(Kind::SessionTitle, data).unwrap();
    assert_eq!(projections.view("title").await, Some(Json::string("T")));
    assert_eq!(projections.view("nobody's").await, None);
    let snapshot = projections.snapshot().await;
    assert_eq!(snapshot.as_of, Some(Seq(3)));
    let keys: Vec<_> = snapshot.values.iter().map(|(key, _)| &**key).collect();
    assert_eq!(keys, ["title", "contextBreakdown", "calls"]);
}

#[tokio::test]
async fn events_gather_and_are_folded_together() {
    let log = log();
    let calls = Counter::new("calls");
    let mut told = calls.calls.subscribe();
    let projections = Projections::start(Arc::clone(&log), registry(&[Arc::clone(&calls)]), None);
    for _ in 0..BATCH {
        assert_eq!(calls.calls(), [0; 0]);
        append(&log, Kind::ToolCall);
    }
    told.wait_for(|calls| !calls.is_empty()).await.unwrap();
    assert_eq!(calls.calls(), [BATCH as usize]);
    for _ in 0..=BATCH {
        append(&log, Kind::ToolCall);
    }
    assert_eq!(projections.view("calls").await, shows(2 * BATCH + 1));
    let batches = calls.calls();
    assert!(
        batches.iter().all(|size| *size <= BATCH as usize),
        "{batches:?}"
    );
}

#[tokio::test]
async fn a_fault_costs_the_value_of_that_unit_alone() {
    let log = log();
    let failed = || Fault::Failed("trap".to_owned());
    let breaks = || Fault::NoValue("no price".to_owned());
    let once = Counter::made("once", None, &[failed()]);
    let always = Counter::made("always", None, &[failed(), failed(), failed()]);
    let never = Counter::made("never", None, &[breaks()]);
    let well = Counter::new("well");
    let units = [&once, &always, &never, &well].map(Arc::clone);
    append(&log, Kind::ToolCall);
    let projections = Projections::start(Arc::clone(&log), registry(&units), None);
    assert_eq!(
        projections.view("once").await,
        shows(1),
        "it is tried again"
    );
    assert_eq!(projections.view("always").await, None);
    assert_eq!(projections.view("never").await, None);
    append(&log, Kind::ToolCall);
    for _ in 0..2 {
        assert_eq!(projections.view("always").await, None);
        assert_eq!(projections.view("never").await, None);
    }
    assert_eq!(
        (always.calls().len(), never.calls().len()),
        (3, 1),
        "and not asked again"
    );
    assert_eq!(projections.fault("always").await, Some(failed()));
    assert_eq!(projections.fault("never").await, Some(breaks()));
    assert_eq!(projections.view("well").await, shows(2));
}

#[tokio::test]
async fn a_unit_that_takes_long_keeps_nobody_else_waiting() {
    let log = log();
    let (slow, quick) = (Counter::new("slow"), Counter::new("quick"));
    slow.permits.forget_permits(Semaphore::MAX_PERMITS);
    let units = [&slow, &quick].map(Arc::clone);
    let projections = Projections::start(Arc::clone(&log), registry(&units), None);
    for _ in 0..BATCH {
        append(&log, Kind::ToolCall);
    }
    let mut told = slow.calls.subscribe();
    told.wait_for(|calls| !calls.is_empty()).await.unwrap();
    append(&log, Kind::ToolCall);
    assert_eq!(projections.view("quick").await, shows(BATCH + 1));
    slow.permits.add_permits(1);
    assert_eq!(projections.view("slow").await, shows(BATCH + 1));
}

#[tokio::test]
async fn whoever_gives_up_leaves_the_state_as_it_was() {
    let log = log();
    let calls = Counter::new("calls");
    calls.permits.forget_permits(Semaphore::MAX_PERMITS);
    let projections = Projections::start(Arc::clone(&log), registry(&[Arc::clone(&calls)]), None);
    append(&log, Kind::ToolCall);
    let asking = Arc::clone(&projections);
    let asked = tokio::spawn(async move { asking.view("calls").await });
    let mut told = calls.calls.subscribe();
    told.wait_for(|calls| !calls.is_empty()).await.unwrap();
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    calls.permits.add_permits(1);
    assert_eq!(projections.view("calls").await, shows(1));
    assert_eq!(calls.calls(), [1, 1]);
}

#[tokio::test]
async fn a_turns_end_and_the_sessions_end_write_the_cache() {
    let home = tempfile::tempdir().unwrap();
    let log = log();
    let calls = Counter::made("calls", Some("a"), &[]);
    let units = registry(&[Arc::clone(&calls)]);
    let projections = Projections::start(Arc::clone(&log), units, keep(home.path(), false));
    append(&log, Kind::ToolCall);
    assert_eq!(projections.view("calls").await, shows(1));
    assert_eq!(cached(home.path(), "calls"), None, "asking writes nothing");
    append(&log, Kind::TurnEnd);
    projections.close().await;
    let row = cached(home.path(), "calls").unwrap();
    assert_eq!((row.as_of, row.state), (Some(Seq(1)), number(1)));
    assert_eq!(cached(home.path(), "title").unwrap().as_of, Some(Seq(1)));
    append(&log, Kind::ToolCall);
    assert_eq!(
        projections.view("calls").await,
        shows(2),
        "closed is not gone"
    );
}

/// Looks at the cache while the log is flushed, and may fail to.
struct Watching {
    home: std::path::PathBuf,
    seen: Mutex<Vec<Option<Seq>>>,
    fails: bool,
}

#[async_trait]
impl Durability for Watching {
    async fn flush(&self) -> Result<(), String> {
        let seen = cached(&self.home, "calls").and_then(|row| row.as_of);
        lock(&self.seen).push(seen);
        if self.fails {
            return Err("the disk is full".to_owned());
        }
        Ok(())
    }
}

#[tokio::test]
async fn the_cache_is_never_ahead_of_the_log() {
    for fails in [false, true] {
        let home = tempfile::tempdir().unwrap();
        let watching = Arc::new(Watching {
            home: home.path().to_owned(),
            seen: Mutex::default(),
            fails,
        });
        let log = log_of(Session::new(header()).unwrap(), Arc::clone(&watching) as _);
        let units = registry(&[Counter::new("calls")]);
        let projections = Projections::start(Arc::clone(&log), units, keep(home.path(), false));
        append(&log, Kind::ToolCall);
        projections.close().await;
        assert_eq!(
            *lock(&watching.seen),
            [None],
            "first the log, then the cache"
        );
        let row = cached(home.path(), "calls");
        assert_eq!(row.map(|row| row.as_of), (!fails).then_some(Some(Seq(0))));
    }
}

/// A session that was there, with what a run before has cached.
async fn taken_up(home: &Path, unit: &Arc<Counter>) -> (Arc<Log>, Arc<Projections>) {
    let first = log();
    let before = Counter::made("calls", Some("a"), &[]);
    let projections =
        Projections::start(Arc::clone(&first), registry(&[before]), keep(home, false));
    for _ in 0..3 {
        append(&first, Kind::ToolCall);
    }
    projections.close().await;
    append(&first, Kind::ToolCall);
    let events = first.read(|session| session.log().to_vec()).unwrap();
    let session = Session::restore(header(), events, 9).unwrap();
    let log = log_of(session, Arc::new(NoDurability));
    let units = registry(&[Arc::clone(unit)]);
    let projections = Projections::start(Arc::clone(&log), units, keep(home, true));
    (log, projections)
}

#[tokio::test]
async fn a_session_that_is_taken_up_goes_on_from_the_caches_mark() {
    let home = tempfile::tempdir().unwrap();
    let unit = Counter::made("calls", Some("a"), &[]);
    let (log, projections) = taken_up(home.path(), &unit).await;
    append(&log, Kind::ToolCall);
    assert_eq!(projections.view("calls").await, shows(5));
    assert_eq!(unit.calls().iter().sum::<usize>(), 2, "{:?}", unit.calls());
}

#[tokio::test]
async fn a_state_of_another_component_or_configuration_is_folded_anew() {
    for maker in [Some("b"), None] {
        let home = tempfile::tempdir().unwrap();
        let unit = Counter::made("calls", maker, &[]);
        let (_, projections) = taken_up(home.path(), &unit).await;
        assert_eq!(projections.view("calls").await, shows(4));
        let folded: usize = unit.calls().iter().sum();
        // Of the host's own a version says it all.
        assert_eq!(folded, if maker.is_some() { 4 } else { 1 });
    }
}

#[tokio::test]
async fn a_cached_state_that_is_none_costs_a_whole_fold() {
    let home = tempfile::tempdir().unwrap();
    let unit = Counter::made("calls", None, &[]);
    let (_, projections) = taken_up(home.path(), &unit).await;
    let cache = ProjectionCache::at(home.path());
    let mut rows = cache.rows(&header()).unwrap().unwrap();
    let row = rows.get("calls").unwrap().clone();
    let spoilt = Row {
        state: Json::string("spoilt"),
        ..row
    };
    rows.set("calls", spoilt.clone());
    cache.put(&header(), &rows).unwrap();
    assert_eq!(projections.view("calls").await, shows(4));
    // As of an event that the log does not have.
    let home = tempfile::tempdir().unwrap();
    let (_, projections) = taken_up(home.path(), &unit).await;
    rows.set(
        "calls",
        Row {
            as_of: Some(Seq(99)),
            ..spoilt
        },
    );
    ProjectionCache::at(home.path())
        .put(&header(), &rows)
        .unwrap();
    assert_eq!(projections.view("calls").await, shows(4));
}

#[tokio::test]
async fn a_cache_that_cannot_be_used_is_said_once_and_changes_nothing() {
    let home = tempfile::tempdir().unwrap();
    let file = ProjectionCache::at(home.path()).path().to_owned();
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(&file, "somebody else's").unwrap();
    let log = log();
    let said = Arc::new(Mutex::new(Vec::new()));
    let into = Arc::clone(&said);
    let keep = Keep::new(
        ProjectionCache::at(home.path()),
        header(),
        true,
        WritePoints::default(),
        move |text| lock(&into).push(text.to_owned()),
    );
    let projections = Projections::start(
        Arc::clone(&log),
        registry(&[Counter::new("calls")]),
        Some(keep),
    );
    append(&log, Kind::ToolCall);
    append(&log, Kind::TurnEnd);
    assert_eq!(projections.view("calls").await, shows(1));
    projections.close().await;
    assert_eq!(lock(&said).len(), 1, "{said:?}");
    assert_eq!(std::fs::read(&file).unwrap(), b"somebody else's");
}

#[tokio::test]
async fn a_key_is_shared_by_units_of_one_version() {
    let mut registry = Registry::host();
    let calls = Counter::new("calls");
    assert_eq!(registry.register(Arc::clone(&calls) as _), Ok(Taken::First));
    let second = Counter::new("calls");
    assert_eq!(
        registry.register(Arc::clone(&second) as _),
        Ok(Taken::Shared(2))
    );
    // The host's title is of version 1 too.
    assert_eq!(
        registry.register(Counter::new("title")),
        Ok(Taken::Shared(2))
    );
    let other = registry.register(Counter::new("contextBreakdown"));
    assert!(
        other
            .unwrap_err()
            .contains("version 1, and another row or the host does in version 2")
    );
    let reserved = registry.register(Counter::new("dsh/made/title"));
    assert!(reserved.unwrap_err().contains("the cache's own"));
    let log = log();
    let projections = Projections::start(log, registry, None);
    assert_eq!(projections.view("calls").await, shows(0));
    assert_eq!(
        (calls.calls().len(), second.calls().len()),
        (1, 0),
        "the first folds"
    );
    assert_eq!(projections.view("title").await, Some(Json::null()));
}

#[tokio::test]
async fn a_unit_that_never_returns_does_not_keep_a_session_from_closing() {
    let home = tempfile::tempdir().unwrap();
    let log = log();
    let stuck = Counter::new("stuck");
    stuck.permits.forget_permits(Semaphore::MAX_PERMITS);
    let units = registry(&[stuck]);
    let projections = Projections::start(Arc::clone(&log), units, keep(home.path(), false));
    append(&log, Kind::ToolCall);
    append(&log, Kind::TurnEnd);
    projections.close_within(Duration::from_millis(20)).await;
}
