//! What listeners hear of a run, and what they may do to it: the events of the
//! table, each raised by what it says.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use dsh_plugin::api::{Place, PluginError, PromptSection};
use dsh_session::{Json, Kind, Target, Value};

use super::rig::Say;
use super::rig::{
    FakeListener, Rig, Setup, calls, error_finish, finish, json, ok, spec, text, tool,
};
use crate::dispatch::{Entry, EventContext, Listener, ListenerError, Subscription, event, events};
use crate::prompt::PromptSource;
use crate::tools::CallScope;
use crate::{CancelCause, Message};

/// Takes part in everything, changes nothing, and notes what it met.
#[derive(Default)]
pub(super) struct Everything(Mutex<Vec<(String, Json)>>);

impl Everything {
    fn note(&self, event: &str, json: &Json) {
        let mut met = self.0.lock().unwrap();
        met.push((event.to_owned(), json.clone()));
    }

    fn of(&self, name: &str) -> Vec<Json> {
        let met = self.0.lock().unwrap();
        let of = met.iter().filter(|(event, _)| event == name);
        of.map(|(_, json)| json.clone()).collect()
    }

    fn names(&self) -> Vec<String> {
        let met = self.0.lock().unwrap();
        met.iter().map(|(event, _)| event.clone()).collect()
    }
}

#[async_trait]
impl Listener for Everything {
    fn name(&self) -> &str {
        "everything"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        events()
            .iter()
            .map(|spec| Subscription::all(spec.name))
            .collect()
    }

    async fn enter(
        &self,
        event: &str,
        payload: &Json,
        _: &EventContext,
    ) -> Result<Entry, ListenerError> {
        self.note(event, payload);
        Ok(Entry::carrying(""))
    }

    async fn leave(
        &self,
        name: &str,
        _: String,
        outcome: &Json,
        _: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        event(name).unwrap().check_result(outcome).unwrap();
        Ok(None)
    }

    async fn decide(
        &self,
        event: &str,
        payload: &Json,
        _: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        self.note(event, payload);
        Ok(None)
    }

    async fn notify(&self, name: &str, payloads: &[Json]) -> Result<(), ListenerError> {
        for payload in payloads {
            event(name).unwrap().check_payload(payload).unwrap();
            self.note(name, payload);
        }
        Ok(())
    }
}

fn texts(json: &Json, path: &[&str]) -> String {
    let text = json.value().path(path).and_then(Value::text);
    text.unwrap_or_default().into_owned()
}

#[tokio::test]
async fn every_event_of_the_table_but_the_files_is_raised_and_of_its_shape() {
    let everything = Arc::new(Everything::default());
    let asks = FakeListener {
        name: "asks",
        event: "tools/pre-execute",
        enter: Some(Box::new(|payload| {
            let asked = texts(payload, &["callId"]) == "A";
            let ask = Entry::settle(json(r#"{"kind":"ask"}"#));
            Ok(if asked { ask } else { Entry::proceed() })
        })),
        ..FakeListener::default()
    };
    let rig = Rig::new(Setup {
        say: vec![
            calls(&[("A", "t", "{}"), ("B", "t", "{}")]),
            text("done"),
            Say::Chunks(vec![error_finish("SERVER_ERROR")]),
        ],
        tools: vec![tool(spec("t"), |_| ok("fine"))],
        listeners: vec![everything.clone(), Arc::new(asks)],
        ..Setup::default()
    });
    rig.run("go").await;
    rig.registry
        .register(tool(spec("u"), |_| ok("later")))
        .unwrap();
    let waits = Message::from_person("never mind");
    rig.agent.send(&waits, Target::NextStep, false).unwrap();
    assert!(rig.agent.withdraw(waits.id()).unwrap());
    rig.agent.dispose().await.unwrap();

    let met: BTreeSet<String> = everything.names().into_iter().collect();
    let missing: Vec<_> = events()
        .iter()
        .map(|spec| spec.name)
        .filter(|name| !met.contains(*name))
        .collect();
    let elsewhere = [
        "agent/error",
        "agent/request-error",
        "fs/edit-intent",
        "fs/write-intent",
        "fs/observed",
        "system-prompt/change",
    ];
    let missing: Vec<_> = missing
        .into_iter()
        .filter(|name| !elsewhere.contains(name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
    let order = everything.names();
    let at = |name: &str| order.iter().position(|met| met == name).unwrap();
    assert!(at("session/created") < at("agent/created"));
    assert!(at("agent/created") < at("agent/session-start"));
    assert!(at("agent/session-start") < at("agent/inbox/claimed"));
    assert_eq!(order.last().unwrap(), "session/disposed");
    let tools = everything.of("tools/change");
    assert_eq!(
        tools.iter().map(Json::as_str).collect::<Vec<_>>(),
        [r#"{"tools":["t"]}"#, r#"{"tools":["t","u"]}"#]
    );
    let settled = everything.of("authorization/settled");
    assert_eq!(texts(&settled[0], &["outcome"]), "unavailable");
}

#[tokio::test]
async fn a_failed_request_is_told_and_so_is_the_turns_error() {
    let everything = Arc::new(Everything::default());
    let rig = Rig::new(Setup {
        say: vec![Say::Chunks(vec![error_finish("SERVER_ERROR")])],
        listeners: vec![everything.clone()],
        ..Setup::default()
    });
    rig.run("go").await;
    rig.agent.dispose().await.unwrap();
    let failed = everything.of("agent/request-error");
    assert_eq!(texts(&failed[0], &["failure", "code"]), "SERVER_ERROR");
    let error = everything.of("agent/error");
    assert_eq!(texts(&error[0], &["error", "code"]), "SERVER_ERROR");
}

#[tokio::test]
async fn what_waits_is_told_as_it_comes_is_taken_and_is_dropped() {
    let everything = Arc::new(Everything::default());
    let rig = Rig::new(Setup {
        say: vec![text("done")],
        listeners: vec![everything.clone()],
        ..Setup::default()
    });
    rig.run("go").await;
    let dropped = Message::from_person("dropped");
    rig.agent.inject(&dropped).unwrap();
    rig.agent.cancel(CancelCause::User, false).unwrap();
    rig.agent.dispose().await.unwrap();
    let of = |name: &str| {
        let told = everything.of(name);
        let line = |json: &Json| {
            let message = json
                .get("messages")
                .unwrap()
                .items()
                .next()
                .unwrap()
                .to_json();
            let content = message
                .get("content")
                .unwrap()
                .items()
                .next()
                .unwrap()
                .to_json();
            format!(
                "{} {}",
                texts(json, &["target"]),
                texts(&content, &["text"])
            )
        };
        told.iter().map(line).collect::<Vec<_>>()
    };
    assert_eq!(
        of("agent/inbox/inserted"),
        ["next-turn go", "next-step dropped"]
    );
    assert_eq!(of("agent/inbox/claimed"), ["next-turn go"]);
    assert_eq!(of("agent/inbox/discarded"), ["next-step dropped"]);
}

/// Says something else each time.
#[derive(Default)]
struct Moody(std::sync::atomic::AtomicUsize);

#[async_trait]
impl PromptSource for Moody {
    fn name(&self) -> &str {
        "moody"
    }

    async fn sections(&self, _: &Json, _: &CallScope) -> Result<Vec<PromptSection>, PluginError> {
        let times = self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(vec![PromptSection {
            place: Place::System,
            name: "mood".to_owned(),
            order: 1.0,
            // The same in the first two steps.
            text: format!("You feel {}.", times / 2),
            complete: false,
        }])
    }
}

#[tokio::test]
async fn another_system_prompt_is_told_when_it_goes_out() {
    let everything = Arc::new(Everything::default());
    let rig = Rig::new(Setup {
        say: vec![
            calls(&[("A", "t", "{}")]),
            calls(&[("B", "t", "{}")]),
            text("done"),
        ],
        tools: vec![tool(spec("t"), |_| ok("fine"))],
        listeners: vec![everything.clone()],
        prompts: vec![Arc::new(Moody::default())],
        ..Setup::default()
    });
    rig.run("go").await;
    rig.agent.dispose().await.unwrap();
    let changes = everything.of("system-prompt/change");
    assert_eq!(
        changes.iter().map(Json::as_str).collect::<Vec<_>>(),
        [r#"{"turn":1,"step":3}"#]
    );
}

fn streaming(result: &'static str) -> Setup {
    let listener = FakeListener {
        name: "stands in",
        event: "llm/stream",
        enter: Some(Box::new(move |_| Ok(Entry::settle(json(result))))),
        ..FakeListener::default()
    };
    Setup {
        listeners: vec![Arc::new(listener)],
        ..Setup::default()
    }
}

#[tokio::test]
async fn a_listener_vetoes_a_request_which_is_a_failed_one() {
    let rig = Rig::new(streaming(
        r#"{"kind":"refuse","failure":{"message":"not with this in it","code":"SECRET_FOUND"}}"#,
    ));
    rig.run("go").await;
    assert!(rig.model.requests.lock().unwrap().is_empty());
    let events = rig.events();
    assert!(
        events.contains(&"turn/end 1 error:SECRET_FOUND".to_owned()),
        "{events:?}"
    );
}

#[tokio::test]
async fn a_listener_answers_in_the_models_place_also_where_no_adapter_is() {
    let answer = r#"{"kind":"answer","chunks":[{"type":"text-delta","index":0,"text":"from a cache"},{"type":"finish","reason":{"kind":"stop"}}]}"#;
    for provider in ["p", "nobody"] {
        let everything = Arc::new(Everything::default());
        let mut setup = streaming(answer);
        setup.listeners.insert(0, everything.clone());
        if provider == "nobody" {
            setup.configure = Some(|config| config.provider = "nobody".to_owned());
        }
        let rig = Rig::new(setup);
        rig.run("go").await;
        assert!(rig.model.requests.lock().unwrap().is_empty());
        let said = rig.log.read(|session| {
            let message = session.last_of(&Kind::AssistantMessage).unwrap();
            message.data.as_str().to_owned()
        });
        assert!(said.contains("from a cache"), "{said}");
        let events = rig.events();
        assert!(
            events.contains(&"turn/end 1 completed".to_owned()),
            "{events:?}"
        );
        let asked = everything.of("llm/stream");
        assert_eq!(texts(&asked[0], &["config", "provider"]), provider);
        assert!(asked[0].as_str().contains(r#""text":"go""#));
    }
}

#[tokio::test]
async fn an_answer_that_does_not_end_is_a_failed_request() {
    let rig = Rig::new(streaming(
        r#"{"kind":"answer","chunks":[{"type":"text-delta","index":0,"text":"and then"}]}"#,
    ));
    rig.run("go").await;
    let events = rig.events();
    assert!(
        events.contains(&"turn/end 1 error:LISTENER_FAILED".to_owned()),
        "{events:?}"
    );
}

#[tokio::test]
async fn what_the_model_sees_is_rewritten_by_no_listener_of_its_stream() {
    let listener = FakeListener {
        name: "rewrites",
        event: "llm/stream",
        enter: Some(Box::new(|payload| {
            Ok(Entry {
                verdict: crate::dispatch::Verdict::Rewrite(payload.clone()),
                carry: None,
            })
        })),
        ..FakeListener::default()
    };
    let rig = Rig::new(Setup {
        listeners: vec![Arc::new(listener)],
        ..Setup::default()
    });
    rig.run("go").await;
    let events = rig.events();
    assert!(
        events.contains(&"turn/end 1 error:LISTENER_FAILED".to_owned()),
        "{events:?}"
    );
}

/// Puts something in front of the agent when it starts, after a while.
struct Starts(Mutex<Option<crate::Agent>>, tokio::sync::Semaphore);

#[async_trait]
impl Listener for Starts {
    fn name(&self) -> &str {
        "starts"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::all("agent/session-start")]
    }

    async fn notify(&self, _: &str, _: &[Json]) -> Result<(), ListenerError> {
        self.1.acquire().await.unwrap().forget();
        let agent = self.0.lock().unwrap().take().unwrap();
        agent
            .inject(&Message::from_person("what I remember"))
            .unwrap();
        Ok(())
    }
}

#[tokio::test]
async fn what_a_listener_injects_at_the_start_reaches_the_first_request() {
    let starts = Arc::new(Starts(Mutex::default(), tokio::sync::Semaphore::new(0)));
    let rig = Rig::new(Setup {
        say: vec![text("done")],
        listeners: vec![starts.clone()],
        ..Setup::default()
    });
    *starts.0.lock().unwrap() = Some(rig.agent.clone());
    rig.agent.followup(&Message::from_person("go")).unwrap();
    tokio::task::yield_now().await;
    starts.1.add_permits(1);
    rig.agent.when_idle().await;
    rig.assert(&[
        "inbox next-turn +1",
        "inbox next-step +1",
        "turn/start 1",
        "inbox next-step -1",
        "inbox next-turn -1",
        "step/start 1.1",
        "user/message what I remember",
        "user/message go",
        "request/header initial",
        "request/context p/m",
        "chunks",
        "assistant/message text",
        "step/end 1.1",
        "turn/end 1 completed",
    ]);
}

#[tokio::test]
async fn a_finished_stream_is_told_on_the_way_out() {
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let told = Arc::clone(&seen);
    let listener = FakeListener {
        name: "watches",
        event: "llm/stream",
        leave: Some(Box::new(move |outcome| {
            told.lock().unwrap().push(outcome.to_string());
            None
        })),
        ..FakeListener::default()
    };
    let rig = Rig::new(Setup {
        say: vec![Say::Chunks(vec![finish("stop")])],
        listeners: vec![Arc::new(listener)],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        *seen.lock().unwrap(),
        [r#"{"kind":"end","finish":{"kind":"stop"}}"#]
    );
}
