use serde_json::{Value, json};

use super::*;
use guest_support::types::Part;

fn load(config: &Value) {
    let settings = Settings::read(&config.to_string()).unwrap();
    STATE.set(State {
        settings: Some(settings),
        attempts: Slots::default(),
    });
}

fn config(model: &str) -> CallConfig {
    CallConfig {
        provider: settings::PROVIDER.to_owned(),
        model: model.to_owned(),
        reasoning_effort: None,
        temperature: None,
        max_tokens: None,
        stop: None,
        more: None,
    }
}

fn request(messages: &[&str]) -> GenerateRequest {
    GenerateRequest {
        config: config("deepseek-v4-flash"),
        purpose: None,
        system: None,
        messages: messages.iter().map(|text| (*text).to_owned()).collect(),
        tools: Vec::new(),
        session_id: None,
        more: None,
    }
}

fn open(request: GenerateRequest) -> (u32, String) {
    let attempt = Component::open(request).unwrap();
    let Action::Send(request) = Component::next(attempt).unwrap() else {
        panic!("sends")
    };
    let [Part::Bytes(body)] = &request.body[..] else {
        panic!("one piece")
    };
    (attempt, String::from_utf8(body.clone()).unwrap())
}

fn stream(payloads: &[&str]) -> Vec<String> {
    load(&json!({}));
    let (attempt, _) = open(request(&[]));
    Component::head(attempt, 200, Vec::new());
    let body: String = payloads
        .iter()
        .map(|payload| format!("data: {payload}\n\n"))
        .collect();
    Component::body(attempt, body.into_bytes())
}

#[test]
fn the_body_keeps_its_order_and_what_it_was_given_as_it_stands() {
    load(&json!({}));
    let message = r#"{"role":"assistant","content":[{"type":"text","text":"a\ud800\/"},{"type":"tool-call","id":"c","name":"n","arguments":"{\"x\":\"\udfff"}]}"#;
    let mut asked = request(&[message]);
    asked.system = Some(String::new());
    asked.tools = vec![
        r#"{"name":"n","description":"d","parameters":{ "b":1, "a":2 },"timeoutMs":5}"#.to_owned(),
    ];
    asked.config.temperature = Some(1.0);
    asked.config.max_tokens = Some(7);
    asked.config.stop = Some(Vec::new());
    assert_eq!(
        open(asked).1,
        r#"{"model":"deepseek-v4-flash","messages":[{"role":"system","content":""},{"role":"assistant","content":"a\ud800\/","tool_calls":[{"id":"c","type":"function","function":{"name":"n","arguments":"{\"x\":\"\udfff"}}]}],"stream":true,"stream_options":{"include_usage":true},"tools":[{"type":"function","function":{"name":"n","description":"d","parameters":{ "b":1, "a":2 }}}],"temperature":1,"max_tokens":7,"stop":[]}"#
    );
}

#[test]
fn defaults_are_filled_in_and_named() {
    load(&json!({}));
    let prepared = Component::prepare(config("deepseek-v4-flash")).unwrap();
    assert_eq!(prepared.config.reasoning_effort.as_deref(), Some("high"));
    assert_eq!(prepared.config.max_tokens, Some(256_000));
    assert_eq!(prepared.defaulted, ["reasoningEffort", "maxTokens"]);
    let mut given = config("deepseek-v4-flash");
    given.reasoning_effort = Some("max".to_owned());
    given.max_tokens = Some(5);
    let prepared = Component::prepare(given).unwrap();
    assert_eq!(
        (prepared.config.max_tokens, prepared.defaulted.len()),
        (Some(5), 0)
    );
}

#[test]
fn a_model_that_is_not_listed_is_served_with_the_deployment_s_defaults() {
    load(
        &json!({"maxTokens": 9, "defaultContextWindow": 50, "models": [{"id": "m", "contextWindow": 7, "maxTokens": 3}]}),
    );
    let info =
        |id| serde_json::from_str::<Value>(&Component::prepare(config(id)).unwrap().model).unwrap();
    assert_eq!(
        (
            &info("m")["context"]["contextWindow"],
            &info("m")["defaultMaxTokens"]
        ),
        (&json!(7), &json!(3))
    );
    assert_eq!(
        (
            &info("x")["context"]["contextWindow"],
            &info("x")["defaultMaxTokens"]
        ),
        (&json!(50), &json!(9))
    );
    assert_eq!(info("x")["name"], "x");
}

#[test]
fn the_route_says_where_it_sends_and_with_what() {
    load(
        &json!({"baseURL": "http://127.0.0.1:9/v1/", "apiKeyEnv": "MY_KEY", "streamIdleTimeoutMs": 5, "retryPolicy": {"mode": "always"}}),
    );
    let routes = Component::list_routes().unwrap();
    let route: Value = serde_json::from_str(&routes[0]).unwrap();
    assert_eq!(route["provider"], "deepseek-official");
    assert_eq!(route["baseURL"], "http://127.0.0.1:9/v1/");
    assert_eq!(route["credential"], "MY_KEY");
    assert_eq!(route["idleTimeoutMs"], 5);
    assert_eq!(route["retryPolicy"], json!({"mode": "always"}));
    assert_eq!(route["models"].as_array().unwrap().len(), 3);
    let modalities = |at: usize| &route["models"][at]["inputModalities"];
    assert_eq!(modalities(0), &json!(["text"]));
    assert_eq!(modalities(2), &json!(["text", "image"]));
    let efforts: Vec<_> = route["models"][0]["reasoning"]["efforts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|effort| &effort["id"])
        .collect();
    assert_eq!(efforts, ["off", "low", "high", "max"]);
}

#[test]
fn a_deployment_without_thinking_offers_off_alone() {
    load(&json!({"thinking": "disabled"}));
    let prepared = Component::prepare(config("deepseek-v4-pro")).unwrap();
    assert_eq!(prepared.config.reasoning_effort.as_deref(), Some("off"));
    let mut asked = request(&[]);
    asked.config.reasoning_effort = Some("low".to_owned());
    assert_eq!(
        Component::open(asked).unwrap_err().code,
        "UNSUPPORTED_REASONING_EFFORT"
    );
    let why = Settings::read(r#"{"thinking":"disabled","reasoningEffort":"high"}"#).unwrap_err();
    assert_eq!(why, "reasoningEffort must be one of off, not high");
    assert!(
        Settings::read(r#"{"models":[{"id":"a"},{"id":"a"}]}"#)
            .unwrap_err()
            .contains("listed twice")
    );
}

#[test]
fn halves_of_a_pair_in_two_deltas_are_whole_in_the_block() {
    let chunks = stream(&[
        r#"{"choices":[{"delta":{"content":"a\ud83e"}}]}"#,
        r#"{"choices":[{"delta":{"content":"\udd80"}}]}"#,
        "[DONE]",
    ]);
    assert_eq!(
        chunks[1],
        r#"{"type":"text-delta","index":0,"text":"a\ud83e"}"#
    );
    let block = serde_json::from_str::<Value>(&chunks[3]).unwrap();
    assert_eq!(block["block"]["text"], "a🦀");
}

#[test]
fn blocks_interleave_and_calls_go_by_the_provider_s_index() {
    let chunks = stream(&[
        r#"{"choices":[{"delta":{"content":"x","reasoning_content":"r","tool_calls":[{"index":1,"id":"b","function":{"name":"B"}},{"index":0,"id":"a","function":{"arguments":"{"}}]}}]}"#,
        r#"{"choices":[{"delta":{"reasoning_content":"s","tool_calls":[{"index":0,"id":null,"function":{"name":"A","arguments":"}"}}]},"finish_reason":"tool_calls"}],"usage":null}"#,
        "[DONE]",
    ]);
    let blocks: Vec<Value> = chunks
        .iter()
        .map(|chunk| serde_json::from_str::<Value>(chunk).unwrap())
        .filter(|chunk| chunk["type"] == "block-end")
        .map(|chunk| chunk["block"].clone())
        .collect();
    assert_eq!(
        blocks,
        [
            json!({"type": "reasoning", "text": "rs"}),
            json!({"type": "text", "text": "x"}),
            json!({"type": "tool-call", "id": "b", "name": "B", "arguments": ""}),
            json!({"type": "tool-call", "id": "a", "name": "A", "arguments": "{}"}),
        ]
    );
    assert!(chunks.last().unwrap().contains("tool-calls"));
}

#[test]
fn nothing_follows_a_finish() {
    load(&json!({}));
    let (attempt, _) = open(request(&[]));
    Component::head(attempt, 200, Vec::new());
    assert_eq!(
        Component::body(attempt, b"data: {\n\ndata: {}\n\n".to_vec()).len(),
        1
    );
    assert_eq!(
        Component::body(attempt, b"data: [DONE]\n\n".to_vec()).len(),
        0
    );
    assert_eq!(Component::end(attempt, EndCause::Complete).len(), 0);
}

#[test]
fn a_body_that_never_came_is_empty_and_one_that_broke_off_is_closed() {
    for (body, code) in [
        (&b""[..], "EMPTY_RESPONSE"),
        (b"data: {}\n", "STREAM_CLOSED"),
    ] {
        load(&json!({}));
        let (attempt, _) = open(request(&[]));
        Component::head(attempt, 200, Vec::new());
        Component::body(attempt, body.to_vec());
        let chunks = Component::end(attempt, EndCause::Complete);
        assert!(chunks.len() == 1 && chunks[0].contains(code), "{chunks:?}");
    }
}

#[test]
fn an_error_s_body_is_bounded_and_its_status_counts_even_where_it_breaks_off() {
    load(&json!({}));
    let (attempt, _) = open(request(&[]));
    Component::head(attempt, 503, Vec::new());
    for _ in 0..3 {
        Component::body(attempt, vec![b'x'; ERROR_BODY]);
    }
    let chunks = Component::end(attempt, EndCause::Failed(error("TRANSPORT", "reset")));
    assert!(
        chunks[0].contains("\"SERVER\"") && chunks[0].len() < 500,
        "{chunks:?}"
    );
}

#[test]
fn an_unknown_handle_is_no_trap() {
    load(&json!({}));
    assert_eq!(Component::next(7).err().unwrap().code, "INVALID");
    assert_eq!(Component::body(7, Vec::new()).len(), 0);
    Component::close(7);
}

#[test]
fn an_error_object_in_the_stream_is_a_failure_with_its_words() {
    for (error, code, message) in [
        (
            r#"{"message":"Insufficient Balance","type":"unknown_error","code":"invalid_request_error"}"#,
            "QUOTA",
            "Insufficient Balance",
        ),
        (r#"{"message":"slow","code":429}"#, "RATE_LIMIT", "slow"),
        (r#"{"message":"busy","code":"503"}"#, "SERVER", "busy"),
        (r#"{"message":"gone","code":404}"#, "HTTP_404", "gone"),
        (
            r#"{"message":"maximum context length is 9 tokens","code":400}"#,
            "CONTEXT_WINDOW_EXCEEDED",
            "maximum context length is 9 tokens",
        ),
        (
            r#""the server is overloaded""#,
            "SERVER",
            "the server is overloaded",
        ),
        (r#"{"odd":1}"#, "UNKNOWN", r#"{"odd":1}"#),
    ] {
        let payload = format!(r#"{{"error":{error}}}"#);
        let text = r#"{"choices":[{"delta":{"content":"a"}}]}"#;
        let chunks = stream(&[text, &payload, "[DONE]"]);
        assert_eq!(chunks.len(), 3, "{chunks:?}");
        let finish: Value = serde_json::from_str(&chunks[2]).unwrap();
        assert_eq!(
            finish["reason"]["failure"],
            json!({"message": message, "code": code}),
            "{error}"
        );
    }
    let long = format!(r#"{{"error":{{"message":"{}"}}}}"#, "x".repeat(100_000));
    assert!(stream(&[&long])[0].len() < 20_000);
}

#[test]
fn a_page_of_html_with_status_200_is_told_as_one() {
    for cause in [
        EndCause::Complete,
        EndCause::Failed(error("TRANSPORT", "reset")),
    ] {
        load(&json!({}));
        let (attempt, _) = open(request(&[]));
        Component::head(attempt, 200, Vec::new());
        Component::body(attempt, b" <!doctype html>\n".to_vec());
        Component::body(attempt, b"<title>Sign in</title>".to_vec());
        let chunks = Component::end(attempt, cause);
        let finish: Value = serde_json::from_str(&chunks[0]).unwrap();
        let failure = &finish["reason"]["failure"];
        assert_eq!(failure["code"], "MALFORMED_RESPONSE");
        let message = failure["message"].as_str().unwrap();
        assert!(
            message.starts_with("DeepSeek answered with a page of HTML")
                && message.ends_with("<!doctype html> <title>Sign in</title>"),
            "{message}"
        );
    }
}

#[test]
fn an_event_that_never_ends_is_given_up() {
    load(&json!({}));
    let (attempt, _) = open(request(&[]));
    Component::head(attempt, 200, Vec::new());
    Component::body(attempt, b"data: ".to_vec());
    let chunks = Component::body(attempt, vec![b'x'; sse::MAX_EVENT]);
    assert!(chunks.len() == 1 && chunks[0].contains("MALFORMED_RESPONSE"));
    assert!(Component::body(attempt, b"\n\ndata: {}\n\n".to_vec()).is_empty());
}

#[test]
fn an_unknown_reason_is_a_code_only_where_it_is_a_name() {
    let long = "x".repeat(65);
    for (reason, code) in [
        ("content_filter", "CONTENT_FILTER"),
        ("v2_STOP", "V2_STOP"),
        ("sk-nc-SECRETKEY-0123456789abcdef", "UNKNOWN"),
        ("", "UNKNOWN"),
        ("a b", "UNKNOWN"),
        ("\u{e9}", "UNKNOWN"),
        (&long, "UNKNOWN"),
        (&long[..64], &"X".repeat(64)),
    ] {
        let payload = json!({"choices": [{"delta": {}, "finish_reason": reason}]}).to_string();
        let chunks = stream(&[&payload, "[DONE]"]);
        let finish: Value = serde_json::from_str(&chunks[0]).unwrap();
        let failure = &finish["reason"]["failure"];
        assert_eq!(failure["code"], code, "{reason}");
        // As it was written, so that a key is still found in it.
        assert!(failure["message"].as_str().unwrap().ends_with(reason));
    }
    let endless = "x".repeat(1_000_000);
    let payload = json!({"choices": [{"delta": {}, "finish_reason": endless}]}).to_string();
    assert!(stream(&[&payload, "[DONE]"])[0].len() < 1000);
}

#[test]
fn an_absurdly_long_id_or_name_fails_the_attempt() {
    let long = "x".repeat(64 * 1024 + 1);
    let call = json!({"index": 0, "id": "c", "function": {"name": "n", "arguments": "{"}});
    for at in ["/id", "/function/name"] {
        let mut bad = call.clone();
        *bad.pointer_mut(at).unwrap() = json!(long);
        let delta = json!({"choices": [{"delta": {"tool_calls": [call, bad, call]}}]}).to_string();
        let chunks = stream(&[&delta, &delta, "[DONE]"]);
        let last = chunks.last().unwrap();
        assert!(last.contains("MALFORMED_RESPONSE"), "{at}: {last}");
        // The start and the delta of the first one, and the end.
        assert_eq!(chunks.len(), 3, "{at}");
        assert!(chunks.iter().all(|chunk| chunk.len() < 1000), "{at}");
    }
}

#[test]
fn a_status_that_http_does_not_know_is_said() {
    load(&json!({}));
    for body in ["", r#"{"error":{"message":"odd"}}"#] {
        let (attempt, _) = open(request(&[]));
        Component::head(attempt, 999, Vec::new());
        Component::body(attempt, body.as_bytes().to_vec());
        let chunks = Component::end(attempt, EndCause::Complete);
        let finish: Value = serde_json::from_str(&chunks[0]).unwrap();
        let failure = &finish["reason"]["failure"];
        assert_eq!(failure["code"], "SERVER");
        assert_eq!(failure.get("status"), None);
        assert!(failure["message"].as_str().unwrap().contains("999"));
    }
}

#[test]
fn a_query_of_the_base_url_stays_behind_the_path() {
    for (base, url) in [
        ("http://h/v1?key=x", "http://h/v1/chat/completions?key=x"),
        ("http://h/", "http://h/chat/completions"),
        ("http://h", "http://h/chat/completions"),
    ] {
        load(&json!({"baseURL": base}));
        let attempt = Component::open(request(&[])).unwrap();
        let Action::Send(request) = Component::next(attempt).unwrap() else {
            panic!("sends")
        };
        assert_eq!(request.url, url);
    }
}
