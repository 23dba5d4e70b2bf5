//! From one answer to the next request: what the adapter wrote as replay state is
//! what it reads, and one that fits no more costs its message the signatures and
//! never the call (spec/llm.md §7.3, §7.4).

use serde_json::{Value, json};

use super::tests::{answer, message, messages, result, unmarked, user};

/// An answer with everything that a provider wants back.
const STREAM: &str = r#"event: message_start
data: {"type":"message_start","message":{"id":"msg_9","usage":{"input_tokens":1,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"thinking_delta","thinking":"Hm \"é\""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"Sig+/=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: content_block_start
data: {"type":"content_block_start","index":1,"content_block":{"type":"redacted_thinking","data":"Data=="}}

event: content_block_stop
data: {"type":"content_block_stop","index":1}

event: content_block_start
data: {"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"So."}}

event: content_block_stop
data: {"type":"content_block_stop","index":2}

event: content_block_start
data: {"type":"content_block_start","index":3,"content_block":{"type":"tool_use","id":"toolu.1","name":"look","input":{}}}

event: content_block_delta
data: {"type":"content_block_delta","index":3,"delta":{"type":"input_json_delta","partial_json":"{\"b\": 1}"}}

event: content_block_stop
data: {"type":"content_block_stop","index":3}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}

event: message_stop
data: {"type":"message_stop"}

"#;

/// The message that the host makes of an answer: its blocks, and its replay state.
fn assembled(provider: &str, model: &str) -> Value {
    let chunks = answer(&unmarked(), STREAM.as_bytes());
    let blocks: Vec<_> = chunks
        .iter()
        .filter(|chunk| chunk["type"] == "block-end")
        .map(|chunk| chunk["block"].clone())
        .collect();
    assert_eq!(blocks.len(), 4);
    let replay = &chunks.last().unwrap()["replayState"];
    assert!(replay.is_object());
    let source =
        json!({"kind": "model", "provider": provider, "model": model, "replayState": replay});
    message("assistant", &source, &json!(blocks))
}

/// What the next request says of this answer.
fn again(answer: Value) -> Value {
    let history = [user("a"), answer, result("toolu.1", "1", false)];
    let mut sent = messages(&unmarked(), &history);
    assert_eq!(sent[0]["content"], "a");
    assert_eq!(
        sent[2]["content"][0]["tool_use_id"],
        sent[1]["content"].as_array().unwrap().last().unwrap()["id"]
    );
    sent[1]["content"].take()
}

fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn used(id: &str) -> Value {
    json!({"type": "tool_use", "id": id, "name": "look", "input": {"b": 1}})
}

/// As of another model: no signature, no id that could be refused.
fn degraded() -> Value {
    json!([
        said("Hm \"é\""),
        said("[Reasoning redacted]"),
        said("So."),
        used("toolu_1")
    ])
}

#[test]
fn the_next_request_has_what_the_provider_needs_back() {
    assert_eq!(
        again(assembled("p", "m")),
        json!([
            {"type": "thinking", "thinking": "Hm \"é\"", "signature": "Sig+/=="},
            {"type": "redacted_thinking", "data": "Data=="},
            said("So."),
            used("toolu.1"),
        ])
    );
}

#[test]
fn another_providers_or_models_answer_is_plain_text() {
    for (provider, model) in [("q", "m"), ("p", "n")] {
        let mut answer = assembled(provider, model);
        let response = &mut answer["source"]["replayState"]["response"];
        response["provider"] = json!(provider);
        response["model"] = json!(model);
        // Redacted reasoning is of use to its own model alone.
        assert_eq!(
            again(answer),
            json!([said("Hm \"é\""), said("So."), used("toolu_1")])
        );
    }
    // The same model through another protocol.
    let mut answer = assembled("p", "m");
    answer["source"]["replayState"]["response"]["api"] = json!("openai-responses");
    let sent = again(answer);
    assert!(!sent.to_string().contains("Sig"), "{sent}");
}

#[test]
fn an_answer_whose_replay_state_was_taken_away_is_plain_text() {
    let mut answer = assembled("p", "m");
    answer["source"]
        .as_object_mut()
        .unwrap()
        .remove("replayState");
    assert_eq!(again(answer), degraded());
}

#[test]
fn a_damaged_replay_state_costs_the_signatures_and_not_the_call() {
    let damages = [
        ("", json!("x")),
        ("", json!([])),
        ("/response", json!(null)),
        ("/response", json!(7)),
        ("/response/kind", json!("other")),
        ("/response/version", json!(1)),
        ("/response/version", json!("2")),
        ("/response/api", json!("")),
        ("/response/api", json!(1)),
        ("/response/provider", json!("q")),
        ("/response/provider", json!(null)),
        ("/response/model", json!("n")),
        ("/response/responseId", json!("")),
        ("/response/responseId", json!(5)),
        ("/response/stopReason", json!("tired")),
        ("/response/stopReason", json!(null)),
        ("/blocks", json!(null)),
        ("/blocks", json!({})),
        ("/blocks", json!([])),
        ("/blocks/3", json!(null)),
        ("/blocks/0/type", json!("text")),
        ("/blocks/0/type", json!("novel")),
        ("/blocks/0/thinkingSignature", json!(7)),
        ("/blocks/1/redacted", json!("yes")),
        ("/blocks/2/type", json!("reasoning")),
        ("/blocks/3/type", json!(1)),
    ];
    for (at, wrong) in damages {
        let mut answer = assembled("p", "m");
        let place = answer["source"]["replayState"].pointer_mut(at).unwrap();
        *place = wrong.clone();
        assert_eq!(again(answer), degraded(), "{at} {wrong}");
        let told = adapter_support::testing::warnings();
        assert_eq!(told.len(), 1, "{at} {wrong}: {told:?}");
    }
    let mut longer = assembled("p", "m");
    let blocks = longer["source"]["replayState"]["blocks"]
        .as_array_mut()
        .unwrap();
    blocks.push(json!({"type": "text"}));
    assert_eq!(again(longer), degraded());
}

#[test]
fn redacted_reasoning_without_its_data_is_left_out() {
    let mut answer = assembled("p", "m");
    let entry = &mut answer["source"]["replayState"]["blocks"][1];
    entry.as_object_mut().unwrap().remove("thinkingSignature");
    let sent = again(answer);
    assert_eq!(sent[1], said("So."));
}

#[test]
fn an_interrupted_answer_goes_on_as_text() {
    let source = json!({"kind": "model", "provider": "p", "model": "m"});
    let partial = message(
        "assistant",
        &source,
        &json!([{"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "So"}]),
    );
    let sent = messages(&unmarked(), &[user("a"), partial, user("go on")]);
    assert_eq!(sent[1]["content"], json!([said("Hm"), said("So")]));
}
