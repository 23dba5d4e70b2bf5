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

fn usage(seq: u64, step: u64, input: f64, output: u64) -> String {
    let usage = json!({"inputTokens": input, "outputTokens": output, "cacheReadTokens": 3});
    event(
        seq,
        "assistant/chunk",
        json!({"turn": 1, "step": step, "chunk": {"type": "usage", "usage": usage}}),
    )
}

fn message(seq: u64, step: u64, input: u64) -> String {
    event(
        seq,
        "assistant/message",
        json!({"turn": 1, "step": step, "message": {}, "usage": {"inputTokens": input}}),
    )
}

#[test]
fn of_a_steps_samples_the_last_one_counts() {
    let text = event(
        1,
        "assistant/chunk",
        json!({"turn": 1, "step": 1, "chunk": {"type": "text-delta", "index": 0, "text": "usage"}}),
    );
    let events = [
        usage(0, 1, 10.0, 1),
        text,
        usage(2, 1, 10.0, 5),
        message(3, 1, 11),
        usage(4, 2, 100.5, 2),
    ];
    assert_eq!(
        view(&events),
        json!({"uncachedInputTokens": 111.5, "outputTokens": 2, "cacheReadTokens": 3, "cacheWriteTokens": 0})
    );
}

#[test]
fn an_answer_without_a_count_changes_nothing() {
    let silent = event(
        1,
        "assistant/message",
        json!({"turn": 1, "step": 1, "message": {"usage": {"inputTokens": 9}}, "usage": null}),
    );
    assert_eq!(
        fold(None, &[usage(0, 1, 1.0, 1), silent]),
        fold(None, &[usage(0, 1, 1.0, 1)])
    );
}
