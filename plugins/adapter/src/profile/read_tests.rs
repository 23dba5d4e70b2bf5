#![allow(
    clippy::needless_pass_by_value,
    reason = "values that `json!` makes are passed on as they are made"
)]

use serde_json::{Value, json};

use super::*;
use crate::profile::{Off, Takes};

const SWITCHES: &[Switch] = &[
    Switch::flag("a"),
    Switch::flag("b"),
    Switch {
        name: "mode",
        takes: Takes::OneOf(&["x", "y"]),
    },
    Switch {
        name: "args",
        takes: Takes::Object,
    },
];

const SHIPPED: &str = r#"{
"known": {
    "displayName": "Known", "baseURL": "https://known.example/v1", "credential": "KNOWN_KEY",
    "headers": {"x-a": "1", "x-b": "2"}, "compat": {"a": true},
    "models": [
        {"id": "one", "name": "One", "contextWindow": 1000, "maxTokens": 100, "input": ["text", "image"], "reasoningEfforts": true},
        {"id": "two", "contextWindow": 2000, "maxTokens": 200, "input": ["text"], "baseURL": "https://two.example", "compat": {"b": true},
         "reasoningEfforts": {"high": "max"}}
    ]}}"#;

fn read(provider: &str, profile: &Value) -> Result<Profile, String> {
    let speaks = Protocol {
        api: "openai-completions",
        switches: SWITCHES,
        catalogue: Catalogue::new(SHIPPED),
    };
    Profile::read(
        provider,
        Json::parse(&profile.to_string()).unwrap(),
        &speaks,
    )
}

/// A written profile with these members over a working one.
fn written(over: &Value) -> Result<Profile, String> {
    let mut profile = json!({"api": "openai-completions", "baseURL": "http://127.0.0.1:1/v1", "models": [{"id": "m"}]});
    for (key, value) in over.as_object().unwrap() {
        profile[key] = value.clone();
    }
    read("acme", &profile)
}

#[test]
fn a_written_profile_has_the_documented_defaults() {
    let profile = written(&json!({})).unwrap();
    assert_eq!(
        (profile.name.as_str(), profile.credential.as_deref()),
        ("acme", None)
    );
    assert_eq!(
        (profile.idle_timeout_ms, profile.timeout_ms),
        (300_000, None)
    );
    assert_eq!(profile.cache, Cache::Short);
    assert!(profile.own_base_url && profile.headers.is_empty());
    let bounds = profile.pictures;
    assert_eq!(
        (bounds.request_bytes, bounds.pixels, bounds.bytes),
        (20_971_520, 4_194_304, 1_048_576)
    );
    let model = &profile.models[0];
    assert_eq!(
        (model.name.as_str(), model.context_window, model.max_tokens),
        ("m", 262_144, 32_768)
    );
    assert_eq!(
        (model.default_max_tokens, model.vision, model.reasons()),
        (None, false, false)
    );
}

#[test]
fn a_shipped_route_needs_nothing_and_what_is_written_lies_over_it() {
    let plain = read("known", &json!({})).unwrap();
    assert_eq!(plain.name, "Known");
    assert_eq!(plain.credential.as_deref(), Some("KNOWN_KEY"));
    assert!(!plain.own_base_url);
    let [one, two] = &plain.models[..] else {
        panic!("two")
    };
    assert_eq!(
        (one.context_window, one.max_tokens, one.default_max_tokens),
        (1000, 100, None)
    );
    assert!(one.vision && one.reasons());
    assert_eq!(one.off(), Off::Silent);
    assert_eq!(
        (one.spelling("low"), one.base_url(&plain)),
        ("low", "https://known.example/v1")
    );
    assert_eq!((two.off(), two.spelling("high")), (Off::Unsupported, "max"));
    assert_eq!(two.base_url(&plain), "https://two.example");
    assert_eq!(
        (two.compat.flag("a"), two.compat.flag("b")),
        (Some(true), Some(true))
    );

    let over = read(
        "known",
        &json!({"baseURL": "http://localhost:1", "apiKeyEnv": "MINE", "headers": {"X-B": "3"},
            "compat": {"b": false}, "defaultMaxTokens": 7,
            "models": [{"id": "two", "maxTokens": 50}, {"id": "three", "compat": {"a": false}}],
            "modelOverrides": {"two": {"contextWindow": 9, "reasoningEfforts": false, "compat": {"b": true}}}}),
    )
    .unwrap();
    assert_eq!(over.credential.as_deref(), Some("MINE"));
    assert_eq!(
        over.headers,
        [
            ("x-a".to_owned(), "1".to_owned()),
            ("X-B".to_owned(), "3".to_owned())
        ]
    );
    let [two, three] = &over.models[..] else {
        panic!("the written list is the list")
    };
    assert_eq!(
        (two.max_tokens, two.default_max_tokens, two.context_window),
        (50, Some(50), 9)
    );
    assert!(!two.reasons());
    assert_eq!(
        two.base_url(&over),
        "http://localhost:1",
        "a written address is for all models"
    );
    assert_eq!(
        two.compat.flag("b"),
        Some(true),
        "the model's over the route's"
    );
    assert_eq!((three.max_tokens, three.default_max_tokens), (7, None));
    assert_eq!(
        (three.compat.flag("a"), three.compat.flag("b")),
        (Some(false), Some(false))
    );
}

#[test]
fn what_is_wrong_is_told_by_its_key() {
    for (over, part) in [
        (
            json!({"provider": "x"}),
            "provider is no key any more: the key under `providers`",
        ),
        (
            json!({"maxRetries": 1}),
            "maxRetries is no key any more: write `retryPolicy",
        ),
        (
            json!({"maxRetryDelayMs": 1}),
            "maxRetryDelayMs is no key any more",
        ),
        (
            json!({"basURL": "x"}),
            "basURL is no key: there are apiKeyEnv",
        ),
        (json!({"headers": null}), "headers is null"),
        (
            json!({"api": "smoke"}),
            "api must be one of openai-completions",
        ),
        (
            json!({"api": "anthropic-messages"}),
            "which this row does not speak",
        ),
        (
            json!({"baseURL": "localhost:1"}),
            "baseURL must start with http",
        ),
        (json!({"baseURL": 1}), "baseURL must be a text"),
        (json!({"apiKeyEnv": " "}), "apiKeyEnv must be a text"),
        (
            json!({"models": []}),
            "models must be a list with at least one",
        ),
        (json!({"models": {"m": {}}}), "models must be a list"),
        (
            json!({"models": [{"name": "x"}]}),
            "models[0].id is missing",
        ),
        (
            json!({"models": [{"id": "m"}, {"id": "m"}]}),
            "models lists m twice",
        ),
        (
            json!({"models": [{"id": "m", "window": 1}]}),
            "models[0].window is no key",
        ),
        (
            json!({"models": [{"id": "m", "name": null}]}),
            "models[0].name is null",
        ),
        (
            json!({"models": [{"id": "m", "contextWindow": 0}]}),
            "models[0].contextWindow must be a whole number",
        ),
        (
            json!({"models": [{"id": "m", "maxTokens": 1.5}]}),
            "models[0].maxTokens must be a whole number",
        ),
        (
            json!({"models": [{"id": "m", "input": ["sound"]}]}),
            "models[0].input must be a list of text and image",
        ),
        (
            json!({"models": [{"id": "m", "reasoningEfforts": true}]}),
            "models[0].reasoningEfforts must be false or an object",
        ),
        (
            json!({"models": [{"id": "m", "reasoningEfforts": {}}]}),
            "must have a level beside off",
        ),
        (
            json!({"models": [{"id": "m", "reasoningEfforts": {"off": null}}]}),
            "must have a level beside off",
        ),
        (
            json!({"models": [{"id": "m", "reasoningEfforts": {"low": null}}]}),
            "reasoningEfforts.low must be a text",
        ),
        (
            json!({"models": [{"id": "m", "reasoningEfforts": {"low": ""}}]}),
            "reasoningEfforts.low must be a text",
        ),
        (
            json!({"models": [{"id": "m", "reasoningEfforts": {"off": ""}}]}),
            "reasoningEfforts.off must be a text, or null",
        ),
        (
            json!({"models": [{"id": "m", "reasoningEfforts": {"deep": "x"}}]}),
            "reasoningEfforts.deep is no level",
        ),
        (
            json!({"models": [{"id": "m", "compat": {"c": true}}]}),
            "models[0].compat.c is no switch of openai-completions",
        ),
        (
            json!({"modelOverrides": {"x": {}}}),
            "modelOverrides.x is of no model",
        ),
        (
            json!({"modelOverrides": {"m": {"id": "y"}}}),
            "modelOverrides.m.id is no key",
        ),
        (
            json!({"modelOverrides": {"m": {"maxTokens": "x"}}}),
            "modelOverrides.m.maxTokens must be",
        ),
        (
            json!({"modelOverrides": []}),
            "modelOverrides must be an object",
        ),
        (
            json!({"compat": {"a": 1}}),
            "compat.a must be true or false",
        ),
        (
            json!({"compat": {"a": null}}),
            "compat.a must be true or false",
        ),
        (
            json!({"compat": {"mode": "z"}}),
            "compat.mode must be one of x, y",
        ),
        (
            json!({"compat": {"args": []}}),
            "compat.args must be an object",
        ),
        (json!({"compat": []}), "compat must be an object"),
        (json!({"headers": []}), "headers must be an object"),
        (
            json!({"headers": {"a b": "x"}}),
            "headers.a b is no header's name",
        ),
        (
            json!({"headers": {"a": "x\ny"}}),
            "headers.a must be a text on one line",
        ),
        (
            json!({"reasoning": "deep"}),
            "reasoning must be one of off, minimal",
        ),
        (
            json!({"thinkingBudgets": {"max": 1}}),
            "thinkingBudgets.max is no key",
        ),
        (
            json!({"thinkingBudgets": {"low": 0}}),
            "thinkingBudgets.low must be a whole number",
        ),
        (
            json!({"cacheRetention": "ever"}),
            "cacheRetention must be one of none, short, long",
        ),
        (
            json!({"transport": "pigeon"}),
            "transport must be one of sse",
        ),
        (
            json!({"timeoutMs": 0}),
            "timeoutMs must be milliseconds above 0",
        ),
        (
            json!({"streamIdleTimeoutMs": 2_147_483_648_u64}),
            "streamIdleTimeoutMs must be milliseconds",
        ),
        (
            json!({"websocketConnectTimeoutMs": "1"}),
            "websocketConnectTimeoutMs must be",
        ),
        (
            json!({"maxRequestImageBytes": -1}),
            "maxRequestImageBytes must be a whole number",
        ),
        (
            json!({"retryPolicy": "always"}),
            "retryPolicy must be an object",
        ),
        (
            json!({"defaultInput": "text"}),
            "defaultInput must be a list",
        ),
        (
            json!({"defaultContextWindow": "1"}),
            "defaultContextWindow must be a whole number",
        ),
    ] {
        let why = written(&over).expect_err(&over.to_string());
        assert!(why.contains(part), "{over}: {why}");
    }
    for (profile, part) in [
        (
            json!({"baseURL": "http://x", "models": [{"id": "m"}]}),
            "api is missing",
        ),
        (
            json!({"api": "openai-completions", "models": [{"id": "m"}]}),
            "baseURL is missing",
        ),
        (
            json!({"api": "openai-completions", "baseURL": "http://x"}),
            "models is missing",
        ),
        (json!([]), "the profile must be an object"),
    ] {
        let why = read("acme", &profile).unwrap_err();
        assert!(why.contains(part), "{profile}: {why}");
    }
}

#[test]
fn every_key_is_taken_in() {
    let profile = written(&json!({
        "apiKeyEnv": "K", "displayName": "Acme", "headers": {"X-Team": "t"}, "reasoning": "high",
        "thinkingBudgets": {"minimal": 1, "low": 2, "medium": 3, "high": 4}, "cacheRetention": "none",
        "transport": "websocket-cached", "timeoutMs": 0.5, "websocketConnectTimeoutMs": 9,
        "streamIdleTimeoutMs": 80, "maxRequestImageBytes": 10, "requestImagePixelBudget": 11,
        "requestImageMaxBytes": 12, "retryPolicy": {"mode": "always"}, "defaultContextWindow": 500,
        "defaultMaxTokens": 5, "defaultInput": ["image"],
        "models": [{"id": "m", "reasoningEfforts": {"high": "h", "off": null, "max": "ultra"}}, {"id": "n", "input": []}],
    }))
    .unwrap();
    assert_eq!(
        (profile.name.as_str(), profile.reasoning.as_deref()),
        ("Acme", Some("high"))
    );
    assert_eq!(profile.budgets.medium, Some(3));
    assert_eq!(profile.cache, Cache::None);
    assert_eq!((profile.timeout_ms, profile.idle_timeout_ms), (Some(1), 80));
    assert_eq!(
        profile.pictures,
        PictureBounds {
            request_bytes: 10,
            pixels: 11,
            bytes: 12
        }
    );
    let [m, n] = &profile.models[..] else {
        panic!("two")
    };
    assert!(m.vision && n.vision, "an empty list says nothing");
    assert_eq!((m.context_window, m.max_tokens), (500, 5));
    let levels: Vec<_> = m.efforts.as_ref().unwrap().levels().collect();
    assert_eq!(levels, ["off", "high", "max"]);
    let route: Value = serde_json::from_str(&profile.route("openai-completions")).unwrap();
    assert_eq!(
        route,
        json!({
            "provider": "acme", "name": "Acme", "api": "openai-completions", "baseURL": "http://127.0.0.1:1/v1",
            "credential": "K", "idleTimeoutMs": 80, "retryPolicy": {"mode": "always"}, "ownBaseURL": true,
            "models": [
                {"id": "m", "name": "m", "inputModalities": ["text", "image"], "context": {"contextWindow": 500},
                 "reasoning": {"efforts": [{"id": "off", "name": "Off"}, {"id": "high", "name": "High"}, {"id": "max", "name": "Max"}],
                               "defaultEffort": "high"}},
                {"id": "n", "name": "n", "inputModalities": ["text", "image"], "context": {"contextWindow": 500}},
            ]
        })
    );
}

#[test]
fn an_effort_is_the_model_s_or_refused() {
    let profile = |reasoning: Option<&str>| {
        let mut over = json!({"models": [{"id": "m", "reasoningEfforts": {"off": null, "high": "h"}}, {"id": "n"}]});
        if let Some(reasoning) = reasoning {
            over["reasoning"] = json!(reasoning);
        }
        written(&over).unwrap()
    };
    let plain = profile(None);
    let [m, n] = &plain.models[..] else {
        panic!("two")
    };
    assert_eq!(plain.effort(m, None).unwrap(), None);
    assert_eq!(plain.effort(m, Some("high")).unwrap(), Some("high"));
    let refused = plain.effort(m, Some("low")).unwrap_err();
    assert_eq!(refused.code, "UNSUPPORTED_REASONING_EFFORT");
    assert!(
        refused.message.contains("off, high, not low"),
        "{}",
        refused.message
    );
    assert!(
        plain
            .effort(n, Some("off"))
            .unwrap_err()
            .message
            .contains("takes no reasoning effort")
    );
    let set = profile(Some("low"));
    assert_eq!(set.effort(m, Some("off")).unwrap(), Some("off"));
    let refused = set.effort(m, None).unwrap_err();
    assert!(
        refused.message.contains("change providers.acme.reasoning"),
        "{}",
        refused.message
    );
    assert_eq!(plain.model("x").unwrap_err().message, "acme has no model x");
}

#[test]
fn a_header_that_the_client_makes_itself_is_a_problem_of_its_profile() {
    for name in [
        "host",
        "Content-Length",
        "TE",
        "Proxy-Authorization",
        "accept-encoding",
    ] {
        let why = written(&json!({"headers": {name: "x"}})).unwrap_err();
        assert!(why.starts_with(&format!("headers.{name} is made")), "{why}");
    }
    for name in ["x-host", "authorization", "user-agent", "accept"] {
        written(&json!({"headers": {name: "x"}})).unwrap();
    }
}
