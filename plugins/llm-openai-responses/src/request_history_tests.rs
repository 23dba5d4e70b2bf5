//! What was said before, as the body has it.

use super::*;

#[test]
fn the_model_s_own_words_go_back_with_the_ids_that_the_provider_gave_them() {
    let item = r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"Z"}"#;
    let long = format!("msg_{}", "x".repeat(61));
    let at_most = format!("msg_{}", "x".repeat(60));
    let signature =
        |id: &str| json!({"type": "text", "textSignature": json!({"v": 1, "id": id}).to_string()});
    let content = json!([
        {"type": "reasoning", "text": "Hm"},
        {"type": "reasoning", "text": "unsigned"},
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
        {"type": "text", "text": "c"},
        {"type": "text", "text": "d"},
        {"type": "text", "text": ""},
        {"type": "text", "text": "e"},
        {"type": "tool-call", "id": "c1|fc_1", "name": "f", "arguments": "{\"x\": 1}"},
        {"type": "tool-call", "id": "c2|item", "name": "f", "arguments": "not json"},
        {"type": "tool-call", "id": "c3", "name": "f", "arguments": "{}"},
    ]);
    let blocks = json!([
        {"type": "reasoning", "thinkingSignature": item},
        {"type": "reasoning"},
        {"type": "text", "textSignature": "{\"v\":1,\"id\":\"msg_1\",\"phase\":\"commentary\"}"},
        {"type": "text", "textSignature": "msg_plain"},
        signature(&long),
        signature(&at_most),
        {"type": "text"},
        {"type": "text"},
        {"type": "tool-call"},
        {"type": "tool-call"},
        {"type": "tool-call"},
    ]);
    let results =
        ["c1|fc_1", "c2|item", "c3"].map(|id| result(id, &json!([{"type": "text", "text": "r"}])));
    let mut messages = vec![hello(), own(&content, &blocks)];
    messages.extend(results);
    let sent = body(&profile(), &request("thinker", &messages));
    let message = |text: &str, id: &str| {
        json!({"type": "message", "role": "assistant", "status": "completed", "id": id,
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
    };
    let mut commented = message("a", "msg_1");
    commented["phase"] = json!("commentary");
    let call = |call: &str, arguments: &str| json!({"type": "function_call", "call_id": call, "name": "f", "arguments": arguments});
    let mut first = call("c1", "{\"x\":1}");
    first["id"] = json!("fc_1");
    let output =
        |call: &str| json!({"type": "function_call_output", "call_id": call, "output": "r"});
    let hashed = format!("msg_{}", hash(&long));
    assert_eq!(
        sent["input"].as_array().unwrap()[1..],
        [
            serde_json::from_str(item).unwrap(),
            commented,
            message("b", "msg_plain"),
            message("c", &hashed),
            message("d", &at_most),
            message("e", "msg_pi_1_4"),
            first,
            call("c2", "{}"),
            call("c3", "{}"),
            output("c1"),
            output("c2"),
            output("c3"),
        ]
    );
    assert!(hashed.len() <= MAX_ID);
}

#[test]
fn a_signature_that_is_no_item_is_left_out_and_one_that_is_no_id_is_replaced() {
    for damaged in ["", "{", "[]", "{\"type\":\"message\"}", "\\", "\u{0}"] {
        let content = json!([{"type": "reasoning", "text": "Hm"}, {"type": "text", "text": "a"}]);
        let blocks = json!([
            {"type": "reasoning", "thinkingSignature": damaged},
            {"type": "text", "textSignature": damaged},
        ]);
        let sent = body(
            &profile(),
            &request("thinker", &[hello(), own(&content, &blocks)]),
        );
        let items = sent["input"].as_array().unwrap();
        let message = items.last().unwrap();
        assert_eq!(items.len(), 2, "{damaged:?}: {items:?}");
        assert_eq!(message["content"][0]["text"], "a");
        if damaged.is_empty() || damaged.starts_with(['{', '[']) && damaged != "[]" {
            assert_eq!(message["id"], "msg_pi_1", "{damaged:?}");
        }
    }
}

#[test]
fn what_another_model_said_is_plain() {
    let content = json!([
        {"type": "reasoning", "text": "Hm"},
        {"type": "text", "text": "a"},
        {"type": "tool-call", "id": "c1|fc_1", "name": "f", "arguments": "{}"},
    ]);
    let blocks = json!([
        {"type": "reasoning", "thinkingSignature": "{\"type\":\"reasoning\",\"id\":\"rs_1\"}"},
        {"type": "text", "textSignature": "{\"v\":1,\"id\":\"msg_1\"}"},
        {"type": "tool-call"},
    ]);
    let messages = [
        hello(),
        own(&content, &blocks),
        result("c1|fc_1", &json!([])),
    ];
    let sent = body(&profile(), &request("m", &messages));
    let message = |text: &str, id: &str| {
        json!({"type": "message", "role": "assistant", "status": "completed", "id": id,
            "content": [{"type": "output_text", "text": text, "annotations": []}]})
    };
    assert_eq!(
        sent["input"].as_array().unwrap()[1..],
        [
            message("Hm", "msg_pi_1"),
            message("a", "msg_pi_1_1"),
            json!({"type": "function_call", "call_id": "c1", "name": "f", "arguments": "{}"}),
            json!({"type": "function_call_output", "call_id": "c1", "output": "(no output)"}),
        ]
    );
}

#[test]
fn ids_of_other_models_are_made_to_fit_and_stay_different() {
    for same in ["call_00", "toolu_01-A", &"x".repeat(64)] {
        assert_eq!(foreign_call_id(same), same);
    }
    assert_eq!(foreign_call_id("call_1|fc_2"), "call_1");
    let odd = [
        "",
        "a.b",
        "a b",
        "é",
        "a|b",
        "a|c",
        "\\u0000",
        &"x".repeat(65),
        &"x".repeat(66),
        "|fc_1",
    ];
    let made: std::collections::BTreeSet<_> = odd.iter().map(|id| foreign_call_id(id)).collect();
    // The last one's call has no id, as the first.
    assert_eq!(made.len(), odd.len() - 1);
    for id in made {
        assert!(id.len() <= MAX_ID, "{id}");
        assert!(
            id.chars()
                .all(|c| c.is_ascii_alphanumeric() || "_-".contains(c)),
            "{id}"
        );
    }
}

#[test]
fn pictures_stand_where_they_were_said_and_in_the_result_that_has_them() {
    let call = json!({"role": "assistant", "source": {"kind": "model", "provider": "x", "model": "y"},
        "content": [{"type": "tool-call", "id": "c1", "name": "f", "arguments": "{}"}]});
    let messages = [
        user(
            &json!([{"type": "text", "text": "See"}, image("one"), {"type": "text", "text": "?"}]),
        ),
        call,
        result(
            "c1",
            &json!([{"type": "text", "text": "shot"}, image("two")]),
        ),
    ];
    let sent = body(&profile(), &request("thinker", &messages));
    let picture = |id: &str| json!({"type": "input_image", "detail": "auto", "image_url": format!("data:image/png;base64,<v-{id}>")});
    let said = |text: &str| json!({"type": "input_text", "text": text});
    assert_eq!(
        sent["input"][0],
        json!({"role": "user", "content": [said("See"), picture("one"), said("?")]})
    );
    assert_eq!(
        sent["input"][2],
        json!({"type": "function_call_output", "call_id": "c1", "output": [said("shot"), picture("two")]})
    );
    // A model that reads text gets a line for it, and the output stays a text.
    let sent = body(&profile(), &request("m", &messages));
    assert!(
        sent["input"][2]["output"]
            .as_str()
            .unwrap()
            .starts_with("shot")
    );
    assert!(!sent.to_string().contains("input_image"));
    // One that cannot be rendered costs itself alone.
    let gone = request("thinker", &[user(&json!([image("gone")]))]);
    let sent = body(&profile(), &gone);
    assert_eq!(
        sent["input"][0]["content"],
        json!([said("(image omitted: the attachment is not there)")])
    );
    // An id is no JSON: what stands in it is what is asked for.
    let odd = request("thinker", &[user(&json!([image("x\\")]))]);
    assert!(text(&open(&profile(), &odd).unwrap()).contains("<v-x\\>"));
}

#[test]
fn half_a_surrogate_pair_never_reaches_the_body() {
    let mut request = request("thinker", &[]);
    request.messages = vec![
        r#"{"role":"user","content":[{"type":"text","text":"a\ud800b\/"}],"source":{"kind":"user"}}"#.to_owned(),
    ];
    let sent = text(&open(&profile(), &request).unwrap());
    assert!(serde_json::from_str::<Value>(&sent).is_ok(), "{sent}");
    assert!(
        sent.contains(r#""text":"ab\/""#) || sent.contains(r#""text":"ab/""#),
        "{sent}"
    );
}
