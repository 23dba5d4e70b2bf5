//! A projection that traps, loops, answers nonsense or grows without bound costs itself.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_agent::projection::{Fault, Projections, Registry};
use dsh_agent::{Log, NoDurability, SystemClock};
use dsh_plugin::port::{Quarantine, Watch};
use dsh_plugin::{Component, Grants, Limits, Row};
use dsh_session::{Draft, Header, Json, Kind, Session};
use serde_json::json;
use tokio::sync::OnceCell;

use crate::{engine, official, root, units};

#[path = "../../../plugin/tests/components/prober.rs"]
mod prober;

#[derive(Default)]
struct Told(Mutex<Vec<Quarantine>>);

impl Watch for Told {
    fn quarantined(&self, quarantine: Quarantine) {
        self.0.lock().unwrap().push(quarantine);
    }
}

async fn guest() -> Arc<Component> {
    static GUEST: OnceCell<Arc<Component>> = OnceCell::const_new();
    let load = || async {
        let file = prober::file(&root().join("host/plugin"));
        engine().load_file(&file).await.unwrap()
    };
    GUEST.get_or_init(load).await.clone()
}

/// A session with a projection that does what its events say, beside an official one.
async fn session() -> (Arc<Log>, Arc<Projections>, Arc<Told>) {
    let told = Arc::new(Told::default());
    let session = Session::new(Header::new("s", 1)).unwrap();
    let log = Arc::new(Log::new(
        Arc::new(Mutex::new(session)),
        Arc::new(SystemClock),
        vec![],
        Arc::new(NoDurability),
    ));
    let mut registry = Registry::host();
    let config = json!({"project": true}).to_string();
    // All that the guest imports; none of it is a projection's to call.
    let all = json!({
        "clock": true, "random": true, "session": true, "journal": ["todo/write"], "workspace": {"write": true},
        "inbox": {"wake": 2}, "kv": {"scopes": ["session"]}, "spill": true, "attachments": true, "pictures": true, "llm": {"tokens": 100},
        "process": ["allowed"], "route": {"provider": "prober"},
    });
    for (id, component, config, grants) in [
        ("hostile", guest().await, config.as_str(), all),
        (
            "session-stats",
            official("session-stats").await,
            "{}",
            json!({}),
        ),
    ] {
        let limits = Limits {
            cpu: Duration::from_millis(200),
            ..Limits::default()
        };
        let row = Row {
            id: id.to_owned(),
            component,
            config: config.to_owned(),
            grants: Grants::parse(&grants).unwrap(),
            limits,
        };
        let mounted = engine().mount(row).await.unwrap();
        for unit in units(&mounted, config, Some(Arc::clone(&told) as _)) {
            registry.register(unit).unwrap();
        }
    }
    let projections = Projections::start(Arc::clone(&log), registry, None);
    (log, projections, told)
}

fn say(log: &Log, what: &str) {
    let data = json!({"content": [{"type": "text", "text": what}], "source": {"kind": "user"}, "role": "user", "id": "u"});
    let data = Json::normalise(&data.to_string()).unwrap();
    log.append(Draft::new(Kind::UserMessage, data).append())
        .unwrap();
}

#[tokio::test]
async fn a_projection_that_misbehaves_is_out_of_use_and_costs_nobody_else() {
    for (what, reason) in [
        ("project: panic", "panicked"),
        ("project: spin", "computed for more than 200 ms"),
        ("project: nonsense", "nonsense"),
        ("project: swell", "are allowed for a state or a view"),
        ("project: grow", "ran out of memory"),
        ("project: deepen", "levels deep"),
        ("project: journal", "while it folds the log"),
    ] {
        let (log, projections, told) = session().await;
        assert_eq!(
            projections.view("bytes").await.unwrap().as_str(),
            "\"bytes 0\""
        );
        say(&log, what);
        log.record(
            Kind::StepEnd,
            Json::normalise(r#"{"turn":1,"step":1}"#).unwrap(),
        )
        .unwrap();
        assert_eq!(projections.view("bytes").await, None, "{what}");
        let fault = projections.fault("bytes").await.unwrap();
        let (Fault::Failed(text) | Fault::Out(text)) = &fault else {
            panic!("{what}: {fault:?}");
        };
        assert!(text.contains(reason), "{what}: {text}");
        let stats = projections.view("sessionStats").await.unwrap();
        assert_eq!(stats.get("steps").unwrap().u64(), Some(1), "{what}");
        let told = told.0.lock().unwrap();
        let rows: Vec<_> = told
            .iter()
            .map(|told| (told.row.as_str(), told.failures))
            .collect();
        assert_eq!(rows, [("hostile", 3)], "{what}: reported once");
    }
}

#[tokio::test]
async fn an_error_that_a_projection_gives_is_about_the_log_and_not_about_the_row() {
    let (log, projections, told) = session().await;
    say(&log, "project: fail");
    assert_eq!(projections.view("bytes").await, None);
    let fault = projections.fault("bytes").await;
    assert!(matches!(fault, Some(Fault::NoValue(_))), "{fault:?}");
    assert!(told.0.lock().unwrap().is_empty());
}
