//! Requests around the history: what the recorded cases do not have. Each test
//! builds a call from a profile and a neutral request, as the host would.

use adapter_support::bindings::exports::dsh::plugin::llm_adapter::{Action, EndCause};
use adapter_support::component::Adapter;
use adapter_support::{CallConfig, Error, GenerateRequest, Part, Picture, Pictures, error};
use serde_json::{Value, json};

use super::Messages;

/// What was asked for, with pictures in the body as `<ID>`.
struct Asked {
    url: String,
    headers: Vec<(String, String)>,
    body: Value,
}

impl Asked {
    fn header(&self, name: &str) -> Option<&str> {
        let mut found = self.headers.iter().filter(|(key, _)| key == name);
        let value = found.next().map(|(_, value)| &**value);
        assert!(found.next().is_none(), "{name} twice");
        value
    }
}

/// Renders each attachment to a variant that says how it was asked for.
#[derive(Default)]
struct Rendered;

impl Pictures for Rendered {
    fn render(
        &mut self,
        attachment: &str,
        pixels: Option<u32>,
        bytes: Option<u32>,
    ) -> Result<Picture, Error> {
        if attachment.ends_with("gone") {
            return Err(error("NOT_FOUND", "the attachment is gone"));
        }
        Ok(Picture {
            id: format!("{attachment}/{}/{}", pixels.unwrap(), bytes.unwrap()),
            media_type: "image/png".to_owned(),
            bytes: 10,
            width: 1,
            height: 1,
            alpha: false,
        })
    }
}

fn adapter(profile: &Value) -> Adapter<Messages> {
    let mut profile = profile.clone();
    let defaults = json!({"api": "anthropic-messages", "baseURL": "https://api.example", "apiKeyEnv": "KEY", "models": [{"id": "m", "contextWindow": 200_000, "maxTokens": 8192}]});
    for (key, value) in defaults.as_object().unwrap() {
        profile
            .as_object_mut()
            .unwrap()
            .entry(key)
            .or_insert_with(|| value.clone());
    }
    Adapter::new(&json!({"providers": {"p": profile}}).to_string()).unwrap()
}

fn generate(options: &Value) -> GenerateRequest {
    let list = |name: &str| {
        let items = options[name].as_array().into_iter().flatten();
        items.map(ToString::to_string).collect()
    };
    let text = |name: &str| options[name].as_str().map(str::to_owned);
    GenerateRequest {
        config: CallConfig {
            provider: "p".to_owned(),
            model: text("model").unwrap_or_else(|| "m".to_owned()),
            reasoning_effort: text("reasoningEffort"),
            temperature: options["temperature"].as_f64(),
            max_tokens: options["maxTokens"].as_u64().map(|cap| cap as u32),
            stop: None,
            more: None,
        },
        purpose: None,
        system: text("system"),
        messages: list("messages"),
        tools: list("tools"),
        session_id: text("sessionId"),
        more: None,
    }
}

fn asked(profile: &Value, options: &Value) -> Result<Asked, Error> {
    let mut adapter = adapter(profile);
    let mut request = generate(options);
    if request.messages.is_empty() {
        request.messages.push(user("Hi").to_string());
    }
    request.config = adapter.prepare(request.config)?.config;
    let attempt = adapter.open(&request, &mut Rendered)?;
    let Action::Send(http) = adapter.next(attempt)? else {
        panic!("a request comes first")
    };
    assert_eq!(http.method, "POST");
    let body: String = http
        .body
        .iter()
        .map(|part| match part {
            Part::Bytes(bytes) => std::str::from_utf8(bytes).unwrap().to_owned(),
            Part::PictureBase64(id) => format!("<{id}>"),
            Part::Picture(_) => panic!("base64 alone"),
        })
        .collect();
    Ok(Asked {
        url: http.url,
        headers: http.headers,
        body: serde_json::from_str(&body).expect(&body),
    })
}

/// The chunks of a call that is answered by these bytes.
pub(crate) fn answer(profile: &Value, body: &[u8]) -> Vec<Value> {
    let mut adapter = adapter(profile);
    let mut request = generate(&json!({}));
    request.messages.push(user("Hi").to_string());
    let attempt = adapter.open(&request, &mut Rendered).unwrap();
    adapter.next(attempt).unwrap();
    adapter.head(attempt, 200, Vec::new());
    let mut chunks = adapter.body(attempt, body);
    chunks.extend(adapter.end(attempt, &EndCause::Complete));
    adapter.close(attempt);
    chunks
        .iter()
        .map(|chunk| serde_json::from_str(chunk).expect(chunk))
        .collect()
}

/// The messages of the body, for this history.
pub(crate) fn messages(profile: &Value, history: &[Value]) -> Value {
    asked(profile, &json!({"messages": history})).unwrap().body["messages"].take()
}

/// A profile without the cache's markers, for tests of all else.
pub(crate) fn unmarked() -> Value {
    json!({"cacheRetention": "none"})
}

pub(crate) fn message(role: &str, source: &Value, content: &Value) -> Value {
    json!({"id": "x", "role": role, "content": content, "source": source})
}

pub(crate) fn user(text: &str) -> Value {
    message(
        "user",
        &json!({"kind": "user"}),
        &json!([{"type": "text", "text": text}]),
    )
}

pub(crate) fn result(id: &str, text: &str, is_error: bool) -> Value {
    message(
        "user",
        &json!({"kind": "tool", "callId": id}),
        &json!([{"type": "tool-result", "toolCallId": id, "isError": is_error, "content": [{"type": "text", "text": text}]}]),
    )
}

pub(crate) fn foreign(content: &Value) -> Value {
    message(
        "assistant",
        &json!({"kind": "model", "provider": "q", "model": "n"}),
        content,
    )
}

/// A message of the target's own, with the entries of its replay state.
pub(crate) fn own(content: &Value, blocks: &Value) -> Value {
    let replay = json!({"response": {"kind": "pi-ai", "version": 2, "api": "anthropic-messages", "provider": "p", "model": "m", "responseId": "msg_1", "stopReason": "toolUse"}, "blocks": blocks});
    message(
        "assistant",
        &json!({"kind": "model", "provider": "p", "model": "m", "replayState": replay}),
        content,
    )
}

pub(crate) fn call(id: &str) -> Value {
    json!({"type": "tool-call", "id": id, "name": "look", "arguments": "{\"b\": 1, \"a\": 2}"})
}

fn tool(more: &Value) -> Value {
    let mut tool = json!({"name": "look", "description": "Looks.", "parameters": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false}});
    for (key, value) in more.as_object().unwrap() {
        tool[key] = value.clone();
    }
    tool
}

#[test]
fn a_base_url_may_end_as_people_know_it() {
    for (base, url) in [
        ("https://api.example", "https://api.example/v1/messages"),
        ("https://api.example/", "https://api.example/v1/messages"),
        ("https://api.example/v1", "https://api.example/v1/messages"),
        ("https://api.example/v1/", "https://api.example/v1/messages"),
        (
            "http://127.0.0.1:1/anthropic",
            "http://127.0.0.1:1/anthropic/v1/messages",
        ),
        (
            "https://api.example/apiv1",
            "https://api.example/apiv1/v1/messages",
        ),
        (
            "https://api.example/v1/?v=/v1",
            "https://api.example/v1/messages?v=/v1",
        ),
    ] {
        let asked = asked(&json!({"baseURL": base}), &json!({})).unwrap();
        assert_eq!(asked.url, url);
    }
}

#[test]
fn the_key_goes_as_x_api_key_unless_a_header_takes_its_place() {
    let plain = asked(&json!({}), &json!({})).unwrap();
    assert_eq!(plain.header("x-api-key"), Some("{credential}"));
    assert_eq!(plain.header("authorization"), None);
    assert_eq!(plain.header("anthropic-version"), Some("2023-06-01"));
    assert_eq!(plain.header("accept"), Some("application/json"));

    let bearer = json!({"headers": {"Authorization": "Bearer {credential}"}});
    let bearer = asked(&bearer, &json!({})).unwrap();
    assert_eq!(bearer.header("authorization"), Some("Bearer {credential}"));
    assert_eq!(bearer.header("x-api-key"), None);

    let own =
        json!({"headers": {"X-Api-Key": "k-{credential}", "anthropic-version": "2099-01-01"}});
    let own = asked(&own, &json!({})).unwrap();
    assert_eq!(own.header("x-api-key"), Some("k-{credential}"));
    assert_eq!(own.header("anthropic-version"), Some("2099-01-01"));
}

#[test]
fn a_server_that_needs_no_key_gets_none() {
    let config = json!({"providers": {"p": {"api": "anthropic-messages", "baseURL": "http://127.0.0.1:1", "models": [{"id": "m"}]}}});
    let mut adapter: Adapter<Messages> = Adapter::new(&config.to_string()).unwrap();
    let mut request = generate(&json!({}));
    request.messages.push(user("Hi").to_string());
    let attempt = adapter.open(&request, &mut Rendered).unwrap();
    let Action::Send(http) = adapter.next(attempt).unwrap() else {
        panic!()
    };
    assert!(
        !http
            .headers
            .iter()
            .any(|(_, value)| value.contains("{credential}"))
    );
}

#[test]
fn beta_features_follow_the_switches_and_a_header_of_the_profile_stands_in_their_place() {
    let beta = |compat: Value, tools: bool| {
        let tools = if tools {
            json!([tool(&json!({}))])
        } else {
            json!([])
        };
        let asked = asked(&json!({"compat": compat}), &json!({"tools": tools})).unwrap();
        asked.header("anthropic-beta").map(str::to_owned)
    };
    let interleaved = "interleaved-thinking-2025-05-14";
    let both = "interleaved-thinking-2025-05-14,fine-grained-tool-streaming-2025-05-14";
    let late = json!({"supportsEagerToolInputStreaming": false});
    let adaptive = json!({"forceAdaptiveThinking": true});
    let lone = json!({"forceAdaptiveThinking": true, "supportsEagerToolInputStreaming": false});
    for (compat, tools, expected) in [
        (json!({}), true, Some(interleaved)),
        (late.clone(), false, Some(interleaved)),
        (late, true, Some(both)),
        (adaptive, true, None),
        (lone, true, Some("fine-grained-tool-streaming-2025-05-14")),
    ] {
        assert_eq!(beta(compat.clone(), tools).as_deref(), expected, "{compat}");
    }
    let own = json!({"headers": {"Anthropic-Beta": "context-1m-2025-08-07"}});
    let own = asked(&own, &json!({})).unwrap();
    assert_eq!(own.header("anthropic-beta"), Some("context-1m-2025-08-07"));
    let none = json!({"headers": {"anthropic-beta": ""}});
    let none = asked(&none, &json!({})).unwrap();
    assert_eq!(none.header("anthropic-beta"), None);
}

#[test]
fn what_the_provider_is_to_keep_is_marked_as_the_profile_says() {
    let options = json!({"system": "Be.", "tools": [tool(&json!({})), tool(&json!({}))], "messages": [user("a"), foreign(&json!([{"type": "text", "text": "b"}])), user("c")]});
    let marks = |profile: Value| {
        let body = asked(&profile, &options).unwrap().body;
        (
            body["system"][0].get("cache_control").cloned(),
            body["tools"][0].get("cache_control").cloned(),
            body["tools"][1].get("cache_control").cloned(),
            body["messages"][0]["content"].clone(),
            body["messages"][2]["content"].clone(),
        )
    };
    let kept = |mark: Value| json!([{"type": "text", "text": "c", "cache_control": mark}]);
    let short = json!({"type": "ephemeral"});
    let long = json!({"type": "ephemeral", "ttl": "1h"});
    for profile in [
        json!({}),
        json!({"cacheRetention": "short"}),
        json!({"cacheRetention": "long", "compat": {"supportsLongCacheRetention": false}}),
    ] {
        assert_eq!(
            marks(profile),
            (
                Some(short.clone()),
                None,
                Some(short.clone()),
                json!("a"),
                kept(short.clone())
            )
        );
    }
    assert_eq!(
        marks(json!({"cacheRetention": "long"})),
        (
            Some(long.clone()),
            None,
            Some(long.clone()),
            json!("a"),
            kept(long)
        )
    );
    assert_eq!(
        marks(json!({"cacheRetention": "none"})),
        (None, None, None, json!("a"), json!("c"))
    );
    let (system, _, tools, _, last) =
        marks(json!({"compat": {"supportsCacheControlOnTools": false}}));
    assert_eq!(
        (system, tools, last),
        (Some(short.clone()), None, kept(short))
    );
}

#[test]
fn of_a_tool_goes_what_every_server_knows() {
    let body = |compat: Value, more: Value| {
        let options = json!({"tools": [tool(&more)]});
        let profile = json!({"cacheRetention": "none", "compat": compat});
        asked(&profile, &options).unwrap().body["tools"][0].take()
    };
    let properties = json!({"a": {"type": "string"}});
    let plain = json!({"name": "look", "description": "Looks.", "eager_input_streaming": true, "input_schema": {"type": "object", "properties": properties, "required": ["a"]}});
    assert_eq!(body(json!({}), json!({})), plain);
    assert_eq!(body(json!({"supportsStrictTools": true}), json!({})), plain);
    let held = json!({"constrainedSampling": {"type": "json_schema"}});
    assert_eq!(body(json!({}), held.clone()), plain);
    let mut strict = plain.clone();
    strict["strict"] = json!(true);
    strict["input_schema"]["additionalProperties"] = json!(false);
    assert_eq!(body(json!({"supportsStrictTools": true}), held), strict);
    let late = body(json!({"supportsEagerToolInputStreaming": false}), json!({}));
    assert_eq!(late.get("eager_input_streaming"), None);
    let bare = body(json!({}), json!({"parameters": {}, "description": null}));
    assert_eq!(
        bare,
        json!({"name": "look", "eager_input_streaming": true, "input_schema": {"type": "object", "properties": {}, "required": []}})
    );
    let body = asked(&unmarked(), &json!({})).unwrap().body;
    assert_eq!(body.get("tools"), None);
}

#[test]
fn a_system_prompt_that_says_nothing_is_left_out() {
    for (system, sent) in [
        (json!(null), None),
        (json!(""), None),
        (json!(" \n"), None),
        (
            json!("Be \"kind\"."),
            Some(json!([{"type": "text", "text": "Be \"kind\"."}])),
        ),
    ] {
        let body = asked(&unmarked(), &json!({"system": system})).unwrap().body;
        assert_eq!(body.get("system").cloned(), sent);
    }
}

#[test]
fn errors_of_http_have_their_text() {
    use adapter_support::Protocol;
    for (status, body, text) in [
        (
            529,
            "{\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
            "529 {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\"}}",
        ),
        (403, "{\"message\":\"Forbidden\"}", "403 Forbidden"),
        (
            400,
            "{\"message\":{\"a\":1}}",
            "400 {\"message\":{\"a\":1}}",
        ),
        (
            502,
            " <html>Bad gateway</html>\n",
            "502 <html>Bad gateway</html>",
        ),
        (413, "", "413 status code (no body)"),
    ] {
        assert_eq!(Messages::error_text(status, body), text);
    }
}

#[path = "levels_tests.rs"]
mod levels;
