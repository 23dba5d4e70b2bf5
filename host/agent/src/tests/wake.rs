use std::sync::Arc;

use dsh_session::Target;
use tokio::sync::Semaphore;

use super::rig::{Rig, Say, Setup, finish, ok, spec, text, waiting_tool};
use crate::{AgentError, CancelCause, Message, Status};

fn person(text: &str) -> Message {
    Message::from_person(text)
}

/// A model that answers "so far", waits for a permit and stops.
fn held() -> (Say, Arc<Semaphore>) {
    let gate = Arc::new(Semaphore::new(0));
    let first = vec![r#"{"type":"text-delta","index":0,"text":"so far"}"#.to_owned()];
    (
        Say::Held(first, Arc::clone(&gate), vec![finish("stop")]),
        gate,
    )
}

#[tokio::test]
async fn what_is_sent_during_a_step_is_claimed_at_the_next() {
    let (say, gate) = held();
    let rig = Rig::saying(vec![say, text("again")]);
    rig.agent.followup(&person("one")).unwrap();
    rig.until("chunks").await;
    rig.agent.steer(&person("two")).unwrap();
    gate.add_permits(1);
    rig.agent.when_idle().await;
    rig.assert(&[
        "inbox next-turn +1",
        "turn/start 1",
        "inbox next-turn -1",
        "step/start 1.1",
        "user/message one",
        "request/header initial",
        "request/context p/m",
        "chunks",
        "inbox next-step +1",
        "chunks",
        "assistant/message text",
        "step/end 1.1",
        "inbox next-step -1",
        "step/start 1.2",
        "user/message two",
        "chunks",
        "assistant/message text",
        "step/end 1.2",
        "turn/end 1 completed",
    ]);
}

#[tokio::test]
async fn a_steer_after_a_cancel_opens_a_new_turn() {
    let (say, _gate) = held();
    let rig = Rig::saying(vec![say, text("new")]);
    rig.agent.followup(&person("one")).unwrap();
    rig.until("chunks").await;
    rig.agent.cancel(CancelCause::User, false).unwrap();
    rig.agent.steer(&person("two")).unwrap();
    rig.agent.when_idle().await;
    let events = rig.events();
    let tail: Vec<_> = events
        .iter()
        .skip_while(|event| *event != "inbox next-turn -1")
        .skip(5)
        .collect();
    let tail: Vec<_> = tail
        .into_iter()
        .filter(|event| !event.starts_with("chunks"))
        .collect();
    assert_eq!(
        tail,
        [
            "inbox next-turn +1",
            "assistant/message text interrupted",
            "step/end 1.1",
            "turn/end 1 aborted:user",
            "turn/start 2",
            "inbox next-turn -1",
            "step/start 2.1",
            "user/message two",
            "assistant/message text",
            "step/end 2.1",
            "turn/end 2 completed",
        ]
    );
}

#[tokio::test]
async fn a_message_parked_before_a_cancel_stays_parked() {
    let (say, _gate) = held();
    let rig = Rig::saying(vec![say]);
    rig.agent.followup(&person("one")).unwrap();
    rig.until("chunks").await;
    rig.agent.steer(&person("two")).unwrap();
    rig.agent.cancel(CancelCause::User, true).unwrap();
    rig.agent.when_idle().await;
    assert_eq!(rig.agent.pending(Target::NextStep).len(), 1);
    assert_eq!(rig.events().last().unwrap(), "turn/end 1 aborted:user");
}

#[tokio::test]
async fn a_followup_during_maintenance_opens_a_turn_after_it() {
    let rig = Rig::saying(vec![text("done")]);
    let agent = rig.agent.clone();
    rig.agent
        .maintenance(|_| async move {
            agent.followup(&person("one")).unwrap();
            assert!(matches!(
                agent.maintenance(|_| async {}).await,
                Err(AgentError::Busy)
            ));
            assert_eq!(*agent.status().borrow(), Status::Idle);
        })
        .await
        .unwrap();
    rig.agent.when_idle().await;
    assert_eq!(rig.events()[..2], ["inbox next-turn +1", "turn/start 1"]);
    assert_eq!(rig.events().last().unwrap(), "turn/end 1 completed");
}

#[tokio::test]
async fn disposal_aborts_flushes_and_never_wakes() {
    let (say, _gate) = held();
    let rig = Rig::saying(vec![say, text("never")]);
    rig.agent.followup(&person("one")).unwrap();
    rig.until("chunks").await;
    let flushes = rig.disk.flushes.load(std::sync::atomic::Ordering::Relaxed);
    rig.agent.dispose().await.unwrap();
    assert_eq!(rig.events().last().unwrap(), "turn/end 1 aborted:disposed");
    assert!(matches!(
        rig.agent.steer(&person("two")),
        Err(AgentError::Disposed)
    ));
    assert!(rig.disk.flushes.load(std::sync::atomic::Ordering::Relaxed) > flushes);
}

#[tokio::test]
async fn the_status_changes_when_a_turn_runs() {
    let (say, gate) = held();
    let rig = Rig::saying(vec![say]);
    let mut status = rig.agent.status();
    assert_eq!(*status.borrow(), Status::Idle);
    rig.agent.followup(&person("one")).unwrap();
    assert_eq!(*status.borrow_and_update(), Status::Running);
    gate.add_permits(1);
    rig.agent.when_idle().await;
    assert_eq!(*status.borrow(), Status::Idle);
}

#[tokio::test]
async fn a_crash_inside_of_a_turn_closes_step_and_turn() {
    let panics = waiting_tool(spec("boom"), |_, _| Box::pin(async { panic!("a defect") }));
    let rig = Rig::new(Setup {
        say: vec![super::rig::calls(&[("c1", "boom", "{}")]), text("next")],
        tools: vec![panics, super::rig::tool(spec("fine"), |_| ok("ok"))],
        ..Setup::default()
    });
    rig.run("one").await;
    let events = rig.events();
    assert_eq!(
        events[events.len() - 3..],
        ["tool/call c1", "step/end 1.1", "turn/end 1 error:UNKNOWN"]
    );
    rig.run("two").await;
    assert_eq!(rig.events().last().unwrap(), "turn/end 2 completed");
}
