//! Where we differ from upstream on purpose; the names stand in
//! `docs/differences.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_session::{Draft, Json, Kind, Target, Value};
use tokio::sync::Notify;

use super::rig::{
    FakeListener, Rig, Setup, calls, json, max_tokens, ok, session, spec, text, tool,
};
use crate::dispatch::{Dispatch, Entry, EventContext, Listener, ListenerError, Subscription};
use crate::tools::ToolSpec;
use crate::{CancelCause, Message};

/// Says when a step is about to be decided, and holds it until the turn is given up.
struct Holding(Arc<Notify>);

#[async_trait::async_trait]
impl Listener for Holding {
    fn name(&self) -> &str {
        "holding"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::all("agent/pre-step")]
    }

    async fn enter(&self, _: &str, _: &Json, _: &EventContext) -> Result<Entry, ListenerError> {
        self.0.notify_one();
        std::future::pending().await
    }
}

async fn cancelled_in_pre_step(keep_inbox: bool) -> Rig {
    let reached = Arc::new(Notify::new());
    let rig = Rig::new(Setup {
        listeners: vec![Arc::new(Holding(Arc::clone(&reached)))],
        ..Setup::default()
    });
    rig.agent.inject(&Message::from_person("context")).unwrap();
    rig.agent.followup(&Message::from_person("prompt")).unwrap();
    reached.notified().await;
    rig.agent.cancel(CancelCause::User, keep_inbox).unwrap();
    rig.agent.when_idle().await;
    rig
}

/// A log as a process leaves it that dies after it claimed, once it was closed
/// for going on.
fn crashed_after_its_claim() -> dsh_session::Session {
    let mut session = session();
    let mut append = |draft: Draft| session.append(draft, 0).unwrap();
    let data = |text: &str| Json::normalise(text).unwrap();
    let mut inbox = dsh_session::Inbox::default();
    let prompt = Message::from_person("before the crash").json().clone();
    let pushed = inbox.push(Target::NextTurn, prompt).unwrap();
    inbox.apply(&pushed).unwrap();
    append(pushed.draft());
    append(Draft::new(Kind::TurnStart, data(r#"{"turn":1}"#)));
    for claim in inbox.claim(Target::NextTurn).splices {
        append(claim.draft());
    }
    let interrupted = r#"{"turn":1,"reason":{"kind":"interrupted"}}"#;
    append(Draft::new(Kind::TurnEnd, data(interrupted)));
    session
}

#[tokio::test]
async fn input_that_a_crash_caught_between_its_claim_and_the_model_is_put_back() {
    let rig = Rig::new(Setup {
        session: Some(crashed_after_its_claim()),
        say: vec![text("first"), text("second")],
        ..Setup::default()
    });
    assert_eq!(rig.agent.pending(Target::NextTurn).len(), 1);
    rig.run("after it").await;
    let said = rig.log.messages().unwrap().to_json().as_str().to_owned();
    let at = |text: &str| {
        said.find(text)
            .unwrap_or_else(|| panic!("no {text}: {said}"))
    };
    assert!(at("before the crash") < at("first") && at("first") < at("after it"));
}

#[tokio::test]
async fn claimed_messages_of_an_aborted_turn_are_put_back() {
    let rig = cancelled_in_pre_step(true).await;
    rig.assert(&[
        "inbox next-step +1",
        "inbox next-turn +1",
        "turn/start 1",
        "inbox next-step -1",
        "inbox next-turn -1",
        "inbox next-step +1",
        "inbox next-turn +1",
        "turn/end 1 aborted:user",
    ]);
    assert_eq!(rig.agent.pending(Target::NextTurn).len(), 1);
    assert_eq!(rig.agent.pending(Target::NextStep).len(), 1);
}

#[tokio::test]
async fn claimed_messages_of_a_turn_cancelled_with_its_inbox_are_logged_as_canceled() {
    let rig = cancelled_in_pre_step(false).await;
    assert_eq!(
        rig.events()[5..],
        [
            "inbox next-step +1",
            "inbox next-step -1 canceled",
            "inbox next-turn +1",
            "inbox next-turn -1 canceled",
            "turn/end 1 aborted:user",
        ]
    );
    assert!(rig.agent.pending(Target::NextTurn).is_empty());
}

#[tokio::test]
async fn claimed_messages_of_a_rejected_turn_are_logged() {
    let refuse = FakeListener {
        name: "l",
        event: "agent/pre-step",
        enter: Some(Box::new(|_| {
            Ok(Entry::settle(json(r#"{"kind":"reject"}"#)))
        })),
        ..FakeListener::default()
    };
    let rig = Rig::new(Setup {
        listeners: vec![Arc::new(refuse)],
        ..Setup::default()
    });
    rig.run("forbidden").await;
    let event = rig.log.read(|session| {
        let rejected = |kind: &Kind| kind.as_str() == "agent/input/rejected";
        session
            .log()
            .to_vec()
            .unwrap()
            .iter()
            .find(|event| rejected(&event.kind))
            .unwrap()
            .clone()
    });
    assert!(event.ignorable, "upstream has to be able to read the log");
    let message = event.data.get("messages").unwrap().items().next().unwrap();
    assert!(message.as_str().contains("forbidden"));
    assert!(rig.log.messages().unwrap().is_empty());
}

#[tokio::test]
async fn unanswered_tool_results_after_a_sticky_max_tokens_get_their_model_step() {
    let asked = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&asked);
    let stopping = FakeListener {
        name: "l",
        event: "agent/turn-stopping",
        decide: Some(Box::new(move |_| {
            let first = count.fetch_add(1, Ordering::Relaxed) == 0;
            first.then(|| json(r#"{"messages":[{"content":[{"type":"text","text":"go on"}]}]}"#))
        })),
        ..FakeListener::default()
    };
    let rig = Rig::new(Setup {
        say: vec![max_tokens("cut"), calls(&[("A", "t", "{}")]), text("seen")],
        tools: vec![tool(spec("t"), |_| ok("ok"))],
        listeners: vec![Arc::new(stopping)],
        ..Setup::default()
    });
    rig.run("go").await;
    let events = rig.events();
    let tail = events
        .iter()
        .skip_while(|event| *event != "tool/result A")
        .collect::<Vec<_>>();
    assert_eq!(
        tail,
        [
            "tool/result A",
            "step/end 1.2",
            "step/start 1.3",
            "chunks",
            "assistant/message text",
            "step/end 1.3",
            "turn/end 1 max-tokens",
        ]
    );
}

#[tokio::test]
async fn arguments_are_validated_before_hooks_and_approval_see_them() {
    let seen = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&seen);
    let hook = FakeListener {
        name: "l",
        event: "tools/pre-execute",
        enter: Some(Box::new(move |payload| {
            count.fetch_add(1, Ordering::Relaxed);
            assert_eq!(
                payload.get("raw").and_then(Value::text).unwrap(),
                r#"{ "x" : "ok" }"#
            );
            assert_eq!(
                payload
                    .value()
                    .path(&["arguments", "x"])
                    .and_then(Value::text)
                    .unwrap(),
                "ok"
            );
            Ok(Entry::proceed())
        })),
        ..FakeListener::default()
    };
    let schema = r#"{"type":"object","properties":{"x":{"type":"string"}},"required":["x"]}"#;
    let rig = Rig::new(Setup {
        say: vec![
            calls(&[("A", "t", r#"{"x":1}"#), ("B", "t", r#"{ "x" : "ok" }"#)]),
            text("done"),
        ],
        tools: vec![tool(ToolSpec::new("t", "", schema).unwrap(), |_| ok("ran"))],
        listeners: vec![Arc::new(hook)],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        rig.result("A"),
        r#"Error: invalid arguments: "x" must be a string"#
    );
    assert_eq!(rig.result("B"), "ran");
    assert_eq!(seen.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_subscription_to_no_event_of_a_run_is_refused() {
    let odd = FakeListener {
        name: "odd",
        event: "agent/nothing",
        ..FakeListener::default()
    };
    let refused = Dispatch::new(vec![Arc::new(odd)]);
    assert!(refused.err().unwrap().to_string().contains("agent/nothing"));
}

/// Cancels as soon as a turn ended, from inside of the publication of that event.
struct CancelsAtTurnEnd(std::sync::Mutex<Option<crate::Agent>>);

impl crate::EventSink for CancelsAtTurnEnd {
    fn event(&self, event: &Arc<dsh_session::Event>) {
        if event.kind == Kind::TurnEnd
            && let Some(agent) = self.0.lock().unwrap().take()
        {
            agent.cancel(CancelCause::User, true).unwrap();
        }
    }
}

#[tokio::test]
async fn a_cancel_between_two_turns_keeps_the_next_from_starting() {
    let rig = Rig::saying(vec![text("one"), text("never")]);
    let cancels = CancelsAtTurnEnd(std::sync::Mutex::new(Some(rig.agent.clone())));
    rig.log.attach(Arc::new(cancels));
    rig.agent
        .send(&Message::from_person("first"), Target::NextTurn, false)
        .unwrap();
    rig.run("second").await;
    assert_eq!(rig.events().last().unwrap(), "turn/end 1 completed");
    assert_eq!(rig.agent.pending(Target::NextTurn).len(), 1);
}
