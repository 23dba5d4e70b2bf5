//! Messages of the body: what the recorded cases do not have.

use serde_json::{Value, json};

use super::tests::{call, foreign, message, messages, own, result, unmarked, user};

fn picture(name: &str) -> Value {
    json!({"type": "image", "attachment": {"attachmentId": format!("sha256:{name}"), "mediaType": "image/jpeg", "bytes": 1, "width": 1, "height": 1}})
}

#[test]
fn the_marker_goes_to_the_end_of_the_last_message_of_a_user() {
    let mark = json!({"type": "ephemeral"});
    // A result, and not the first of them; a message of the model's behind it.
    let said = foreign(&json!([{"type": "text", "text": "So."}]));
    let calls = foreign(&json!([call("a"), call("b")]));
    let history = [
        user("x"),
        calls,
        result("a", "1", false),
        result("b", "2", true),
        said,
    ];
    assert_eq!(
        messages(&json!({}), &history)[2]["content"],
        json!([
            {"type": "tool_result", "tool_use_id": "a", "content": "1", "is_error": false},
            {"type": "tool_result", "tool_use_id": "b", "content": "2", "is_error": true, "cache_control": mark},
        ])
    );
    // A blank one does not count, nor a blank text behind a picture.
    let vision = json!({"models": [{"id": "m", "input": ["text", "image"]}]});
    let shown = message(
        "user",
        &json!({"kind": "user"}),
        &json!([picture("1"), {"type": "text", "text": " \n"}]),
    );
    let history = [shown, user(" \t\u{a0}\n ")];
    let sent = messages(&vision, &history);
    assert_eq!(sent.as_array().unwrap().len(), 1);
    assert_eq!(sent[0]["content"].as_array().unwrap().len(), 1);
    assert_eq!(sent[0]["content"][0]["cache_control"], mark);
}

#[test]
fn blank_texts_and_messages_that_say_nothing_are_dropped() {
    let history = [
        user("a"),
        foreign(&json!([{"type": "text", "text": " \u{feff}"}])),
        user(""),
        user("\n\t "),
        foreign(&json!([{"type": "text", "text": "\n"}, {"type": "text", "text": "b"}])),
        user(" c"),
    ];
    assert_eq!(
        messages(&unmarked(), &history),
        json!([
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": [{"type": "text", "text": "b"}]},
            {"role": "user", "content": " c"},
        ])
    );
}

#[test]
fn what_the_model_thought_goes_back_as_it_was_signed() {
    let thought = |text: &str| json!({"type": "reasoning", "text": text});
    let history = |content: Value, blocks: Value| [user("a"), own(&content, &blocks), user("b")];
    let sent = |profile: &Value, content: Value, blocks: Value| {
        messages(profile, &history(content, blocks))[1]["content"].clone()
    };
    let text = json!({"type": "text", "text": "x"});
    let signed = json!([{"type": "reasoning", "thinkingSignature": "S\"1"}, {"type": "reasoning", "thinkingSignature": "D", "redacted": true}, {"type": "reasoning", "thinkingSignature": "E"}, {"type": "text"}]);
    assert_eq!(
        sent(
            &unmarked(),
            json!([
                thought("Hm"),
                thought("[Reasoning redacted]"),
                thought(""),
                text
            ]),
            signed
        ),
        json!([
            {"type": "thinking", "thinking": "Hm", "signature": "S\"1"},
            {"type": "redacted_thinking", "data": "D"},
            {"type": "thinking", "thinking": "", "signature": "E"},
            {"type": "text", "text": "x"},
        ])
    );
    // Unsigned, as after a stream that broke: as text, unless the server takes it.
    let unsigned = json!([{"type": "reasoning"}, {"type": "reasoning", "thinkingSignature": " "}, {"type": "text"}]);
    let content = json!([thought("Hm"), thought("So"), text]);
    let said = |text: &str| json!({"type": "text", "text": text});
    assert_eq!(
        sent(&unmarked(), content.clone(), unsigned.clone()),
        json!([said("Hm"), said("So"), said("x")])
    );
    let lax = json!({"cacheRetention": "none", "compat": {"allowEmptySignature": true}});
    let kept = |text: &str| json!({"type": "thinking", "thinking": text, "signature": ""});
    assert_eq!(
        sent(&lax, content, unsigned),
        json!([kept("Hm"), kept("So"), said("x")])
    );
}

#[test]
fn calls_of_other_models_get_ids_that_are_taken_and_their_results_with_them() {
    let long = |end: &str| format!("call_é🦀|fc_{}{end}", "x".repeat(500));
    let history = [
        user("a"),
        foreign(&json!([
            call(&long("1")),
            call(&long("2")),
            call("fine-1"),
            call("a|é")
        ])),
        result("fine-1", "1", false),
        result(&long("1"), "2", false),
        result(&long("2"), "3", false),
        result("a|é", "4", false),
    ];
    let sent = messages(&unmarked(), &history);
    let ids = |at: usize, name: &str| -> Vec<String> {
        let blocks = sent[at]["content"].as_array().unwrap();
        blocks
            .iter()
            .map(|block| block[name].as_str().unwrap().to_owned())
            .collect()
    };
    let [first, second, fine, short] = &ids(1, "id")[..] else {
        panic!("four calls")
    };
    assert_eq!((&**fine, &**short), ("fine-1", "a__"));
    for id in [first, second] {
        assert!(id.starts_with("call_____fc_xxx"), "{id}");
        assert_eq!(id.len(), 64);
    }
    assert_ne!(first, second);
    assert_eq!(
        ids(2, "tool_use_id"),
        [fine, first, second, short].map(String::clone)
    );
    assert_eq!(sent[1]["content"][0]["input"], json!({"b": 1, "a": 2}));
    // The model's own are as it made them.
    let history = [
        user("a"),
        own(&json!([call("a.b:0")]), &json!([{"type": "tool-call"}])),
        result("a.b:0", "", true),
    ];
    let sent = messages(&unmarked(), &history);
    assert_eq!(sent[1]["content"][0]["id"], "a.b:0");
    assert_eq!(
        sent[2]["content"],
        json!([{"type": "tool_result", "tool_use_id": "a.b:0", "content": "(no output)", "is_error": true}])
    );
}

#[test]
fn a_call_without_a_result_gets_one() {
    let history = [
        user("a"),
        own(&json!([call("t")]), &json!([{"type": "tool-call"}])),
        user("never mind"),
    ];
    let sent = messages(&unmarked(), &history);
    assert_eq!(sent[2]["content"][0]["tool_use_id"], "t");
    assert_eq!(sent[2]["content"][0]["is_error"], true);
    assert_eq!(sent[3]["content"], "never mind");
}

#[test]
fn pictures_go_as_base64_where_they_stand() {
    let vision = json!({"cacheRetention": "none", "requestImagePixelBudget": 1000, "requestImageMaxBytes": 2000, "models": [{"id": "m", "input": ["text", "image"]}]});
    let source = |name: &str| json!({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": format!("<sha256:{name}/1000/2000>")}});
    let said = |text: &str| json!({"type": "text", "text": text});
    let shown = message(
        "user",
        &json!({"kind": "user"}),
        &json!([
            said("see"),
            picture("1"),
            said(" "),
            picture("2"),
            said("and")
        ]),
    );
    let answered = |content: Value| {
        message(
            "user",
            &json!({"kind": "tool", "callId": "t"}),
            &json!([{"type": "tool-result", "toolCallId": "t", "isError": false, "content": content}]),
        )
    };
    let calls = own(&json!([call("t")]), &json!([{"type": "tool-call"}]));
    let sent = messages(
        &vision,
        &[
            shown,
            calls.clone(),
            answered(json!([said("here"), picture("3")])),
            calls.clone(),
            answered(json!([picture("4")])),
        ],
    );
    assert_eq!(
        sent[0]["content"],
        json!([said("see"), source("1"), source("2"), said("and")])
    );
    assert_eq!(
        sent[2]["content"][0]["content"],
        json!([said("here"), source("3")])
    );
    assert_eq!(
        sent[4]["content"][0]["content"],
        json!([said("(see attached image)"), source("4")])
    );
    // A model that takes none is told that there was one.
    let sent = messages(&unmarked(), &[calls, answered(json!([picture("4")]))]);
    let told = sent[1]["content"][0]["content"].as_str().unwrap();
    assert!(!told.is_empty(), "{told}");
}

#[test]
fn texts_pass_as_they_were_written() {
    let odd = "a\"b\\c\u{1}\u{2028}é🦀</script>\r\n";
    let history = [
        user(odd),
        foreign(&json!([{"type": "text", "text": odd}])),
        user(odd),
    ];
    let sent = messages(&unmarked(), &history);
    for at in [0, 2] {
        assert_eq!(sent[at]["content"], odd);
    }
    assert_eq!(sent[1]["content"][0]["text"], odd);
}
