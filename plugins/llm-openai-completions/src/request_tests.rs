#![allow(
    clippy::needless_pass_by_value,
    reason = "values that `json!` makes are passed on as they are made"
)]

use adapter_support::component::Adapter;
use adapter_support::testing::{Drawn, body_of, generate};
use adapter_support::{HttpRequest, Protocol as _};
use serde_json::{Value, json};

use crate::Completions;

/// The request of these options to a profile, which lie over working ones.
fn request(profile: &Value, options: &Value) -> HttpRequest {
    let mut base = json!({"api": Completions::API, "baseURL": "https://gw.example/v1", "apiKeyEnv": "K",
        "models": [{"id": "m", "maxTokens": 100, "input": ["text", "image"]}]});
    for (key, value) in profile.as_object().unwrap() {
        base[key] = value.clone();
    }
    let mut call = json!({"provider": "acme", "model": "m", "messages": []});
    for (key, value) in options.as_object().unwrap() {
        call[key] = value.clone();
    }
    let config = json!({"providers": {"acme": base}}).to_string();
    let mut adapter = Adapter::<Completions>::new(&config).unwrap();
    let attempt = adapter.open(&generate(&call), &mut Drawn).unwrap();
    match adapter.next(attempt).unwrap() {
        adapter_support::bindings::exports::dsh::plugin::llm_adapter::Action::Send(request) => {
            request
        }
        _ => panic!("sends"),
    }
}

fn body(profile: &Value, options: &Value) -> Value {
    body_of(&request(profile, options))
}

fn user(content: Value) -> Value {
    json!({"role": "user", "content": content})
}

fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

fn image(id: &str) -> Value {
    json!({"type": "image", "attachment": {"attachmentId": id}})
}

fn thinker(efforts: &Value, compat: &Value) -> Value {
    json!({"models": [{"id": "m", "maxTokens": 100, "reasoningEfforts": efforts}], "compat": compat})
}

#[test]
fn members_stand_in_their_order() {
    let sent = request(
        &json!({"baseURL": "https://api.openai.com/v1/", "cacheRetention": "long",
            "models": [{"id": "m", "maxTokens": 100, "reasoningEfforts": {"off": "none", "high": "h"}}]}),
        &json!({"system": "S", "sessionId": "é".repeat(70), "temperature": 1, "reasoningEffort": "high", "tools": [
            {"name": "n", "description": "d", "parameters": {"b": 1, "a": 2}}]}),
    );
    assert_eq!(sent.url, "https://api.openai.com/v1/chat/completions");
    let [adapter_support::Part::Bytes(bytes)] = &sent.body[..] else {
        panic!("one piece")
    };
    assert_eq!(
        std::str::from_utf8(bytes).unwrap(),
        format!(
            r#"{{"model":"m","messages":[{{"role":"developer","content":"S"}}],"stream":true,"prompt_cache_key":"{}","prompt_cache_retention":"24h","stream_options":{{"include_usage":true}},"store":false,"max_completion_tokens":100,"temperature":1,"tools":[{{"type":"function","function":{{"name":"n","description":"d","parameters":{{"a":2,"b":1}},"strict":false}}}}],"reasoning_effort":"h"}}"#,
            "é".repeat(64)
        )
    );
}

#[test]
fn switches_change_what_they_name() {
    let history = json!([
        user(json!([text("a")])),
        {"role": "assistant", "content": [{"type": "tool-call", "id": "c", "name": "look", "arguments": "{}"}]},
        user(json!([{"type": "tool-result", "toolCallId": "c", "content": [text("r")], "isError": false}])),
        user(json!([text("b")])),
    ]);
    let with = |compat: Value| {
        body(
            &json!({"compat": compat}),
            &json!({"messages": history, "system": "S"}),
        )
    };
    let plain = with(json!({}));
    assert_eq!(
        plain["tools"],
        json!([]),
        "a history with tools needs the member"
    );
    assert_eq!(
        plain["messages"][0]["role"], "system",
        "this model does not think"
    );
    assert_eq!(
        plain["messages"][3],
        json!({"role": "tool", "content": "r", "tool_call_id": "c"})
    );
    assert!(with(json!({"supportsStore": false})).get("store").is_none());
    assert!(
        with(json!({"supportsUsageInStreaming": false}))
            .get("stream_options")
            .is_none()
    );
    assert_eq!(
        with(json!({"maxTokensField": "max_tokens"}))["max_tokens"],
        100
    );
    assert_eq!(
        with(json!({"requiresToolResultName": true}))["messages"][3]["name"],
        "look"
    );
    let bridged = with(json!({"requiresAssistantAfterToolResult": true}));
    assert_eq!(bridged["messages"][2]["content"], "");
    assert_eq!(bridged["messages"][4]["role"], "assistant");
    assert_eq!(
        bridged["messages"][5],
        json!({"role": "user", "content": "b"})
    );
    let efforts = json!({"off": null, "low": "l"});
    let silent = body(
        &thinker(
            &efforts,
            &json!({"supportsReasoningEffort": false, "supportsDeveloperRole": false}),
        ),
        &json!({"reasoningEffort": "low", "system": "S"}),
    );
    assert!(silent.get("reasoning_effort").is_none());
    assert_eq!(silent["messages"][0]["role"], "system");
}

#[test]
fn thoughts_go_back_where_they_came_from() {
    let said = |field: &str, content: Value, blocks: Value| {
        json!({"role": "assistant", "content": content, "source": {
        "kind": "model", "provider": "acme", "model": "m", "replayState": {"blocks": blocks, "response": {
            "kind": "pi-ai", "version": 2, "api": "openai-completions", "provider": "acme", "model": "m",
            "responseId": field, "stopReason": "stop"}}}})
    };
    let thoughts = |field: &str| {
        said(
            field,
            json!([{"type": "reasoning", "text": "a"}, {"type": "reasoning", "text": "b"}, text("x"),
                {"type": "tool-call", "id": "c", "name": "n", "arguments": "{}"}]),
            json!([{"type": "reasoning", "thinkingSignature": field}, {"type": "reasoning"}, {"type": "text"},
                {"type": "tool-call", "thoughtSignature": "{\"type\": \"reasoning.encrypted\", \"id\": \"c\"}"}]),
        )
    };
    let first = |compat: Value, field: &str| {
        let body = body(
            &json!({"compat": compat}),
            &json!({"messages": [thoughts(field)]}),
        );
        body["messages"][0].clone()
    };
    for field in ["reasoning_content", "reasoning", "reasoning_text"] {
        let message = first(json!({}), field);
        assert_eq!(
            (&message[field], &message["content"]),
            (&json!("a\nb"), &json!("x"))
        );
        assert_eq!(
            message["reasoning_details"],
            json!([{"type": "reasoning.encrypted", "id": "c"}])
        );
    }
    assert_eq!(
        first(json!({"reasoningField": "mine"}), "mine")["mine"],
        "a\nb"
    );
    assert!(
        first(json!({}), "content_odd").get("content_odd").is_none(),
        "only under a name that is known"
    );
    let as_text = first(json!({"requiresThinkingAsText": true}), "reasoning");
    assert_eq!(as_text["content"], json!([text("a\n\nb"), text("x")]));
    assert!(as_text.get("reasoning").is_none());
    // Only thoughts: nothing that a server takes.
    let alone = said(
        "reasoning",
        json!([{"type": "reasoning", "text": "a"}]),
        json!([{"type": "reasoning", "thinkingSignature": "reasoning"}]),
    );
    assert_eq!(
        body(&json!({}), &json!({"messages": [alone]}))["messages"],
        json!([])
    );
}

#[test]
fn pictures_are_parts_of_a_user_s_message_and_follow_a_run_of_results() {
    let url = |id: &str| json!({"type": "image_url", "image_url": {"url": format!("data:image/png;base64,<{id}/Some(4194304)/Some(1048576)>")}});
    let history = json!([
        user(json!([text("see"), image("1"), text("that")])),
        {"role": "assistant", "content": [
            {"type": "tool-call", "id": "c", "name": "look", "arguments": "{}"},
            {"type": "tool-call", "id": "d", "name": "look", "arguments": "{}"}]},
        user(json!([{"type": "tool-result", "toolCallId": "c", "content": [image("2")], "isError": false}])),
        user(json!([{"type": "tool-result", "toolCallId": "d", "content": [text("t"), image("3")], "isError": false}])),
        user(json!([text("go on")])),
    ]);
    let messages = body(&json!({}), &json!({"messages": history}))["messages"].clone();
    assert_eq!(
        messages[0]["content"],
        json!([text("see"), url("1"), text("that")])
    );
    assert_eq!(messages[2]["content"], "(see the attached image)");
    assert_eq!(messages[3]["content"], "t");
    assert_eq!(messages[4]["role"], "user");
    assert_eq!(
        messages[4]["content"],
        json!([
            text("Images of the tool results above:"),
            url("2"),
            url("3")
        ])
    );
    assert_eq!(messages[5]["content"], "go on");
}

#[test]
fn what_an_anthropic_model_is_to_keep_is_marked() {
    let options = json!({"system": "S", "messages": [user(json!([text("a")])), {"role": "assistant", "content": [
            {"type": "tool-call", "id": "c", "name": "n", "arguments": "{}"}]},
            user(json!([{"type": "tool-result", "toolCallId": "c", "content": [text("r")], "isError": false}]))],
        "tools": [{"name": "n", "description": "", "parameters": {}}, {"name": "o", "description": "", "parameters": {}}]});
    let compat = json!({"cacheControlFormat": "anthropic"});
    let short = json!({"type": "ephemeral"});
    let marked = body(&json!({"compat": compat}), &options);
    assert_eq!(
        marked["messages"][0]["content"],
        json!([{"type": "text", "text": "S", "cache_control": short}])
    );
    assert_eq!(
        marked["messages"][1]["content"],
        json!([{"type": "text", "text": "a", "cache_control": short}])
    );
    assert!(marked["tools"][0].get("cache_control").is_none());
    assert_eq!(marked["tools"][1]["cache_control"], short);
    let long = body(
        &json!({"compat": compat, "cacheRetention": "long"}),
        &options,
    );
    assert_eq!(
        long["tools"][1]["cache_control"],
        json!({"type": "ephemeral", "ttl": "1h"})
    );
    assert_eq!(long["prompt_cache_retention"], "24h");
    let none = body(
        &json!({"compat": compat, "cacheRetention": "none"}),
        &options,
    );
    assert!(!none.to_string().contains("cache_control"));
}

#[test]
fn a_cache_key_is_for_openai_s_own_address_or_for_who_asks_to_keep_long() {
    for (profile, key, retention) in [
        (json!({}), false, false),
        (json!({"cacheRetention": "long"}), true, true),
        (
            json!({"cacheRetention": "long", "compat": {"supportsLongCacheRetention": false}}),
            false,
            false,
        ),
        (json!({"baseURL": "https://api.openai.com/v1"}), true, false),
        (
            json!({"baseURL": "https://api.openai.com:443/v1"}),
            true,
            false,
        ),
        (
            json!({"baseURL": "https://api.openai.com.evil.example/v1"}),
            false,
            false,
        ),
        (
            json!({"baseURL": "https://api.openai.com/v1", "cacheRetention": "none"}),
            false,
            false,
        ),
    ] {
        let body = body(&profile, &json!({"sessionId": "s"}));
        assert_eq!(body.get("prompt_cache_key").is_some(), key, "{profile}");
        assert_eq!(
            body.get("prompt_cache_retention").is_some(),
            retention,
            "{profile}"
        );
    }
}

#[test]
fn headers_are_the_profile_s_over_ours_and_a_key_is_sent_where_there_is_one() {
    let sorted = |request: HttpRequest| {
        let mut headers = request.headers;
        headers.sort();
        headers
            .into_iter()
            .map(|(name, value)| format!("{name}: {value}"))
            .collect::<Vec<_>>()
    };
    let own = json!({"headers": {"X-Team": "t", "Authorization": "Key {credential}", "ACCEPT": "", "User-Agent": "evil"}, "timeoutMs": 5});
    let sent = request(&own, &json!({}));
    assert_eq!(sent.timeout_ms, Some(5));
    assert_eq!(
        sorted(sent),
        [
            "authorization: Key {credential}",
            "content-type: application/json",
            "user-agent: {user-agent}",
            "x-team: t"
        ]
    );
    let mut base = json!({"api": "openai-completions", "baseURL": "http://localhost:1/v1?v=2", "models": [{"id": "m"}]});
    base["displayName"] = json!("Local");
    let config = json!({"providers": {"l": base}}).to_string();
    let mut adapter = Adapter::<Completions>::new(&config).unwrap();
    let call = generate(&json!({"provider": "l", "model": "m", "messages": []}));
    let attempt = adapter.open(&call, &mut Drawn).unwrap();
    let Ok(adapter_support::bindings::exports::dsh::plugin::llm_adapter::Action::Send(sent)) =
        adapter.next(attempt)
    else {
        panic!("sends")
    };
    assert_eq!(sent.url, "http://localhost:1/v1/chat/completions?v=2");
    assert!(sent.headers.iter().all(|(name, _)| name != "authorization"));
}

#[test]
fn an_id_of_the_responses_protocol_is_cut_to_its_call() {
    let history = json!([
        {"role": "assistant", "content": [{"type": "tool-call", "id": "call_a.b|fc_123", "name": "n", "arguments": "{}"}],
         "source": {"kind": "model", "provider": "o", "model": "x"}},
        user(json!([{"type": "tool-result", "toolCallId": "call_a.b|fc_123", "content": [text("r")], "isError": false}])),
    ]);
    let messages = body(&json!({}), &json!({"messages": history}))["messages"].clone();
    assert_eq!(messages[0]["tool_calls"][0]["id"], "call_a_b");
    assert_eq!(messages[1]["tool_call_id"], "call_a_b");
}

#[test]
fn long_ids_are_cut_and_stay_two() {
    let long = |end: &str| format!("call_{}{end}|fc_1", "x".repeat(60));
    let call = |id: &str| json!({"type": "tool-call", "id": id, "name": "n", "arguments": "{}"});
    let result = |id: &str| {
        user(
            json!([{"type": "tool-result", "toolCallId": id, "content": [text("r")], "isError": false}]),
        )
    };
    let (one, two) = (long("1"), long("2"));
    let history = json!([{"role": "assistant", "content": [call(&one), call(&two)]}, result(&one), result(&two)]);
    let messages = body(&json!({}), &json!({"messages": history}))["messages"].clone();
    let ids: Vec<_> = (0..2)
        .map(|at| messages[0]["tool_calls"][at]["id"].as_str().unwrap())
        .collect();
    assert!(
        ids[0] != ids[1] && ids.iter().all(|id| id.len() == 40),
        "{ids:?}"
    );
    assert_eq!(messages[1]["tool_call_id"], ids[0]);
    assert_eq!(messages[2]["tool_call_id"], ids[1]);
}

#[test]
fn servers_are_known_by_their_address_or_their_route() {
    // Members that tell: store, developer role, cap, effort, strict.
    let told = |url: &str| {
        let mut profile = thinker(&json!({"off": null, "low": "l"}), &json!({}));
        profile["baseURL"] = json!(url);
        let body = body(
            &profile,
            &json!({"reasoningEffort": "low", "system": "S",
            "tools": [{"name": "n", "description": "", "parameters": {}}]}),
        );
        let yes = |is: bool, name: &'static str| if is { name } else { "-" };
        [
            yes(body.get("store").is_some(), "store"),
            yes(body["messages"][0]["role"] == "developer", "developer"),
            yes(body.get("max_tokens").is_some(), "max_tokens"),
            yes(body.get("reasoning_effort").is_some(), "effort"),
            yes(
                body["tools"][0]["function"].get("strict").is_some(),
                "strict",
            ),
        ]
        .join(" ")
    };
    for (url, expected) in [
        (
            "https://unknown.example/v1",
            "store developer - effort strict",
        ),
        (
            "http://localhost:11434/v1",
            "store developer - effort strict",
        ),
        ("https://api.deepseek.com/v1", "- - - effort strict"),
        ("https://api.x.ai/v1", "- - - - strict"),
        ("https://api.z.ai/api/paas/v4", "- - - - strict"),
        ("https://api.moonshot.ai/v1", "- - max_tokens - -"),
        ("https://api.together.xyz/v1", "- - max_tokens - -"),
        (
            "https://gateway.ai.cloudflare.com/v1/a/b",
            "- - max_tokens - -",
        ),
        ("https://integrate.api.nvidia.com/v1", "- - max_tokens - -"),
        ("https://llm.chutes.ai/v1", "- - max_tokens effort strict"),
        ("https://api.cerebras.ai/v1", "- - - effort strict"),
        // A host is known by its name, not by what else stands in an address.
        (
            "https://unknown.example/api.x.ai/v1",
            "store developer - effort strict",
        ),
    ] {
        assert_eq!(told(url), expected, "{url}");
    }
    let deepseek = body(
        &json!({"baseURL": "https://api.deepseek.com", "models": [{"id": "m", "reasoningEfforts": {"off": null, "high": "high"}}]}),
        &json!({"reasoningEffort": "high", "messages": [{"role": "assistant", "content": [text("x")]}]}),
    );
    assert_eq!(deepseek["thinking"], json!({"type": "enabled"}));
    assert_eq!(deepseek["messages"][0]["reasoning_content"], "");
}

#[path = "request_thinking_tests.rs"]
mod thinking;
