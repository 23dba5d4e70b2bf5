use dsh_session::{Header, Session, Target, Value};

use super::rig::{Rig, Setup, reopened, text};
use crate::{AgentError, CancelCause, Message};

fn person(text: &str) -> Message {
    Message::from_person(text)
}

fn quiet() -> Rig {
    Rig::saying(Vec::new())
}

#[tokio::test]
async fn a_message_that_waits_already_is_refused_and_nothing_is_logged() {
    let rig = quiet();
    let message = person("one");
    rig.agent.inject(&message).unwrap();
    assert!(matches!(
        rig.agent.send(&message, Target::NextTurn, false),
        Err(AgentError::Session(_))
    ));
    rig.assert(&["inbox next-step +1"]);
}

#[tokio::test]
async fn a_change_that_changes_nothing_is_silent() {
    let rig = quiet();
    assert!(!rig.agent.withdraw("nobody").unwrap());
    rig.agent.cancel(CancelCause::User, false).unwrap();
    rig.assert(&[]);
}

#[tokio::test]
async fn a_claim_takes_all_of_next_step_then_one_of_next_turn_and_enters_in_that_order() {
    let rig = Rig::saying(vec![text("a"), text("b")]);
    rig.agent
        .send(&person("turn one"), Target::NextTurn, false)
        .unwrap();
    rig.agent
        .send(&person("turn two"), Target::NextTurn, false)
        .unwrap();
    rig.agent.inject(&person("step one")).unwrap();
    rig.agent.steer(&person("step two")).unwrap();
    rig.agent.when_idle().await;
    rig.assert(&[
        "inbox next-turn +1",
        "inbox next-turn +1",
        "inbox next-step +1",
        "inbox next-step +1",
        "turn/start 1",
        "inbox next-step -2",
        "inbox next-turn -1",
        "step/start 1.1",
        "user/message step one",
        "user/message step two",
        "user/message turn one",
        "request/header initial",
        "request/context p/m",
        "chunks",
        "assistant/message text",
        "step/end 1.1",
        "turn/end 1 completed",
        "turn/start 2",
        "inbox next-turn -1",
        "step/start 2.1",
        "user/message turn two",
        "chunks",
        "assistant/message text",
        "step/end 2.1",
        "turn/end 2 completed",
    ]);
}

#[tokio::test]
async fn a_fork_starts_with_an_empty_inbox() {
    let parent = quiet();
    parent.agent.inject(&person("the parent's")).unwrap();
    let seed = parent.log.read(|session| session.log().to_vec().unwrap());
    let mut header = Header::new("fork", 0);
    header.seed_length = Some(seed.len() as u64);
    let session = Session::with_seed(header, seed, 0).unwrap();
    let rig = Rig::new(Setup {
        session: Some(session),
        ..Setup::default()
    });
    assert!(rig.agent.pending(Target::NextStep).is_empty());
}

#[tokio::test]
async fn what_waits_survives_a_restart_and_does_not_wake_by_itself() {
    let before = quiet();
    before
        .agent
        .send(&person("later"), Target::NextTurn, false)
        .unwrap();
    let rig = Rig::new(Setup {
        session: Some(reopened(&before)),
        ..Setup::default()
    });
    rig.agent.when_idle().await;
    assert_eq!(rig.agent.pending(Target::NextTurn).len(), 1);
    rig.assert(&[]);
}

#[tokio::test]
async fn clearing_cancels_next_step_before_next_turn() {
    let rig = quiet();
    rig.agent
        .send(&person("turn"), Target::NextTurn, false)
        .unwrap();
    rig.agent.inject(&person("step")).unwrap();
    rig.agent.cancel(CancelCause::User, false).unwrap();
    rig.assert(&[
        "inbox next-turn +1",
        "inbox next-step +1",
        "inbox next-step -1 canceled",
        "inbox next-turn -1 canceled",
    ]);
}

#[tokio::test]
async fn keep_inbox_keeps() {
    let rig = quiet();
    rig.agent.inject(&person("step")).unwrap();
    rig.agent.cancel(CancelCause::User, true).unwrap();
    assert_eq!(rig.agent.pending(Target::NextStep).len(), 1);
    rig.assert(&["inbox next-step +1"]);
}

#[tokio::test]
async fn a_withdrawn_message_is_canceled() {
    let rig = quiet();
    let message = person("oops");
    rig.agent.inject(&message).unwrap();
    assert!(rig.agent.withdraw(message.id()).unwrap());
    rig.assert(&["inbox next-step +1", "inbox next-step -1 canceled"]);
}

#[tokio::test]
async fn messages_have_the_logs_key_order() {
    let message = person("hi");
    let keys: Vec<_> = message
        .json()
        .value()
        .entries()
        .map(|(key, _)| key.decode().into_owned())
        .collect();
    assert_eq!(keys, ["content", "source", "role", "id"]);
    assert_eq!(
        message.json().get("id").and_then(Value::text).unwrap(),
        message.id()
    );
}
