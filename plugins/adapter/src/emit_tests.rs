use serde_json::{Value, json};

use super::*;

fn emitter() -> Emitter {
    Emitter::new(Target {
        api: "plain",
        provider: "acme".to_owned(),
        model: "m".to_owned(),
        context_window: 1000,
    })
}

fn chunks(out: &mut Emitter) -> Vec<Value> {
    out.take()
        .iter()
        .map(|chunk| serde_json::from_str(chunk).expect(chunk))
        .collect()
}

#[test]
fn blocks_become_chunks_and_what_is_needed_back_goes_into_the_replay_state() {
    let mut out = emitter();
    out.response_id("");
    out.response_id("r\\n1");
    out.response_id("r2");
    out.response_model("m");
    out.response_model("m-2");
    let thought = out.start(Kind::Reasoning);
    out.append(thought, "a\\n");
    out.sign(thought, "s\\\"");
    let hidden = out.start(Kind::Reasoning);
    out.redact(hidden);
    let call = out.start_call("c", "");
    out.append(call, "");
    out.set_call(call, None, Some("look"));
    out.append(call, r#"{ \"a\" : 1"#);
    let text = out.start(Kind::Text);
    out.append(text, "x");
    out.end_with(text, "y");
    out.append(text, "late");
    out.append(9, "nowhere");
    out.usage(Usage {
        input: 1,
        output: 2,
        cache_read: 3,
        cache_write: 0,
    });
    out.finish(Stop::ToolUse);
    assert_eq!(
        chunks(&mut out),
        [
            json!({"type": "block-start", "index": 0, "blockType": "reasoning"}),
            json!({"type": "reasoning-delta", "index": 0, "text": "a\n"}),
            json!({"type": "block-start", "index": 1, "blockType": "reasoning"}),
            json!({"type": "block-start", "index": 2, "blockType": "tool-call"}),
            json!({"type": "tool-call-delta", "index": 2, "id": "c", "argumentsDelta": ""}),
            json!({"type": "tool-call-delta", "index": 2, "id": "c", "name": "look", "argumentsDelta": "{ \"a\" : 1"}),
            json!({"type": "block-start", "index": 3, "blockType": "text"}),
            json!({"type": "text-delta", "index": 3, "text": "x"}),
            json!({"type": "block-end", "index": 3, "block": {"type": "text", "text": "y"}}),
            json!({"type": "block-end", "index": 0, "block": {"type": "reasoning", "text": "a\n"}}),
            json!({"type": "block-end", "index": 1, "block": {"type": "reasoning", "text": ""}}),
            json!({"type": "block-end", "index": 2, "block": {"type": "tool-call", "id": "c", "name": "look", "arguments": "{\"a\":1}"}}),
            json!({"type": "usage", "usage": {"inputTokens": 1, "outputTokens": 2, "cacheReadTokens": 3}}),
            json!({"type": "finish", "reason": {"kind": "tool-calls"}, "replayState": {
            "response": {"kind": "pi-ai", "version": 2, "api": "plain", "provider": "acme", "model": "m",
                "responseModel": "m-2", "responseId": "r\n1", "stopReason": "toolUse"},
            "blocks": [
                {"type": "reasoning", "thinkingSignature": "s\""},
                {"type": "reasoning", "redacted": true},
                {"type": "tool-call"},
                {"type": "text"},
            ]}}),
        ]
    );
}

#[test]
fn what_is_written_is_read_back_as_the_same() {
    let mut out = emitter();
    let thought = out.start(Kind::Reasoning);
    out.append(thought, "t");
    out.sign(thought, r#"{\"id\":\"x\"}"#);
    out.response_id("r");
    out.finish(Stop::Stop);
    let chunks = chunks(&mut out);
    let message = json!({"role": "assistant", "content": [chunks[2]["block"]], "source": {
        "kind": "model", "provider": "acme", "model": "m", "replayState": chunks.last().unwrap()["replayState"]}});
    let messages = [message.to_string()];
    let entries = crate::history::build(
        &messages,
        &crate::history::Target {
            api: "plain",
            provider: "acme",
            model: "m",
            vision: false,
            call_id: &|_| None,
            warn: &|why| panic!("{why}"),
        },
    )
    .unwrap();
    let [crate::Entry::Assistant(assistant)] = &entries[..] else {
        panic!("one")
    };
    assert!(assistant.same);
    assert_eq!(assistant.response_id.as_deref(), Some("r"));
    let [crate::history::Block::Thinking { signature, .. }] = &assistant.blocks[..] else {
        panic!("a thought")
    };
    assert_eq!(signature.as_deref(), Some(r#"{\"id\":\"x\"}"#));
}

#[test]
fn an_end_is_what_the_answer_s_content_and_counts_make_of_it() {
    for (blocks, stop, input, expected) in [
        (1, Stop::Stop, 5, json!({"kind": "stop"})),
        (1, Stop::Length, 5, json!({"kind": "max-tokens"})),
        (0, Stop::Length, 5, json!({"kind": "max-tokens"})),
        (0, Stop::ToolUse, 5, json!({"kind": "tool-calls"})),
        (0, Stop::Stop, 5, json!("EMPTY_RESPONSE")),
        (1, Stop::Stop, 1001, json!("CONTEXT_WINDOW_EXCEEDED")),
        (0, Stop::Length, 995, json!("CONTEXT_WINDOW_EXCEEDED")),
    ] {
        let mut out = emitter();
        for _ in 0..blocks {
            let at = out.start(Kind::Text);
            out.append(at, "x");
        }
        out.usage(Usage {
            input,
            ..Usage::default()
        });
        out.finish(stop);
        let finish = chunks(&mut out).pop().unwrap();
        let found = match finish["reason"].get("failure") {
            Some(failure) => {
                assert!(!failure["message"].as_str().unwrap().is_empty());
                &failure["code"]
            }
            None => &finish["reason"],
        };
        assert_eq!(*found, expected, "{blocks} {stop:?} {input}");
        assert!(finish["replayState"].is_object());
    }
}

#[test]
fn an_answer_whose_only_text_is_empty_says_nothing() {
    type Open = fn(&mut Emitter);
    let cases: [(&str, Open, bool); 7] = [
        ("an empty text", |out| out.end_with(0, ""), true),
        ("an empty text that is signed", |out| out.sign(0, "s"), true),
        (
            "an empty thought beside it",
            |out| _ = out.start(Kind::Reasoning),
            true,
        ),
        (
            "a text that its end supplies",
            |out| out.end_with(0, "x"),
            false,
        ),
        (
            "a call beside it",
            |out| _ = out.start_call("c", "n"),
            false,
        ),
        (
            "a thought that is kept from us",
            |out| {
                let at = out.start(Kind::Reasoning);
                out.sign(at, "s");
            },
            false,
        ),
        ("a blank", |out| out.append(0, " "), false),
    ];
    for (what, fill, is_empty) in cases {
        let mut out = emitter();
        let at = out.start(Kind::Text);
        out.append(at, "");
        fill(&mut out);
        out.finish(Stop::Stop);
        let finish = chunks(&mut out).pop().unwrap();
        let code = &finish["reason"]["failure"]["code"];
        assert_eq!(*code == "EMPTY_RESPONSE", is_empty, "{what}: {finish}");
    }
}

#[test]
fn nothing_follows_the_end() {
    let mut out = emitter();
    let at = out.start(Kind::Text);
    out.fail("429: slow down");
    let ended = chunks(&mut out);
    assert_eq!(
        ended[1],
        json!({"type": "usage", "usage": {"inputTokens": 0, "outputTokens": 0}})
    );
    assert_eq!(
        ended[2]["reason"]["failure"],
        json!({"message": "429: slow down", "code": "RATE_LIMIT"})
    );
    out.append(at, "x");
    out.end_all();
    out.start(Kind::Call);
    out.finish(Stop::Stop);
    out.fail("x");
    assert!(out.take().is_empty() && out.is_over());
}

#[test]
fn an_absurdly_long_id_or_name_fails_the_attempt() {
    let long = "x".repeat(MAX_NAME + 1);
    for set in [0, 1, 2, 3] {
        let mut out = emitter();
        match set {
            0 => drop(out.start_call(&long, "")),
            1 => drop(out.start_call("", &long)),
            _ => {
                let at = out.start_call("", "");
                let text = Some(long.as_str());
                out.set_call(at, text.filter(|_| set == 2), text.filter(|_| set == 3));
            }
        }
        let finish = chunks(&mut out).pop().unwrap();
        assert_eq!(
            finish["reason"]["failure"]["code"], "MALFORMED_RESPONSE",
            "{set}"
        );
    }
}
