use serde_json::{Value, json};

use super::*;

fn request(messages: &[Value], purpose: Option<&str>) -> GenerateRequest {
    GenerateRequest {
        config: CallConfig {
            provider: PROVIDER.to_owned(),
            model: MODEL.to_owned(),
            reasoning_effort: None,
            temperature: None,
            max_tokens: None,
            stop: None,
            more: None,
        },
        purpose: purpose.map(str::to_owned),
        system: None,
        messages: messages.iter().map(Value::to_string).collect(),
        tools: Vec::new(),
        session_id: None,
        more: None,
    }
}

fn user(text: &str) -> Value {
    json!({"id": "m", "role": "user", "content": [{"type": "text", "text": text}], "source": {"kind": "user"}})
}

fn tool(text: &str) -> Value {
    let result = json!({"type": "tool-result", "toolCallId": "c", "content": [{"type": "text", "text": text}], "isError": false});
    json!({"id": "m", "role": "user", "content": [result], "source": {"kind": "tool", "callId": "c"}})
}

/// A fresh instance, with this configuration.
fn load(config: &Value) {
    let script = Script::read(&config.to_string()).unwrap();
    STATE.set(State {
        script: Some(script),
        attempts: Slots::default(),
    });
}

fn play(request: GenerateRequest) -> (Vec<Value>, Vec<u32>) {
    let attempt = Component::open(request).unwrap();
    let (mut chunks, mut waits) = (Vec::new(), Vec::new());
    while let Action::Emit(emission) = Component::next(attempt).unwrap() {
        waits.push(emission.after_ms);
        chunks.extend(
            emission
                .chunks
                .iter()
                .map(|chunk| serde_json::from_str::<Value>(chunk).unwrap()),
        );
    }
    Component::close(attempt);
    (chunks, waits)
}

fn say(text: &str) -> Vec<Value> {
    play(request(&[user(text)], None)).0
}

fn blocks(chunks: &[Value]) -> Vec<Value> {
    chunks
        .iter()
        .filter(|chunk| chunk["type"] == "block-end")
        .map(|chunk| chunk["block"].clone())
        .collect()
}

fn reason(chunks: &[Value]) -> Value {
    chunks.last().unwrap()["reason"].clone()
}

#[test]
fn a_text_is_streamed_in_words_and_ends_with_usage_and_finish() {
    load(&json!({"script": [{"text": "Hello,  wide\nworld. "}]}));
    let chunks = say("hi");
    let kinds: Vec<_> = chunks
        .iter()
        .map(|chunk| chunk["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "block-start",
            "text-delta",
            "text-delta",
            "text-delta",
            "block-end",
            "usage",
            "finish"
        ]
    );
    let joined: String = chunks
        .iter()
        .filter_map(|chunk| chunk["text"].as_str())
        .collect();
    assert_eq!(joined, "Hello,  wide\nworld. ");
    assert_eq!(
        blocks(&chunks),
        [json!({"type": "text", "text": "Hello,  wide\nworld. "})]
    );
    assert_eq!(reason(&chunks), json!({"kind": "stop"}));
    assert_eq!(chunks[5]["usage"]["outputTokens"], 5);
}

#[test]
fn calls_keep_their_arguments_as_written() {
    let calls = json!([{"name": "read", "arguments": {"file_path": "a.txt"}}, {"name": "x", "arguments": "{oops é"}, {"name": "y", "id": "mine"}]);
    load(&json!({"script": [{"reasoning": "Hm.", "text": "See.", "calls": calls}]}));
    let chunks = say("hi");
    let blocks = blocks(&chunks);
    assert_eq!(blocks[0], json!({"type": "reasoning", "text": "Hm."}));
    assert_eq!(blocks[2]["arguments"], r#"{"file_path":"a.txt"}"#);
    assert_eq!(blocks[3]["arguments"], "{oops é");
    assert_eq!(
        blocks[4],
        json!({"type": "tool-call", "id": "mine", "name": "y", "arguments": "{}"})
    );
    assert_ne!(blocks[2]["id"], blocks[3]["id"]);
    let streamed: String = chunks
        .iter()
        .filter(|chunk| chunk["index"] == 2)
        .filter_map(|chunk| chunk["argumentsDelta"].as_str())
        .collect();
    assert_eq!(streamed, r#"{"file_path":"a.txt"}"#);
    assert_eq!(reason(&chunks), json!({"kind": "tool-calls"}));
}

#[test]
fn the_first_entry_that_matches_and_is_not_spent_answers() {
    load(&json!({"script": [
        {"match": "^tea", "text": "1"}, {"times": 2, "text": "2"}, {"match": "tea", "text": "3", "times": "always"},
    ]}));
    let texts: Vec<_> = (0..5)
        .map(|_| blocks(&say("tea?"))[0]["text"].clone())
        .collect();
    assert_eq!(texts, ["1", "2", "2", "3", "3"]);
}

#[test]
fn an_exhausted_script_says_so_and_stays_within_a_line() {
    load(&json!({"script": [{"text": "1"}, {"match": "never", "text": "2"}]}));
    say("one");
    let failure = reason(&say(&"long ".repeat(200)))["failure"].clone();
    assert_eq!(failure["code"], "SCRIPT_EXHAUSTED");
    let message = failure["message"].as_str().unwrap();
    assert!(
        message.contains("1 were given, 1 of 2 entries are spent"),
        "{message}"
    );
    assert!(
        message.len() < 400 && message.contains("long long"),
        "{message}"
    );
}

#[test]
fn match_sees_what_came_in_since_the_model_spoke_and_no_standing_context() {
    let assistant = json!({"id": "m", "role": "assistant", "content": [{"type": "text", "text": "old"}], "source": {"kind": "model"}});
    let snapshot = json!({"id": "m", "role": "user", "content": [{"type": "text", "text": "cwd"}],
        "source": {"kind": "plugin", "plugin": "p", "form": "snapshot", "sections": []}});
    let messages = [user("before"), assistant, tool("a"), tool("b"), snapshot];
    let texts: Vec<_> = messages.iter().map(Value::to_string).collect();
    let parsed: Vec<_> = texts
        .iter()
        .map(|text| Json::parse(text).unwrap())
        .collect();
    assert_eq!(input::since_the_model_spoke(&parsed), "a\nb");
}

#[test]
fn a_failure_follows_what_was_said_before_it() {
    load(
        &json!({"script": [{"text": "Half", "error": {"code": "SERVER", "message": "down", "status": 503}}]}),
    );
    let chunks = say("hi");
    assert_eq!(blocks(&chunks), Vec::<Value>::new());
    assert_eq!(
        reason(&chunks),
        json!({"kind": "error", "failure": {"message": "down", "code": "SERVER", "status": 503}})
    );
}

#[test]
fn delays_come_before_the_first_and_between_the_pieces() {
    load(&json!({"script": [{"text": "a b", "delayMs": 30, "paceMs": 5}]}));
    assert_eq!(play(request(&[user("hi")], None)).1, [30, 5, 5, 5, 5, 5]);
}

#[test]
fn a_call_with_a_purpose_costs_no_answer_of_the_loop() {
    load(&json!({"script": [{"text": "1"}, {"purpose": "compaction", "text": "sum"}]}));
    let ask = |purpose| blocks(&play(request(&[user("hi")], Some(purpose))).0);
    assert_eq!(ask("probe")[0]["text"], "probe");
    assert_eq!(ask("session-title"), Vec::<Value>::new());
    assert_eq!(ask("compaction")[0]["text"], "sum");
    assert_eq!(blocks(&say("hi"))[0]["text"], "1");
}

#[test]
fn finish_and_usage_may_be_given() {
    load(
        &json!({"script": [{"text": "1", "finish": "max-tokens", "usage": {"inputTokens": 9, "outputTokens": 1, "cacheReadTokens": 3}}]}),
    );
    let chunks = say("hi");
    assert_eq!(reason(&chunks), json!({"kind": "max-tokens"}));
    assert_eq!(chunks[chunks.len() - 2]["usage"]["cacheReadTokens"], 3);
}

#[test]
fn a_bad_script_is_refused_with_the_place_and_the_reason() {
    let why = |config: Value| Script::read(&config.to_string()).unwrap_err();
    assert!(
        why(json!({"script": [{}, {"match": "("}]}))
            .starts_with("script[1].match is no regular expression")
    );
    assert_eq!(
        why(json!({"script": [{"times": 0}]})),
        "script[0].times must be a whole number above 0, or \"always\""
    );
    assert_eq!(
        why(json!({"script": [{"calls": [{}]}]})),
        "script[0].calls[0].name must be a text"
    );
    assert!(
        why(json!({"script": [{"tetx": "misspelt"}]}))
            .starts_with("script[0].tetx is no member of an answer")
    );
    assert_eq!(
        why(json!({"script": {}})),
        "script must be a list of answers"
    );
    assert_eq!(
        why(json!({"script": [{"error": {"code": "X"}}]})),
        "script[0].error.message must be a text"
    );
}

#[test]
fn another_model_or_an_effort_is_refused() {
    load(&json!({"script": []}));
    let mut config = request(&[], None).config;
    assert!(Component::prepare(config.clone()).is_ok());
    config.reasoning_effort = Some("high".to_owned());
    assert_eq!(
        Component::prepare(config.clone()).err().unwrap().code,
        "UNSUPPORTED_REASONING_EFFORT"
    );
    config.model = "other".to_owned();
    assert_eq!(
        Component::prepare(config).err().unwrap().code,
        "UNKNOWN_MODEL"
    );
}
