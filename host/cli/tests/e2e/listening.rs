//! Rows that listen, in whole runs: what each kind of event lets one do, and what
//! becomes of one that cannot be relied on. The row is the guest that does what
//! its configuration says, `EVENT|HOW|TEXT`.

use std::path::PathBuf;

use dsh_session::Kind;
use serde_json::{Value, json};

use crate::hostile;
use crate::support::{Ended, Record, Scratch, data, root};

/// A row of the guest, under a short bound on computing.
fn row(scratch: &Scratch, says: &[String], grants: &Value) -> PathBuf {
    hostile::row(scratch, &json!(says), grants, "500ms")
}

fn said(lines: &[&str]) -> Vec<String> {
    lines.iter().map(|line| line.replace('"', "'")).collect()
}

fn run(says: &[&str], grants: &Value, script: &Value) -> (Ended, Record) {
    let scratch = Scratch::new();
    run_in(&scratch, says, grants, script, &[])
}

fn run_in(
    scratch: &Scratch,
    says: &[&str],
    grants: &Value,
    script: &Value,
    options: &[&str],
) -> (Ended, Record) {
    scratch.write("a.txt", "alpha");
    let row = row(scratch, &said(says), grants);
    let script = scratch.script(script);
    let dsh = scratch.dsh().headless().patch(script).patch(row);
    let ended = dsh.args(options.iter().copied()).args(["Go"]).run();
    (ended, scratch.record())
}

fn reads(times: usize) -> Value {
    let call = json!({"calls": [{"name": "read", "arguments": {"file_path": "a.txt"}}]});
    let mut script = vec![call; times];
    script.push(json!({"text": "Done."}));
    Value::from(script)
}

fn texts(record: &Record) -> Vec<(String, Value)> {
    let messages = record.of(&Kind::UserMessage).into_iter().map(data);
    let text = |message: Value| {
        let text = message["content"][0]["text"].as_str().unwrap_or_default();
        (text.to_owned(), message["source"].clone())
    };
    messages.map(text).collect()
}

#[test]
fn a_listener_rewrites_a_steps_messages_and_the_log_says_whose_they_are() {
    let says = r#"agent/pre-step|rewrite|{"messages":[{"content":[{"type":"text","text":"Go politely"}]}]}"#;
    let (ended, record) = run(&[says], &json!({"decide": ["agent/pre-step"]}), &reads(0));
    ended.answered("Done.");
    let texts = texts(&record);
    let own = texts.iter().find(|(text, _)| text == "Go politely");
    assert_eq!(own.unwrap().1["plugin"], "prober", "{texts:?}");
    assert!(!texts.iter().any(|(text, _)| text == "Go"), "{texts:?}");
}

#[test]
fn a_listener_denies_a_tool_and_the_model_reads_why() {
    let says = r#"tools/pre-execute|settle|{"kind":"deny","reason":"not on a Sunday"}"#;
    let (ended, record) = run(
        &[says],
        &json!({"decide": ["tools/pre-execute"]}),
        &reads(1),
    );
    ended.answered("Done.");
    assert_eq!(
        record.results(),
        [("Error: not on a Sunday".to_owned(), None)]
    );
}

#[test]
fn a_listener_asks_and_who_is_granted_approvals_answers() {
    let asks = r#"tools/pre-execute|settle|{"kind":"ask","reason":"is that wise?"}"#;
    let decides = json!({"decide": ["tools/pre-execute"]});
    let (ended, record) = run(&[asks], &decides, &reads(1));
    ended.answered("Done.");
    assert!(record.results()[0].0.contains("no approver is available"));

    let allows = r#"approval/request|settle|{"outcome":"allowed-once"}"#;
    let both = json!({"decide": ["tools/pre-execute"], "approval": true});
    let (ended, record) = run(&[asks, allows], &both, &reads(1));
    ended.answered("Done.");
    assert!(record.results()[0].0.contains("alpha"));
    let asked = data(record.of(&Kind::ApprovalAsked)[0]);
    assert_eq!(asked["reason"], "is that wise?");
    let decided = data(record.of(&Kind::ApprovalDecided)[0]);
    assert_eq!(decided["outcome"], "allowed-once");
}

#[test]
fn a_listener_has_a_failed_request_sent_again() {
    let error = json!({"error": {"code": "BAD_REQUEST", "message": "no", "status": 400}});
    let script = json!([error, {"text": "Done."}]);
    let grants = json!({"decide": ["agent/request-error"]});
    let (ended, record) = run(&["agent/request-error|proceed|"], &grants, &script);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert_eq!(record.turn_end()["kind"], "error");
    let says = r#"agent/request-error|settle|{"kind":"retry"}"#;
    let (ended, record) = run(&[says], &grants, &script);
    ended.answered("Done.");
    assert_eq!(record.of(&Kind::StepStart).len(), 1);
}

#[test]
fn a_listener_vetoes_a_request_before_it_leaves() {
    let says = r#"llm/stream|settle|{"kind":"refuse","failure":{"code":"SECRET_FOUND","message":"it holds a key"}}"#;
    let (ended, record) = run(&[says], &json!({"decide": ["llm/stream"]}), &reads(0));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("it holds a key"), "{ended:?}");
    assert_eq!(record.turn_end()["error"]["code"], "SECRET_FOUND");
    assert!(!record.has(&Kind::AssistantMessage));
}

#[test]
fn a_listener_serves_a_model_that_no_adapter_does() {
    let says = r#"llm/stream|settle|{"kind":"answer","chunks":[{"type":"text-delta","index":0,"text":"From the cache."},{"type":"finish","reason":{"kind":"stop"}}]}"#;
    let scratch = Scratch::new();
    let grants = json!({"decide": ["llm/stream"]});
    let options = ["--model", "cache/any"];
    let (ended, _) = run_in(&scratch, &[says], &grants, &reads(0), &options);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "From the cache.\n"),
        "{ended:?}"
    );
}

#[test]
fn a_listener_that_never_answers_refuses_what_it_guards_and_costs_its_bound_only() {
    let grants = json!({"decide": ["tools/pre-execute"]});
    let (ended, record) = run(&["tools/pre-execute|spin|"], &grants, &reads(4));
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "Done.\n"),
        "{ended:?}"
    );
    let results = record.results();
    assert!(
        results.iter().all(|(text, _)| !text.contains("alpha")),
        "{results:?}"
    );
    assert!(results[0].0.contains("more than 500 ms"), "{results:?}");
    assert!(results[3].0.contains("out of use"), "{results:?}");
    let lines: Vec<_> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 2, "{ended:?}");
    assert!(
        lines[0].starts_with(
            "dsh: row prober failed at tools/pre-execute, so what it was to decide is refused"
        ),
        "{ended:?}"
    );
    assert!(
        lines[1].starts_with("dsh: row prober: out of use after 3 failures"),
        "{ended:?}"
    );
}

#[test]
fn nonsense_is_a_failure_of_the_listener_by_the_rule_of_its_event() {
    for (event, says, alpha) in [
        ("tools/pre-execute", r#"settle|{"kind":"perhaps"}"#, false),
        ("tools/pre-execute", "settle|{not json", false),
        ("tools/pre-execute", r#"rewrite|{"name":"other"}"#, false),
        (
            "tools/post-execute",
            r#"settle|{"kind":"accept","content":[{"type":"tool-call"}]}"#,
            false,
        ),
        ("agent/turn-stopping", r#"answer|{"messages":"more"}"#, true),
    ] {
        let grants = json!({"decide": [event]});
        let (ended, record) = run(&[&format!("{event}|{says}")], &grants, &reads(4));
        assert_eq!(
            (ended.code, &*ended.stdout),
            (Some(0), "Done.\n"),
            "{says}: {ended:?}"
        );
        let seen = record
            .results()
            .iter()
            .all(|(text, _)| text.contains("alpha"));
        assert_eq!(seen, alpha, "{says}: {:?}", record.results());
        let line = format!("dsh: row prober failed at {event}");
        assert_eq!(ended.stderr.matches(&line).count(), 1, "{says}: {ended:?}");
        assert!(ended.stderr.contains("nonsense"), "{says}: {ended:?}");
        let quarantined = usize::from(event.starts_with("tools/"));
        assert_eq!(
            ended.stderr.matches("out of use").count(),
            quarantined,
            "{says}: {ended:?}"
        );
    }
}

/// Every event that a run has, by `docs/events`, with how it is delivered.
fn events() -> Vec<(String, String)> {
    let pages = std::fs::read_dir(root().join("docs/events")).unwrap();
    let page = |entry: std::fs::DirEntry| -> Option<(String, String)> {
        let text = std::fs::read_to_string(entry.path()).ok()?;
        let schema: Value = serde_json::from_str(&text).ok()?;
        let text = |key: &str| schema[key].as_str().map(str::to_owned);
        text("title").zip(text("x-mode"))
    };
    let mut events: Vec<_> = pages.filter_map(|entry| page(entry.unwrap())).collect();
    events.sort();
    events
}

/// Notes by the name of each event in a map of its own that it met it, which
/// outlives the run.
#[test]
fn a_listener_of_everything_meets_it_and_changes_nothing() {
    let scratch = Scratch::new();
    let events = events();
    assert!(events.len() > 25, "{events:?}");
    let says: Vec<_> = events
        .iter()
        .map(|(name, _)| format!("{name}|note|"))
        .collect();
    let mut says: Vec<&str> = says.iter().map(String::as_str).collect();
    // An approval is asked for, and another row denies nothing.
    let asks = r#"tools/pre-execute|note-settle|{"kind":"ask"}"#;
    says.retain(|line| !line.starts_with("tools/pre-execute|"));
    says.push(asks);
    let observed: Vec<_> = events
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !["approval/request", "tools/pre-execute"].contains(name))
        .collect();
    let grants = json!({"observe": observed, "decide": ["tools/pre-execute"], "approval": true});
    let script = json!([
        {"calls": [{"name": "read", "arguments": {"file_path": "a.txt"}}]},
        {"text": "Done."},
    ]);
    let (ended, _) = run_in(&scratch, &says, &grants, &script, &[]);
    ended.answered("Done.");
    let kept = scratch
        .home()
        .join("plugins/data/profiles/headless/prober/prober/profile.kv");
    let kept = String::from_utf8_lossy(&std::fs::read(kept).unwrap()).into_owned();
    let elsewhere = [
        // Needs a turn that fails, a change of the prompt, a file that is written.
        "agent/error",
        "agent/inbox/discarded",
        "agent/request-error",
        "fs/edit-intent",
        "fs/write-intent",
        "fs/observed",
        "system-prompt/change",
        "tools/execute",
    ];
    let met = |name: &str| kept.contains(name);
    let missing: Vec<_> = events
        .iter()
        .map(|(name, _)| name.as_str())
        .filter(|name| !met(name) && !elsewhere.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

#[test]
fn a_file_is_written_by_who_listens_to_intents_only_as_they_want() {
    let script = json!([
        {"calls": [{"name": "write", "arguments": {"file_path": "b.txt", "content": "beta"}}]},
        {"text": "Done."},
    ]);
    let says = r#"fs/write-intent|settle|{"kind":"deny","reason":"nothing new today"}"#;
    let scratch = Scratch::new();
    let grants = json!({"decide": ["fs/write-intent"]});
    let options = ["--permission", "workspace-write"];
    let (ended, record) = run_in(&scratch, &[says], &grants, &script, &options);
    ended.answered("Done.");
    let (text, code) = &record.results()[0];
    assert_eq!(code.as_deref(), Some("FS_PERMISSION_DENIED"), "{text}");
    assert!(text.contains("nothing new today"), "{text}");
    assert!(!scratch.work().join("b.txt").exists());
}

#[test]
fn a_session_starts_with_what_a_listener_kept_from_the_one_before() {
    let scratch = Scratch::new();
    let grants = json!({"observe": ["agent/session-start"]});
    let says = ["agent/session-start|recall|the tests need --locked"];
    let (ended, record) = run_in(&scratch, &says, &grants, &reads(0), &[]);
    ended.answered("Done.");
    assert!(
        !texts(&record)
            .iter()
            .any(|(text, _)| text.contains("--locked"))
    );
    std::fs::remove_dir_all(scratch.sessions()).unwrap();
    let (ended, record) = run_in(&scratch, &says, &grants, &reads(0), &[]);
    ended.answered("Done.");
    let texts = texts(&record);
    let at = |wanted: &str| texts.iter().position(|(text, _)| text.contains(wanted));
    let own = at("--locked").unwrap_or_else(|| panic!("{texts:?}"));
    assert_eq!(texts[own].1["plugin"], "prober");
    assert!(Some(own) < at("Go"), "{texts:?}");
    // Before the first request, and so in it.
    let events = record.events();
    let first = |kind: &Kind| events.iter().position(|event| event.kind == *kind);
    assert!(first(&Kind::InboxSpliced) < first(&Kind::TurnStart));
    assert_eq!(record.of(&Kind::StepStart).len(), 1);
}

#[test]
fn what_is_listened_to_beside_the_turn_is_heard_by_another_instance() {
    let scratch = Scratch::new();
    let says = ["agent/status|beside-note|", "tools/result|note|"];
    let grants = json!({"observe": ["agent/status", "tools/result"]});
    let (ended, _) = run_in(&scratch, &says, &grants, &reads(1), &[]);
    ended.answered("Done.");
    let kept = scratch
        .home()
        .join("plugins/data/profiles/headless/prober/prober/profile.kv");
    let kept = String::from_utf8_lossy(&std::fs::read(kept).unwrap()).into_owned();
    assert!(kept.contains("agent/status 1"), "{kept}");
    assert!(kept.contains("tools/result 1"), "{kept}");
}
