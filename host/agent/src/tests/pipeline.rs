use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_plugin::api::PluginError;
use dsh_session::{Json, Kind, Value};

use super::rig::{
    ANY, FakeListener, Rig, Setup, calls, json, ok, ok_with, reopened, spec, text, tool,
    waiting_tool,
};
use crate::dispatch::{Entry, Listener};
use crate::tools::{Guard, Tool, ToolSpec};
use crate::{CancelCause, Message, Preset, pin_permissions};

/// One call of the tool `t`; its result's line and text.
async fn one_call(setup: Setup, arguments: &str) -> (Rig, String, String) {
    let rig = Rig::new(Setup {
        say: vec![calls(&[("A", "t", arguments)]), text("done")],
        ..setup
    });
    rig.run("go").await;
    let line = rig
        .events()
        .into_iter()
        .find(|event| event.starts_with("tool/result"))
        .unwrap();
    let text = rig.result("A");
    (rig, line, text)
}

fn tools(tool: Arc<dyn Tool>) -> Setup {
    Setup {
        tools: vec![tool],
        ..Setup::default()
    }
}

fn with(listener: FakeListener) -> Setup {
    Setup {
        tools: vec![tool(spec("t"), |_| ok("fine"))],
        listeners: vec![Arc::new(listener)],
        ..Setup::default()
    }
}

fn entering(event: &'static str, answer: &'static str) -> FakeListener {
    let enter = move |_: &Json| Ok(Entry::settle(json(answer)));
    FakeListener {
        name: "l",
        event,
        enter: Some(Box::new(enter)),
        ..FakeListener::default()
    }
}

#[tokio::test]
async fn unknown_tool() {
    let (_, line, text) = one_call(Setup::default(), "{}").await;
    assert_eq!(
        (line.as_str(), text.as_str()),
        ("tool/result A UNKNOWN_TOOL", "Error: unknown tool \"t\"")
    );
}

#[tokio::test]
async fn invalid_args() {
    let strict = r#"{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"]}"#;
    let strict = || tools(tool(ToolSpec::new("t", "", strict).unwrap(), |_| ok("ran")));
    for (arguments, message) in [
        (
            "",
            r#"Error: invalid arguments: missing required property "path""#,
        ),
        (
            r#"{"n":1.5}"#,
            r#"Error: invalid arguments: missing required property "path"; "n" must be an integer"#,
        ),
        (
            "{\"path\":",
            "Error: invalid arguments: the arguments must be an object",
        ),
        (
            r#"{"path":"x","n":-0}"#,
            "Error: invalid arguments: the arguments must be a lossless JSON value",
        ),
    ] {
        let (rig, line, text) = one_call(strict(), arguments).await;
        assert_eq!(
            (line.as_str(), text.as_str()),
            ("tool/result A INVALID_ARGS", message)
        );
        let logged = rig
            .log
            .read(|session| session.last_of(&Kind::ToolCall).unwrap().data.clone());
        assert_eq!(
            logged.get("arguments").and_then(Value::text).unwrap(),
            arguments
        );
    }
}

#[tokio::test]
async fn invalid_tool_output() {
    let spec = || {
        spec("t").with_output(
            r#"{"type":"object","required":["n"],"properties":{"n":{"type":"number"}}}"#,
        )
    };
    let bad = tool(spec().unwrap(), |_| {
        ok_with("x", r#"{"value":{"n":"one"}}"#)
    });
    let (_, line, text) = one_call(tools(bad), "{}").await;
    assert_eq!(line, "tool/result A INVALID_TOOL_OUTPUT");
    assert_eq!(text, r#"Error: invalid tool output: "n" must be a number"#);
    let garbage = tool(spec().unwrap(), |_| {
        Ok(dsh_plugin::api::ToolOutcome {
            content: vec!["{nope".into()],
            more: None,
        })
    });
    assert_eq!(
        one_call(tools(garbage), "{}").await.1,
        "tool/result A INVALID_TOOL_OUTPUT"
    );
}

#[tokio::test]
async fn a_tools_own_error_keeps_its_code_and_one_without_has_none() {
    let fails = tool(spec("t"), |_| {
        Err(PluginError::new("FS_NOT_FOUND", "no such file"))
    });
    let (rig, line, text) = one_call(tools(fails), "{}").await;
    assert_eq!(
        (line.as_str(), text.as_str()),
        ("tool/result A FS_NOT_FOUND", "Error: no such file")
    );
    let error = rig.log.read(|session| {
        session
            .last_of(&Kind::ToolResult)
            .unwrap()
            .data
            .get("error")
            .unwrap()
            .to_json()
    });
    assert_eq!(
        error.as_str(),
        r#"{"name":"FsError","code":"FS_NOT_FOUND"}"#
    );
    let failed = tool(spec("t"), |_| {
        ok_with("it did not work", r#"{"isError":true,"concludeTurn":true}"#)
    });
    let (_, line, text) = one_call(tools(failed), "{}").await;
    assert_eq!(
        (line.as_str(), text.as_str()),
        ("tool/result A error", "it did not work")
    );
}

#[tokio::test]
async fn a_denial_has_no_code_and_is_reviewed() {
    let reviewed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reviewed);
    let review = FakeListener {
        name: "r",
        event: "tools/post-execute",
        enter: Some(Box::new(move |payload| {
            assert_eq!(
                payload
                    .value()
                    .path(&["result", "isError"])
                    .and_then(Value::bool),
                Some(true)
            );
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Entry::proceed())
        })),
        ..FakeListener::default()
    };
    let deny = entering(
        "tools/pre-execute",
        r#"{"kind":"deny","reason":"not today"}"#,
    );
    let mut setup = with(deny);
    setup.listeners.push(Arc::new(review));
    let (_, line, text) = one_call(setup, "{}").await;
    assert_eq!(
        (line.as_str(), text.as_str()),
        ("tool/result A error", "Error: not today")
    );
    assert_eq!(reviewed.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_settled_allow_does_not_speak_for_the_listeners_after_it() {
    let mut setup = with(entering("tools/pre-execute", r#"{"kind":"allow"}"#));
    setup.listeners.push(Arc::new(entering(
        "tools/pre-execute",
        r#"{"kind":"deny","reason":"no"}"#,
    )));
    assert_eq!(one_call(setup, "{}").await.2, "Error: no");
}

#[tokio::test]
async fn a_policy_that_crashes_refuses_and_is_not_reviewed() {
    let crash = FakeListener {
        name: "guard-row",
        event: "tools/pre-execute",
        enter: Some(Box::new(|_| {
            Err(crate::dispatch::ListenerError::new(
                "PLUGIN_TRAP",
                "it crashed",
            ))
        })),
        ..FakeListener::default()
    };
    let (_, line, text) = one_call(with(crash), "{}").await;
    assert_eq!(line, "tool/result A error");
    assert_eq!(
        text,
        "Error: guard-row failed at tools/pre-execute: it crashed"
    );
}

#[tokio::test]
async fn guards_refuse_after_the_hooks() {
    struct NoRoot;
    impl Guard for NoRoot {
        fn refuse(&self, tool: &str, arguments: &Json) -> Option<String> {
            (tool == "t" && arguments.get("path").is_some()).then(|| "not there".to_owned())
        }
    }
    let setup = || Setup {
        guards: vec![Arc::new(NoRoot)],
        ..tools(tool(spec("t"), |_| ok("fine")))
    };
    assert_eq!(
        one_call(setup(), r#"{"path":"/"}"#).await.2,
        "Error: not there"
    );
    assert_eq!(one_call(setup(), "{}").await.2, "fine");
}

async fn asked(setup: Setup) -> (Vec<String>, String) {
    let (rig, _, text) = one_call(setup, "{}").await;
    let data = |kind: &Kind, member: &str| {
        rig.log.read(|session| {
            let event = session.last_of(kind)?;
            Some(event.data.get(member)?.text()?.into_owned())
        })
    };
    let outcomes = [
        data(&Kind::ApprovalAsked, "reason"),
        data(&Kind::ApprovalDecided, "outcome"),
    ];
    (outcomes.into_iter().flatten().collect(), text)
}

#[tokio::test]
async fn an_ask_without_an_answerer_is_unavailable_and_denied() {
    let ask = entering(
        "tools/pre-execute",
        r#"{"kind":"ask","reason":"looks odd"}"#,
    );
    let (outcomes, text) = asked(with(ask)).await;
    assert_eq!(outcomes, ["looks odd", "unavailable"]);
    assert_eq!(
        text,
        "Error: tool \"t\" needs approval, and no approver is available"
    );
}

#[tokio::test]
async fn an_answerer_allows_once_or_rejects() {
    for (answer, expected) in [
        (r#"{"outcome":"allowed-once"}"#, "fine"),
        (
            r#"{"outcome":"rejected"}"#,
            "Error: the user rejected tool \"t\"",
        ),
        (
            r#"{"outcome":"whatever"}"#,
            "Error: tool \"t\" needs approval, and no approver is available",
        ),
    ] {
        let mut setup = with(entering("tools/pre-execute", r#"{"kind":"ask"}"#));
        setup.listeners.push(Arc::new(FakeListener {
            name: "person",
            event: "approval/request",
            enter: Some(Box::new(move |_| Ok(Entry::settle(json(answer))))),
            ..FakeListener::default()
        }));
        assert_eq!(asked(setup).await.1, expected);
    }
}

#[tokio::test]
async fn the_policy_never_rejects_before_anyone_is_asked() {
    let before = Rig::saying(Vec::new());
    pin_permissions(&before.log, Preset::DangerFullAccess).unwrap();
    let setup = Setup {
        session: Some(reopened(&before)),
        ..with(entering("tools/pre-execute", r#"{"kind":"ask"}"#))
    };
    assert_eq!(asked(setup).await.0, ["rejected"]);
}

#[tokio::test]
async fn aborted_replaces_a_success_and_not_an_error() {
    for (succeeds, line) in [
        (true, "tool/result A ABORTED"),
        (false, "tool/result A FS_IO_ERROR"),
    ] {
        let waits = waiting_tool(spec("t"), move |_, cancel| {
            Box::pin(async move {
                cancel.cancelled().await;
                if succeeds {
                    ok("late")
                } else {
                    Err(PluginError::new("FS_IO_ERROR", "broken"))
                }
            })
        });
        let rig = Rig::new(Setup {
            say: vec![calls(&[("A", "t", "{}")])],
            ..tools(waits)
        });
        rig.agent.followup(&Message::from_person("go")).unwrap();
        rig.until("tool/call A").await;
        tokio::task::yield_now().await;
        rig.agent.cancel(CancelCause::User, false).unwrap();
        rig.agent.when_idle().await;
        assert_eq!(
            rig.events()[10..],
            [line, "step/end 1.1", "turn/end 1 aborted:user"]
        );
    }
}

#[tokio::test]
async fn a_block_drops_the_bodys_contexts_and_keeps_its_own() {
    let body = tool(spec("t"), |_| {
        ok_with(
            "secret",
            r#"{"context":[{"content":[{"type":"text","text":"body's"}]}]}"#,
        )
    });
    let block = entering(
        "tools/post-execute",
        r#"{"kind":"block","feedback":"do it again","additionalContexts":[{"content":[{"type":"text","text":"hook's"}]}]}"#,
    );
    let setup = Setup {
        listeners: vec![Arc::new(block)],
        ..tools(body)
    };
    let (rig, line, text) = one_call(setup, "{}").await;
    assert_eq!(
        (line.as_str(), text.as_str()),
        ("tool/result A error", "Error: do it again")
    );
    let surface = rig.log.messages().unwrap().to_json().as_str().to_owned();
    assert!(
        surface.contains("hook's") && !surface.contains("body's"),
        "{surface}"
    );
}

#[tokio::test]
async fn a_reviewer_may_replace_the_content_or_the_value_but_not_both() {
    let replace = |answer| Setup {
        listeners: vec![Arc::new(entering("tools/post-execute", answer)) as Arc<dyn Listener>],
        ..tools(tool(spec("t").with_output(ANY).unwrap(), |_| {
            ok_with("own", r#"{"value":{"a":1}}"#)
        }))
    };
    let content = r#"{"kind":"accept","content":[{"type":"text","text":"new"}]}"#;
    assert_eq!(one_call(replace(content), "{}").await.2, "new");
    assert_eq!(
        one_call(replace(r#"{"kind":"accept","value":{"b":2}}"#), "{}")
            .await
            .2,
        r#"{"b":2}"#
    );
    assert_eq!(
        one_call(replace(r#"{"kind":"accept","value":7}"#), "{}")
            .await
            .1,
        "tool/result A INVALID_TOOL_OUTPUT"
    );
    let both = r#"{"kind":"accept","value":{"b":2},"content":[{"type":"text","text":"new"}]}"#;
    assert_eq!(one_call(replace(both), "{}").await.1, "tool/result A error");
}

#[tokio::test]
async fn a_wrapper_may_answer_instead_of_the_body() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let body = tool(spec("t"), move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        ok("body")
    });
    let wrap = entering(
        "tools/execute",
        r#"{"content":[{"type":"text","text":"wrapped"}],"isError":false}"#,
    );
    let (_, line, text) = one_call(
        Setup {
            listeners: vec![Arc::new(wrap)],
            ..tools(body)
        },
        "{}",
    )
    .await;
    assert_eq!((line.as_str(), text.as_str()), ("tool/result A", "wrapped"));
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_body_does_not_run_when_the_call_cannot_be_made_durable() {
    let ran = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&ran);
    let body = tool(spec("t"), move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        ok("body")
    });
    let rig = Rig::new(Setup {
        say: vec![calls(&[("A", "t", "{}")])],
        ..tools(body)
    });
    // Barriers: the decision, the request, the body.
    rig.disk.broken_from.store(3, Ordering::Relaxed);
    rig.run("go").await;
    assert_eq!(
        rig.result("A"),
        "Error: the session could not be written to disk: the disk is full"
    );
    assert_eq!(ran.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn results_are_told_with_their_meta() {
    let (told, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let watch = FakeListener {
        name: "w",
        event: "tools/result",
        told: Some(told),
        ..FakeListener::default()
    };
    let body = tool(spec("t"), |_| ok_with("ok", r#"{"meta":{"kind":"read"}}"#));
    let (rig, ..) = one_call(
        Setup {
            listeners: vec![Arc::new(watch)],
            ..tools(body)
        },
        "{}",
    )
    .await;
    let (_, payload) = heard.recv().await.unwrap();
    assert_eq!(
        payload
            .value()
            .path(&["result", "meta", "kind"])
            .and_then(Value::text)
            .unwrap(),
        "read"
    );
    let logged = rig.log.read(|session| {
        session
            .last_of(&Kind::ToolResult)
            .unwrap()
            .data
            .get("meta")
            .unwrap()
            .to_json()
    });
    assert_eq!(logged.as_str(), r#"{"kind":"read"}"#);
}
