use serde_json::{Value, json};

use super::*;
use adapter_support::{Picture, Pictures};
use guest_support::types::Part;

const VISION: &str = "deepseek-v4-flash-vision-exp";

/// Pictures of 30 bytes and 20x10 pixels, but for those that are gone.
#[derive(Default)]
struct Album(Vec<String>);

impl Pictures for Album {
    fn render(
        &mut self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<Picture, Error> {
        self.0
            .push(format!("{attachment} {max_pixels:?} {max_bytes:?}"));
        match attachment {
            "gone" => Err(error("NOT_FOUND", "there is no \"x\"\n")),
            "abort" => Err(error("CANCELLED", "given up")),
            _ => Ok(Picture {
                id: format!("v-{attachment}"),
                media_type: "image/png".to_owned(),
                bytes: 30,
                width: 20,
                height: 10,
                alpha: false,
            }),
        }
    }
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(id: &str) -> Value {
    json!({"type": "image", "attachment": {"attachmentId": id, "mediaType": "image/jpeg", "bytes": 30}})
}

fn result(call: &str, content: &[Value]) -> Value {
    json!({"type": "tool-result", "toolCallId": call, "content": content, "isError": false})
}

fn message(role: &str, content: &[Value]) -> String {
    json!({"id": "m", "role": role, "content": content, "source": {"kind": "user"}}).to_string()
}

/// The messages of the body; a picture is shown as `<id>`.
fn sent_to(
    model: &str,
    config: &Value,
    messages: Vec<String>,
    album: &mut Album,
) -> Result<Value, Error> {
    let settings = Settings::read(&config.to_string()).unwrap();
    let request = GenerateRequest {
        config: CallConfig {
            provider: settings::PROVIDER.to_owned(),
            model: model.to_owned(),
            reasoning_effort: None,
            temperature: None,
            max_tokens: None,
            stop: None,
            more: None,
        },
        purpose: None,
        system: None,
        messages,
        tools: Vec::new(),
        session_id: None,
        more: None,
    };
    let request = request::build(&settings, &request, album)?;
    let body: String = request
        .body
        .into_iter()
        .map(|part| match part {
            Part::Bytes(bytes) => String::from_utf8(bytes).unwrap(),
            Part::PictureBase64(id) => format!("<{id}>"),
            Part::Picture(_) => panic!("base64 only"),
        })
        .collect();
    Ok(serde_json::from_str::<Value>(&body).unwrap()["messages"].take())
}

fn sent(config: &Value, messages: Vec<String>) -> Value {
    sent_to(VISION, config, messages, &mut Album::default()).unwrap()
}

fn picture(id: &str) -> Value {
    json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,<v-{id}>")}})
}

#[test]
fn each_picture_stands_in_its_place_behind_a_text_that_names_it() {
    let said = [text("See "), image("a"), text(" and"), image("b")];
    assert_eq!(
        sent(
            &json!({}),
            vec![message("user", &said), message("user", &[image("a")])]
        ),
        json!([
            {"role": "user", "content": [
                text("See "),
                text("\n[Image a, 20x10]"), picture("a"),
                text(" and"),
                text("\n[Image b, 20x10]"), picture("b"),
            ]},
            {"role": "user", "content": [text("[Image a, 20x10]"), picture("a")]},
        ])
    );
}

#[test]
fn pictures_of_tools_follow_their_answers_in_one_message() {
    let messages = vec![
        message(
            "assistant",
            &[
                json!({"type": "tool-call", "id": "c1", "name": "n", "arguments": "{}"}),
                json!({"type": "tool-call", "id": "c2", "name": "n", "arguments": "{}"}),
            ],
        ),
        message("user", &[result("c1", &[text("one"), image("a")])]),
        message("user", &[result("c2", &[image("b"), image("a")])]),
        message("user", &[text("go on")]),
        message("user", &[result("c3", &[image("b")])]),
    ];
    let lead = text("Images of the tool results above, in their order:");
    let sent = sent(&json!({}), messages);
    let expected = json!([
        {"role": "tool", "tool_call_id": "c1", "content": "one\n[Image a, 20x10]"},
        {"role": "tool", "tool_call_id": "c2", "content": "[Image b, 20x10]\n[Image a, 20x10]"},
        {"role": "user", "content": [lead, picture("a"), picture("b"), picture("a")]},
        {"role": "user", "content": "go on"},
        {"role": "tool", "tool_call_id": "c3", "content": "[Image b, 20x10]"},
        {"role": "user", "content": [lead, picture("b")]},
    ]);
    assert_eq!(Value::from(&sent.as_array().unwrap()[1..]), expected);
}

#[test]
fn each_picture_is_rendered_once_within_the_models_budget() {
    let twice = message("user", &[image("a"), image("b"), image("a")]);
    let models = json!({"models": [
        {"id": "low", "inputModalities": ["text", "image"], "imageDetail": "low"},
        {"id": "own", "inputModalities": ["image"], "imagePixelBudget": 5, "imageMaxBytes": 6},
    ]});
    for (model, config, budget) in [
        (VISION, json!({}), "Some(640000) Some(1048576)"),
        ("low", models.clone(), "Some(262144) Some(1048576)"),
        ("own", models, "Some(5) Some(6)"),
    ] {
        let mut album = Album::default();
        sent_to(model, &config, vec![twice.clone()], &mut album).unwrap();
        assert_eq!(album.0, [format!("a {budget}"), format!("b {budget}")]);
    }
}

#[test]
fn a_model_that_reads_text_alone_gets_no_picture() {
    for model in ["deepseek-v4-flash", "unknown"] {
        let messages = vec![message("user", &[image("a")])];
        let refused = sent_to(model, &json!({}), messages, &mut Album::default()).unwrap_err();
        assert_eq!(refused.code, "UNSUPPORTED_CONTENT");
    }
    let why = Settings::read(r#"{"models":[{"id":"m","imageMaxBytes":5}]}"#).unwrap_err();
    assert!(why.contains("the model m has imageMaxBytes"), "{why}");
}

#[test]
fn a_picture_in_another_role_is_refused() {
    for role in ["assistant", "system"] {
        let messages = vec![message(role, &[text("x"), image("a")])];
        let refused = sent_to(VISION, &json!({}), messages, &mut Album::default()).unwrap_err();
        assert_eq!(refused.code, "UNSUPPORTED_CONTENT", "{role}");
    }
}

#[test]
fn a_picture_that_is_gone_becomes_a_note_and_a_caller_that_gave_up_is_heard() {
    let said = |id: &str| vec![message("user", &[text("See"), image(id)])];
    assert_eq!(
        sent(&json!({}), said("gone")),
        json!([{"role": "user", "content":
            "See[Image gone: not shown, because there is no \"x\"\n]"}])
    );
    let refused = sent_to(VISION, &json!({}), said("abort"), &mut Album::default()).unwrap_err();
    assert_eq!(refused.code, "CANCELLED");
}

#[test]
fn the_oldest_pictures_are_left_out_of_a_request_that_would_be_too_large() {
    let note = "[An earlier image is left out here, to keep the request within its limits.]";
    let messages = || {
        vec![
            message("user", &[result("c", &[image("a")])]),
            message("user", &[text("x"), image("b"), image("c")]),
        ]
    };
    // 30 bytes are 40 of base64: three do not fit into 100.
    let inline = json!({"maxInlineRequestImageBytes": 100, "inlineImageOffloadByteQuantum": 1});
    let number = json!({"maxImagesPerRequest": 2, "imageOffloadCountQuantum": 1});
    let raw = json!({"maxRequestFilesBytes": 89, "imageOffloadByteQuantum": 1});
    for config in [inline, number, raw] {
        assert_eq!(
            sent(&config, messages()),
            json!([
                {"role": "tool", "tool_call_id": "c", "content": note},
                {"role": "user", "content": [
                    text("x"),
                    text("\n[Image b, 20x10]"), picture("b"),
                    text("\n[Image c, 20x10]"), picture("c"),
                ]},
            ]),
            "{config}"
        );
    }
    // What is left out before is not rendered; a message without any left is text.
    let mut album = Album::default();
    let config = json!({"maxImagesPerRequest": 1, "imageOffloadCountQuantum": 1});
    let both = vec![
        message("user", &[image("a")]),
        message("user", &[image("b")]),
    ];
    let sent = sent_to(VISION, &config, both, &mut album).unwrap();
    assert_eq!(sent[0], json!({"role": "user", "content": note}));
    assert_eq!(album.0.len(), 1);
}

#[test]
fn a_quantum_is_within_its_bound() {
    for (config, said) in [
        (
            json!({"imageOffloadCountQuantum": 601}),
            "imageOffloadCountQuantum is 601",
        ),
        (
            json!({"inlineImageOffloadByteQuantum": 30, "maxInlineRequestImageBytes": 20}),
            "from 1 to maxInlineRequestImageBytes, which is 20",
        ),
    ] {
        let why = Settings::read(&config.to_string()).unwrap_err();
        assert!(why.contains(said), "{why}");
    }
    Settings::read(r#"{"maxInlineRequestImageBytes": 20}"#).unwrap();
}
