//! What an answer left behind, handed back: the messages of recorded answers in
//! the history of the next request.

use std::path::Path;

use adapter_support::GenerateRequest;
use adapter_support::bindings::exports::dsh::plugin::llm_adapter::Action;
use adapter_support::component::{Adapter, NoPictures};
use adapter_support::testing::generate;
use adapter_support::testing::warnings;
use serde_json::{Value, json};

use crate::Responses;

const ROOT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../tests/conformance/llm/openai-responses"
);

fn adapter() -> Adapter<Responses> {
    let profile = |model: &str| {
        json!({
            "baseURL": "http://127.0.0.1:1/v1", "api": "openai-responses", "apiKeyEnv": "KEY",
            "models": [
                {"id": model, "contextWindow": 65536, "maxTokens": 4096,
                 "reasoningEfforts": {"off": null, "low": "low"}},
                {"id": "other", "contextWindow": 65536, "maxTokens": 4096},
            ],
        })
    };
    let providers = json!({"acme-resp": profile("acme-r1"), "elsewhere": profile("acme-r1")});
    Adapter::new(&json!({"providers": providers}).to_string()).unwrap()
}

fn ask(provider: &str, model: &str, messages: &[Value]) -> GenerateRequest {
    generate(&json!({"provider": provider, "model": model, "messages": messages}))
}

/// The items of the request that would be sent.
fn input(provider: &str, model: &str, messages: &[Value]) -> Vec<Value> {
    let mut adapter = adapter();
    let attempt = adapter
        .open(&ask(provider, model, messages), &mut NoPictures)
        .unwrap();
    let Action::Send(request) = adapter.next(attempt).unwrap() else {
        panic!("sends")
    };
    let [adapter_support::Part::Bytes(body)] = &request.body[..] else {
        panic!("one piece")
    };
    let body: Value = serde_json::from_slice(body).unwrap();
    body["input"].as_array().unwrap().clone()
}

/// The message that the loop makes of a recorded answer.
fn answer(case: &str) -> Value {
    let body = std::fs::read(Path::new(ROOT).join(case).join("response.sse")).unwrap();
    let mut adapter = adapter();
    let attempt = adapter
        .open(&ask("acme-resp", "acme-r1", &[]), &mut NoPictures)
        .unwrap();
    adapter.head(attempt, 200, Vec::new());
    let chunks = adapter.body(attempt, &body);
    let chunks: Vec<Value> = chunks
        .iter()
        .map(|chunk| serde_json::from_str(chunk).unwrap())
        .collect();
    let of = |kind: &str| {
        chunks
            .iter()
            .filter(|chunk| chunk["type"] == kind)
            .cloned()
            .collect::<Vec<_>>()
    };
    let content: Vec<_> = of("block-end")
        .into_iter()
        .map(|chunk| chunk["block"].clone())
        .collect();
    json!({"role": "assistant", "content": content, "source": {
        "kind": "model", "provider": "acme-resp", "model": "acme-r1",
        "replayState": of("finish")[0]["replayState"],
    }})
}

fn hello() -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": "Hello"}], "source": {"kind": "user"}})
}

fn message(text: &str, id: &str) -> Value {
    json!({"type": "message", "role": "assistant", "status": "completed", "id": id,
        "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

#[test]
fn what_the_provider_said_goes_back_to_it_as_it_was() {
    let mut final_answer = message("Tin.", "msg_a");
    final_answer["phase"] = json!("final_answer");
    let sealed =
        json!({"type": "reasoning", "id": "rs_2", "summary": [], "encrypted_content": "LATE"});
    let thought = json!({"type": "reasoning", "id": "rs_1", "encrypted_content": "ZZZ",
        "summary": [{"type": "summary_text", "text": "Metals: tin"}]});
    let call = json!({"type": "function_call", "id": "fc_2", "call_id": "call_r", "name": "lookup",
        "arguments": "{\"term\":\"lead\"}"});
    let unanswered = json!({"type": "function_call_output", "call_id": "call_r", "output": "No result provided"});
    for (case, items) in [
        ("text-basic", vec![final_answer]),
        ("refusal", vec![message("No.", "msg_f")]),
        (
            "encrypted-content-backfill",
            vec![sealed, message("Zinc.", "msg_c")],
        ),
        (
            "reasoning-summary-then-text",
            vec![thought, message("Tin.", "msg_b")],
        ),
        ("arguments-only-in-done", vec![call, unanswered]),
    ] {
        let sent = input("acme-resp", "acme-r1", &[hello(), answer(case)]);
        assert_eq!(sent[1..], items, "{case}");
    }
}

#[test]
fn another_provider_or_model_gets_the_words_alone() {
    for (provider, model) in [("elsewhere", "acme-r1"), ("acme-resp", "other")] {
        let sent = |case: &str| input(provider, model, &[hello(), answer(case)])[1..].to_vec();
        assert_eq!(sent("text-basic"), [message("Tin.", "msg_pi_1")]);
        assert_eq!(
            sent("encrypted-content-backfill"),
            [message("Zinc.", "msg_pi_1")]
        );
        assert_eq!(
            sent("reasoning-summary-then-text"),
            [
                message("Metals: tin", "msg_pi_1"),
                message("Tin.", "msg_pi_1_1")
            ]
        );
        let call = &sent("arguments-only-in-done")[0];
        assert_eq!((&call["call_id"], call.get("id")), (&json!("call_r"), None));
    }
}

#[test]
fn a_damaged_replay_state_costs_the_message_its_signatures_and_no_more() {
    let whole = answer("reasoning-summary-then-text");
    let state = "/source/replayState";
    for (at, value) in [
        ("", Value::Null),
        ("", json!("x")),
        ("", json!([])),
        ("/response", Value::Null),
        ("/response", json!([])),
        ("/response/kind", json!("else")),
        ("/response/version", json!(1)),
        ("/response/version", json!("2")),
        ("/response/api", json!("")),
        ("/response/api", json!(7)),
        ("/response/provider", json!("elsewhere")),
        ("/response/provider", Value::Null),
        ("/response/model", json!("other")),
        ("/response/responseId", json!("")),
        ("/response/responseId", json!(4)),
        ("/response/stopReason", json!("later")),
        ("/response/stopReason", Value::Null),
        ("/blocks", Value::Null),
        ("/blocks", json!({})),
        ("/blocks", json!([])),
        ("/blocks", json!([{"type": "text"}, {"type": "text"}])),
        (
            "/blocks",
            json!([{"type": "reasoning"}, {"type": "text"}, {"type": "text"}]),
        ),
        ("/blocks/0", json!("x")),
        ("/blocks/0/type", json!("text")),
        ("/blocks/0/thinkingSignature", json!(1)),
        ("/blocks/1/textSignature", json!({})),
    ] {
        let mut damaged = whole.clone();
        *damaged.pointer_mut(&format!("{state}{at}")).unwrap() = value.clone();
        let sent = input("acme-resp", "acme-r1", &[hello(), damaged]);
        // None at all is no damage.
        let damage = usize::from(!at.is_empty() || !value.is_null());
        assert_eq!(warnings().len(), damage, "{at}: {value}");
        assert_eq!(
            sent[1..],
            [
                message("Metals: tin", "msg_pi_1"),
                message("Tin.", "msg_pi_1_1")
            ],
            "{at}: {value}"
        );
    }
}

#[test]
fn an_answer_that_broke_off_is_no_part_of_what_is_sent_back() {
    for stop in ["error", "aborted"] {
        let mut broken = answer("text-basic");
        *broken
            .pointer_mut("/source/replayState/response/stopReason")
            .unwrap() = json!(stop);
        assert_eq!(input("acme-resp", "acme-r1", &[hello(), broken]).len(), 1);
    }
}
