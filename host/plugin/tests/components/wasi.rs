//! What a component made of an ordinary program finds of its machine.

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_plugin::port::{Level, Log, PortSet};
use dsh_plugin::{
    CallContext, CallError, Component, Engine, EngineConfig, Error, Grants, Limits, Mounted, Row,
    componentise,
};
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use crate::support::{call, engine, mount_text, run};

/// A C program with a C library, componentised by the host.
fn bytes() -> Vec<u8> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/guests/wasi.wasm");
    let module = std::fs::read(&file)
        .unwrap_or_else(|error| panic!("{}: {error}; run `cargo xtask guests`", file.display()));
    let made = componentise(module).unwrap();
    assert!(made.made);
    made.component
}

async fn component() -> Arc<Component> {
    static COMPONENT: OnceCell<Arc<Component>> = OnceCell::const_new();
    let load = || async { engine().load_bytes(bytes()).await.unwrap() };
    Arc::clone(COMPONENT.get_or_init(load).await)
}

async fn row(grants: &Value, limits: &Value) -> Row {
    let component = component().await;
    Row {
        id: "probe".to_owned(),
        limits: Limits::of(&component, limits).unwrap(),
        component,
        config: "{}".to_owned(),
        grants: Grants::parse(grants).unwrap(),
    }
}

async fn mount(grants: Value, limits: Value) -> Mounted {
    engine().mount(row(&grants, &limits).await).await.unwrap()
}

async fn ungranted() -> Mounted {
    mount(json!({}), json!({})).await
}

#[derive(Default)]
struct Lines(Mutex<Vec<(Level, String)>>);

impl Log for Lines {
    fn write(&self, row: &str, level: Level, message: &str) {
        assert_eq!(row, "probe");
        self.0.lock().unwrap().push((level, message.to_owned()));
    }
}

fn logging() -> (Arc<Lines>, CallContext) {
    let lines = Arc::new(Lines::default());
    let ports = PortSet {
        log: Some(lines.clone()),
        ..PortSet::default()
    };
    let ctx = CallContext {
        ports: Arc::new(ports),
        ..CallContext::default()
    };
    (lines, ctx)
}

async fn probe(mounted: &Mounted, what: &str) -> String {
    run(mounted, &CallContext::default(), "probe", what).await
}

#[tokio::test]
async fn a_program_for_the_first_preview_of_wasi_is_a_tool_and_needs_no_grant() {
    let mounted = ungranted().await;
    assert_eq!(mounted.tools()[0].name, "probe");
    assert_eq!(probe(&mounted, "?").await, "?");
    let wants = dsh_plugin::want::wants(
        mounted.component().description(),
        &engine()
            .survey(mounted.component(), "probe", "{}")
            .await
            .unwrap(),
    )
    .unwrap();
    let grants: Vec<&str> = wants.iter().map(|want| want.grant.as_str()).collect();
    assert_eq!(grants, ["tool-names"]);
}

#[tokio::test]
async fn clocks_stand_at_the_newest_event_and_at_a_fixed_time_where_there_is_none() {
    let mounted = ungranted().await;
    assert_eq!(probe(&mounted, "time").await, "1735689600.000 1");
    let ctx = CallContext {
        time_ms: 1_700_000_000_123,
        ..CallContext::default()
    };
    for _ in 0..2 {
        assert_eq!(
            run(&mounted, &ctx, "probe", "time").await,
            "1700000000.123 1"
        );
    }
}

#[tokio::test]
async fn waiting_takes_no_time_and_moves_the_monotonic_clock() {
    assert_eq!(probe(&ungranted().await, "sleep").await, "3600 s");
}

#[tokio::test]
async fn waiting_for_ever_ends_at_the_bound() {
    let mounted = mount(json!({}), json!({"cpu": "300ms"})).await;
    let ended = mounted
        .call_tool(&CallContext::default(), call("probe", "poll"))
        .await
        .unwrap_err();
    assert!(
        matches!(ended, CallError::Cpu { .. } | CallError::Calls { .. }),
        "{ended}"
    );
    let mounted = mount(json!({}), json!({"calls": 10_000})).await;
    let ended = mounted
        .call_tool(&CallContext::default(), call("probe", "poll"))
        .await
        .unwrap_err();
    assert!(matches!(ended, CallError::Calls { .. }), "{ended}");
}

#[tokio::test]
async fn the_grant_clock_makes_time_real() {
    let mounted = mount(json!({"clock": true}), json!({})).await;
    let said = probe(&mounted, "time").await;
    let seconds: u64 = said.split('.').next().unwrap().parse().unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert!(now - seconds < 60, "{said}");
    // An hour is not over: the call is given up while it waits.
    let ctx = CallContext::default();
    let waiting = mounted.call_tool(&ctx, call("probe", "sleep"));
    let ended = tokio::time::timeout(Duration::from_millis(200), waiting).await;
    assert!(ended.is_err(), "it came back: {ended:?}");
}

#[tokio::test]
async fn random_bytes_come_of_the_seed_and_the_row_unless_they_are_granted() {
    let mounted = ungranted().await;
    let seeded = |seed| CallContext {
        seed,
        ..CallContext::default()
    };
    let one = run(&mounted, &seeded(1), "probe", "random").await;
    assert_eq!(one.len(), 16, "{one}");
    assert_eq!(run(&mounted, &seeded(1), "probe", "random").await, one);
    assert_ne!(run(&mounted, &seeded(2), "probe", "random").await, one);
    let other = Row {
        id: "other".to_owned(),
        ..row(&json!({}), &json!({})).await
    };
    let other = engine().mount(other).await.unwrap();
    assert_ne!(run(&other, &seeded(1), "probe", "random").await, one);
    let granted = mount(json!({"random": true}), json!({})).await;
    let real = run(&granted, &seeded(1), "probe", "random").await;
    assert!(real != one && real != run(&granted, &seeded(1), "probe", "random").await);
}

#[tokio::test]
async fn there_is_no_environment_but_the_variables_that_were_granted() {
    let mounted = ungranted().await;
    assert_eq!(probe(&mounted, "env HOME").await, "(none)");
    let mounted = mount(
        json!({"env": ["CARGO_MANIFEST_DIR", "DSH_NONE"]}),
        json!({}),
    )
    .await;
    assert_eq!(
        probe(&mounted, "env CARGO_MANIFEST_DIR").await,
        env!("CARGO_MANIFEST_DIR")
    );
    assert_eq!(probe(&mounted, "env DSH_NONE").await, "(none)");
    assert_eq!(probe(&mounted, "env HOME").await, "(none)");
    // `HOME` makes it exit while it says what it offers: it had none then.
    assert_eq!(
        mount(json!({"env": ["HOME"]}), json!({}))
            .await
            .tools()
            .len(),
        1
    );
}

#[tokio::test]
async fn files_are_not_there_and_say_so() {
    let mounted = ungranted().await;
    for path in ["/etc/passwd", "Cargo.toml", "/", "/proc/self/environ"] {
        let said = probe(&mounted, &format!("read {path}")).await;
        assert!(
            !said.contains('=') && !said.contains("root:") && said.len() < 60,
            "{path}: {said}"
        );
        let said = probe(&mounted, &format!("write {path}")).await;
        assert_ne!(said, "written", "{path}");
    }
}

/// An engine that knows where `$DSH_HOME` is, and folders beside it.
struct Folders {
    dir: tempfile::TempDir,
    engine: Engine,
}

impl Folders {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        for folder in ["home/plugins", "shared/inner", "homely"] {
            std::fs::create_dir_all(dir.path().join(folder)).unwrap();
        }
        std::fs::write(dir.path().join("home/key"), "secret").unwrap();
        std::fs::write(dir.path().join("shared/note"), "a note").unwrap();
        let engine = Engine::new(EngineConfig {
            cache_dir: None,
            host_version: "9.9.9".to_owned(),
            home: Some(dir.path().join("home")),
        })
        .unwrap();
        Self { dir, engine }
    }

    fn path(&self, below: &str) -> String {
        self.dir.path().join(below).to_string_lossy().into_owned()
    }

    fn link(&self, to: &str, name: &str) {
        std::os::unix::fs::symlink(self.path(to), self.path(name)).unwrap();
    }

    fn key(&self) -> String {
        std::fs::read_to_string(self.path("home/key")).unwrap()
    }

    async fn mount(&self, below: &str, mode: &str) -> Result<Mounted, Error> {
        let grants = json!({"dir": [{"path": self.path(below), "mode": mode}]});
        self.mount_with(&grants).await
    }

    async fn mount_with(&self, grants: &Value) -> Result<Mounted, Error> {
        // Another engine does not take what one has loaded.
        let component = self.engine.load_bytes(bytes()).await?;
        let row = Row {
            component,
            ..row(grants, &json!({})).await
        };
        self.engine.mount(row).await
    }
}

#[tokio::test]
async fn a_folder_that_was_granted_is_there_to_read() {
    let folders = Folders::new();
    let mounted = folders.mount("shared", "ro").await.unwrap();
    let note = folders.path("shared/note");
    assert_eq!(probe(&mounted, &format!("read {note}")).await, "a note");
    let inner = folders.path("shared");
    assert!(
        probe(&mounted, &format!("list {inner}"))
            .await
            .contains("note")
    );
}

#[tokio::test]
async fn h16_h17_no_path_leads_out_of_a_folder() {
    let folders = Folders::new();
    let mounted = folders.mount("shared", "rw").await.unwrap();
    for outside in [
        "shared/../home/key",
        "shared/inner/../../home/key",
        "home/key",
        "shared/./../home/key",
    ] {
        let path = folders.path(outside);
        assert_ne!(probe(&mounted, &format!("read {path}")).await, "secret");
        assert_ne!(probe(&mounted, &format!("write {path}")).await, "written");
    }
    assert_eq!(folders.key(), "secret");
}

#[tokio::test]
async fn h18_links_in_a_folder_lead_nowhere_outside() {
    let folders = Folders::new();
    let mounted = folders.mount("shared", "rw").await.unwrap();
    folders.link("home/key", "shared/link");
    folders.link("home", "shared/there");
    for path in [
        "shared/link",
        "shared/there/key",
        "shared/there/plugins/new",
    ] {
        let path = folders.path(path);
        assert_ne!(probe(&mounted, &format!("read {path}")).await, "secret");
        assert_ne!(probe(&mounted, &format!("write {path}")).await, "written");
    }
    assert_eq!(folders.key(), "secret");
    assert!(!Path::new(&folders.path("home/plugins/new")).exists());
}

#[tokio::test]
async fn h20_a_trailing_slash_makes_no_folder_of_a_file_or_a_link() {
    let folders = Folders::new();
    let mounted = folders.mount("shared", "rw").await.unwrap();
    folders.link("home/key", "shared/link");
    for path in ["shared/note/", "shared/link/", "shared/link/."] {
        let path = folders.path(path);
        let said = probe(&mounted, &format!("read {path}")).await;
        assert!(said != "secret" && said != "a note", "{path}: {said}");
        assert_ne!(probe(&mounted, &format!("write {path}")).await, "written");
    }
    assert_eq!(folders.key(), "secret");
}

#[tokio::test]
async fn h22_a_folder_to_read_is_not_changed_in_any_way() {
    let folders = Folders::new();
    let mounted = folders.mount("shared", "ro").await.unwrap();
    for path in ["shared/note", "shared/new"] {
        let path = folders.path(path);
        assert_ne!(probe(&mounted, &format!("write {path}")).await, "written");
    }
    let note = std::fs::read_to_string(folders.path("shared/note"));
    assert_eq!(note.unwrap(), "a note", "it was not even emptied");
    assert!(!Path::new(&folders.path("shared/new")).exists());
}

#[tokio::test]
async fn h23_h25_a_folder_to_change_gives_nothing_to_one_to_read() {
    let folders = Folders::new();
    let grants = json!({"dir": [
        {"path": folders.path("shared"), "mode": "ro"},
        {"path": folders.path("homely"), "mode": "rw"},
    ]});
    let mounted = folders.mount_with(&grants).await.unwrap();
    let (note, mine) = (folders.path("shared/note"), folders.path("homely/mine"));
    assert_eq!(probe(&mounted, &format!("write {mine}")).await, "written");
    for what in [
        format!("write {note}"),
        format!("write {}", folders.path("homely/../shared/note")),
        format!("move {mine} {}", folders.path("shared/moved")),
        format!("move {note} {}", folders.path("homely/moved")),
    ] {
        let said = probe(&mounted, &what).await;
        assert!(said != "written" && said != "moved", "{what}: {said}");
    }
    assert_eq!(std::fs::read_to_string(note).unwrap(), "a note");
}

#[tokio::test]
async fn h24_a_pipe_in_a_folder_holds_nobody_up() {
    let folders = Folders::new();
    let pipe = folders.path("shared/pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        0,
    )
    .unwrap();
    let mounted = folders.mount("shared", "rw").await.unwrap();
    for what in ["read", "write"] {
        let what = format!("{what} {pipe}");
        let said = tokio::time::timeout(Duration::from_secs(60), probe(&mounted, &what)).await;
        assert_ne!(said.expect("it came back"), "written");
    }
}

#[tokio::test]
async fn h19_what_is_put_in_a_folders_place_later_is_not_the_folder() {
    let folders = Folders::new();
    let mounted = folders.mount("shared", "rw").await.unwrap();
    std::fs::rename(folders.path("shared"), folders.path("moved")).unwrap();
    folders.link("home", "shared");
    let key = folders.path("shared/key");
    assert_ne!(probe(&mounted, &format!("read {key}")).await, "secret");
    let note = folders.path("shared/note");
    assert_eq!(probe(&mounted, &format!("read {note}")).await, "a note");
}

#[tokio::test]
async fn a_folder_that_is_holds_or_lies_in_dshs_own_is_refused_to_read_as_to_change() {
    let folders = Folders::new();
    folders.link("home", "link");
    for below in [
        "home",
        "home/plugins",
        "",
        "link",
        "shared/../home",
        "link/plugins",
    ] {
        for mode in ["ro", "rw"] {
            let error = folders.mount(below, mode).await.err().unwrap();
            assert!(matches!(&error, Error::Folder { .. }), "{below}: {error}");
            let said = error.to_string();
            assert!(said.starts_with("row probe: the folder /"), "{said}");
            assert!(said.contains("dsh's own folder"), "{said}");
        }
    }
    assert!(folders.mount("homely", "rw").await.is_ok());
    let error = folders
        .mount("nowhere", "ro")
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("cannot be opened"), "{error}");
    let error = folders
        .mount("shared/note", "ro")
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("cannot be opened"), "{error}");
}

#[tokio::test]
async fn what_it_prints_goes_to_the_log_line_by_line_and_no_further_than_its_bound() {
    let (lines, ctx) = logging();
    let mounted = mount(json!({}), json!({"log-lines": 5})).await;
    assert_eq!(run(&mounted, &ctx, "probe", "print 3").await, "printed");
    let expected = [
        (Level::Info, "line 0"),
        (Level::Info, "line 1"),
        (Level::Info, "line 2"),
        (Level::Warn, "to stderr, without an end"),
    ]
    .map(|(level, line)| (level, line.to_owned()));
    assert_eq!(std::mem::take(&mut *lines.0.lock().unwrap()), expected);
    assert_eq!(run(&mounted, &ctx, "probe", "print 100").await, "printed");
    let lines = lines.0.lock().unwrap();
    assert_eq!(lines.len(), 6, "{lines:?}");
    assert!(lines[5].1.contains("96 more"), "{lines:?}");
}

#[tokio::test]
async fn an_exit_is_a_crash_and_an_abort_says_its_last_words() {
    let mounted = ungranted().await;
    for (what, expected) in [
        ("exit 0", "it exited with status 0"),
        ("exit 1", "it exited with status 1"),
        ("abort", "it gives up"),
    ] {
        let ended = mounted
            .call_tool(&CallContext::default(), call("probe", what))
            .await
            .unwrap_err();
        let mounted_again = ungranted().await;
        assert!(
            matches!(&ended, CallError::Trap { reason, .. } if reason.contains(expected)),
            "{what}: {ended}"
        );
        assert_eq!(probe(&mounted_again, "?").await, "?");
    }
}

#[tokio::test]
async fn handles_are_bounded() {
    let folders = Folders::new();
    let mounted = folders.mount("shared", "ro").await.unwrap();
    let shared = folders.path("shared");
    let said = probe(&mounted, &format!("many {shared}")).await;
    assert!(
        said.contains("crashed") || said.parse::<u32>().is_ok_and(|opened| opened <= 1000),
        "{said}"
    );
}

#[tokio::test]
async fn every_version_of_wasis_second_preview_is_met_and_no_other() {
    for version in ["0.2.0", "0.2.6", "0.2.12"] {
        let text = format!(
            r#"(component (import "wasi:cli/environment@{version}" (instance
                (export "get-arguments" (func (result (list string)))))))"#
        );
        let error = mount_text(&text, json!({})).await.err().unwrap();
        assert!(
            matches!(error, Error::NothingToMount { .. }),
            "{version} was linked, and only then found to export nothing: {error}"
        );
    }
    for import in [
        "wasi:cli/environment@0.3.0",
        "wasi:cli/environment@0.2.0-rc-2023-11-10",
        "wasi:nn/graph@0.2.0",
        "wasi:keyvalue/store@0.2.0",
    ] {
        let text = format!(r#"(component (import "{import}" (instance (export "f" (func)))))"#);
        let error = mount_text(&text, json!({})).await.err().unwrap();
        assert!(matches!(error, Error::NotProvided { .. }), "{error}");
    }
}

#[tokio::test]
async fn requests_of_wasi_are_there_and_trap_when_they_are_called() {
    let calls = |start: &str| {
        format!(
            r#"(component
                (import "wasi:http/types@0.2.10" (instance $types
                    (export "fields" (type (sub resource)))
                    (export "http-error" (func))))
                (core func $call (canon lower (func $types "http-error")))
                (core module $m
                    (import "types" "call" (func $call))
                    (func $start {start})
                    (func (export "f"))
                    (start $start))
                (core instance $imports (export "call" (func $call)))
                (core instance $i (instantiate $m (with "types" (instance $imports))))
                (func $f (canon lift (core func $i "f")))
                (instance $p (export "sections" (func $f)))
                (export "dsh:plugin/prompt@0.1.0" (instance $p)))"#
        )
    };
    let calling = mount_text(&calls("call $call"), json!({})).await;
    let error = calling.err().unwrap().to_string();
    assert!(
        error.contains(
            "it called http-error of wasi:http/types@0.2.10, which this host does not provide"
        ),
        "{error}"
    );
    // Without the call it starts, and is then found to be of another world.
    let error = mount_text(&calls(""), json!({}))
        .await
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("does not fit the contract"), "{error}");
}
