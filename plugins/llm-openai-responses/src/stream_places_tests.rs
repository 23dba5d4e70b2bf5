//! Which item an event is of: by its place, where servers give each its own, else by its id.

use super::*;

#[test]
fn a_server_without_places_is_read_by_its_ids() {
    // As llama.cpp sends it: no output_index, no id on calls, a call's id as item_id.
    let events = [
        r#"{"type":"response.output_item.added","item":{"type":"reasoning","id":"rs_1","summary":[],"content":[],"encrypted_content":"","status":"in_progress"}}"#,
        r#"{"type":"response.reasoning_text.delta","item_id":"rs_1","delta":"Hm"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"message","id":"msg_1","content":[]}}"#,
        r#"{"type":"response.output_text.delta","item_id":"msg_1","delta":"Tin"}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"fc_a","name":"f","arguments":"","status":"in_progress"}}"#,
        r#"{"type":"response.output_item.added","item":{"type":"function_call","call_id":"fc_b","name":"g","arguments":"","status":"in_progress"}}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_a","delta":"{}"}"#,
        r#"{"type":"response.function_call_arguments.delta","item_id":"fc_b","delta":"{\"x\":1}"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"Hm"}]}}"#,
        r#"{"type":"response.output_text.done","item_id":"msg_1","text":"Tin"}"#,
        r#"{"type":"response.output_item.done","item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Tin"}]}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"fc_a","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.output_item.done","item":{"type":"function_call","call_id":"fc_b","name":"g","arguments":"{\"x\":1}"}}"#,
        COMPLETED,
    ];
    let ends: Vec<_> = play(&events)
        .into_iter()
        .filter(|line| line.contains(". ") || line.starts_with("tool"))
        .collect();
    assert_eq!(
        ends,
        [
            "0. Hm",
            "1. Tin",
            "2. fc_a f {}",
            "3. fc_b g {\"x\":1}",
            "tool-calls"
        ]
    );
}

#[test]
fn a_gateway_that_gives_every_item_place_0_is_read_by_its_ids() {
    // As litellm sends a reasoning model: the message is never announced.
    let events = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":null}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"rs_1","delta":"Hm"}"#,
        r#"{"type":"response.reasoning_summary_text.done","output_index":0,"item_id":"rs_1","text":"Hm"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"Hm"}]}}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"Ti"}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"n"}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"call_1","call_id":"call_1","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"call_1","delta":"{}"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"call_1","call_id":"call_1","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.output_text.done","output_index":0,"item_id":"msg_1","text":"Tin"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Tin"}]}}"#,
        COMPLETED,
        "[DONE]",
    ];
    assert_eq!(
        play(&events),
        [
            "0 reasoning",
            "0+ Hm",
            "0. Hm",
            "1 text",
            "1+ Ti",
            "1+ n",
            "2 tool-call",
            "2+ call_1|call_1 f {}",
            "2. call_1|call_1 f {}",
            "1. Tin",
            "usage 2 1 0 0",
            "tool-calls"
        ]
    );
}

#[test]
fn an_end_with_a_place_that_another_item_has_leaves_that_one_open() {
    // As LocalAI sends reasoning: at its end only, at the message's place.
    let reasoning = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"reasoning_1","summary":[],"arguments":"","content":[{"type":"output_text","text":"Hm"}]}}"#;
    assert_eq!(
        play(&[MESSAGE, TIN, reasoning, TIN, MESSAGE_DONE, COMPLETED]),
        [
            "0 text",
            "0+ Tin",
            "1 reasoning",
            "1+ Hm",
            "1. Hm",
            "0+ Tin",
            "0. Tin",
            "usage 2 1 0 0",
            "stop"
        ]
    );
}

#[test]
fn a_place_stays_that_of_the_item_which_is_open_there() {
    let reasoning = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","summary":[{"text":"Hm"}]}}"#;
    let foil = r#"{"type":"response.output_text.delta","output_index":0,"delta":"foil"}"#;
    assert_eq!(
        play(&[MESSAGE, TIN, reasoning, foil, COMPLETED])[5..7],
        ["0+ foil", "0. Tinfoil"]
    );
}

#[test]
fn items_that_share_a_place_are_told_apart_by_their_ids() {
    let added = |id: &str| {
        format!(
            r#"{{"type":"response.output_item.added","output_index":0,"item":{{"type":"function_call","id":"{id}","call_id":"c_{id}","name":"f"}}}}"#
        )
    };
    let delta = |id: &str, delta: &str| {
        format!(
            r#"{{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"{id}","delta":"{delta}"}}"#
        )
    };
    let events = [
        added("a"),
        added("b"),
        delta("a", "[1"),
        delta("b", "[2"),
        delta("c_a", "]"),
        delta("b", "]"),
    ];
    let mut events: Vec<&str> = events.iter().map(String::as_str).collect();
    events.push(COMPLETED);
    assert_eq!(play(&events)[6..8], ["0. c_a|a f [1]", "1. c_b|b f [2]"]);
}

#[test]
fn one_id_for_all_items_is_no_id() {
    let events = [
        MESSAGE,
        TIN,
        MESSAGE_DONE,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","content":[]}}"#,
        r#"{"type":"response.output_text.delta","output_index":1,"item_id":"msg_1","delta":"Lead"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","content":[{"text":"Lead"}]}}"#,
        COMPLETED,
    ];
    assert_eq!(
        play(&events)[..6],
        ["0 text", "0+ Tin", "0. Tin", "1 text", "1+ Lead", "1. Lead"]
    );
}
