//! What servers that speak the protocol for other models leave out or mix up (seen
//! of litellm, Ollama, SGLang, Moonshot and gateways), and that nothing which was
//! said is lost by it.

use serde_json::json;

use super::tests::{
    block, called, delta, ended, events, input, over, plain, play, reasoned, said, started,
    stopped, summary, text, thought, told, tool,
};

#[test]
fn an_answer_without_usage_or_id_is_an_answer() {
    let chunks = play(
        events(&[
            json!({"type": "message_start", "message": {}}),
            plain(),
            text(0, "x"),
            stopped(0),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}}),
            over(),
        ])
        .as_bytes(),
    );
    assert_eq!(
        chunks[3]["usage"],
        json!({"inputTokens": 0, "outputTokens": 0})
    );
    assert_eq!(chunks[4]["replayState"]["response"].get("responseId"), None);
}

#[test]
fn events_without_a_name_go_by_their_type() {
    let body: String = [
        started(),
        plain(),
        text(0, "Hi"),
        stopped(0),
        ended("end_turn"),
        over(),
    ]
    .iter()
    .map(|event| format!("data: {event}\n\n"))
    .collect();
    assert_eq!(
        summary(&play(body.as_bytes())),
        (vec![said("Hi")], json!("stop"))
    );
    let framed = body.replace("data:", "event: message\ndata:");
    assert_eq!(
        summary(&play(framed.as_bytes())),
        (vec![said("Hi")], json!("stop"))
    );
    let cut = body.replace("data: {\"type\":\"message_stop\"}", "data: [DONE]");
    let cut = format!("{cut}data: {{\"error\":\"too late\"}}\n\n");
    assert_eq!(
        summary(&play(cut.as_bytes())),
        (vec![said("Hi")], json!("stop"))
    );
}

#[test]
fn a_clean_end_behind_the_stop_reason_is_an_end() {
    let whole = [
        started(),
        plain(),
        text(0, "Hi"),
        stopped(0),
        ended("end_turn"),
    ];
    assert_eq!(told(&whole), (vec![said("Hi")], json!("stop")));
    // And where pings go on in place of the end.
    let ping = json!({"type": "ping"});
    let mut pings = whole.to_vec();
    pings.extend([ping.clone(), ping, json!({"type": "error", "error": {}})]);
    assert_eq!(told(&pings), (vec![said("Hi")], json!("stop")));
    // Without a reason it was cut.
    assert_eq!(told(&whole[..4]).1, "TRANSPORT");
    assert_eq!(told(&whole[..1]).1, "TRANSPORT");
    assert_eq!(told(&whole[1..3]).1, "TRANSPORT");
}

#[test]
fn a_message_that_stops_without_a_reason_is_done() {
    let (blocks, end) = told(&[started(), plain(), text(0, "Hi"), stopped(0), over()]);
    assert_eq!((blocks, end), (vec![said("Hi")], json!("stop")));
}

#[test]
fn blocks_that_are_never_stopped_are_closed_at_the_end() {
    let (blocks, end) = told(&[
        started(),
        block(0, &json!({"type": "thinking", "thinking": ""})),
        thought(0, "Hm"),
        delta(0, "signature_delta", "signature", "S"),
        block(1, &json!({"type": "text", "text": ""})),
        text(1, "A"),
        tool(2, "t"),
        input(2, "{\"a\": 1}"),
        ended("tool_use"),
        over(),
    ]);
    assert_eq!(
        (blocks, end),
        (
            vec![reasoned("Hm"), said("A"), called("t", "{\"a\":1}")],
            json!("tool-calls")
        )
    );
}

#[test]
fn an_index_that_comes_again_is_another_block() {
    let (blocks, _) = told(&[
        started(),
        plain(),
        text(0, "a"),
        plain(),
        text(0, "b"),
        stopped(0),
        plain(),
        text(0, "c"),
        stopped(0),
        stopped(0),
        ended("end_turn"),
        over(),
    ]);
    assert_eq!(blocks, [said("a"), said("b"), said("c")]);
    // What the first needs back is not lost with it.
    let chunks = play(
        events(&[
            started(),
            block(0, &json!({"type": "thinking", "thinking": "Hm"})),
            delta(0, "signature_delta", "signature", "S"),
            plain(),
            text(0, "a"),
            ended("end_turn"),
            over(),
        ])
        .as_bytes(),
    );
    let replay = &chunks.last().unwrap()["replayState"]["blocks"];
    assert_eq!(replay[0]["thinkingSignature"], "S");
}

#[test]
fn a_delta_of_another_kind_opens_a_block_of_its_own() {
    // Reasoning inside a block that was opened as text.
    let (blocks, _) = told(&[
        started(),
        plain(),
        thought(0, "Hm"),
        text(0, "A"),
        thought(0, "m"),
        stopped(0),
        ended("end_turn"),
        over(),
    ]);
    assert_eq!(blocks, [said("A"), reasoned("Hmm")]);
    // Text inside a tool call.
    let (blocks, _) = told(&[
        started(),
        tool(0, "t"),
        text(0, "so"),
        input(0, "{}"),
        stopped(0),
        ended("tool_use"),
        over(),
    ]);
    assert_eq!(blocks, [called("t", "{}"), said("so")]);
    // A call's arguments need a call.
    let (blocks, _) = told(&[
        started(),
        plain(),
        input(0, "{}"),
        text(0, "A"),
        ended("end_turn"),
        over(),
    ]);
    assert_eq!(blocks, [said("A")]);
}

#[test]
fn a_delta_without_a_block_opens_one() {
    let (blocks, end) = told(&[
        text(0, "A"),
        text(0, "B"),
        thought(1, "C"),
        ended("end_turn"),
        over(),
    ]);
    assert_eq!(
        (blocks, end),
        (vec![said("AB"), reasoned("C")], json!("stop"))
    );
}

#[test]
fn a_message_that_starts_twice_is_one() {
    let (blocks, _) = told(&[
        started(),
        plain(),
        text(0, "A"),
        json!({"type": "message_start", "message": {"id": "msg_2"}}),
        text(0, "B"),
        stopped(0),
        ended("end_turn"),
        over(),
    ]);
    assert_eq!(blocks, [said("AB")]);
}

#[test]
fn content_that_comes_with_the_start_of_its_block_counts() {
    let list = [
        started(),
        block(
            0,
            &json!({"type": "thinking", "thinking": "Hm", "signature": "S"}),
        ),
        stopped(0),
        block(1, &json!({"type": "text", "text": "A"})),
        text(1, "B"),
        stopped(1),
        block(
            2,
            &json!({"type": "tool_use", "id": "t", "name": "look", "input": {"b": 1, "a": "é"}}),
        ),
        stopped(2),
        block(
            3,
            &json!({"type": "tool_use", "id": "u", "name": "look", "input": {"b": 1}}),
        ),
        input(3, "{\"c\":2}"),
        stopped(3),
        ended("tool_use"),
        over(),
    ];
    let chunks = play(events(&list).as_bytes());
    assert_eq!(
        summary(&chunks).0,
        [
            reasoned("Hm"),
            said("AB"),
            called("t", "{\"a\":\"é\",\"b\":1}"),
            called("u", "{\"c\":2}")
        ]
    );
    // Deltas stand in the place of what came with the start.
    let streamed = |at: u32| {
        let of = chunks.iter().filter(move |chunk| chunk["index"] == at);
        of.filter_map(|chunk| chunk["argumentsDelta"].as_str())
            .collect::<Vec<_>>()
    };
    assert_eq!(streamed(2), ["{\"a\":\"é\",\"b\":1}"]);
    assert_eq!(streamed(3), ["{\"c\":2}"]);
}

#[test]
fn a_call_makes_the_answer_wait_for_tools_whatever_its_stop_reason() {
    for reason in ["end_turn", "stop_sequence", "tool_use"] {
        let (_, end) = told(&[started(), tool(0, "t"), stopped(0), ended(reason), over()]);
        assert_eq!(end, "tool-calls", "{reason}");
    }
    let (_, end) = told(&[started(), tool(0, "t"), stopped(0), over()]);
    assert_eq!(end, "tool-calls");
    let (_, end) = told(&[
        started(),
        tool(0, "t"),
        stopped(0),
        ended("max_tokens"),
        over(),
    ]);
    assert_eq!(end, "max-tokens");
}

#[test]
fn calls_without_an_id_get_ids_that_differ() {
    let (blocks, _) = told(&[
        started(),
        tool(0, ""),
        tool(1, ""),
        ended("tool_use"),
        over(),
    ]);
    assert_eq!(blocks, [called("msg_1_0", "{}"), called("msg_1_1", "{}")]);
}
