//! What servers really send, and what they might: each stream with what it must
//! give. A chunk is written in a line, so that a test reads as the conversation.

use adapter_support::emit::Target;
use serde_json::Value;

use super::*;

/// The chunks of these events, then of the end of the body.
fn chunks(events: &[&str]) -> Vec<Value> {
    let mut out = Emitter::new(Target {
        api: "openai-responses",
        provider: "p".to_owned(),
        model: "m".to_owned(),
        context_window: 100_000,
    });
    let mut stream = Stream::default();
    let ended = events
        .iter()
        .any(|event| !stream.take(None, event, &mut out));
    if !out.is_over() {
        assert!(!ended || events.iter().any(|event| event.contains("[DONE]")));
        out.fail("the stream ended before its end");
    }
    let chunks = out.take();
    chunks
        .iter()
        .map(|chunk| serde_json::from_str(chunk).unwrap_or_else(|why| panic!("{why}: {chunk}")))
        .collect()
}

fn line(chunk: &Value) -> String {
    let at = &chunk["index"];
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    match chunk["type"].as_str().unwrap() {
        "block-start" => format!("{at} {}", text(&chunk["blockType"])),
        "text-delta" | "reasoning-delta" => format!("{at}+ {}", text(&chunk["text"])),
        "tool-call-delta" => format!(
            "{at}+ {} {} {}",
            text(&chunk["id"]),
            text(&chunk["name"]),
            text(&chunk["argumentsDelta"])
        ),
        "block-end" => {
            let block = &chunk["block"];
            match block["type"].as_str().unwrap() {
                "tool-call" => format!(
                    "{at}. {} {} {}",
                    text(&block["id"]),
                    text(&block["name"]),
                    text(&block["arguments"])
                ),
                _ => format!("{at}. {}", text(&block["text"])),
            }
        }
        "usage" => {
            let of = |name: &str| chunk["usage"][name].as_u64().unwrap_or(0);
            format!(
                "usage {} {} {} {}",
                of("inputTokens"),
                of("outputTokens"),
                of("cacheReadTokens"),
                of("cacheWriteTokens")
            )
        }
        _ => match chunk["reason"].get("failure") {
            Some(failure) => format!("{} {}", text(&failure["code"]), text(&failure["message"])),
            None => text(&chunk["reason"]["kind"]),
        },
    }
}

fn play(events: &[&str]) -> Vec<String> {
    chunks(events).iter().map(line).collect()
}

/// The signatures of the blocks, in order.
fn signatures(events: &[&str]) -> Vec<Option<String>> {
    let chunks = chunks(events);
    let blocks = chunks.last().unwrap()["replayState"]["blocks"]
        .as_array()
        .unwrap()
        .clone();
    blocks
        .iter()
        .map(|block| {
            ["textSignature", "thinkingSignature", "thoughtSignature"]
                .iter()
                .find_map(|name| block.get(*name)?.as_str().map(str::to_owned))
        })
        .collect()
}

const COMPLETED: &str = r#"{"type":"response.completed","response":{"id":"r","status":"completed","usage":{"input_tokens":2,"output_tokens":1}}}"#;
const MESSAGE: &str = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"message","id":"msg_1","content":[]}}"#;
const TIN: &str =
    r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"Tin"}"#;
const MESSAGE_DONE: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":"Tin"}]}}"#;

#[test]
fn an_answer_needs_no_announcement_of_itself_nor_an_end_of_its_items() {
    assert_eq!(
        play(&[MESSAGE, TIN, COMPLETED]),
        ["0 text", "0+ Tin", "0. Tin", "usage 2 1 0 0", "stop"]
    );
}

#[test]
fn text_that_nobody_announced_opens_a_block() {
    let delta = r#"{"type":"response.output_text.delta","delta":"Ti"}"#;
    let more = r#"{"type":"response.output_text.delta","delta":"n"}"#;
    assert_eq!(
        play(&[delta, more, COMPLETED]),
        ["0 text", "0+ Ti", "0+ n", "0. Tin", "usage 2 1 0 0", "stop"]
    );
    let delta = r#"{"type":"response.reasoning_text.delta","output_index":4,"delta":"Hm"}"#;
    assert_eq!(
        play(&[delta, TIN, COMPLETED])[..4],
        ["0 reasoning", "0+ Hm", "1 text", "1+ Tin"]
    );
}

#[test]
fn an_item_that_only_its_end_tells_of_is_one_delta() {
    let call = r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\": 1}"}}"#;
    assert_eq!(
        play(&[MESSAGE_DONE, call, COMPLETED]),
        [
            "0 text",
            "0+ Tin",
            "0. Tin",
            "1 tool-call",
            "1+ c|fc_1 f {\"a\": 1}",
            "1. c|fc_1 f {\"a\":1}",
            "usage 2 1 0 0",
            "tool-calls"
        ]
    );
}

#[test]
fn reasoning_that_only_its_end_tells_of_is_one_delta() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[]}}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"text":"A"},{"text":"B"}]}}"#;
    assert_eq!(
        play(&[added, done, COMPLETED])[..3],
        ["0 reasoning", "0+ A\n\nB", "0. A\n\nB"]
    );
    let text = r#"{"type":"response.reasoning_summary_text.done","output_index":0,"item_id":"rs_1","text":"A"}"#;
    let part =
        r#"{"type":"response.reasoning_summary_part.done","output_index":0,"item_id":"rs_1"}"#;
    let second = r#"{"type":"response.reasoning_summary_text.done","output_index":0,"item_id":"rs_1","text":"B"}"#;
    assert_eq!(
        play(&[added, text, text, part, second, done, COMPLETED])[..5],
        ["0 reasoning", "0+ A", "0+ \n\n", "0+ B", "0. A\n\nB"]
    );
}

#[test]
fn reasoning_ends_with_its_summary_else_its_content_else_what_was_streamed() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":null}}"#;
    let delta = r#"{"type":"response.reasoning_text.delta","output_index":0,"item_id":"rs_1","delta":"raw"}"#;
    let part =
        r#"{"type":"response.reasoning_summary_part.done","output_index":0,"item_id":"rs_1"}"#;
    for (item, text) in [
        (r#","summary":[{"text":"s"}],"content":[{"text":"c"}]"#, "s"),
        (
            r#","summary":[],"content":[{"type":"reasoning_text","text":"c"},{"text":"d"}]"#,
            "c\n\nd",
        ),
        (r#","summary":null,"content":null"#, "raw"),
        ("", "raw"),
    ] {
        let done = format!(
            r#"{{"type":"response.output_item.done","output_index":0,"item":{{"type":"reasoning","id":"rs_1"{item}}}}}"#
        );
        let lines = play(&[added, delta, part, &done, COMPLETED]);
        assert_eq!(lines[3], format!("0. {text}"), "{item}");
    }
    // And one that never ends.
    assert_eq!(play(&[added, delta, part, COMPLETED])[3], "0. raw");
}

#[test]
fn a_done_text_is_not_told_twice_and_ends_nothing() {
    // Seen: a gateway that says after the first delta that the text is done.
    let done =
        r#"{"type":"response.output_text.done","output_index":0,"item_id":"msg_1","text":"Tin"}"#;
    let more = r#"{"type":"response.output_text.delta","output_index":0,"item_id":"msg_1","delta":"foil"}"#;
    assert_eq!(
        play(&[MESSAGE, TIN, done, more, COMPLETED])[..4],
        ["0 text", "0+ Tin", "0+ foil", "0. Tinfoil"]
    );
    assert_eq!(
        play(&[MESSAGE, done, done, COMPLETED])[..3],
        ["0 text", "0+ Tin", "0. Tin"]
    );
}

#[test]
fn arguments_come_in_deltas_or_whole_or_at_the_end() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":""}}"#;
    let delta = r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"a\":"}"#;
    let whole = r#"{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc_1","arguments":"{\"a\":\"\u00e9\"}"}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{\"a\":\"é\"}"}}"#;
    // The same letter, spelled in another way.
    let spelled = r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc_1","delta":"{\"a\":\"é"}"#;
    let spelled_first = "0+ c|fc_1 f {\"a\":\"é";
    let ends = "0. c|fc_1 f {\"a\":\"é\"}";
    let first = "0+ c|fc_1 f {\"a\":";
    for (events, deltas) in [
        (
            &[added, delta, whole, whole, done][..],
            &[first, "0+ c|fc_1 f \"é\"}"][..],
        ),
        (&[added, delta, whole], &[first, "0+ c|fc_1 f \"é\"}"]),
        (
            &[added, spelled, whole],
            &[spelled_first, "0+ c|fc_1 f \"}"],
        ),
        (&[added, delta, done], &[first]),
        (&[added, whole], &["0+ c|fc_1 f {\"a\":\"é\"}"]),
        (&[added, done], &["0+ c|fc_1 f {\"a\":\"é\"}"]),
    ] {
        let mut all = events.to_vec();
        all.push(COMPLETED);
        let mut expected = vec!["0 tool-call"];
        expected.extend(deltas);
        expected.extend([ends, "usage 2 1 0 0", "tool-calls"]);
        assert_eq!(play(&all), expected, "{events:?}");
    }
}

#[test]
fn whole_arguments_count_where_the_deltas_were_hidden() {
    // Seen: a provider whose deltas are ciphertext, whose ids change with each
    // event, and which tells the arguments only at the end.
    let events = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"reasoning","id":"AAA1","summary":[]}}"#,
        r#"{"type":"response.reasoning_summary_text.delta","output_index":0,"item_id":"AAA2","delta":"Hm"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"AAA3","summary":[{"text":"Hm"}],"encrypted_content":"E"}}"#,
        r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","id":"BBB1","call_id":"call_1","name":"f","arguments":""}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":1,"item_id":"BBB2","delta":"x9Zk","obfuscation":"q"}"#,
        r#"{"type":"response.function_call_arguments.done","output_index":1,"item_id":"BBB3","arguments":"{\"a\":1}"}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"BBB4","call_id":"call_1","name":"f","arguments":"{\"a\":1}"}}"#,
        r#"{"type":"response.completed","response":{"id":"CCC","output":[{"type":"reasoning","id":"AAA4","encrypted_content":"E"},{"type":"function_call","id":"BBB5","call_id":"call_1","name":"f","arguments":"{\"a\":1}"}]}}"#,
    ];
    assert_eq!(
        play(&events),
        [
            "0 reasoning",
            "0+ Hm",
            "0. Hm",
            "1 tool-call",
            "1+ call_1|BBB1 f x9Zk",
            "1. call_1|BBB1 f {\"a\":1}",
            "usage 0 0 0 0",
            "tool-calls"
        ]
    );
}

#[test]
fn a_message_that_was_never_begun_and_holds_nothing_is_no_block() {
    let empty = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","content":[{"type":"output_text","text":""}]}}"#;
    let call = r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"function_call","call_id":"c","name":"f"}}"#;
    assert_eq!(
        play(&[call, empty, COMPLETED]),
        ["0 tool-call", "0. c f {}", "usage 2 1 0 0", "tool-calls"]
    );
}

#[test]
fn what_comes_twice_or_late_changes_nothing() {
    let events = [
        MESSAGE,
        MESSAGE,
        TIN,
        MESSAGE_DONE,
        MESSAGE_DONE,
        TIN,
        COMPLETED,
        TIN,
    ];
    assert_eq!(
        play(&events),
        ["0 text", "0+ Tin", "0. Tin", "usage 2 1 0 0", "stop"]
    );
}

#[test]
fn unknown_events_and_items_are_passed_over() {
    let events = [
        r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"web_search_call","id":"ws_1","status":"in_progress"}}"#,
        r#"{"type":"response.web_search_call.searching","output_index":0,"item_id":"ws_1"}"#,
        r#"{"type":"response.output_text.delta","output_index":0,"item_id":"ws_1","delta":"no"}"#,
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"web_search_call","id":"ws_1","action":{"query":"tin"}}}"#,
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"custom_tool_call","id":"ctc","input":"x"}}"#,
        r#"{"type":"response.function_call_arguments.delta","output_index":7,"item_id":"fc_9","delta":"{}"}"#,
        r#"{"type":"response.output_text.annotation.added","output_index":2}"#,
        r#"{"type":"keepalive","sequence_number":4}"#,
        r#"{"type":"response.output_item.added","output_index":3}"#,
        r#"{"type":"response.output_text.delta","output_index":3,"delta":{"text":"no"}}"#,
        r#"{"type":7}"#,
        "{}",
        "[]",
        "null",
        "\"response.completed\"",
        MESSAGE_DONE,
        COMPLETED,
    ];
    assert_eq!(
        play(&events),
        ["0 text", "0+ Tin", "0. Tin", "usage 2 1 0 0", "stop"]
    );
}

#[test]
fn the_field_event_names_what_has_no_type() {
    let mut out = Emitter::new(Target {
        api: "openai-responses",
        provider: "p".to_owned(),
        model: "m".to_owned(),
        context_window: 1,
    });
    let mut stream = Stream::default();
    assert!(stream.take(
        Some("response.output_text.delta"),
        r#"{"delta":"a"}"#,
        &mut out
    ));
    assert!(!stream.take(Some("response.completed"), "{}", &mut out));
    assert_eq!(out.take().len(), 5);
}

#[test]
fn the_answer_s_own_list_fills_in_what_no_event_told() {
    let output = r#"[{"type":"reasoning","id":"rs_1","summary":[{"text":"Hm"}],"encrypted_content":"E"},{"type":"message","id":"msg_9","content":[{"text":"Tin"}]},{"type":"function_call","id":"fc_9","call_id":"c9","name":"f","arguments":{"a":1}}]"#;
    let inside =
        format!(r#"{{"type":"response.completed","response":{{"id":"r","output":{output}}}}}"#);
    assert_eq!(
        play(&[&inside]),
        [
            "0 reasoning",
            "0+ Hm",
            "0. Hm",
            "1 text",
            "1+ Tin",
            "1. Tin",
            "2 tool-call",
            "2+ c9|fc_9 f {\"a\":1}",
            "2. c9|fc_9 f {\"a\":1}",
            "usage 0 0 0 0",
            "tool-calls"
        ]
    );
    // Only what is missing in kind: ids are made anew there.
    assert_eq!(
        play(&[MESSAGE, TIN, &inside]),
        [
            "0 text",
            "0+ Tin",
            "1 tool-call",
            "1+ c9|fc_9 f {\"a\":1}",
            "1. c9|fc_9 f {\"a\":1}",
            "0. Tin",
            "usage 0 0 0 0",
            "tool-calls"
        ]
    );
    // Beside the event's type, where a gateway leaves `response` out.
    let beside = format!(r#"{{"type":"response.completed","output":{output}}}"#);
    assert_eq!(play(&[&beside]).last().unwrap(), "tool-calls");
}

#[test]
fn counts_are_disjoint_and_what_is_no_count_is_none() {
    for (usage, line) in [
        (
            r#"{"input_tokens":10,"output_tokens":3,"input_tokens_details":{"cached_tokens":4,"cache_write_tokens":1}}"#,
            "usage 5 3 4 1",
        ),
        (
            r#"{"input_tokens":10,"input_tokens_details":{"cached_tokens":40}}"#,
            "usage 0 0 40 0",
        ),
        (
            r#"{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":2}}"#,
            "usage 5 2 2 0",
        ),
        (
            r#"{"input_tokens":10000000000,"output_tokens":1}"#,
            "usage 10000000000 1 0 0",
        ),
        (
            r#"{"input_tokens":1e300,"output_tokens":-4}"#,
            "usage 0 0 0 0",
        ),
        (
            r#"{"input_tokens":"NaN","output_tokens":null,"input_tokens_details":[]}"#,
            "usage 0 0 0 0",
        ),
        ("null", "usage 0 0 0 0"),
        ("7", "usage 0 0 0 0"),
    ] {
        let end = format!(r#"{{"type":"response.incomplete","response":{{"usage":{usage}}}}}"#);
        let lines = play(&[MESSAGE, TIN, &end]);
        assert_eq!(lines[lines.len() - 2], line, "{usage}");
    }
}

#[test]
fn signatures_hold_what_the_provider_needs_back() {
    let events = [
        "{\"type\":\"response.output_item.done\",\"output_index\":0,\"item\":{ \"id\" : \"rs_1\",\n\"type\":\"reasoning\", \"summary\":[ {\"text\":\"a \\\"b  c\\\\\"} ]}}",
        r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","phase":"commentary","content":[{"text":"x"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"message","content":[{"text":"y"}]}}"#,
        r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}"}}"#,
        r#"{"type":"response.completed","response":{"output":[{"type":"reasoning","id":"rs_1","encrypted_content":"E=="}]}}"#,
    ];
    let some = |text: &str| Some(text.to_owned());
    assert_eq!(
        signatures(&events),
        [
            some(
                r#"{"id":"rs_1","type":"reasoning","summary":[{"text":"a \"b  c\\"}],"encrypted_content":"E=="}"#
            ),
            some(r#"{"v":1,"id":"msg_1","phase":"commentary"}"#),
            None,
            None,
        ]
    );
}

#[test]
fn encrypted_content_that_is_null_is_filled_in_once() {
    let events = [
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","encrypted_content":null,"summary":[{"text":"a"}]}}"#,
        r#"{"type":"response.completed","response":{"output":[{"type":"reasoning","id":"rs_1","encrypted_content":"E"},{"type":"reasoning","id":"rs_1","encrypted_content":"F"}]}}"#,
    ];
    assert_eq!(
        signatures(&events)[0].as_deref(),
        Some(
            r#"{"type":"reasoning","id":"rs_1","summary":[{"text":"a"}],"encrypted_content":"E"}"#
        )
    );
}

#[test]
fn a_surrogate_pair_that_two_deltas_share_is_whole_in_the_block() {
    let first = r#"{"type":"response.output_text.delta","output_index":0,"delta":"a\ud83e"}"#;
    let second = r#"{"type":"response.output_text.delta","output_index":0,"delta":"\udd80b"}"#;
    let mut out = Emitter::new(Target {
        api: "openai-responses",
        provider: "p".to_owned(),
        model: "m".to_owned(),
        context_window: 1,
    });
    let mut stream = Stream::default();
    for event in [MESSAGE, first, second, COMPLETED] {
        stream.take(None, event, &mut out);
    }
    let chunks = out.take();
    let end: Value = serde_json::from_str(&chunks[3]).unwrap();
    assert_eq!(end["block"]["text"], "a🦀b");
}

#[path = "stream_places_tests.rs"]
mod places;

#[path = "stream_ends_tests.rs"]
mod ends;
