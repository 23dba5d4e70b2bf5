use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use dsh_session::{Json, Kind, Value};

use super::rig::{FakeListener, Rig, Setup, json, ok, reopened, spec, text, tool};
use crate::dispatch::Entry;

fn config(rig: &Rig) -> Json {
    let header = rig
        .log
        .read(|session| session.last_of(&Kind::RequestHeader).unwrap().data.clone());
    header
        .value()
        .path(&["header", "config"])
        .unwrap()
        .to_json()
}

fn headers(rig: &Rig) -> Vec<String> {
    rig.events()
        .into_iter()
        .filter(|event| event.starts_with("request/"))
        .collect()
}

#[tokio::test]
async fn the_first_header_is_initial_and_an_unchanged_one_is_not_repeated() {
    let rig = Rig::saying(vec![text("a"), text("b")]);
    rig.run("one").await;
    rig.run("two").await;
    assert_eq!(
        headers(&rig),
        ["request/header initial", "request/context p/m"]
    );
}

#[tokio::test]
async fn a_resumed_session_says_so_even_if_nothing_changed() {
    let before = Rig::saying(vec![text("a")]);
    before.run("one").await;
    let rig = Rig::new(Setup {
        say: vec![text("b"), text("c")],
        session: Some(reopened(&before)),
        ..Setup::default()
    });
    rig.run("two").await;
    rig.run("three").await;
    assert_eq!(headers(&rig), ["request/header resume"]);
}

#[tokio::test]
async fn a_changed_tool_list_is_a_change_of_the_header_and_not_of_the_context() {
    let rig = Rig::saying(vec![text("a"), text("b")]);
    rig.run("one").await;
    rig.registry
        .register(tool(spec("t"), |_| ok("ok")))
        .unwrap();
    rig.run("two").await;
    assert_eq!(
        headers(&rig),
        [
            "request/header initial",
            "request/context p/m",
            "request/header change"
        ]
    );
}

#[tokio::test]
async fn another_route_changes_header_and_context() {
    let switched = Arc::new(AtomicBool::new(false));
    let now = Arc::clone(&switched);
    let select = FakeListener {
        name: "select",
        event: "agent/request",
        enter: Some(Box::new(move |payload| {
            if !now.load(Ordering::Relaxed) {
                return Ok(Entry::proceed());
            }
            assert_eq!(
                payload
                    .value()
                    .path(&["config", "provider"])
                    .and_then(Value::text)
                    .unwrap(),
                "p"
            );
            Ok(Entry::settle(json(r#"{"provider":"q","model":"n"}"#)))
        })),
        ..FakeListener::default()
    };
    let rig = Rig::new(Setup {
        say: vec![text("a"), text("b")],
        listeners: vec![Arc::new(select)],
        ..Setup::default()
    });
    rig.run("one").await;
    switched.store(true, Ordering::Relaxed);
    rig.run("two").await;
    assert_eq!(
        headers(&rig),
        [
            "request/header initial",
            "request/context p/m",
            "request/header change",
            "request/context q/n",
        ]
    );
}

#[tokio::test]
async fn what_the_adapter_filled_in_is_not_carried_as_asked_for() {
    let rig = Rig::saying(vec![text("a"), text("b")]);
    rig.run("one").await;
    assert_eq!(
        config(&rig).as_str(),
        r#"{"provider":"p","model":"m","reasoningEffort":"high","maxTokens":1000}"#
    );
    let defaults = rig.log.read(|session| {
        session
            .request_header()
            .unwrap()
            .json()
            .get("adapterDefaults")
            .unwrap()
            .to_json()
    });
    assert_eq!(
        defaults.as_str(),
        r#"{"reasoningEffort":true,"maxTokens":true}"#
    );
    rig.run("two").await;
    // Had the defaults been carried, the second request would not mark them, and the header would differ.
    assert_eq!(headers(&rig).len(), 2);
}

#[tokio::test]
async fn an_explicit_effort_survives_a_resume_on_the_same_route_and_a_default_does_not() {
    let explicit = |effort: &'static str| -> fn(&mut crate::AgentConfig) {
        match effort {
            "low" => |config| config.reasoning_effort = Some("low".into()),
            _ => |_| {},
        }
    };
    let before = Rig::new(Setup {
        say: vec![text("a")],
        configure: Some(explicit("low")),
        ..Setup::default()
    });
    before.run("one").await;
    let same = Rig::new(Setup {
        say: vec![text("b")],
        session: Some(reopened(&before)),
        ..Setup::default()
    });
    same.run("two").await;
    assert_eq!(
        config(&same)
            .get("reasoningEffort")
            .and_then(Value::text)
            .unwrap(),
        "low"
    );
    let other = Rig::new(Setup {
        say: vec![text("b")],
        session: Some(reopened(&before)),
        configure: Some(|config| config.model = "other".into()),
        ..Setup::default()
    });
    other.run("two").await;
    assert_eq!(
        config(&other)
            .get("reasoningEffort")
            .and_then(Value::text)
            .unwrap(),
        "high"
    );
}

#[tokio::test]
async fn a_provider_that_nobody_serves_is_an_error_of_the_attempt() {
    let rig = Rig::new(Setup {
        configure: Some(|config| config.provider = "nobody".into()),
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        rig.events()[5..],
        [
            "request/header initial",
            "request/context nobody/m",
            "chunks",
            "step/end 1.1",
            "turn/end 1 error:NO_ADAPTER",
        ]
    );
}

#[tokio::test]
async fn no_model_at_all_ends_the_turn_with_what_to_do() {
    let rig = Rig::new(Setup {
        configure: Some(|config| config.model.clear()),
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        rig.events()[5..],
        ["step/end 1.1", "turn/end 1 error:NO_MODEL"]
    );
}
