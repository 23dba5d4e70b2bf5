//! What the protocol allows and the recorded cases do not have: each stream with
//! what it must give. What servers make of it is in `accent_tests`.

use adapter_support::emit::Target;
use adapter_support::{Emitter, sse};
use serde_json::{Value, json};

use super::*;

/// The chunks of these bytes, which are the same however they are cut.
pub(super) fn play(body: &[u8]) -> Vec<Value> {
    let whole = play_in(std::iter::once(body));
    if body.len() < 10_000 {
        for size in [1, 13] {
            assert_eq!(play_in(body.chunks(size)), whole, "in pieces of {size}");
        }
    }
    whole
        .iter()
        .map(|chunk| serde_json::from_str(chunk).expect(chunk))
        .collect()
}

fn play_in<'a>(pieces: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let mut out = Emitter::new(Target {
        api: "anthropic-messages",
        provider: "p".to_owned(),
        model: "m".to_owned(),
        context_window: 200_000,
    });
    let mut stream = Stream::default();
    let mut events = sse::Events::default();
    let mut on = true;
    for piece in pieces {
        if on {
            events.push(piece, |event| {
                on = stream.event(event, &mut out);
                on
            });
        }
    }
    if on {
        events.flush(|event| stream.event(event, &mut out));
    }
    if !out.is_over() {
        stream.end(&mut out);
    }
    out.take()
}

/// Events with the names that their `type` says.
pub(super) fn events(events: &[Value]) -> String {
    events
        .iter()
        .map(|event| {
            let name = event["type"].as_str().unwrap();
            format!("event: {name}\ndata: {event}\n\n")
        })
        .collect()
}

pub(super) fn started() -> Value {
    json!({"type": "message_start", "message": {"id": "msg_1", "usage": {"input_tokens": 3, "output_tokens": 1}}})
}

pub(super) fn block(index: u32, block: &Value) -> Value {
    json!({"type": "content_block_start", "index": index, "content_block": block})
}

pub(super) fn delta(index: u32, kind: &str, member: &str, text: &str) -> Value {
    json!({"type": "content_block_delta", "index": index, "delta": {"type": kind, member: text}})
}

pub(super) fn text(index: u32, text: &str) -> Value {
    delta(index, "text_delta", "text", text)
}

pub(super) fn thought(index: u32, text: &str) -> Value {
    delta(index, "thinking_delta", "thinking", text)
}

pub(super) fn input(index: u32, json: &str) -> Value {
    delta(index, "input_json_delta", "partial_json", json)
}

pub(super) fn stopped(index: u32) -> Value {
    json!({"type": "content_block_stop", "index": index})
}

pub(super) fn ended(reason: &str) -> Value {
    json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}})
}

pub(super) fn over() -> Value {
    json!({"type": "message_stop"})
}

/// What a run of these events leaves: the blocks as they were closed, in the order
/// of their indexes, and how it ended.
pub(super) fn told(list: &[Value]) -> (Vec<Value>, Value) {
    summary(&play(events(list).as_bytes()))
}

pub(super) fn summary(chunks: &[Value]) -> (Vec<Value>, Value) {
    let mut blocks: Vec<_> = chunks
        .iter()
        .filter(|chunk| chunk["type"] == "block-end")
        .map(|chunk| (chunk["index"].as_u64().unwrap(), chunk["block"].clone()))
        .collect();
    blocks.sort_by_key(|(at, _)| *at);
    let last = chunks.last().unwrap();
    assert_eq!(last["type"], "finish");
    let reason = &last["reason"];
    let end = match reason["failure"]["code"].as_str() {
        Some(code) => json!(code),
        None => reason["kind"].clone(),
    };
    (blocks.into_iter().map(|(_, block)| block).collect(), end)
}

pub(super) fn said(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

pub(super) fn reasoned(text: &str) -> Value {
    json!({"type": "reasoning", "text": text})
}

pub(super) fn called(id: &str, arguments: &str) -> Value {
    json!({"type": "tool-call", "id": id, "name": "look", "arguments": arguments})
}

pub(super) fn plain() -> Value {
    block(0, &json!({"type": "text", "text": ""}))
}

pub(super) fn tool(index: u32, id: &str) -> Value {
    block(
        index,
        &json!({"type": "tool_use", "id": id, "name": "look", "input": {}}),
    )
}

#[test]
fn events_that_are_not_known_say_nothing() {
    let body = [
        events(&[started(), plain()]),
        "event: billing\ndata: not json\n\n: a comment\n\nevent: ping\ndata:\n\n".to_owned(),
        events(&[
            json!({"type": "vendor_event", "delta": {"text": "x"}}),
            text(0, "Hi"),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "citations_delta", "citation": {}}}),
            stopped(0),
            ended("end_turn"),
            over(),
        ]),
    ]
    .concat();
    assert_eq!(
        summary(&play(body.as_bytes())),
        (vec![said("Hi")], json!("stop"))
    );
}

#[test]
fn blocks_of_the_providers_own_tools_are_left_out_and_take_no_index() {
    for kind in [
        "server_tool_use",
        "web_search_tool_result",
        "mcp_tool_use",
        "container_upload",
        "novel",
    ] {
        let (blocks, end) = told(&[
            started(),
            block(0, &json!({"type": kind, "id": "x", "name": "search"})),
            input(0, "{\"q\":1}"),
            text(0, "not ours"),
            stopped(0),
            block(1, &json!({"type": "text", "text": ""})),
            text(1, "Hi"),
            stopped(1),
            ended("end_turn"),
            over(),
        ]);
        assert_eq!((blocks, end), (vec![said("Hi")], json!("stop")), "{kind}");
    }
}

#[test]
fn stop_reasons_have_their_ends() {
    for (reason, end) in [
        ("end_turn", "stop"),
        ("pause_turn", "stop"),
        ("stop_sequence", "stop"),
        ("max_tokens", "max-tokens"),
        ("tool_use", "tool-calls"),
        ("refusal", "PI_AI_ERROR"),
        ("sensitive", "PI_AI_ERROR"),
        ("novel", "PI_AI_ERROR"),
        ("model_context_window_exceeded", "CONTEXT_WINDOW_EXCEEDED"),
    ] {
        let (_, told) = told(&[
            started(),
            plain(),
            text(0, "x"),
            stopped(0),
            ended(reason),
            over(),
        ]);
        assert_eq!(told, end, "{reason}");
    }
}

#[test]
fn a_refusal_tells_why() {
    let chunks = play(
        events(&[
            started(),
            json!({"type": "message_delta", "delta": {"stop_reason": "refusal", "stop_details": {"explanation": "It asks for 429 poisons."}}}),
            over(),
        ])
        .as_bytes(),
    );
    let failure = &chunks.last().unwrap()["reason"]["failure"];
    assert_eq!(failure["code"], "PI_AI_ERROR");
    let message = failure["message"].as_str().unwrap();
    assert!(message.ends_with(": It asks for 429 poisons."), "{message}");
}

#[test]
fn counts_of_the_end_override_those_of_the_start_where_they_are_told() {
    let usage = |delta: Value| {
        let chunks = play(
            events(&[
                json!({"type": "message_start", "message": {"id": "a", "usage": {"input_tokens": 3, "output_tokens": 1, "cache_read_input_tokens": 5, "cache_creation_input_tokens": null}}}),
                plain(),
                text(0, "x"),
                stopped(0),
                json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": delta}),
                over(),
            ])
            .as_bytes(),
        );
        chunks
            .iter()
            .find(|chunk| chunk["type"] == "usage")
            .unwrap()["usage"]
            .clone()
    };
    let before = json!({"inputTokens": 3, "outputTokens": 1, "cacheReadTokens": 5});
    for nothing in [
        json!(null),
        json!({}),
        json!({"output_tokens": null}),
        json!({"output_tokens": "7", "input_tokens": -1, "cache_read_input_tokens": 1.5}),
        json!({"output_tokens": 1e300}),
    ] {
        assert_eq!(usage(nothing.clone()), before, "{nothing}");
    }
    assert_eq!(
        usage(
            json!({"input_tokens": 30, "output_tokens": 8, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 9})
        ),
        json!({"inputTokens": 30, "outputTokens": 8, "cacheWriteTokens": 9})
    );
}

#[test]
fn a_tail_that_no_blank_line_ends_counts() {
    let body = events(&[
        started(),
        plain(),
        text(0, "Hi"),
        stopped(0),
        ended("end_turn"),
        over(),
    ]);
    for tail in ["\n\n", "\n"] {
        let body = body.strip_suffix(tail).unwrap();
        assert_eq!(
            summary(&play(body.as_bytes())),
            (vec![said("Hi")], json!("stop"))
        );
    }
}

#[test]
fn nothing_at_all_is_an_empty_response() {
    assert_eq!(told(&[over()]).1, "EMPTY_RESPONSE");
    assert_eq!(summary(&play(b"")).1, "EMPTY_RESPONSE");
    assert_eq!(told(&[started(), over()]).1, "EMPTY_RESPONSE");
}

#[test]
fn arguments_that_break_off_or_are_no_object_are_made_whole() {
    for (streamed, arguments) in [
        ("{\"a\": {\"b\": [1, 2", "{\"a\":{\"b\":[1,2]}}"),
        ("{\"te", "{}"),
        ("nonsense", "{}"),
        ("{\"a\":\"x\ty\\q\"}", "{\"a\":\"x\\ty\\\\q\"}"),
    ] {
        let (blocks, _) = told(&[
            started(),
            tool(0, "t"),
            input(0, streamed),
            stopped(0),
            over(),
        ]);
        assert_eq!(blocks, [called("t", arguments)], "{streamed}");
    }
}

#[test]
fn an_error_inside_a_stream_has_the_code_of_its_type() {
    for (kind, message, code) in [
        ("overloaded_error", "Overloaded", "SERVER"),
        ("api_error", "Internal server error", "SERVER"),
        ("rate_limit_error", "Slow down", "RATE_LIMIT"),
        ("timeout_error", "Too slow", "TIMEOUT"),
        ("authentication_error", "invalid x-api-key", "AUTH"),
        ("permission_error", "Not yours", "AUTH"),
        ("billing_error", "Pay first", "QUOTA"),
        ("not_found_error", "model: nope", "INVALID_REQUEST"),
        (
            "invalid_request_error",
            "messages: wrong",
            "INVALID_REQUEST",
        ),
        (
            "invalid_request_error",
            "prompt is too long: 9 tokens > 8 maximum",
            "CONTEXT_WINDOW_EXCEEDED",
        ),
        (
            "rate_limit_error",
            "Your credit balance: insufficient credits",
            "QUOTA",
        ),
        ("overloaded_error", "try in 400 seconds", "SERVER"),
        ("novel_error", "Something", "PI_AI_ERROR"),
        ("novel_error", "upstream answered 503", "SERVER"),
    ] {
        let error = json!({"type": "error", "error": {"type": kind, "message": message}});
        // Before anything else, in the middle of a block, and without its event's name.
        for before in [
            vec![],
            vec![started()],
            vec![started(), plain(), text(0, "x")],
        ] {
            let mut list = before;
            list.push(error.clone());
            let named = play(events(&list).as_bytes());
            let failure = &named.last().unwrap()["reason"]["failure"];
            assert_eq!(failure["code"], code, "{error}");
            assert_eq!(failure["message"], error.to_string());
            assert_eq!(named[named.len() - 2]["type"], "usage");
        }
        let unnamed = format!("data: {error}\n\n");
        assert_eq!(summary(&play(unnamed.as_bytes())).1, code, "{error}");
    }
    let bare = "data: {\"error\":{\"message\":\"429 from upstream\"}}\n\n";
    assert_eq!(summary(&play(bare.as_bytes())).1, "RATE_LIMIT");
    let silent = "event: error\ndata: {}\n\n";
    assert_eq!(summary(&play(silent.as_bytes())).1, "PI_AI_ERROR");
}

#[test]
fn broken_escapes_and_control_characters_are_mended_and_the_rest_is_a_failure() {
    let with = |text: &str| {
        [
            events(&[started(), plain()]),
            format!("event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"text_delta\",\"text\":\"{text}\"}}}}\n\n"),
            events(&[stopped(0), ended("end_turn"), over()]),
        ]
        .concat()
    };
    for (raw, text) in [
        ("a\tb", "a\tb"),
        ("a\u{1}b", "a\u{1}b"),
        ("C:\\dir", "C:\\dir"),
        ("\\u12", "\\u12"),
        ("\\", ""),
    ] {
        let (blocks, end) = summary(&play(with(raw).as_bytes()));
        if raw == "\\" {
            assert_eq!(end, "PI_AI_ERROR");
        } else {
            assert_eq!((blocks, end), (vec![said(text)], json!("stop")), "{raw:?}");
        }
    }
}

#[test]
fn what_comes_behind_the_end_is_not_looked_at() {
    let body = events(&[started(), plain(), text(0, "x"), ended("end_turn"), over()]);
    let chunks = play(format!("{body}event: error\ndata: {{}}\n\n").as_bytes());
    assert_eq!(summary(&chunks).1, "stop");
}

#[test]
fn signatures_are_for_the_provider_alone() {
    let chunks = play(
        events(&[
            started(),
            block(
                0,
                &json!({"type": "thinking", "thinking": "", "signature": ""}),
            ),
            delta(0, "signature_delta", "signature", "a\"b"),
            delta(0, "signature_delta", "signature", "c"),
            stopped(0),
            block(1, &json!({"type": "redacted_thinking", "data": "X"})),
            thought(1, "no"),
            stopped(1),
            plain(),
            text(0, "x"),
            stopped(0),
            ended("end_turn"),
            over(),
        ])
        .as_bytes(),
    );
    assert_eq!(
        chunks.last().unwrap()["replayState"]["blocks"],
        json!([
            {"type": "reasoning", "thinkingSignature": "a\"bc"},
            {"type": "reasoning", "thinkingSignature": "X", "redacted": true},
            {"type": "text"}
        ])
    );
    assert_eq!(summary(&chunks).0[1], reasoned("[Reasoning redacted]"));
}
