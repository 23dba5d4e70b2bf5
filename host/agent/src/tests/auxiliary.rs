//! Model calls beside the loop: what they are made of, and what is kept of them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use dsh_plugin::port::{Llm, Question};
use dsh_session::{Json, Kind, Value};
use tokio::sync::Semaphore;

use super::rig::{Rig, Say, Setup, error_finish, finish, json, reopened, spec, text, tool};
use crate::{LLM_REQUEST, LLM_RESPONSE};

fn question(text: &str) -> Question {
    Question {
        purpose: "probe".to_owned(),
        config: r#"{"maxTokens":9}"#.to_owned(),
        prefix: None,
        system: Some("be brief".to_owned()),
        messages: vec![format!(
            r#"{{"role":"user","content":[{{"type":"text","text":{}}}]}}"#,
            Json::string(text)
        )],
        timeout_ms: None,
    }
}

fn beside(say: Vec<Say>) -> Rig {
    Rig::new(Setup {
        say: vec![text("loop")],
        tools: vec![tool(spec("look"), |_| super::rig::ok("seen"))],
        beside: say,
        ..Setup::default()
    })
}

fn usage(input: u64, output: u64) -> String {
    format!(
        r#"{{"type":"usage","usage":{{"inputTokens":{input},"outputTokens":{output},"cacheReadTokens":1}}}}"#
    )
}

fn costing(input: u64, output: u64) -> Say {
    Say::Chunks(vec![usage(input, output), finish("stop")])
}

/// The data of this rig's events of a kind.
fn of_kind(rig: &Rig, kind: &str) -> Vec<Json> {
    rig.log.read(|session| {
        let events = session.log().to_vec().unwrap();
        let own = events
            .iter()
            .filter(|event| event.kind == Kind::from_name(kind));
        own.map(|event| event.data.clone()).collect()
    })
}

#[tokio::test]
async fn a_question_with_a_prefix_goes_on_from_the_loops_own_request() {
    let rig = beside(vec![text("beside")]);
    rig.run("prompt").await;
    let nodes = rig.log.read(|session| session.surface().nodes().to_vec());
    let seq = |at: usize| u32::try_from(nodes[at].0).unwrap();
    let asked = Question {
        prefix: Some((seq(0), seq(nodes.len() - 1))),
        ..question("and now?")
    };
    rig.llm.ask("row", asked).await.unwrap();
    let own = rig.model.requests.lock().unwrap()[0].clone();
    let asked = rig.beside.requests.lock().unwrap()[0].clone();
    assert_eq!((asked.system, asked.tools), (own.system, own.tools));
    assert_eq!(asked.session_id, own.session_id);
    let (first, rest) = asked.messages.split_at(own.messages.len());
    assert_eq!(first, own.messages);
    // The loop's answer, and what is asked.
    assert_eq!(rest.len(), 2, "{rest:?}");
    assert!(rest[0].contains("loop") && rest[1].contains("and now?"));
    assert_eq!(asked.purpose.as_deref(), Some("probe"));
}

#[tokio::test]
async fn a_prefix_is_a_stretch_of_the_surface_and_of_a_session_that_asked_before() {
    let rig = beside(vec![text("beside")]);
    let asked = Question {
        prefix: Some((0, 1)),
        ..question("?")
    };
    let error = rig.llm.ask("row", asked.clone()).await.unwrap_err();
    assert_eq!(error.code, "UNAVAILABLE");
    rig.run("prompt").await;
    let nodes = rig.log.read(|session| session.surface().nodes().to_vec());
    let seq = |at: usize| u32::try_from(nodes[at].0).unwrap();
    for prefix in [(0, seq(0)), (seq(1), seq(0)), (seq(0), 999)] {
        let asked = Question {
            prefix: Some(prefix),
            ..asked.clone()
        };
        let error = rig.llm.ask("row", asked).await.unwrap_err();
        assert_eq!(error.code, "STALE", "{prefix:?}");
    }
    assert_eq!(rig.beside.requests.lock().unwrap().len(), 0);
}

#[tokio::test]
async fn the_route_is_the_last_requests_and_members_of_the_question_lie_over_it() {
    let rig = beside(vec![text("1"), text("2"), text("3")]);
    // Before the first request, the one that the agent was given.
    rig.llm.ask("row", question("?")).await.unwrap();
    rig.run("prompt").await;
    let asked = Question {
        config: r#"{"provider":"q","reasoningEffort":"low","later":1}"#.to_owned(),
        ..question("?")
    };
    let answer = rig.llm.ask("row", asked).await.unwrap();
    let requests = rig.beside.requests.lock().unwrap().clone();
    let config = &requests[0].config;
    assert_eq!(
        (config.provider.as_str(), config.model.as_str()),
        ("p", "m")
    );
    assert_eq!(config.max_tokens, Some(9));
    let config = &requests[1].config;
    assert_eq!(
        (config.provider.as_str(), config.model.as_str()),
        ("q", "m")
    );
    assert_eq!(config.reasoning_effort.as_deref(), Some("low"));
    assert_eq!(config.more.as_deref(), Some(r#"{"later":1}"#));
    let ran = json(&answer.config);
    assert_eq!(ran.get("provider").and_then(Value::text).unwrap(), "q");
    for config in ["[]", "no", r#"{"maxTokens":"many"}"#] {
        let asked = Question {
            config: config.to_owned(),
            ..question("?")
        };
        let error = rig.llm.ask("row", asked).await.unwrap_err();
        assert_eq!(error.code, "INVALID", "{config}");
    }
}

#[tokio::test]
async fn what_follows_are_drafts_that_the_host_marks_as_the_rows_own() {
    let rig = beside(vec![text("1")]);
    let asked = Question {
        messages: vec![
            r#"{"id":"mine","source":{"kind":"user"},"content":[{"type":"text","text":"a"}]}"#
                .to_owned(),
            r#"{"role":"assistant","content":[{"type":"text","text":"b"}]}"#.to_owned(),
        ],
        ..question("")
    };
    rig.llm.ask("row", asked).await.unwrap();
    let messages = rig.beside.requests.lock().unwrap()[0].messages.clone();
    for (message, role) in messages.iter().zip(["user", "assistant"]) {
        let message = json(message);
        let source = message.get("source").unwrap();
        assert_eq!(source.as_str(), r#"{"kind":"plugin","plugin":"row"}"#);
        assert_eq!(message.get("role").and_then(Value::text).unwrap(), role);
        assert_eq!(message.get("id").unwrap().text().unwrap().len(), 36);
    }
    for draft in [
        "no",
        "{}",
        r#"{"role":"system","content":[]}"#,
        r#"{"role":"user","content":"text"}"#,
        r#"{"role":"user","content":[{"type":"tool-call"}]}"#,
    ] {
        let asked = Question {
            messages: vec![draft.to_owned()],
            ..question("")
        };
        let error = rig.llm.ask("row", asked).await.unwrap_err();
        assert_eq!(error.code, "INVALID", "{draft}");
    }
}

#[tokio::test]
async fn no_event_of_the_agents_is_raised_and_two_of_the_hosts_say_what_was_asked() {
    let rig = beside(vec![costing(10, 5)]);
    rig.llm.ask("row", question("why?")).await.unwrap();
    rig.assert(&[LLM_REQUEST, LLM_RESPONSE]);
    let asked = &of_kind(&rig, LLM_REQUEST)[0];
    assert!(asked.as_str().contains("why?") && asked.as_str().contains("be brief"));
    let came = &of_kind(&rig, LLM_RESPONSE)[0];
    assert_eq!(came.get("callId"), asked.get("callId"));
    assert_eq!(came.get("spent").unwrap().as_str(), r#"{"row":16}"#);
    let ignorable = rig.log.read(|session| {
        session
            .events_from(dsh_session::Seq(0))
            .all(|event| event.unwrap().ignorable)
    });
    assert!(ignorable);
}

#[tokio::test]
async fn whoever_logs_for_itself_appends_nothing_here() {
    let rig = beside(vec![text("1")]);
    let silent = rig.llm.unlogged().unwrap();
    silent.ask("row", question("?")).await.unwrap();
    rig.assert(&[]);
    assert!(rig.llm.spent("row") > 0);
}

#[tokio::test]
async fn what_was_spent_is_counted_by_row_and_known_after_a_resume() {
    let rig = beside(vec![costing(10, 5), text("no count"), costing(1, 1)]);
    rig.llm.ask("one", question("?")).await.unwrap();
    assert_eq!(rig.llm.spent("one"), 16);
    // Without a count, by the host's own measure.
    rig.llm.ask("two", question("?")).await.unwrap();
    let two = rig.llm.spent("two");
    assert!((5..50).contains(&two), "{two}");
    rig.llm.ask("one", question("?")).await.unwrap();
    assert_eq!((rig.llm.spent("one"), rig.llm.spent("three")), (19, 0));
    let again = Rig::new(Setup {
        session: Some(reopened(&rig)),
        ..Setup::default()
    });
    assert_eq!((again.llm.spent("one"), again.llm.spent("two")), (19, two));
}

#[tokio::test]
async fn a_failed_attempt_is_made_again_by_the_routes_policy_and_is_no_retry_of_a_step() {
    let rig = beside(vec![
        Say::Chunks(vec![usage(4, 0), error_finish("SERVER")]),
        Say::Chunks(vec![error_finish("RATE_LIMIT")]),
        costing(10, 5),
    ]);
    let asked = Question {
        config: r#"{"provider":"soon"}"#.to_owned(),
        ..question("?")
    };
    rig.llm.ask("row", asked).await.unwrap();
    assert_eq!(rig.beside.requests.lock().unwrap().len(), 3);
    rig.assert(&[LLM_REQUEST, LLM_RESPONSE]);
    // All attempts are charged.
    assert_eq!(rig.llm.spent("row"), 5 + 16);
    assert!(rig.disk.flushes.load(Ordering::Relaxed) >= 3);
}

#[tokio::test]
async fn a_failure_that_is_not_retried_has_the_code_of_the_model_call() {
    let broken = r#"{"type":"finish","reason":{"kind":"error","failure":{"message":"no","code":"AUTH","status":401,"requestId":"r"}}}"#;
    let rig = beside(vec![Say::Chunks(vec![broken.to_owned()])]);
    let error = rig.llm.ask("row", question("?")).await.unwrap_err();
    assert_eq!(
        (error.code.as_str(), error.message.as_str()),
        ("AUTH", "no")
    );
    assert_eq!(
        error.details.as_deref(),
        Some(r#"{"status":401,"requestId":"r"}"#)
    );
    let failure = of_kind(&rig, LLM_RESPONSE)[0]
        .get("failure")
        .unwrap()
        .to_json();
    assert_eq!(
        failure.as_str(),
        r#"{"code":"AUTH","message":"no","status":401,"requestId":"r"}"#
    );
}

#[tokio::test]
async fn a_question_that_cannot_be_made_durable_is_not_asked() {
    let rig = beside(vec![text("1")]);
    rig.disk.broken_from.store(1, Ordering::Relaxed);
    let error = rig.llm.ask("row", question("?")).await.unwrap_err();
    assert_eq!(error.code, "PERSISTENCE");
    assert_eq!(rig.beside.requests.lock().unwrap().len(), 0);
}

fn silence() -> Say {
    Say::Held(vec![], Arc::new(Semaphore::new(0)), vec![])
}

#[tokio::test]
async fn a_call_ends_when_its_time_is_over_and_leaves_the_adapter_in_order() {
    let rig = beside(vec![silence(), text("next")]);
    let asked = Question {
        timeout_ms: Some(50),
        ..question("?")
    };
    let error = rig.llm.ask("row", asked).await.unwrap_err();
    assert_eq!(error.code, "TIMEOUT");
    rig.llm.ask("row", question("?")).await.unwrap();
}

#[tokio::test]
async fn giving_up_a_question_ends_the_call_and_says_so_in_the_log() {
    let rig = beside(vec![silence()]);
    let mut asking = Box::pin(rig.llm.ask("row", question("?")));
    while rig.beside.requests.lock().unwrap().is_empty() {
        tokio::select! {
            biased;
            _ = &mut asking => panic!("nobody answers"),
            () = tokio::task::yield_now() => {}
        }
    }
    drop(asking);
    rig.until(LLM_RESPONSE).await;
    let came = &of_kind(&rig, LLM_RESPONSE)[0];
    assert!(came.as_str().contains("ABORTED"), "{came}");
}
