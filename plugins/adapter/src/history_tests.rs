#![allow(
    clippy::needless_pass_by_value,
    reason = "values that `json!` makes are passed on as they are made"
)]

use std::cell::RefCell;

use serde_json::{Value, json};

use super::*;

struct Seen {
    vision: bool,
    warnings: RefCell<Vec<String>>,
}

const PLAIN: &str = "plain";

/// The entries for the model `m` of `acme`, in few words.
fn told(messages: &[Value], vision: bool) -> (Vec<String>, Vec<String>) {
    let seen = Seen {
        vision,
        warnings: RefCell::default(),
    };
    let texts: Vec<String> = messages.iter().map(ToString::to_string).collect();
    let target = Target {
        api: "plain",
        provider: "acme",
        model: "m",
        vision: seen.vision,
        call_id: &|id| id.contains('|').then(|| id.replace('|', "_")),
        warn: &|why| seen.warnings.borrow_mut().push(why.to_owned()),
    };
    let entries = build(&texts, &target).unwrap();
    let told = entries.iter().map(tell).collect();
    (told, seen.warnings.take())
}

fn tell(entry: &Entry<'_>) -> String {
    let pieces = |parts: &[Piece<'_>]| {
        let texts: Vec<_> = parts
            .iter()
            .map(|part| match part {
                Piece::Text(text) => text.to_string(),
                Piece::Image(image) => format!("<{}>", image.attachment),
            })
            .collect();
        texts.join("+")
    };
    match entry {
        Entry::User { parts } => format!("user {}", pieces(parts)),
        Entry::Result {
            call_id,
            tool_name,
            parts,
            is_error,
        } => format!(
            "result {call_id} {tool_name} {}{}",
            pieces(parts),
            if *is_error { " failed" } else { "" }
        ),
        Entry::Assistant(assistant) => {
            let sign = |signature: &Option<Cow<'_, str>>| {
                signature
                    .as_ref()
                    .map_or(String::new(), |signature| format!("/{signature}"))
            };
            let blocks: Vec<_> = assistant
                .blocks
                .iter()
                .map(|block| match block {
                    Block::Text { text, signature } => format!("text {text}{}", sign(signature)),
                    Block::Thinking {
                        text,
                        signature,
                        redacted,
                    } => format!(
                        "{} {text}{}",
                        if *redacted { "redacted" } else { "think" },
                        sign(signature)
                    ),
                    Block::Call {
                        id,
                        name,
                        arguments,
                        signature,
                    } => format!("call {id} {name} {arguments}{}", sign(signature)),
                })
                .collect();
            format!(
                "{} {}: {}",
                if assistant.same { "same" } else { "other" },
                assistant.stop,
                blocks.join(", ")
            )
        }
    }
}

fn user(text: &str) -> Value {
    json!({"role": "user", "content": [{"type": "text", "text": text}]})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn call(id: &str) -> Value {
    json!({"type": "tool-call", "id": id, "name": "look", "arguments": "{\"a\": 1}"})
}

fn result(id: &str, content: Value) -> Value {
    json!({"role": "user", "content": [{"type": "tool-result", "toolCallId": id, "content": content, "isError": false}]})
}

/// A message of a model of acme, with the replay state that its adapter wrote.
fn said(api: &str, model: &str, stop: &str, content: Value, blocks: Value) -> Value {
    json!({"id": "m-1", "role": "assistant", "content": content, "source": {
        "kind": "model", "provider": "acme", "model": model,
        "replayState": {"blocks": blocks, "response": {
            "kind": "pi-ai", "version": 2, "api": api, "provider": "acme", "model": model,
            "responseId": "r", "stopReason": stop}}}})
}

#[test]
fn the_target_s_own_message_keeps_what_it_needs_back() {
    let content = json!([
        {"type": "reasoning", "text": "t"},
        {"type": "reasoning", "text": ""},
        {"type": "reasoning", "text": ""},
        {"type": "reasoning", "text": "hidden"},
        text("x"),
        call("a|b"),
    ]);
    let blocks = json!([
        {"type": "reasoning"},
        {"type": "reasoning", "thinkingSignature": "s"},
        {"type": "reasoning"},
        {"type": "reasoning", "thinkingSignature": "d", "redacted": true},
        {"type": "text", "textSignature": "ts"},
        {"type": "tool-call", "thoughtSignature": "cs"},
    ]);
    let own = said(PLAIN, "m", "toolUse", content.clone(), blocks.clone());
    let done = result("a|b", json!([text("ok")]));
    let (entries, warnings) = told(&[own, done.clone()], false);
    assert_eq!(
        entries,
        [
            r#"same toolUse: think t, think /s, redacted hidden/d, text x/ts, call a|b look {"a":1}/cs"#,
            "result a|b look ok"
        ]
    );
    assert!(warnings.is_empty());
    // Another model of the route, and another protocol of it: plain text, ids that
    // the target takes, nothing signed.
    for (api, model) in [(PLAIN, "other"), ("another", "m")] {
        let foreign = said(api, model, "toolUse", content.clone(), blocks.clone());
        let (entries, warnings) = told(&[foreign, done.clone()], false);
        assert_eq!(
            entries,
            [
                r#"other toolUse: text t, text x, call a_b look {"a":1}"#,
                "result a_b look ok"
            ]
        );
        assert!(warnings.is_empty());
    }
}

#[test]
fn a_replay_state_that_does_not_fit_costs_the_message_its_signatures_and_says_so() {
    let good = said(
        PLAIN,
        "m",
        "stop",
        json!([{"type": "reasoning", "text": "t"}]),
        json!([{"type": "reasoning", "thinkingSignature": "s"}]),
    );
    let (entries, warnings) = told(std::slice::from_ref(&good), false);
    assert_eq!(
        (entries[0].as_str(), warnings.len()),
        ("same stop: think t/s", 0)
    );
    let state = "/source/replayState";
    for (pointer, value, why) in [
        ("", json!("x"), "no response"),
        ("/response", json!(null), "no response"),
        ("/response/kind", json!("mine"), "another kind"),
        ("/response/version", json!(3), "another version"),
        ("/response/version", json!("2"), "another version"),
        ("/response/api", json!(""), "api is missing"),
        ("/response/provider", json!("else"), "not the message's"),
        ("/response/model", json!(1), "not the message's"),
        ("/response/responseId", json!(7), "not named by text"),
        ("/response/stopReason", json!("because"), "stop reason"),
        ("/blocks", json!({}), "no blocks"),
        ("/blocks", json!([]), "fewer blocks"),
        (
            "/blocks",
            json!([{"type": "reasoning"}, {"type": "text"}]),
            "more blocks",
        ),
        ("/blocks/0/type", json!("text"), "another type"),
        ("/blocks/0/thinkingSignature", json!(1), "no text"),
        (
            "/blocks/0/redacted",
            json!("yes"),
            "neither redacted nor not",
        ),
    ] {
        let mut bad = good.clone();
        let place = format!("{state}{pointer}");
        if let Some(found) = bad.pointer_mut(&place) {
            *found = value;
        } else {
            let (parent, name) = place.rsplit_once('/').unwrap();
            bad.pointer_mut(parent).unwrap()[name] = value;
        }
        let (entries, warnings) = told(&[bad], false);
        assert_eq!(entries, ["other stop: text t"], "{pointer}");
        assert!(
            warnings.len() == 1 && warnings[0].contains(why) && warnings[0].contains("m-1"),
            "{pointer}: {warnings:?}"
        );
    }
}

#[test]
fn calls_that_nothing_answered_get_a_result_before_the_talk_goes_on() {
    let calls = |ids: &[&str]| json!({"role": "assistant", "content": ids.iter().map(|id| call(id)).collect::<Vec<_>>()});
    let (entries, _) = told(
        &[
            calls(&["a", "b"]),
            result("b", json!([text("ok")])),
            user("hi"),
            calls(&["c"]),
            calls(&["d"]),
        ],
        false,
    );
    assert_eq!(
        entries,
        [
            r#"other toolUse: call a look {"a":1}, call b look {"a":1}"#,
            "result b look ok",
            "result a look No result provided failed",
            "user hi",
            r#"other toolUse: call c look {"a":1}"#,
            "result c look No result provided failed",
            r#"other toolUse: call d look {"a":1}"#,
            "result d look No result provided failed",
        ]
    );
}

#[test]
fn what_failed_or_was_stopped_is_not_said_again() {
    for stop in ["error", "aborted"] {
        let message = said(
            PLAIN,
            "m",
            stop,
            json!([text("x")]),
            json!([{"type": "text"}]),
        );
        assert_eq!(
            told(&[user("a"), message, user("b")], false).0,
            ["user a", "user b"]
        );
    }
}

#[test]
fn users_texts_are_joined_and_results_stand_on_their_own() {
    let mixed = json!({"role": "user", "content": [
        {"type": "tool-result", "toolCallId": "x", "content": [], "isError": true},
        text("a"), text("b"), {"type": "odd"},
    ]});
    let system = json!({"role": "system", "content": [text("rule")]});
    let empty = json!({"role": "user", "content": []});
    assert_eq!(
        told(&[system, mixed, empty], false).0,
        [
            "user rule",
            "user ab",
            "result x unknown (no output) failed",
            "user "
        ]
    );
}

#[test]
fn pictures_stay_in_place_or_become_one_line() {
    let image = |id: &str| json!({"type": "image", "attachment": {"attachmentId": id}});
    let messages = [
        json!({"role": "user", "content": [text("a"), image("1"), image("2"), text("b"), image("3")]}),
        json!({"role": "assistant", "content": [call("c")]}),
        result("c", json!([image("4"), image("5")])),
    ];
    let (seen, _) = told(&messages, true);
    assert_eq!(seen[0], "user a+<1>+<2>+b+<3>");
    assert_eq!(seen[2], "result c look <4>+<5>");
    let (blind, _) = told(&messages, false);
    let gone = "(image omitted: the model takes no images)";
    assert_eq!(blind[0], format!("user a+{gone}+b+{gone}"));
    assert_eq!(blind[2], format!("result c look {gone}"));
}

#[test]
fn halves_of_pairs_are_gone_and_whole_ones_stay() {
    for (escaped, expected) in [
        (r"a\ud83eb", "ab"),
        (r"\udd80x\ud83e\udd80", r"x\ud83e\udd80"),
        (r"\ud83e\ud83e\udd80", r"\ud83e\udd80"),
        (r"\\ud83e", r"\\ud83e"),
        (r"\u0041\n", r"\u0041\n"),
        (r"\ud83e", ""),
        ("plain é", "plain é"),
    ] {
        assert_eq!(read::whole_pairs(escaped), expected, "{escaped}");
    }
    let message = r#"{"role":"user","content":[{"type":"text","text":"a\ud800b"}]}"#.to_owned();
    let target = Target {
        api: "",
        provider: "",
        model: "",
        vision: false,
        call_id: &|_| None,
        warn: &|_| {},
    };
    let messages = [message];
    let entries = build(&messages, &target).unwrap();
    assert_eq!(tell(&entries[0]), "user ab");
    assert_eq!(
        build(&["{".to_owned()], &target).unwrap_err().code,
        "INVALID"
    );
}

#[test]
fn blank_is_white_space_however_it_is_escaped() {
    for (escaped, blank) in [
        ("", true),
        (" \u{a0}", true),
        (r"\n \t\r\f", true),
        (r"\u0020\u000a", true),
        (r"\n x", false),
        (r"\u0041", false),
        (r#"\""#, false),
        (r"\\n", false),
    ] {
        assert_eq!(is_blank(escaped), blank, "{escaped}");
    }
}

#[test]
fn a_call_whose_arguments_nest_too_deep_goes_out_without_them_and_is_told_of() {
    let mut deep = call("a|b");
    deep["arguments"] = json!(format!(
        r#"{{"a":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    ));
    let content = json!([deep]);
    let own = said(
        PLAIN,
        "m",
        "toolUse",
        content,
        json!([{"type": "tool-call"}]),
    );
    let (entries, warnings) = told(&[own, result("a|b", json!([text("ok")]))], false);
    assert_eq!(
        entries,
        ["same toolUse: call a|b look {}", "result a|b look ok"]
    );
    assert!(
        warnings.len() == 1 && warnings[0].starts_with("the call a|b: its arguments nest 100001"),
        "{warnings:?}"
    );
}
