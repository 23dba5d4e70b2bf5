use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_session::{Kind, Value};
use tokio::sync::Semaphore;

use super::rig::{FakeListener, Rig, Say, Setup, call_block, error_finish, finish, json, text};
use crate::dispatch::Entry;
use crate::{CancelCause, Message};

fn held(first: Vec<String>) -> Say {
    Say::Held(first, Arc::new(Semaphore::new(0)), vec![finish("stop")])
}

fn delta(text: &str) -> String {
    format!(r#"{{"type":"text-delta","index":0,"text":"{text}"}}"#)
}

async fn cancelled_after_chunks(first: Vec<String>) -> Rig {
    let rig = Rig::saying(vec![held(first)]);
    rig.agent.followup(&Message::from_person("go")).unwrap();
    rig.until("chunks").await;
    rig.agent.cancel(CancelCause::User, false).unwrap();
    rig.agent.when_idle().await;
    rig
}

#[tokio::test]
async fn an_abort_before_any_text_leaves_no_message() {
    let start = r#"{"type":"block-start","index":0,"blockType":"text"}"#.to_owned();
    let rig = cancelled_after_chunks(vec![start, delta("  ")]).await;
    assert_eq!(
        rig.events()[7..],
        ["chunks", "step/end 1.1", "turn/end 1 aborted:user"]
    );
}

#[tokio::test]
async fn an_abort_after_text_keeps_the_prefix_without_tool_calls() {
    let rig = cancelled_after_chunks(vec![delta("so far"), call_block(1, ("c", "t", "{}"))]).await;
    assert_eq!(
        rig.events()[7..],
        [
            "chunks",
            "assistant/message text interrupted",
            "step/end 1.1",
            "turn/end 1 aborted:user",
        ]
    );
    let event = rig
        .log
        .read(|session| session.last_of(&Kind::AssistantMessage).unwrap().clone());
    let keys: Vec<_> = event
        .data
        .value()
        .entries()
        .map(|(key, _)| key.decode().into_owned())
        .collect();
    assert_eq!(keys, ["turn", "step", "message", "interrupted"]);
    assert_eq!(event.source_event_seqs.as_ref().unwrap().len(), 2);
}

#[tokio::test]
async fn an_error_without_a_retry_leaves_chunks_only() {
    let rig = Rig::saying(vec![Say::Chunks(vec![
        delta("half"),
        error_finish("SERVER"),
    ])]);
    rig.run("go").await;
    assert_eq!(
        rig.events()[7..],
        ["chunks", "step/end 1.1", "turn/end 1 error:SERVER"]
    );
}

fn retrying(answer: &'static str, times: usize) -> FakeListener {
    let left = AtomicUsize::new(times);
    FakeListener {
        name: "retry",
        event: "agent/request-error",
        enter: Some(Box::new(move |payload| {
            assert_eq!(
                payload
                    .value()
                    .path(&["failure", "code"])
                    .and_then(Value::text)
                    .unwrap(),
                "SERVER"
            );
            let again = left
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| {
                    left.checked_sub(1)
                })
                .is_ok();
            Ok(if again {
                Entry::settle(json(answer))
            } else {
                Entry::proceed()
            })
        })),
        ..FakeListener::default()
    }
}

#[tokio::test]
async fn a_retry_stays_in_its_step_and_starts_with_an_empty_assembler() {
    let rig = Rig::new(Setup {
        say: vec![
            Say::Chunks(vec![delta("half"), error_finish("SERVER")]),
            Say::Chunks(vec![error_finish("SERVER")]),
            text("whole"),
        ],
        listeners: vec![Arc::new(retrying(r#"{"kind":"retry","delayMs":1}"#, 2))],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        rig.events()[7..],
        [
            "chunks",
            "llm/retry 1",
            "llm/retry-started 1",
            "chunks",
            "llm/retry 2",
            "llm/retry-started 2",
            "chunks",
            "assistant/message text",
            "step/end 1.1",
            "turn/end 1 completed",
        ]
    );
    let message = rig.log.read(|session| {
        session
            .last_of(&Kind::AssistantMessage)
            .unwrap()
            .data
            .clone()
    });
    assert!(message.as_str().contains(r#""text":"whole""#), "{message}");
    let ids = rig.log.read(|session| {
        let events = session.log().to_vec().unwrap();
        let retries = events.iter().filter(|event| event.kind == Kind::LlmRetry);
        retries
            .map(|event| event.data.get("retryId").unwrap().as_str().to_owned())
            .collect::<Vec<_>>()
    });
    assert_eq!(ids[0], ids[1]);
}

#[tokio::test]
async fn a_retry_without_a_delay_is_made_at_once_and_not_counted() {
    let rig = Rig::new(Setup {
        say: vec![Say::Chunks(vec![error_finish("SERVER")]), text("whole")],
        listeners: vec![Arc::new(retrying(r#"{"kind":"retry"}"#, 1))],
        ..Setup::default()
    });
    rig.run("go").await;
    assert_eq!(
        rig.events()[7..],
        [
            "chunks",
            "assistant/message text",
            "step/end 1.1",
            "turn/end 1 completed"
        ]
    );
}

#[tokio::test]
async fn an_abort_while_waiting_for_a_retry_leaves_it_unstarted() {
    let rig = Rig::new(Setup {
        say: vec![Say::Chunks(vec![delta("half"), error_finish("SERVER")])],
        listeners: vec![Arc::new(retrying(
            r#"{"kind":"retry","delayMs":600000}"#,
            1,
        ))],
        ..Setup::default()
    });
    rig.agent.followup(&Message::from_person("go")).unwrap();
    rig.until("llm/retry 1").await;
    rig.agent.cancel(CancelCause::User, false).unwrap();
    rig.agent.when_idle().await;
    assert_eq!(
        rig.events()[7..],
        [
            "chunks",
            "llm/retry 1",
            "step/end 1.1",
            "turn/end 1 aborted:user"
        ]
    );
}

#[tokio::test]
async fn a_stream_without_chunks_of_its_own_still_ends_in_a_message_or_an_error() {
    let rig = Rig::saying(vec![Say::Chunks(vec![finish("stop")])]);
    rig.run("go").await;
    assert_eq!(
        rig.events()[7..],
        [
            "chunks",
            "assistant/message",
            "step/end 1.1",
            "turn/end 1 completed"
        ]
    );
}

#[tokio::test]
async fn what_the_model_says_is_on_the_surface_of_the_next_request() {
    let rig = Rig::saying(vec![text("first"), text("second")]);
    rig.run("one").await;
    rig.run("two").await;
    let requests = rig.model.requests.lock().unwrap();
    let texts = requests[1].messages.join("\n");
    for said in ["one", "first", "two"] {
        assert!(texts.contains(said), "{texts}");
    }
    assert_eq!(requests[1].messages.len(), 3);
}
