//! A provider that has the key quotes it wherever it can. What becomes a failure of ours has it
//! in no form; what the model says is content, and stays.

use dsh_model::BlockAssembler;
use dsh_session::Json;
use mock_provider::Answer;
use serde_json::{Value, json};

use crate::case::{self, Case, cases};
use crate::llm_differences::Differences;
use crate::{loaded, run};

const KEY: &str = "sk-live/0123+456789=";
/// As it is, in an address, and in a header of basic authentication.
const FORMS: [&str; 3] = [
    KEY,
    "sk-live%2F0123%2B456789%3D",
    // "user:" before it.
    "dXNlcjpzay1saXZlLzAxMjMrNDU2Nzg5PQ==",
];
/// What no text may have of them; of the last one what the key alone decides.
const FORBIDDEN: [&str; 3] = [KEY, FORMS[1], "zay1saXZlLzAxMjMrNDU2Nzg5P"];

fn with_key(protocol: &str) -> Case {
    let mut case = cases(protocol, &Differences::beside(&case::root()))
        .into_iter()
        .find(|case| case.name.ends_with("/text-basic"))
        .expect("every protocol has this case");
    case.request["apiKey"] = json!(KEY);
    case
}

/// A failure inside of a stream, in the words of each protocol.
fn events(protocol: &str, words: &str) -> Vec<String> {
    let error = json!({"message": words, "type": "x", "code": words});
    let event = |kind: &str, data: Value| format!("event: {kind}\ndata: {data}\n\n");
    match protocol {
        "anthropic-messages" => vec![event("error", json!({"type": "error", "error": error}))],
        "openai-responses" => vec![
            event(
                "error",
                json!({"type": "error", "message": words, "code": words}),
            ),
            event(
                "response.failed",
                json!({"type": "response.failed", "response": {"id": words, "status": "failed", "error": error}}),
            ),
        ],
        _ => vec![
            format!("data: {}\n\n", json!({"error": error})),
            format!(
                "data: {}\n\ndata: [DONE]\n\n",
                json!({"choices": [{"index": 0, "delta": {"content": "x"}, "finish_reason": words}]})
            ),
        ],
    }
}

fn answers(protocol: &str) -> Vec<(String, Answer)> {
    let mut answers = Vec::new();
    for form in FORMS {
        let words = format!("incorrect API key provided: {form}, see {form}");
        let body = json!({"error": {"message": words, "type": form, "code": form, "param": form}});
        for status in [400, 401, 403, 404, 429, 500, 529] {
            let answer = Answer::new(status, body.to_string())
                .header("x-request-id", format!("req {form}"))
                .header("request-id", form)
                .header("retry-after", form);
            answers.push((format!("{status} {form}"), answer));
        }
        answers.push((format!("plain {form}"), Answer::new(401, words.clone())));
        answers.push((
            format!("page {form}"),
            Answer::new(502, format!("<h1>{words}</h1>")),
        ));
        let location = format!("/{form}?key={form}");
        answers.push((
            format!("away {form}"),
            Answer::new(302, "").header("location", location),
        ));
        for event in events(protocol, &words) {
            answers.push((format!("event {form}"), Answer::sse(event.clone())));
            answers.push((
                format!("event in pieces {form}"),
                Answer::sse(event).split(&[3]),
            ));
        }
        answers.push((
            format!("no JSON {form}"),
            Answer::sse(format!("data: {{{words}\n\n")),
        ));
        answers.push((
            format!("a page {form}"),
            Answer::new(200, format!("<h1>{words}</h1>")),
        ));
    }
    answers
}

async fn nothing_is_quoted(protocol: &str) {
    let loaded = loaded(protocol).await;
    let case = with_key(protocol);
    for (what, answer) in answers(protocol) {
        let (chunks, requests) = run(&loaded, &case, answer).await;
        let sent = requests[0]
            .headers
            .iter()
            .any(|(_, value)| value.contains(KEY));
        assert!(sent, "{protocol}: the provider has the key");
        let last = chunks.last().unwrap();
        assert!(
            last.as_str().contains(r#""kind":"error""#),
            "{protocol}, {what}: {last:?}"
        );
        for chunk in &chunks {
            for form in FORBIDDEN {
                assert!(
                    !chunk.as_str().contains(form),
                    "{protocol}, {what}: {chunk:?}"
                );
            }
        }
    }
}

/// A text in two deltas that part the key.
fn speech(protocol: &str) -> String {
    let (front, back) = KEY.split_at(9);
    let data = |event: Value| format!("data: {event}\n\n");
    let named = |event: Value| {
        let kind = event["type"].as_str().unwrap().to_owned();
        format!("event: {kind}\ndata: {event}\n\n")
    };
    match protocol {
        "anthropic-messages" => [
            json!({"type": "message_start", "message": {"id": "m", "usage": {"input_tokens": 1, "output_tokens": 1}}}),
            json!({"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": front}}),
            json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": back}}),
            json!({"type": "content_block_stop", "index": 0}),
            json!({"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 2}}),
            json!({"type": "message_stop"}),
        ]
        .map(named)
        .concat(),
        "openai-responses" => {
            let item = json!({"type": "message", "id": "i", "role": "assistant", "status": "completed", "content": [{"type": "output_text", "text": KEY}]});
            [
                json!({"type": "response.created", "response": {"id": "r"}}),
                json!({"type": "response.output_item.added", "output_index": 0, "item": {"type": "message", "id": "i", "role": "assistant", "content": []}}),
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "i", "delta": front}),
                json!({"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "item_id": "i", "delta": back}),
                json!({"type": "response.output_item.done", "output_index": 0, "item": item}),
                json!({"type": "response.completed", "response": {"id": "r", "status": "completed", "usage": {"input_tokens": 1, "output_tokens": 2}}}),
            ]
            .map(named)
            .concat()
        }
        _ => {
            let delta = |text: &str| json!({"id": "r", "choices": [{"index": 0, "delta": {"content": text}}]});
            let end = json!({"id": "r", "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]});
            [delta(front), delta(back), end].map(data).concat() + "data: [DONE]\n\n"
        }
    }
}

async fn what_the_model_says_stays(protocol: &str) {
    let loaded = loaded(protocol).await;
    let (chunks, _) = run(&loaded, &with_key(protocol), Answer::sse(speech(protocol))).await;
    let mut assembler = BlockAssembler::new();
    chunks.iter().for_each(|chunk: &Json| assembler.push(chunk));
    let said = format!(r#"[{{"type":"text","text":"{KEY}"}}]"#);
    let blocks = assembler.blocks();
    let texts: Vec<&str> = blocks.iter().map(Json::as_str).collect();
    assert_eq!(format!("[{}]", texts.join(",")), said, "{protocol}");
}

#[tokio::test]
async fn a_provider_that_quotes_the_key_gets_it_into_no_failure_of_any_protocol() {
    for protocol in [
        "deepseek",
        "openai-completions",
        "openai-responses",
        "anthropic-messages",
    ] {
        nothing_is_quoted(protocol).await;
    }
}

#[tokio::test]
async fn what_the_model_says_of_a_key_is_content() {
    for protocol in [
        "deepseek",
        "openai-completions",
        "openai-responses",
        "anthropic-messages",
    ] {
        what_the_model_says_stays(protocol).await;
    }
}
