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

fn chunk(seq: u64, chunk: Value) -> String {
    event(
        seq,
        "assistant/chunk",
        json!({"turn": 1, "step": 1, "chunk": chunk}),
    )
}

fn step() -> Vec<String> {
    let place = json!({"turn": 1, "step": 1});
    vec![
        event(0, "step/start", place.clone()),
        chunk(
            1,
            json!({"type": "block-start", "index": 0, "blockType": "text"}),
        ),
        chunk(2, json!({"type": "text-delta", "index": 0, "text": ""})),
        chunk(3, json!({"type": "text-delta", "index": 0, "text": "a"})),
        chunk(4, json!({"type": "text-delta", "index": 0, "text": "b"})),
        event(
            5,
            "assistant/message",
            json!({"turn": 1, "step": 1, "message": {}, "usage": {"outputTokens": 7}}),
        ),
        event(
            6,
            "tool/call",
            json!({"turn": 1, "step": 1, "callId": "c\"1", "name": "x", "arguments": "{}"}),
        ),
        event(
            7,
            "tool/call",
            json!({"turn": 1, "step": 1, "callId": "c2", "name": "x", "arguments": "{}"}),
        ),
        event(
            9,
            "tool/result",
            json!({"turn": 1, "step": 1, "message": {"source": {"kind": "tool", "callId": "c\"1"}, "content": []}}),
        ),
        event(10, "step/end", place),
        event(
            11,
            "turn/end",
            json!({"turn": 1, "reason": {"kind": "completed"}}),
        ),
    ]
}

#[test]
fn a_step_is_timed_from_its_start_over_its_first_token_to_its_message() {
    assert_eq!(
        view(&step()),
        json!({"turns": 1, "steps": 1, "llmMs": 50, "toolMs": 30, "ttftMs": 30, "ttftSteps": 1, "decodeMs": 20, "decodeTokens": 7})
    );
}

#[test]
fn calls_wait_for_their_result_until_the_turn_ends() {
    let state: Value = serde_json::from_str(&fold(None, &step()[..10])).unwrap();
    assert_eq!(state["pendingCalls"], json!({"c2": 1070}));
    let state: Value = serde_json::from_str(&fold(None, &step())).unwrap();
    assert_eq!(state["pendingCalls"], json!({}));
}

#[test]
fn what_belongs_to_another_step_is_not_counted() {
    let mut events = step();
    events[5] = event(
        5,
        "assistant/message",
        json!({"turn": 1, "step": 2, "message": {}}),
    );
    let view = view(&events);
    assert_eq!(
        (&view["llmMs"], &view["decodeTokens"]),
        (&json!(0), &json!(0))
    );
}

#[test]
fn the_name_of_a_call_is_a_first_token_and_a_clock_that_went_back_counts_nothing() {
    let mut events = step();
    events[3] = chunk(
        3,
        json!({"type": "tool-call-delta", "index": 0, "id": "c", "name": "", "argumentsDelta": ""}),
    );
    assert_eq!(view(&events)["ttftMs"], 30);
    events[5] = events[5].replace("1050", "5");
    let view = view(&events);
    assert_eq!((&view["llmMs"], &view["decodeMs"]), (&json!(0), &json!(0)));
}
