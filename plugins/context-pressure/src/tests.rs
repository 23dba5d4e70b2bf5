use serde_json::{Value, json};

use super::*;

fn event(seq: u64, kind: &str, data: Value) -> String {
    json!({"type": kind, "seq": seq, "time": 1000 + 10 * seq, "data": data}).to_string()
}

fn fold(state: Option<String>, events: &[String]) -> String {
    Component::fold(KEY.to_owned(), state, events.to_vec()).unwrap()
}

/// The view, the same wherever the events are cut.
fn view(events: &[String]) -> Value {
    let whole = fold(None, events);
    for at in 0..=events.len() {
        let first = fold(None, &events[..at]);
        assert_eq!(fold(Some(first), &events[at..]), whole, "cut at {at}");
    }
    let view = Component::view(KEY.to_owned(), whole).unwrap();
    serde_json::from_str(&view).unwrap()
}

#[test]
fn a_state_of_another_shape_is_refused() {
    for state in ["null", "{}", "[]", "7", "\"\""] {
        let error = Component::fold(KEY.to_owned(), Some(state.to_owned()), vec![]).unwrap_err();
        assert_eq!(error.code, "INVALID", "{state}");
    }
}

/// An event of the surface; `op` is `"append"` or a replacement.
fn surface(seq: u64, kind: &str, data: Value, op: Value) -> String {
    json!({"type": kind, "seq": seq, "time": seq, "data": data, "sourceEventSeqs": [], "surfaceOp": op}).to_string()
}

fn user(seq: u64, text: &str, op: Value) -> String {
    surface(
        seq,
        "user/message",
        json!({"content": [{"type": "text", "text": text}], "role": "user", "id": "u"}),
        op,
    )
}

fn summary(seq: u64, start: u64, end: u64, tokens: u64) -> String {
    let data = json!({"shadowedRange": {"start": start, "end": end}, "shadowedTokenCount": tokens, "content": []});
    event(seq, "compaction/summary", data)
}

fn replace(start: u64, end: u64) -> Value {
    json!({"op": "replace", "start": start, "end": end})
}

fn append() -> Value {
    json!("append")
}

#[test]
fn the_newest_count_is_projected_by_what_came_to_the_surface_since() {
    let window = event(
        0,
        "request/context",
        json!({"provider": "p", "model": "m", "contextWindow": 1000}),
    );
    let sample = json!({"turn": 1, "step": 1, "chunk": {"type": "usage", "usage": {"inputTokens": 100, "cacheReadTokens": 20, "outputTokens": 9}}});
    let events = [
        window,
        user(1, "12345678", append()),
        event(2, "assistant/chunk", sample),
        user(3, "1234", append()),
    ];
    assert_eq!(
        view(&events),
        json!({"pressureTokens": 120, "projectedTokens": 129, "contextWindow": 1000})
    );
    let state: Value = serde_json::from_str(&fold(None, &events)).unwrap();
    assert_eq!(
        state,
        json!({"surfaceTokens": 19, "contextWindow": 1000, "pressureTokens": 120, "sampledSurfaceTokens": 10})
    );
    let unknown = event(4, "request/context", json!({"provider": "p", "model": "m"}));
    let events = [&events[..], &[unknown]].concat();
    assert_eq!(
        view(&events),
        json!({"pressureTokens": 120, "projectedTokens": 129})
    );
}

fn surface_tokens(events: &[String]) -> u64 {
    view(events);
    let state: Value = serde_json::from_str(&fold(None, events)).unwrap();
    state["surfaceTokens"].as_u64().unwrap()
}

#[test]
fn a_price_is_good_for_the_next_event_and_no_other() {
    let text = "x".repeat(400);
    let begin = [user(0, &text, append()), user(1, &text, append())];
    let whole = surface_tokens(&begin);
    assert_eq!(whole, 216);
    let priced = [
        &begin[..],
        &[summary(2, 0, 1, 216), user(3, "1234", replace(0, 1))],
    ]
    .concat();
    assert_eq!(surface_tokens(&priced), 9);
    let between = event(3, "agent/inbox/spliced", json!({}));
    let late = [
        &begin[..],
        &[
            summary(2, 0, 1, 216),
            between,
            user(4, "1234", replace(0, 1)),
        ],
    ]
    .concat();
    assert_eq!(
        surface_tokens(&late),
        whole,
        "nobody says what was replaced"
    );
}

#[test]
fn a_price_of_another_range_leaves_the_log_without_a_value() {
    let events = [
        user(0, "a", append()),
        summary(1, 0, 7, 5),
        user(2, "b", replace(0, 0)),
    ];
    let error = Component::fold(KEY.to_owned(), None, events.to_vec()).unwrap_err();
    assert_eq!(error.code, "TOKEN_SURFACE");
    assert!(
        error.message.contains("event 2 replaces 0 to 0"),
        "{}",
        error.message
    );
}

#[test]
fn blocks_are_priced_by_what_the_model_is_sent() {
    let price = |kind: &str, content: Value| {
        let data = if kind == "user/message" {
            json!({"content": content})
        } else {
            json!({"message": {"content": content}})
        };
        surface_tokens(&[surface(0, kind, data, append())])
    };
    assert_eq!(price("user/message", json!([])), 4);
    assert_eq!(
        price("assistant/message", json!([])),
        0,
        "which the model is not shown"
    );
    assert_eq!(
        price(
            "assistant/message",
            json!([{"type": "reasoning", "text": "12345"}])
        ),
        4 + 4 + 2
    );
    let call = json!([{"type": "tool-call", "id": "c", "name": "bash", "arguments": "{\"a\":1}"}]);
    assert_eq!(price("assistant/message", call), 4 + 4 + 1 + 2);
    let nested = json!([{"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": "12345678"}]}]);
    assert_eq!(price("tool/result", nested), 4 + 4 + 4 + 2);
    let image = json!([{"type": "image", "attachment": "0123456789"}]);
    let length = image[0].to_string().len() as u64;
    assert_eq!(price("user/message", image), 4 + 4 + length.div_ceil(4));
}
