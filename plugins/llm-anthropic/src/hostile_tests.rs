//! A provider that means harm, or is broken beyond what anybody thought of. Nothing
//! panics, and nothing grows faster than what was sent: work that does not would
//! show in the bytes that come out, which each test bounds.

use super::tests::{
    block, delta, ended, events, input, over, play, started, stopped, summary, text,
};
use super::*;
use serde_json::{Value, json};

/// Bytes of all chunks.
fn size(chunks: &[Value]) -> usize {
    chunks.iter().map(|chunk| chunk.to_string().len()).sum()
}

#[test]
fn an_id_or_name_of_a_megabyte_is_not_repeated_with_each_delta() {
    let huge = "\"é".repeat(350_000);
    for member in ["id", "name"] {
        let mut call = json!({"type": "tool_use", "id": "t", "name": "look", "input": {}});
        call[member] = json!(huge);
        let mut list = vec![
            json!({"type": "message_start", "message": {"id": huge}}),
            block(0, &call),
        ];
        list.extend(std::iter::repeat_n(input(0, " "), 2000));
        list.extend([stopped(0), ended("tool_use"), over()]);
        let body = events(&list);
        let chunks = play(body.as_bytes());
        assert_eq!(summary(&chunks).1, "MALFORMED_RESPONSE", "{member}");
        assert!(size(&chunks) < body.len());
    }
    // One that a gateway packs something into is as it is.
    let packed = format!("call_1__thought__{}", "Zm9v".repeat(2000));
    let call = json!({"type": "tool_use", "id": packed, "name": "look"});
    let (blocks, _) = summary(&play(events(&[block(0, &call), over()]).as_bytes()));
    assert_eq!(blocks[0]["id"], json!(packed));
}

#[test]
fn many_blocks_are_as_many_blocks() {
    // Never stopped, so that all are open at the end.
    let open: Vec<_> = (0..10_000)
        .flat_map(|at| [block(at, &json!({"type": "text"})), text(at, "x")])
        .chain([ended("end_turn"), over()])
        .collect();
    let (blocks, end) = summary(&play(events(&open).as_bytes()));
    assert_eq!((blocks.len(), end), (10_000, json!("stop")));
    // One index for all of them.
    let same: Vec<_> = (0..10_000)
        .map(|_| block(0, &json!({"type": "tool_use", "id": "t", "name": "look"})))
        .chain([ended("tool_use"), over()])
        .collect();
    let (blocks, _) = summary(&play(events(&same).as_bytes()));
    assert_eq!(blocks.len(), 10_000);
}

#[test]
fn a_text_in_many_pieces_costs_what_it_says() {
    let one = events(&[text(0, "é")]);
    let signature = events(&[delta(1, "signature_delta", "signature", "ab")]);
    let body = [
        events(&[started(), block(1, &json!({"type": "thinking"}))]),
        one.repeat(20_000),
        signature.repeat(20_000),
        events(&[ended("end_turn"), over()]),
    ]
    .concat();
    let chunks = play(body.as_bytes());
    assert!(size(&chunks) < 4 * body.len());
    let (blocks, _) = summary(&chunks);
    assert_eq!(blocks[1]["text"].as_str().unwrap().len(), 40_000);
}

#[test]
fn json_of_any_depth_is_read_or_refused() {
    for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
        let deep = format!("{}1{}", open.repeat(100_000), close.repeat(100_000));
        let frame = |name: &str, data: String| format!("event: {name}\ndata: {data}\n\n");
        for body in [
            frame("message_start", deep.clone()),
            frame(
                "content_block_start",
                format!(
                    "{{\"index\":{deep},\"content_block\":{{\"type\":\"tool_use\",\"input\":{deep}}}}}"
                ),
            ),
            frame(
                "content_block_delta",
                format!("{{\"index\":0,\"delta\":{deep}}}"),
            ),
            frame(
                "message_delta",
                format!(
                    "{{\"delta\":{{\"stop_reason\":{deep}}},\"usage\":{{\"input_tokens\":{deep}}}}}"
                ),
            ),
            frame("error", deep.clone()),
            frame("content_block_delta", open.repeat(100_000)),
        ] {
            let chunks = play(body.as_bytes());
            assert_eq!(chunks.last().unwrap()["type"], "finish");
        }
        let streamed = input(0, &deep);
        let call = json!({"type": "tool_use", "id": "t", "name": "look"});
        let out = play(events(&[block(0, &call), streamed, over()]).as_bytes());
        assert_eq!(out.last().unwrap()["type"], "finish");
    }
}

#[test]
fn counts_that_are_none_count_nothing() {
    for count in [
        "NaN", "-1", "1e999", "1.5", "\"9\"", "[]", "{}", "null", "true", "-0.1",
    ] {
        let body = format!(
            "event: message_delta\ndata: {{\"delta\":{{\"stop_reason\":\"end_turn\"}},\"usage\":{{\"input_tokens\":{count},\"output_tokens\":{count}}}}}\n\n"
        );
        let chunks = play([events(&[text(0, "x")]), body].concat().as_bytes());
        let usage = chunks
            .iter()
            .find(|chunk| chunk["type"] == "usage")
            .unwrap();
        assert_eq!(
            usage["usage"],
            json!({"inputTokens": 0, "outputTokens": 0}),
            "{count}"
        );
    }
    // The largest that a log can hold does not run over.
    let most = 9_007_199_254_740_991_u64;
    let usage = json!({"input_tokens": most, "output_tokens": most, "cache_read_input_tokens": most, "cache_creation_input_tokens": most});
    let chunks = play(
        events(&[
            text(0, "x"),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": usage}),
            over(),
        ])
        .as_bytes(),
    );
    assert_eq!(summary(&chunks).1, "CONTEXT_WINDOW_EXCEEDED");
}

#[test]
fn indexes_are_only_compared() {
    for index in [
        "-1",
        "1e400",
        "0.5",
        "null",
        "\"x\"",
        "[0]",
        "{}",
        "99999999999999999999999999",
    ] {
        let frame = |name: &str, rest: &str| {
            format!("event: {name}\ndata: {{\"type\":\"{name}\",\"index\":{index}{rest}}}\n\n")
        };
        let body = [
            frame(
                "content_block_start",
                ",\"content_block\":{\"type\":\"text\",\"text\":\"\"}",
            ),
            frame(
                "content_block_delta",
                ",\"delta\":{\"type\":\"text_delta\",\"text\":\"x\"}",
            ),
            frame("content_block_stop", ""),
            events(&[ended("end_turn"), over()]),
        ]
        .concat();
        let (blocks, end) = summary(&play(body.as_bytes()));
        assert_eq!(blocks, [json!({"type": "text", "text": "x"})], "{index}");
        assert_eq!(end, "stop");
    }
}

#[test]
fn members_of_any_other_type_say_nothing() {
    for odd in [
        json!(null),
        json!(1),
        json!("x"),
        json!([]),
        json!({}),
        json!([{"type": "text"}]),
    ] {
        let body = events(&[
            json!({"type": "message_start", "message": odd}),
            json!({"type": "message_start", "message": {"id": odd, "usage": odd}}),
            json!({"type": "content_block_start", "index": 0, "content_block": odd}),
            json!({"type": "content_block_start", "index": 1, "content_block": {"type": odd}}),
            json!({"type": "content_block_start", "index": 2, "content_block": {"type": "text", "text": "x"}}),
            json!({"type": "content_block_delta", "index": 2, "delta": odd}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": odd}}),
            json!({"type": "content_block_delta", "index": 2, "delta": {"type": "text_delta", "text": ["y"]}}),
            json!({"type": "message_delta", "delta": odd, "usage": odd}),
            over(),
        ]);
        let (blocks, end) = summary(&play(body.as_bytes()));
        assert_eq!(blocks, [json!({"type": "text", "text": "x"})], "{odd}");
        assert_eq!(end, "stop", "{odd}");
    }
}

#[test]
fn an_error_of_a_megabyte_is_told_in_part() {
    let error = json!({"type": "error", "error": {"type": "api_error", "message": "input token count ".repeat(60_000)}});
    let chunks = play(events(&[error]).as_bytes());
    let failure = &chunks.last().unwrap()["reason"]["failure"];
    assert_eq!(failure["code"], "SERVER");
    assert_eq!(failure["message"].as_str().unwrap().len(), TOLD);
}
