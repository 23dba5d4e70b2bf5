#![allow(
    clippy::needless_pass_by_value,
    reason = "reads better where it is called"
)]

use super::*;
use crate::api::{ProjectionSpec, Subscription, ToolSpec};
use crate::component::Interface;
use crate::grants::Grants;
use crate::manifest::Manifest;

fn component(imports: &[&str], exports: &[&str], wants: Value) -> Description {
    let interfaces = |names: &[&str]| {
        names
            .iter()
            .map(|name| Interface::new(format!("dsh:plugin/{name}@0.1.0")))
            .collect()
    };
    let manifest = json!({"plugin": {"name": "acme:weather", "version": "0.3.1"}, "wants": wants});
    Description {
        imports: interfaces(imports),
        exports: interfaces(exports),
        manifest: Some(Manifest::parse(manifest.to_string().as_bytes()).unwrap()),
        ..Description::default()
    }
}

fn listens(events: &[&str]) -> Offered {
    let subscription = |event: &&str| Subscription {
        event: (*event).to_owned(),
        only: vec![],
        beside: false,
    };
    Offered {
        subscriptions: events.iter().map(subscription).collect(),
        ..Offered::default()
    }
}

fn tool(name: &str) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        parameters: "{}".to_owned(),
        output: None,
        timeout_ms: None,
        concurrency: crate::api::Concurrency::Never,
        view: None,
        text: String::new(),
    }
}

/// `grant parameters` of each.
fn brief(wants: &[Want]) -> Vec<String> {
    wants
        .iter()
        .map(|want| format!("{} {}", want.grant, want.parameters))
        .collect()
}

fn words_of(grant: &str, parameters: Value) -> String {
    in_words(grant, &parameters).join("; ")
}

#[test]
fn what_only_computes_wants_nothing() {
    let pure = component(&["types", "log", "config", "work"], &["title"], json!({}));
    assert!(wants(&pure, &Offered::default()).unwrap().is_empty());
}

#[test]
fn an_import_is_a_want_whatever_the_manifest_says_and_the_dangerous_come_first() {
    let imports = ["log", "clock", "journal", "session", "workspace", "process"];
    let silent = component(&imports, &["tool"], json!({}));
    let found = wants(&silent, &Offered::default()).unwrap();
    assert_eq!(
        brief(&found),
        [
            "process []",
            "session true",
            "workspace true",
            "journal true",
            "clock true"
        ]
    );
    assert_eq!(
        found[0].because,
        Because::Import("dsh:plugin/process@0.1.0".to_owned())
    );
    assert!(
        found[0].words[0].contains("names none yet"),
        "{:?}",
        found[0]
    );
    let asking = component(
        &imports,
        &["tool"],
        json!({"process": ["git"], "workspace": {"write": true}}),
    );
    let found = wants(&asking, &Offered::default()).unwrap();
    assert_eq!(
        brief(&found)[..2],
        ["process [\"git\"]", "workspace {\"write\":true}"]
    );
}

#[test]
fn wants_that_are_all_accepted_are_grants() {
    let all = component(
        &[
            "clock",
            "random",
            "session",
            "journal",
            "workspace",
            "spill",
            "process",
        ],
        &["llm-adapter", "dispatch", "tool", "prompt"],
        json!({"journal": ["todo/write"], "decide": ["tools/pre-execute"], "prompt.complete": true}),
    );
    let offered = Offered {
        tools: vec![tool("one")],
        routes: vec![r#"{"provider":"a"}"#.to_owned()],
        ..listens(&["session/event"])
    };
    let found = wants(&all, &offered).unwrap();
    let granted: Map<String, Value> = found
        .iter()
        .map(|want| (want.grant.clone(), want.parameters.clone()))
        .collect();
    let grants = Grants::parse(&Value::Object(granted)).unwrap();
    for want in &found {
        assert!(grants.has(&want.grant), "{want:?}");
        assert!(!want.words.is_empty(), "{want:?}");
    }
    assert!(grants.may_listen("session/event") && grants.may_decide("tools/pre-execute"));
}

#[test]
fn a_route_is_asked_for_with_the_origin_that_it_goes_to_by_itself() {
    let adapter = component(&[], &["llm-adapter"], json!({}));
    let offered = |routes: &[&str]| Offered {
        routes: routes.iter().map(|&text| text.to_owned()).collect(),
        ..Offered::default()
    };
    let one = offered(&[
        r#"{"provider":"x","baseURL":"https://me@API.x.example:8443/v1","credential":"X_KEY"}"#,
    ]);
    let found = wants(&adapter, &one).unwrap();
    assert_eq!(
        found[0].parameters,
        json!([{"provider": "x", "origins": ["https://api.x.example:8443"], "credential": "X_KEY"}])
    );
    assert_eq!(
        found[0].words,
        ["may send your conversations to https://api.x.example:8443 with X_KEY (models of x)"]
    );
    // What the manifest says is kept, and what is beside it is added.
    let says = json!({"route": [{"provider": "x", "origins": ["https://a.example"]}]});
    let asking = component(&[], &["llm-adapter"], says);
    let found = wants(&asking, &one).unwrap();
    assert_eq!(
        found[0].parameters[0]["origins"],
        json!(["https://a.example", "https://api.x.example:8443"])
    );
    // Without a route it is asked for still: it would be sent conversations.
    let found = wants(&adapter, &Offered::default()).unwrap();
    assert_eq!(brief(&found), ["route []"]);
    let broken = wants(&adapter, &offered(&["{"]));
    assert!(matches!(broken, Err(Error::Manifest(_))));
}

#[test]
fn deciding_is_asked_for_by_name_and_all_else_is_watching() {
    let policy = component(
        &[],
        &["dispatch"],
        json!({"decide": ["tools/pre-execute"], "observe": ["tools/pre-execute", "tools/result"]}),
    );
    let found = wants(&policy, &listens(&["tools/pre-execute", "agent/pre-step"])).unwrap();
    assert_eq!(
        brief(&found),
        [
            r#"decide ["tools/pre-execute"]"#,
            r#"observe ["tools/result","agent/pre-step"]"#
        ]
    );
    assert_eq!(found[0].because, Because::Export("dispatch".to_owned()));
}

#[test]
fn answering_approvals_is_a_grant_of_its_own_however_it_is_asked_for() {
    let silent = component(&[], &["dispatch"], json!({}));
    let deciding = component(&[], &["dispatch"], json!({"observe": []}));
    for (component, offered) in [
        (silent, listens(&["approval/request"])),
        (deciding, listens(&["approval/request"])),
    ] {
        let found = wants(&component, &offered).unwrap();
        assert_eq!(found[0].grant, "approval");
        assert!(found[0].words[0].contains("answers approvals in your place"));
        assert!(
            found
                .iter()
                .all(|want| !want.parameters.to_string().contains("approval/"))
        );
    }
}

#[test]
fn what_needs_no_grant_is_said_all_the_same() {
    let mut plugin = component(
        &["journal"],
        &["prompt", "projection", "title", "compaction"],
        json!({}),
    );
    let manifest = plugin.manifest.as_mut().unwrap();
    manifest.events.appends = vec!["acme/seen".to_owned()];
    manifest.events.sources = vec!["acme-weather".to_owned()];
    let offered = Offered {
        projections: vec![ProjectionSpec {
            key: "todo".to_owned(),
            version: 1,
            kinds: vec!["todo/write".to_owned()],
        }],
        ..Offered::default()
    };
    let said = also(&plugin, &offered).join("\n");
    for expected in [
        "appends acme/seen",
        "marked acme-weather",
        "system prompt",
        "proposes titles",
        "becomes a summary",
        "reads todo/write in your sessions to show todo",
    ] {
        assert!(said.contains(expected), "{expected}: {said}");
    }
}

#[test]
fn every_grant_has_words_and_says_how_much() {
    let table = [
        ("clock", json!(true), "reads the time of day, and waits"),
        ("random", json!(true), "makes random numbers"),
        (
            "session",
            json!(true),
            "reads your whole session: prompts, answers, tool calls and their results",
        ),
        (
            "spill",
            json!(true),
            "keeps large outputs in files that the model can read",
        ),
        (
            "spill",
            json!({"quota": "64MiB"}),
            "keeps up to 64 MiB of large outputs in files that the model can read",
        ),
        (
            "kv",
            json!(true),
            "keeps up to 1 MiB of data of its own (for good, for each folder, for each session)",
        ),
        (
            "kv",
            json!({"quota": "1MiB"}),
            "keeps up to 1 MiB of data of its own (for good, for each folder, for each session)",
        ),
        (
            "kv",
            json!({"scopes": ["profile", "session"]}),
            "keeps up to 1 MiB of data of its own (for good, for each session)",
        ),
        (
            "attachments",
            json!(true),
            "reads the attachments of a session, and adds its own",
        ),
        (
            "pictures",
            json!(true),
            "has pictures of a session made smaller, without seeing them",
        ),
        ("people", json!(true), "asks you questions"),
        (
            "inbox",
            json!(true),
            "puts messages in front of the model, marked as its own",
        ),
        (
            "inbox",
            json!({"wake": 3}),
            "puts messages in front of the model, marked as its own, and starts the model with them when it is idle, 3 times in a row",
        ),
        (
            "llm",
            json!({"tokens": 1000}),
            "asks models at your expense, up to 1000 tokens a session",
        ),
        (
            "agents",
            json!(true),
            "starts agents of its own, at your expense",
        ),
        ("jobs", json!(true), "runs work in the background"),
        (
            "prompt.complete",
            json!(true),
            "replaces the whole system prompt",
        ),
        (
            "approval",
            json!(true),
            "answers approvals in your place (decides approval/request)",
        ),
        ("workspace", json!(true), "reads any file that you can read"),
        (
            "workspace",
            json!({"read": [".", "/b"], "write": true}),
            "changes files in the folder where you start dsh and /b (as far as the sandbox mode allows); reads files in the folder where you start dsh and /b",
        ),
        (
            "workspace",
            json!({"read": ["/a", "/b"]}),
            "reads files in /a and /b",
        ),
        (
            "workspace",
            json!({"write": true}),
            "changes files in the folder where you start dsh (as far as the sandbox mode allows); reads any file that you can read",
        ),
        (
            "process",
            json!("shell"),
            "runs any program (under the sandbox of your mode)",
        ),
        (
            "process",
            json!(["git", "make"]),
            "runs git and make with any arguments (under the sandbox of your mode)",
        ),
        (
            "process",
            json!([]),
            "runs programs, but names none yet, so that it can run none",
        ),
        (
            "journal",
            json!(true),
            "appends records of its own to your sessions, beside what the model sees",
        ),
        (
            "journal",
            json!(["todo/write"]),
            "appends todo/write to your sessions, beside what the model sees",
        ),
        (
            "http",
            json!(["https://api.weather.example"]),
            "sends requests to https://api.weather.example",
        ),
        (
            "http",
            json!([]),
            "sends requests, but names no host yet, so that it can reach none",
        ),
        (
            "route",
            json!([{"provider": "scripted"}]),
            "answers as the models of scripted, and sends nothing",
        ),
        (
            "secret",
            json!([{"name": "K", "header": "authorization", "host": "a.example"}]),
            "has the credential K sent to a.example in the header authorization, without seeing it",
        ),
        (
            "observe",
            json!(["tools/result"]),
            "sees every tool call and its result (watches tools/result)",
        ),
        (
            "decide",
            json!(["tools/pre-execute"]),
            "sees every tool call before it runs: commands, files, arguments, and may stop a tool call or have you asked first, before it runs (decides tools/pre-execute)",
        ),
        (
            "observe",
            json!(["acme/thing"]),
            "watches the event acme/thing, which this dsh does not have",
        ),
        (
            "tool-names",
            json!(["get_weather"]),
            "adds the tool get_weather for the model to call",
        ),
        (
            "tool-names",
            json!(["a", "b", "c"]),
            "adds the tools a, b and c for the model to call",
        ),
        (
            "dir",
            json!([{"path": "/a", "mode": "ro"}]),
            "reads everything in the folder /a",
        ),
        (
            "dir",
            json!([{"path": "/a", "mode": "rw"}]),
            "reads and changes everything in the folder /a, whatever the sandbox mode is",
        ),
        (
            "env",
            json!(["HOME"]),
            "reads the environment variables HOME",
        ),
        (
            "magic",
            json!({"x": 1}),
            "something that this dsh has no words for: magic \"{\\\"x\\\":1}\"",
        ),
        ("clock", json!(false), ""),
    ];
    for (grant, parameters, expected) in table {
        assert_eq!(
            words_of(grant, parameters.clone()),
            expected,
            "{grant} {parameters}"
        );
    }
}

#[test]
fn h61_a_strangers_text_cannot_speak_for_the_host() {
    for (text, expected) in [
        ("acme/seen", "acme/seen".to_owned()),
        ("https://a.example:1/x", "https://a.example:1/x".to_owned()),
        ("two words", "\"two words\"".to_owned()),
        ("", "\"\"".to_owned()),
        ("a\nb", "\"a\\u{a}b\"".to_owned()),
        ("\u{1b}[2J", "\"\\u{1b}[2J\"".to_owned()),
        ("a\u{202e}b", "\"a\\u{202e}b\"".to_owned()),
        ("a\u{200b}b", "\"a\\u{200b}b\"".to_owned()),
        ("a\u{a0}b", "\"a\\u{a0}b\"".to_owned()),
        ("\"", "\"\\\"\"".to_owned()),
        ("größe", "\"größe\"".to_owned()),
        (&"x".repeat(500), format!("\"{}…\"", "x".repeat(100))),
    ] {
        assert_eq!(shown(text), expected);
    }
    let said = words_of("http", json!(["https://a.example\nIt wants nothing else."]));
    assert!(!said.contains('\n'), "{said}");
    let many: Vec<String> = (0..500).map(|n| format!("p{n}")).collect();
    assert!(words_of("process", json!(many)).len() < 300);
    assert!(in_words("observe", &json!(many)).len() < 30);
}

#[test]
fn events_are_known_once_each() {
    for (index, one) in events::EVENTS.iter().enumerate() {
        assert!(
            events::EVENTS[..index]
                .iter()
                .all(|other| other.name != one.name)
        );
        assert!(!one.tells.is_empty() && !one.tells.ends_with('.'));
    }
    assert_eq!(events::EVENTS.len(), 59);
    assert!(event("tools/pre-execute").unwrap().lets.is_some());
    assert!(event("session/event").unwrap().lets.is_none());
    assert_eq!(event("acme/thing"), None);
}

fn granted(value: Value) -> Map<String, Value> {
    value.as_object().unwrap().clone()
}

fn want(grant: &str, parameters: Value) -> Want {
    Want {
        grant: grant.to_owned(),
        words: in_words(grant, &parameters),
        parameters,
        because: Because::Manifest,
    }
}

#[test]
fn an_update_asks_only_for_what_was_not_granted() {
    // What was granted, what is wanted, and whether a person is asked.
    let table = [
        ("clock", json!(null), json!(true), true),
        ("clock", json!(true), json!(true), false),
        ("clock", json!({}), json!(true), false),
        ("session", json!(true), json!(true), false),
        ("process", json!(["git"]), json!(["git"]), false),
        (
            "process",
            json!({"programs": ["git"]}),
            json!(["git"]),
            false,
        ),
        ("process", json!(["git", "make"]), json!(["make"]), false),
        ("process", json!(["git"]), json!(["git", "make"]), true),
        ("process", json!(["git"]), json!("shell"), true),
        ("process", json!("shell"), json!(["git"]), false),
        ("process", json!("shell"), json!([]), false),
        ("process", json!(["git"]), json!([]), false),
        ("workspace", json!(true), json!({"write": true}), true),
        (
            "workspace",
            json!({"read": ["/a"], "write": true}),
            json!({"read": ["/b"], "write": true}),
            true,
        ),
        (
            "workspace",
            json!({"write": true}),
            json!({"read": ["/b"], "write": true}),
            false,
        ),
        ("workspace", json!({"write": true}), json!(true), false),
        ("workspace", json!({"read": ["/a"]}), json!(true), true),
        ("workspace", json!(true), json!({"read": ["/a"]}), false),
        (
            "workspace",
            json!({"read": ["/a"]}),
            json!({"read": ["/b"]}),
            true,
        ),
        (
            "workspace",
            json!({"read": ["/a", "/b"]}),
            json!({"read": ["/b"]}),
            false,
        ),
        (
            "workspace",
            json!({"read": ["/a"], "write": true}),
            json!({"read": ["/a"]}),
            false,
        ),
        ("observe", json!(["a/b"]), json!(["a/b", "c/d"]), true),
        ("observe", json!({"events": ["a/b"]}), json!(["a/b"]), false),
        ("decide", json!(null), json!(["tools/execute"]), true),
        (
            "http",
            json!(["https://a.example"]),
            json!(["https://b.example"]),
            true,
        ),
        (
            "http",
            json!(["https://a.example"]),
            json!(["https://a.example"]),
            false,
        ),
        ("journal", json!(true), json!(["todo/write"]), true),
        ("journal", json!(["todo/write"]), json!(true), false),
        ("kv", json!(true), json!(true), false),
        (
            "kv",
            json!({"quota": "1MiB"}),
            json!({"quota": "1024KiB"}),
            false,
        ),
        (
            "kv",
            json!({"quota": "1MiB"}),
            json!({"quota": "2MiB"}),
            true,
        ),
        ("kv", json!({"quota": "1MiB"}), json!(true), false),
        ("kv", json!({"quota": "512KiB"}), json!(true), true),
        ("kv", json!({"quota": "2MiB"}), json!(true), false),
        ("llm", json!(true), json!({"tokens": 5}), false),
        ("llm", json!({"tokens": 5}), json!(true), true),
        (
            "agents",
            json!({"depth": 1}),
            json!({"depth": 1, "number": 2}),
            false,
        ),
        (
            "agents",
            json!({"depth": 1, "number": 2}),
            json!({"depth": 1}),
            true,
        ),
        ("kv", json!(true), json!({"quota": "1MiB"}), false),
        (
            "kv",
            json!({"scopes": ["profile", "session"]}),
            json!({"scopes": ["profile"]}),
            false,
        ),
        (
            "kv",
            json!({"scopes": ["session"]}),
            json!({"scopes": ["profile"]}),
            true,
        ),
        ("inbox", json!({"wake": 3}), json!({"wake": 2}), false),
        ("inbox", json!({"wake": 2}), json!({"wake": 3}), true),
        ("llm", json!({"tokens": 10}), json!({"tokens": 11}), true),
        (
            "dir",
            json!([{"path": "/a", "mode": "ro"}]),
            json!([{"path": "/a", "mode": "rw"}]),
            true,
        ),
        (
            "dir",
            json!([{"path": "/a", "mode": "rw"}]),
            json!([{"path": "/a", "mode": "ro"}]),
            false,
        ),
        (
            "dir",
            json!([{"path": "/a", "mode": "rw"}]),
            json!([{"path": "/b", "mode": "ro"}]),
            true,
        ),
        (
            "route",
            json!([{"provider": "a"}]),
            json!([{"provider": "a"}]),
            false,
        ),
        (
            "route",
            json!([{"provider": "a", "credential": null}]),
            json!([{"provider": "a"}]),
            false,
        ),
        (
            "route",
            json!([{"provider": "a", "origins": ["x"]}]),
            json!([{"provider": "a", "origins": ["x", "y"]}]),
            true,
        ),
        (
            "route",
            json!([{"provider": "a", "origins": ["x", "y"]}]),
            json!({"provider": "a", "origins": ["y"]}),
            false,
        ),
        (
            "route",
            json!([{"provider": "a", "origins": ["x"], "credential": "K"}]),
            json!([{"provider": "a", "origins": ["x"], "credential": "L"}]),
            true,
        ),
        (
            "secret",
            json!([{"name": "K", "header": "h", "host": "a"}]),
            json!([{"name": "K", "header": "h", "host": "b"}]),
            true,
        ),
        ("magic", json!({"x": 1}), json!({"x": 2}), true),
    ];
    for (grant, before, after, asks) in table {
        let found = difference(
            &granted(json!({grant: before})),
            &[want(grant, after.clone())],
        );
        assert_eq!(
            !found.asks_nothing(),
            asks,
            "{grant}: {before} then {after}: {found:?}"
        );
        assert_eq!(found.same.is_empty(), asks, "{grant}");
    }
}

#[test]
fn what_is_new_is_said_and_what_is_gone_too() {
    let found = difference(
        &granted(json!({"process": ["git"], "clock": true, "observe": ["tools/result"]})),
        &[
            want("process", json!(["git", "make"])),
            want("clock", json!(true)),
        ],
    );
    assert_eq!(found.more[0].parameters, json!(["git", "make"]));
    assert_eq!(
        found.more[0].words,
        ["runs make with any arguments (under the sandbox of your mode)"]
    );
    assert_eq!(
        found.less,
        ["sees every tool call and its result (watches tools/result)"]
    );
    assert_eq!(found.same, ["clock"]);
}

#[test]
fn a_grant_that_means_nothing_to_a_component_is_told() {
    let tool = component(&["clock"], &["tool"], json!({}));
    assert_eq!(lacks(&tool, "clock"), None);
    assert_eq!(lacks(&tool, "tool-names"), None);
    assert_eq!(
        lacks(&tool, "process").as_deref(),
        Some("the import dsh:plugin/process")
    );
    assert_eq!(
        lacks(&tool, "secret").as_deref(),
        Some("the import dsh:plugin/http or the export dsh:plugin/llm-adapter")
    );
    assert_eq!(lacks(&tool, "everything"), None);
}

#[test]
fn limits_above_what_it_has_are_said() {
    let asking = |exports: &[&str], limits: Value| {
        let mut found = component(&[], exports, json!({}));
        let manifest = found.manifest.as_mut().unwrap();
        manifest.limits = limits.as_object().unwrap().clone();
        found
    };
    let nothing = Map::new();
    let less = asking(&["tool"], json!({"memory": "32MiB", "cpu": "1s"}));
    assert!(raised(&nothing, &less).is_empty());
    let more = asking(
        &["tool"],
        json!({"memory": "4GiB", "cpu": "7500ms", "handles": 2000}),
    );
    let mut said = raised(&nothing, &more);
    said.sort();
    assert_eq!(
        said,
        [
            "may compute for 7500 ms in a call (5 s so far)",
            "may have 2000 handles (1000 so far)",
            "may hold 4 GiB of memory (64 MiB so far)",
        ]
    );
    // What the lock has counts, lower or higher than usual.
    let low = granted(json!({"memory": "16MiB"}));
    assert_eq!(
        raised(&low, &less),
        ["may hold 32 MiB of memory (16 MiB so far)"]
    );
    let high = granted(json!({"memory": "4GiB", "cpu": "10s", "handles": 2000}));
    assert!(raised(&high, &more).is_empty());
    // An adapter sees the whole history.
    let adapter = asking(&["llm-adapter"], json!({"memory": "256MiB"}));
    assert!(raised(&nothing, &adapter).is_empty());
}
