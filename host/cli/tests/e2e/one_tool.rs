//! A run with one tool call against the provider, and what is left of it.

use std::process::Command;

use dsh_session::{Event, Kind, Seq, SurfaceOp};
use mock_provider::Mock;
use serde_json::{Value, json};

use crate::support::{Record, Scratch, data, kinds, kinds_with_one_chunk, say};

/// Tells the other process which sessions to read.
const SESSIONS: &str = "DSH_E2E_SESSIONS";

fn run(scratch: &Scratch) -> (Mock, Record) {
    let mock = Mock::start(vec![
        say("").thinking("Let me see.").bash("echo hi").answer(),
        say("Done it.").answer(),
    ]);
    scratch
        .dsh()
        .provider(&mock)
        .headless()
        .args(["Run", "it"])
        .run()
        .answered("Done it.");
    (mock, scratch.record())
}

/// spec/loop.md §3, with the facts that a new session pins before it (spec/cli.md §4).
#[test]
fn writes_exactly_the_event_order_of_a_turn_with_tools() {
    let scratch = Scratch::new();
    let (_mock, log) = run(&scratch);
    let mut kinds = kinds_with_one_chunk(log.events());
    // A model's title comes when it comes, or not at all where the run was faster.
    let mut titles = 0;
    kinds.retain(|kind| {
        titles += usize::from(*kind == "session/title");
        *kind != "session/title" || titles == 1
    });
    assert_eq!(
        kinds,
        [
            "permission/preset",
            "sandbox/mode",
            "approval/policy",
            "agent/inbox/spliced",
            "turn/start",
            "agent/inbox/spliced",
            "step/start",
            "user/message",
            "user/message",
            "session/title",
            "request/header",
            "request/context",
            "session/title-llm-request",
            "assistant/chunk",
            "assistant/message",
            "tool/call",
            "tool/result",
            "step/end",
            "step/start",
            "assistant/chunk",
            "assistant/message",
            "step/end",
            "turn/end",
        ]
    );
    let dense: Vec<u64> = (0..log.events().len() as u64).collect();
    let seqs: Vec<u64> = log.events().iter().map(|event| event.seq.0).collect();
    assert_eq!(seqs, dense);
    let inspection = &log.inspection;
    assert!(inspection.torn.is_none() && inspection.closers.is_empty() && inspection.migrated == 0);
}

#[test]
fn every_event_says_what_it_was_made_of() {
    let scratch = Scratch::new();
    let (_mock, log) = run(&scratch);
    let surface = [Kind::UserMessage, Kind::AssistantMessage, Kind::ToolResult];
    for event in log.events() {
        let expected = surface.contains(&event.kind).then_some(SurfaceOp::Append);
        assert_eq!(event.surface_op, expected, "{event:?}");
        assert!(!event.ignorable, "{event:?}");
    }

    let people: Vec<Value> = log
        .of(&Kind::UserMessage)
        .into_iter()
        .map(|event| data(event)["source"].clone())
        .collect();
    assert_eq!(people[0], json!({"kind": "user"}));
    assert_eq!(people[1]["kind"], "plugin");
    assert_eq!(people[1]["form"], "snapshot");

    for (message, step) in log.of(&Kind::AssistantMessage).into_iter().zip(1..) {
        let source = &data(message)["message"]["source"];
        assert_eq!(source["provider"], "deepseek-official");
        assert_eq!(source["model"], "deepseek-v4-flash");
        let chunks: Vec<Seq> = log
            .of(&Kind::AssistantChunk)
            .into_iter()
            .filter(|chunk| data(chunk)["step"] == step)
            .map(|chunk| chunk.seq)
            .collect();
        assert!(!chunks.is_empty());
        assert_eq!(sources(message), chunks);
    }

    let (calls, results) = (log.of(&Kind::ToolCall), log.of(&Kind::ToolResult));
    let (call, result) = (calls[0], results[0]);
    assert_eq!(sources(result), [call.seq]);
    let (call, result) = (data(call), data(result));
    assert_eq!(call["name"], "bash");
    assert!(call["arguments"].as_str().unwrap().contains("echo hi"));
    assert_eq!(
        result["message"]["source"],
        json!({"kind": "tool", "callId": call["callId"]})
    );
    assert_eq!(
        result["message"]["content"][0]["toolCallId"],
        call["callId"]
    );
    assert!(log.results()[0].0.contains("hi"));
}

fn sources(event: &Event) -> Vec<Seq> {
    event
        .source_event_seqs
        .as_deref()
        .unwrap_or_default()
        .to_vec()
}

/// Model-visible means logged: what the provider got is what the log derives.
#[test]
fn the_second_request_carries_the_tools_result() {
    let scratch = Scratch::new();
    let (mock, log) = run(&scratch);
    let requests = mock.requests();
    let bodies: Vec<Value> = requests
        .iter()
        .map(|request| serde_json::from_slice(&request.body).unwrap())
        .collect();
    assert_eq!(bodies.len(), 2);
    let roles = |body: &Value| -> Vec<String> {
        let messages = body["messages"].as_array().unwrap();
        messages
            .iter()
            .map(|message| message["role"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(roles(&bodies[0]), ["system", "user", "user"]);
    assert_eq!(
        roles(&bodies[1]),
        ["system", "user", "user", "assistant", "tool"]
    );
    assert_eq!(bodies[0]["messages"][1]["content"], "Run it");
    assert!(
        bodies[1]["messages"][4]["content"]
            .as_str()
            .unwrap()
            .contains("hi")
    );
    assert_eq!(requests[0].header("authorization"), Some("Bearer sk-e2e"));
    // The key goes to the provider and nowhere else.
    assert!(
        log.events()
            .iter()
            .all(|event| !event.line().contains("sk-e2e"))
    );
}

#[test]
fn another_process_lists_and_loads_the_session() {
    let scratch = Scratch::new();
    let (_mock, log) = run(&scratch);
    let output = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "one_tool::child_lists_and_loads",
            "--ignored",
            "--nocapture",
        ])
        .env(SESSIONS, scratch.sessions())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let read = said
        .lines()
        .find_map(|line| line.split_once("READ "))
        .expect("it tells what it read");
    let read: Value = serde_json::from_str(read.1).unwrap();
    assert_eq!(read["cwd"], scratch.work().to_str().unwrap());
    assert!(read["id"].as_str().unwrap().starts_with("session-"));
    assert_eq!(read["kinds"], json!(kinds(log.events())));
    assert_eq!(read["inTurn"], false);
    assert_eq!(read["messages"], 5);
}

#[test]
#[ignore = "the other process of another_process_lists_and_loads_the_session"]
fn child_lists_and_loads() {
    let Some(sessions) = std::env::var_os(SESSIONS) else {
        return;
    };
    let store = dsh_store::Store::open(dsh_store::StoreConfig::new(sessions)).unwrap();
    let listed = store.list().unwrap();
    let id = listed[0].id().unwrap();
    let stored = store
        .inspect(&dsh_store::Target::Id(id.to_string()))
        .unwrap();
    // Nobody else writes it, so it can be taken up.
    let (mut session, _writer) = store.resume(&id, 0).unwrap();
    let read = json!({
        "id": *id,
        "cwd": session.header().cwd.as_deref(),
        "kinds": kinds(&stored.log.to_vec().unwrap()),
        "inTurn": session.in_turn(),
        "messages": session.messages().unwrap().iter().count(),
    });
    println!("READ {read}");
}
