//! Bodies and headers, seen as the host sees them.

use adapter_support::bindings::exports::dsh::plugin::llm_adapter::Action;
use adapter_support::component::Adapter;
use adapter_support::testing::generate;
use adapter_support::{GenerateRequest, Part, Picture};
use serde_json::{Value, json};

use super::*;
use crate::Responses;
use crate::ids::{MAX_ID, foreign_call_id, hash};
use adapter_support::Protocol;

/// Pictures of a test: named after their attachment.
struct Rendered(Vec<(String, Option<u32>, Option<u32>)>);

impl Pictures for Rendered {
    fn render(
        &mut self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<Picture, Error> {
        if attachment == "sha256:gone" {
            return Err(error("NOT_FOUND", "the attachment is not there"));
        }
        self.0.push((attachment.to_owned(), max_pixels, max_bytes));
        Ok(Picture {
            id: attachment.replace("sha256:", "v-"),
            media_type: "image/png".to_owned(),
            bytes: 3,
            width: 1,
            height: 1,
            alpha: false,
        })
    }
}

fn profile() -> Value {
    json!({
        "baseURL": "http://127.0.0.1:1/v1",
        "api": "openai-responses",
        "apiKeyEnv": "KEY",
        "models": [
            {"id": "m", "contextWindow": 100_000, "maxTokens": 4096},
            {"id": "thinker", "contextWindow": 100_000, "maxTokens": 4096, "input": ["text", "image"],
             "reasoningEfforts": {"off": null, "low": "low", "max": "ultra"}},
        ],
    })
}

fn request(model: &str, messages: &[Value]) -> GenerateRequest {
    generate(&json!({"provider": "acme", "model": model, "messages": messages}))
}

fn open(profile: &Value, request: &GenerateRequest) -> Result<HttpRequest, Error> {
    let config = json!({"providers": {"acme": profile}}).to_string();
    let mut adapter = Adapter::<Responses>::new(&config)?;
    let attempt = adapter.open(request, &mut Rendered(Vec::new()))?;
    match adapter.next(attempt)? {
        Action::Send(request) => Ok(request),
        _ => panic!("sends"),
    }
}

/// A body's text, pictures as `<ID>`.
fn text(request: &HttpRequest) -> String {
    let piece = |part: &Part| match part {
        Part::Bytes(bytes) => String::from_utf8(bytes.clone()).unwrap(),
        Part::PictureBase64(id) => format!("<{id}>"),
        Part::Picture(_) => panic!("base64"),
    };
    request.body.iter().map(piece).collect()
}

fn body(profile: &Value, request: &GenerateRequest) -> Value {
    serde_json::from_str(&text(&open(profile, request).unwrap())).unwrap()
}

fn header<'a>(request: &'a HttpRequest, name: &str) -> Option<&'a str> {
    let found = request.headers.iter().find(|(key, _)| key == name)?;
    Some(&found.1)
}

fn user(content: &Value) -> Value {
    json!({"role": "user", "content": content, "source": {"kind": "user"}})
}

fn hello() -> Value {
    user(&json!([{"type": "text", "text": "Hello"}]))
}

/// A message of the target itself.
fn own(content: &Value, blocks: &Value) -> Value {
    json!({"role": "assistant", "content": content, "source": {
        "kind": "model", "provider": "acme", "model": "thinker",
        "replayState": {
            "response": {"kind": "pi-ai", "version": 2, "api": "openai-responses",
                "provider": "acme", "model": "thinker", "stopReason": "stop"},
            "blocks": blocks,
        },
    }})
}

fn result(id: &str, content: &Value) -> Value {
    json!({"role": "user", "source": {"kind": "tool", "callId": id}, "content": [
        {"type": "tool-result", "toolCallId": id, "content": content, "isError": false},
    ]})
}

fn image(id: &str) -> Value {
    json!({"type": "image", "attachment": {"attachmentId": format!("sha256:{id}"), "mediaType": "image/png",
        "bytes": 3, "width": 1, "height": 1}})
}

#[test]
fn the_body_has_its_order() {
    let mut asked = request("thinker", &[hello()]);
    asked.system = Some("Be terse.".to_owned());
    asked.config.reasoning_effort = Some("max".to_owned());
    asked.config.temperature = Some(0.5);
    asked.config.max_tokens = Some(7);
    asked.session_id = Some("s-1".to_owned());
    asked.tools = vec![
        r#"{"name":"f","description":"d","parameters":{ "b":1, "a":2 },"timeoutMs":5}"#.to_owned(),
    ];
    let mut profile = profile();
    profile["cacheRetention"] = json!("long");
    assert_eq!(
        text(&open(&profile, &asked).unwrap()),
        r#"{"model":"thinker","input":[{"role":"developer","content":"Be terse."},{"role":"user","content":[{"type":"input_text","text":"Hello"}]}],"stream":true,"prompt_cache_key":"s-1","prompt_cache_retention":"24h","store":false,"max_output_tokens":16,"temperature":0.5,"tools":[{"type":"function","name":"f","description":"d","parameters":{ "b":1, "a":2 }}],"reasoning":{"effort":"ultra","summary":"auto"},"include":["reasoning.encrypted_content"]}"#
    );
}

#[test]
fn who_is_not_to_think_is_told_so_where_the_model_can_be_told() {
    let told = |efforts: Value, asked: Option<&str>| {
        let mut profile = profile();
        profile["models"][1]["reasoningEfforts"] = efforts;
        let mut request = request("thinker", &[hello()]);
        request.config.reasoning_effort = asked.map(str::to_owned);
        let body = body(&profile, &request);
        (body["reasoning"].clone(), body["include"].clone())
    };
    let none = json!({"effort": "none"});
    for (efforts, asked, expected) in [
        (json!({"off": null, "low": "low"}), None, &none),
        (json!({"off": null, "low": "low"}), Some("off"), &none),
        (
            json!({"off": "minimal", "low": "low"}),
            None,
            &json!({"effort": "minimal"}),
        ),
        (json!({"low": "low"}), None, &Value::Null),
        (json!(false), None, &Value::Null),
    ] {
        assert_eq!(
            told(efforts.clone(), asked),
            (expected.clone(), Value::Null),
            "{efforts}"
        );
    }
}

#[test]
fn the_system_prompt_has_the_role_that_model_and_server_know() {
    let role = |model: &str, compat: Value| {
        let mut profile = profile();
        profile["compat"] = compat;
        let mut request = request(model, &[hello()]);
        request.system = Some("s".to_owned());
        body(&profile, &request)["input"][0]["role"].clone()
    };
    assert_eq!(role("m", json!({})), "system");
    assert_eq!(role("thinker", json!({})), "developer");
    assert_eq!(
        role("thinker", json!({"supportsDeveloperRole": false})),
        "system"
    );
    // None is no item.
    let mut request = request("m", &[hello()]);
    request.system = Some(String::new());
    assert_eq!(body(&profile(), &request)["input"][0]["role"], "user");
}

#[test]
fn tools_are_not_strict_where_the_server_would_hold_to_it() {
    let strict = |base: &str, compat: Value| {
        let mut profile = profile();
        profile["baseURL"] = json!(base);
        profile["compat"] = compat;
        let mut request = request("m", &[hello()]);
        request.tools = vec![r#"{"name":"f","description":"d","parameters":{}}"#.to_owned()];
        body(&profile, &request)["tools"][0].get("strict").cloned()
    };
    assert_eq!(
        strict("https://api.openai.com/v1", json!({})),
        Some(json!(false))
    );
    assert_eq!(strict("http://localhost:1/v1", json!({})), None);
    assert_eq!(
        strict("http://localhost:1/v1", json!({"supportsStrictMode": true})),
        Some(json!(false))
    );
    assert_eq!(
        strict(
            "https://api.openai.com/v1",
            json!({"supportsStrictMode": false})
        ),
        None
    );
}

#[test]
fn a_session_names_the_provider_s_cache_unless_there_is_to_be_none() {
    let sent = |base: &str, retention: &str, session: &str, compat: Value| {
        let mut profile = profile();
        profile["baseURL"] = json!(base);
        profile["cacheRetention"] = json!(retention);
        profile["compat"] = compat;
        let mut request = request("m", &[hello()]);
        request.session_id = Some(session.to_owned());
        open(&profile, &request).unwrap()
    };
    let body = |request: &HttpRequest| serde_json::from_str::<Value>(&text(request)).unwrap();
    let local = "http://localhost:1/v1";

    let long = "é".repeat(80);
    let request = sent(local, "short", &long, json!({}));
    assert_eq!(body(&request)["prompt_cache_key"], "é".repeat(64));
    assert!(body(&request).get("prompt_cache_retention").is_none());
    // No header holds such a name.
    assert_eq!(header(&request, "session_id"), None);

    let request = sent(local, "none", "s-1", json!({}));
    assert!(body(&request).get("prompt_cache_key").is_none());
    assert_eq!(header(&request, "session_id"), None);

    let request = sent(
        local,
        "long",
        "s-1",
        json!({"supportsLongCacheRetention": false}),
    );
    assert!(body(&request).get("prompt_cache_retention").is_none());
    assert_eq!(header(&request, "session_id"), Some("s-1"));
    assert_eq!(header(&request, "x-client-request-id"), Some("s-1"));
    assert_eq!(header(&request, "x-session-id"), None);

    let request = sent("https://openrouter.ai/api/v1/", "short", "s-1", json!({}));
    assert_eq!(request.url, "https://openrouter.ai/api/v1/responses");
    assert_eq!(header(&request, "x-session-id"), Some("s-1"));
    assert_eq!(header(&request, "session_id"), None);
}

#[test]
fn a_host_is_known_by_its_whole_name() {
    for (url, is) in [
        ("https://openrouter.ai/api/v1", true),
        ("https://Eu.OpenRouter.ai:443", true),
        ("https://user@openrouter.ai?x", true),
        ("https://notopenrouter.ai", false),
        ("https://openrouter.ai.example.org/openrouter.ai", false),
        ("", false),
    ] {
        assert_eq!(is_host(url, "openrouter.ai"), is, "{url}");
    }
}

#[test]
fn a_server_without_a_credential_gets_no_authorization() {
    let mut profile = profile();
    profile.as_object_mut().unwrap().remove("apiKeyEnv");
    let request = open(&profile, &request("m", &[hello()])).unwrap();
    assert_eq!(header(&request, "authorization"), None);
    assert_eq!(request.url, "http://127.0.0.1:1/v1/responses");
}

#[test]
fn what_a_server_says_of_a_refusal_is_kept() {
    for (status, body, text) in [
        (
            400,
            r#"{"error": {"message": "no", "code": null}}"#,
            r#"OpenAI API error (400): {"message":"no","code":null}"#,
        ),
        (
            422,
            r#"{"detail": [{"msg": "field required"}]}"#,
            r#"OpenAI API error (422): {"detail":[{"msg":"field required"}]}"#,
        ),
        (
            404,
            r#"{"error":"model 'x' not found"}"#,
            r#"OpenAI API error (404): "model 'x' not found""#,
        ),
        (
            400,
            r#"{"object":"error","message":"m","code":400}"#,
            r#"OpenAI API error (400): {"object":"error","message":"m","code":400}"#,
        ),
        (
            502,
            " <html>Bad gateway</html>\n",
            "OpenAI API error (502): <html>Bad gateway</html>",
        ),
        (413, "", "OpenAI API error (413): 413 status code (no body)"),
        (
            500,
            r#"{"error":null}"#,
            r#"OpenAI API error (500): {"error":null}"#,
        ),
    ] {
        assert_eq!(error_text(status, body), text);
    }
    assert!(error_text(500, &"é".repeat(1 << 20)).chars().count() < MAX_ERROR + 40);
}

#[test]
fn every_route_of_the_catalogue_can_be_called_and_so_can_the_manual_s() {
    let catalogue: Value = serde_json::from_str(Responses::CATALOGUE).unwrap();
    let mut providers: serde_json::Map<_, _> = catalogue
        .as_object()
        .unwrap()
        .keys()
        .map(|route| (route.clone(), json!({})))
        .collect();
    assert!(providers.contains_key("openai"));
    let own = json!({
        "api": "openai-responses", "baseURL": "https://eu.api.openai.com/v1",
        "apiKeyEnv": "OPENAI_EU_KEY", "reasoning": "medium",
        "models": [{"id": "gpt-5.5", "contextWindow": 400_000, "maxTokens": 128_000,
            "input": ["text", "image"],
            "reasoningEfforts": {"off": "none", "low": "low", "medium": "medium", "high": "high", "xhigh": "xhigh"}}],
    });
    let local = json!({
        "api": "openai-responses", "baseURL": "http://127.0.0.1:11434/v1",
        "compat": {"supportsDeveloperRole": false},
        "models": [{"id": "gpt-oss:20b", "contextWindow": 131_072, "maxTokens": 16_384,
            "reasoningEfforts": {"low": "low", "medium": "medium", "high": "high"}}],
    });
    providers.insert("openai-eu".to_owned(), own);
    providers.insert("local".to_owned(), local);
    let config = json!({ "providers": providers }).to_string();
    let mut adapter = Adapter::<Responses>::new(&config).unwrap();
    for route in adapter.list_routes() {
        let route: Value = serde_json::from_str(&route).unwrap();
        assert_eq!(route.get("problem"), None);
        let models = route["models"].as_array().unwrap();
        assert!(!models.is_empty());
        for model in models {
            let mut request = request(model["id"].as_str().unwrap(), &[hello()]);
            request.config.provider = route["provider"].as_str().unwrap().to_owned();
            adapter.open(&request, &mut Rendered(Vec::new())).unwrap();
        }
    }
}

#[test]
fn a_query_of_the_base_url_stays_behind_the_path() {
    for (base, url) in [
        ("http://h/v1?key=x", "http://h/v1/responses?key=x"),
        ("http://h/v1/?a=/", "http://h/v1/responses?a=/"),
        ("http://h/v1//", "http://h/v1/responses"),
    ] {
        let mut profile = profile();
        profile["baseURL"] = json!(base);
        assert_eq!(open(&profile, &request("m", &[hello()])).unwrap().url, url);
    }
}

#[path = "request_history_tests.rs"]
mod history;
