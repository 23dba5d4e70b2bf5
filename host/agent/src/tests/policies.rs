//! The official policy components in the pipeline of a call: what each makes of
//! a result, a deadline, a row of equal calls, a file that is to be changed
//! (spec/loop.md §7.2, §7.3, §12.1, §15.2).

use std::path::Path;
use std::sync::{Arc, Mutex, OnceLock};

use async_trait::async_trait;
use dsh_plugin::api::PluginError;
use dsh_plugin::port::{PortSet, Spill};
use dsh_plugin::{Engine, EngineConfig, Grants, Limits, Mounted, Row};
use dsh_sandbox::{Expect, Intent, Operation, WritePolicy};
use dsh_session::{Json, Kind, Value};
use serde_json::json;

use super::rig::{
    ANY, FakeListener, Rig, Say, Setup, calls, json as listened, ok, ok_with, spec, text, tool,
    waiting_tool,
};
use crate::CancelCause;
use crate::dispatch::{Dispatch, Entry, FileEvents, Listener};
use crate::tools::Tool;

/// A row of an official component, as `cargo xtask plugins` built it.
async fn row(component: &str, grants: serde_json::Value, config: serde_json::Value) -> Mounted {
    static ENGINE: OnceLock<Engine> = OnceLock::new();
    let engine = ENGINE.get_or_init(|| {
        Engine::new(EngineConfig {
            cache_dir: None,
            host_version: "test".into(),
            home: None,
        })
        .unwrap()
    });
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folder = std::env::var_os("DSH_COMPONENTS")
        .map_or_else(|| workspace.join("target/components"), Into::into);
    let read = |end: &str| -> &'static [u8] {
        let file = folder.join(format!("{component}.{end}"));
        let bytes = std::fs::read(&file).unwrap_or_else(|error| {
            panic!("{}: {error}; run `cargo xtask plugins`", file.display())
        });
        bytes.leak()
    };
    let component = engine.load_embedded(read("wasm"), read("cwasm")).await;
    let component = component.unwrap();
    let row = Row {
        id: component.manifest().unwrap().rows[0].id.clone(),
        limits: Limits::of(&component, &json!({})).unwrap(),
        grants: Grants::parse(&grants).unwrap(),
        config: config.to_string(),
        component,
    };
    engine.mount(row).await.unwrap()
}

async fn spill(config: serde_json::Value) -> Mounted {
    let grants = json!({"decide": ["tools/post-execute"], "spill": true});
    row("spill-policy", grants, config).await
}

async fn timeouts(config: serde_json::Value) -> Mounted {
    let grants = json!({"decide": ["tools/execute"]});
    row("timeout-policy", grants, config).await
}

async fn reminder(config: serde_json::Value) -> Mounted {
    let grants = json!({"observe": ["agent/pre-step"], "decide": ["tools/post-execute"]});
    row("repeat-tool-reminder", grants, config).await
}

/// A store that keeps what it is given, or fails.
#[derive(Default)]
struct Kept {
    files: Mutex<Vec<(String, String)>>,
    full: bool,
}

#[async_trait]
impl Spill for Kept {
    async fn store(&self, name: &str, content: Vec<u8>) -> Result<String, PluginError> {
        if self.full {
            return Err(PluginError::new("FS_IO_ERROR", "the disk is full"));
        }
        let content = String::from_utf8(content).unwrap();
        self.files.lock().unwrap().push((name.to_owned(), content));
        Ok(format!("/spill/{name}"))
    }
}

fn keeping(store: &Arc<Kept>) -> PortSet {
    PortSet {
        spill: Some(Arc::<Kept>::clone(store)),
        ..PortSet::default()
    }
}

/// The result of one call under a cap of 1,000 bytes, and what was stored.
async fn spilled(
    store: Kept,
    tool: Arc<dyn Tool>,
    inner: Vec<Arc<dyn Listener>>,
) -> (String, Vec<(String, String)>) {
    let store = Arc::new(store);
    let rig = Rig::new(Setup {
        say: vec![
            calls(&[("A", &tool.spec().name.clone(), "{}")]),
            text("done"),
        ],
        tools: vec![tool],
        mounted: vec![spill(json!({"maxInlineBytes": 1000})).await],
        listeners: inner,
        ports: keeping(&store),
        ..Setup::default()
    });
    rig.run("go").await;
    let files = store.files.lock().unwrap().clone();
    (rig.result("A"), files)
}

fn saying(name: &'static str, said: String) -> Arc<dyn Tool> {
    tool(spec(name), move |_| ok(&said))
}

#[tokio::test]
async fn a_result_spills_above_the_cap_and_not_at_it() {
    for (at, spills) in [
        ("x".repeat(1000), false),
        ("x".repeat(1001), true),
        ("é".repeat(500), false),
        (format!("é{}", "x".repeat(999)), true),
    ] {
        let (result, files) = spilled(Kept::default(), saying("t", at.clone()), vec![]).await;
        if spills {
            assert_eq!(files, [("A.txt".to_owned(), at)]);
            assert!(
                result.len() <= 1000 && result.contains("/spill/A.txt"),
                "{result}"
            );
        } else {
            assert_eq!((result, files), (at, vec![]));
        }
    }
}

#[tokio::test]
async fn a_spilled_result_is_cut_between_characters() {
    for lead in 0..4 {
        let said = format!("{}{}", "x".repeat(lead), "🦀".repeat(400));
        let (result, _) = spilled(Kept::default(), saying("t", said.clone()), vec![]).await;
        let shown = result.split_once("\n\n(").unwrap().0;
        let crabs = |text: &str| text.chars().all(|c| c == '🦀');
        assert!(crabs(&shown[lead..]), "{result}");
        let left_out = said.len() - shown.len();
        assert!(
            result.contains(&format!("({left_out} bytes are left out")),
            "{result}"
        );
    }
}

#[tokio::test]
async fn errors_spill_as_results_do_and_read_does_not() {
    let long = "y".repeat(2000);
    let said = long.clone();
    let fails = tool(spec("t"), move |_| {
        Err(PluginError::new("FS_TOO_LARGE", &said))
    });
    let (result, files) = spilled(Kept::default(), fails, vec![]).await;
    assert!(
        result.starts_with("Error: yyy") && result.len() <= 1000,
        "{result}"
    );
    assert_eq!(files, [("A.txt".to_owned(), format!("Error: {long}"))]);

    let read = saying("read", long.clone());
    assert_eq!(spilled(Kept::default(), read, vec![]).await, (long, vec![]));
}

#[tokio::test]
async fn what_cannot_be_spilled_stays_as_it_was() {
    let long = "z".repeat(2000);
    let full = Kept {
        full: true,
        ..Kept::default()
    };
    let kept = spilled(full, saying("t", long.clone()), vec![]).await;
    assert_eq!(kept, (long.clone(), vec![]));

    let said = long.clone();
    let pictured = tool(spec("t"), move |_| {
        let mut outcome = ok(&said)?;
        outcome
            .content
            .push(r#"{"type":"image","attachment":"a"}"#.to_owned());
        Ok(outcome)
    });
    assert_eq!(
        spilled(Kept::default(), pictured, vec![]).await,
        (long, vec![])
    );
}

fn reviewing(answer: String) -> Arc<dyn Listener> {
    Arc::new(FakeListener {
        name: "inner",
        event: "tools/post-execute",
        enter: Some(Box::new(move |_| Ok(Entry::settle(listened(&answer))))),
        ..FakeListener::default()
    })
}

#[tokio::test]
async fn the_spill_policy_has_the_last_word_on_content_and_none_on_a_block_or_a_value() {
    let long = "w".repeat(2000);
    let content = json!({"kind": "accept", "content": [{"type": "text", "text": long}]});
    let inner = vec![reviewing(content.to_string())];
    let (result, files) = spilled(Kept::default(), saying("t", "short".into()), inner).await;
    assert_eq!(files, [("A.txt".to_owned(), long.clone())]);
    assert!(result.len() <= 1000, "{result}");

    let block = json!({"kind": "block", "feedback": long});
    let inner = vec![reviewing(block.to_string())];
    let blocked = spilled(Kept::default(), saying("t", long.clone()), inner).await;
    assert_eq!(blocked, (format!("Error: {long}"), vec![]));

    let value = json!({"kind": "accept", "value": {"b": long}});
    let inner = vec![reviewing(value.to_string())];
    let own = long.clone();
    let valued = tool(spec("t").with_output(ANY).unwrap(), move |_| {
        ok_with(&own, r#"{"value":{"a":1}}"#)
    });
    let (result, files) = spilled(Kept::default(), valued, inner).await;
    assert_eq!((result, files), (json!({"b": long}).to_string(), vec![]));
}

#[tokio::test]
async fn without_a_cap_the_policy_listens_to_nothing() {
    assert_eq!(spill(json!({})).await.subscriptions().len(), 0);
    assert_eq!(
        spill(json!({"maxInlineBytes": 0}))
            .await
            .subscriptions()
            .len(),
        1
    );
}

/// A tool that ends only when it is told to, and then well or not.
fn late(timeout_ms: Option<u64>, well: bool) -> Arc<dyn Tool> {
    waiting_tool(spec("t").with_timeout_ms(timeout_ms), move |_, cancel| {
        Box::pin(async move {
            cancel.cancelled().await;
            if well {
                ok("late but fine")
            } else {
                Err(PluginError::new("OWN", "late and broken"))
            }
        })
    })
}

#[tokio::test]
async fn a_deadline_beats_what_comes_late_well_or_not() {
    for well in [true, false] {
        let rig = Rig::new(Setup {
            say: vec![calls(&[("A", "t", "{}")]), text("done")],
            tools: vec![late(Some(5), well)],
            mounted: vec![timeouts(json!({})).await],
            ..Setup::default()
        });
        rig.run("go").await;
        let events = rig.events();
        assert!(
            events.contains(&"tool/result A TOOL_TIMEOUT".to_owned()),
            "{events:?}"
        );
        assert_eq!(rig.result("A"), "Error: tool call timed out after 5ms");
        // The turn itself was not cancelled.
        assert_eq!(events.last().unwrap(), "turn/end 1 completed");
    }
}

#[tokio::test]
async fn a_configured_limit_holds_a_tool_that_declares_another() {
    let limits = json!({"limits": [{"tool": "t*", "timeoutMs": 5}]});
    let rig = Rig::new(Setup {
        say: vec![calls(&[("A", "t", "{}")]), text("done")],
        tools: vec![late(Some(600_000), true)],
        mounted: vec![timeouts(limits).await],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(rig.result("A"), "Error: tool call timed out after 5ms");
}

#[tokio::test]
async fn a_tool_without_a_limit_has_none() {
    let rig = Rig::new(Setup {
        say: vec![calls(&[("A", "t", "{}")])],
        tools: vec![late(None, true)],
        mounted: vec![timeouts(json!({})).await],
        ..Setup::default()
    });
    let run = rig.run("go");
    let cancel = async {
        rig.until("tool/call A").await;
        rig.agent.cancel(CancelCause::User, true).unwrap();
    };
    tokio::join!(run, cancel);
    assert!(
        rig.events().contains(&"tool/result A ABORTED".to_owned()),
        "{:?}",
        rig.events()
    );
}

/// Runs scripted steps, a step a call of `t` with these arguments.
fn repeating(arguments: &[&str]) -> Vec<Say> {
    let ids: Vec<String> = (0..arguments.len()).map(|at| format!("c{at}")).collect();
    let mut say: Vec<_> = ids
        .iter()
        .zip(arguments)
        .map(|(id, arguments)| calls(&[(id, "t", arguments)]))
        .collect();
    say.push(text("done"));
    say
}

/// Sources and texts of the reminders that a session has.
fn reminders(rig: &Rig) -> Vec<(String, String)> {
    let messages = rig.log.read(|session| session.log().to_vec().unwrap());
    messages
        .iter()
        .filter(|event| event.kind == Kind::UserMessage)
        .filter(|event| event.data.value().path(&["source", "plugin"]).is_some())
        .map(|event| {
            let text = |of: Json| {
                of.value()
                    .path(&["text"])
                    .and_then(Value::text)
                    .unwrap()
                    .into_owned()
            };
            let block = event.data.get("content").unwrap().items().next().unwrap();
            let source = event.data.get("source").unwrap().to_json();
            (source.as_str().to_owned(), text(block.to_json()))
        })
        .collect()
}

#[tokio::test]
async fn equal_calls_in_a_row_bring_a_reminder_before_the_next_step() {
    let rig = Rig::new(Setup {
        say: repeating(&[
            r#"{"a":1,"b":[{"x":1,"y":2}]}"#,
            r#"{ "b": [{"y":2,"x":1}], "a": 1.0 }"#,
            r#"{"a":1,"b":[{"x":1,"y":2}]}"#,
        ]),
        tools: vec![saying("t", "same".into())],
        mounted: vec![reminder(json!({"thresholds": [2, 3]})).await],
        ..Setup::default()
    });
    rig.run("go").await;
    let events = rig.events();
    let third = events
        .iter()
        .position(|event| event == "step/start 1.3")
        .unwrap();
    // The result, then the splice, both before the step ends; then it is claimed.
    assert_eq!(
        events[third - 4..=third + 1],
        [
            "tool/result c1",
            "inbox next-step +1",
            "step/end 1.2",
            "inbox next-step -1",
            "step/start 1.3",
            "user/message (plugin repeat-tool-reminder)",
        ]
    );
    let source = |count| {
        format!(
            r#"{{"kind":"plugin","plugin":"repeat-tool-reminder","form":"notice","summary":"t × {count}"}}"#
        )
    };
    let said = reminders(&rig);
    assert_eq!(said.len(), 2);
    assert_eq!([&said[0].0, &said[1].0], [&source(2), &source(3)]);
    assert!(!said[0].1.contains("arguments:"), "{}", said[0].1);
    assert!(
        said[1]
            .1
            .contains("- consecutive_calls: 3\n- arguments: {\"a\":1,\"b\":[{\"x\":1,\"y\":2}]}\n"),
        "{}",
        said[1].1
    );
}

#[tokio::test]
async fn a_persons_message_starts_the_count_anew_and_a_steps_own_input_does_not() {
    let mut say = repeating(&["{}", "{}"]);
    say.extend(repeating(&["{}", "{}", "{}"]));
    let rig = Rig::new(Setup {
        say,
        tools: vec![saying("t", "same".into())],
        mounted: vec![reminder(json!({})).await],
        ..Setup::default()
    });
    rig.run("go").await;
    rig.run("go on").await;
    let said = reminders(&rig);
    assert_eq!(said.len(), 1, "{said:?}");
    assert!(said[0].0.contains("t × 3"));
}

#[tokio::test]
async fn denied_calls_count_and_the_reminder_stands_before_what_inner_rows_add() {
    let deny = FakeListener {
        name: "deny",
        event: "tools/pre-execute",
        enter: Some(Box::new(|_| {
            Ok(Entry::settle(listened(r#"{"kind":"deny","reason":"no"}"#)))
        })),
        ..FakeListener::default()
    };
    let add = reviewing(
        r#"{"kind":"accept","additionalContexts":[{"content":[{"type":"text","text":"inner"}],"source":{"kind":"plugin","plugin":"inner"}}]}"#.into(),
    );
    let rig = Rig::new(Setup {
        say: repeating(&["{}", "{}"]),
        tools: vec![saying("t", "never".into())],
        mounted: vec![reminder(json!({"thresholds": [2]})).await],
        listeners: vec![Arc::new(deny), add],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(rig.result("c1"), "Error: no");
    let who: Vec<_> = reminders(&rig)
        .into_iter()
        .map(|(source, _)| source.contains("repeat"))
        .collect();
    assert_eq!(who, [false, true, false], "inner, then reminder and inner");
}

#[tokio::test]
async fn the_policies_together_keep_their_order() {
    let store = Arc::new(Kept::default());
    let mounted = vec![
        spill(json!({"maxInlineBytes": 400})).await,
        timeouts(json!({})).await,
        reminder(json!({"thresholds": [2]})).await,
    ];
    let rig = Rig::new(Setup {
        say: repeating(&["{}", "{}"]),
        tools: vec![saying("t", "v".repeat(500))],
        mounted,
        ports: keeping(&store),
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(store.files.lock().unwrap().len(), 2);
    // What the outermost row makes of the content leaves the reminder in place.
    assert_eq!(reminders(&rig).len(), 1);
    assert!(rig.result("c1").contains("/spill/c1.txt"));
}

/// The events of files, with the policy of observations behind them.
async fn observing(config: serde_json::Value) -> (FileEvents, Arc<Dispatch>) {
    let grants =
        json!({"observe": ["fs/observed"], "decide": ["fs/write-intent", "fs/edit-intent"]});
    let rig = Rig::new(Setup::default());
    let listener = rig.listener(&row("fs-observation", grants, config).await);
    let dispatch = Arc::new(Dispatch::new(vec![listener]).unwrap());
    let files = FileEvents::default();
    files.serve(&dispatch);
    (files, dispatch)
}

async fn asked(files: &FileEvents, operation: Operation, path: &str) -> Expect {
    let intent = Intent {
        operation,
        path: path.into(),
        version: Some("now".to_owned()),
    };
    files.intent(&intent).await
}

#[tokio::test]
async fn a_file_is_changed_only_as_it_was_observed() {
    use Operation::{Edit, Remove, Rename, Write};
    let (files, _dispatch) = observing(json!({})).await;
    let version = |version: &str| Expect::Version(version.to_owned());
    let unread = [
        (Write, Expect::Unobserved),
        (Remove, Expect::Unobserved),
        (Edit, Expect::Refused),
        (Rename, Expect::Any),
    ];
    for (operation, expected) in unread {
        assert_eq!(asked(&files, operation, "/w/a").await, expected);
    }
    files.observed(Path::new("/w/a"), Some("1"));
    assert_eq!(asked(&files, Write, "/w/a").await, version("1"));
    // What was told last counts, and is known when the next question comes.
    for round in 0..50 {
        let told = round.to_string();
        files.observed(Path::new("/w/a"), Some(&told));
        assert_eq!(asked(&files, Edit, "/w/a").await, version(&told));
    }
    files.observed(Path::new("/w/a"), None);
    assert_eq!(asked(&files, Write, "/w/a").await, Expect::Absent);
    assert_eq!(asked(&files, Edit, "/w/a").await, Expect::Refused);
    assert_eq!(asked(&files, Write, "/w/b").await, Expect::Unobserved);
}

#[tokio::test]
async fn observations_are_of_one_agent_and_unguarded_paths_need_none() {
    let (files, _dispatch) = observing(json!({"unguarded": ["*.log"]})).await;
    files.observed(Path::new("/w/a"), Some("1"));
    let write = Operation::Write;
    assert_eq!(
        asked(&files, write, "/w/a").await,
        Expect::Version("1".to_owned())
    );
    assert_eq!(asked(&files, write, "/w/a.log").await, Expect::Any);
    // Another agent, or the same session in another process.
    let (files, _dispatch) = observing(json!({})).await;
    assert_eq!(asked(&files, write, "/w/a").await, Expect::Unobserved);
}
