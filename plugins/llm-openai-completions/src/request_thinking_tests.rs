//! How models are asked to think.

use super::*;

#[test]
fn every_format_asks_for_thinking_in_its_own_words() {
    let efforts = json!({"off": "none!", "low": "l", "max": "ultra"});
    let silent = json!({"off": null, "low": "l"});
    let always = json!({"low": "l"});
    let members = [
        "thinking",
        "reasoning",
        "reasoning_effort",
        "enable_thinking",
        "chat_template_kwargs",
    ];
    for (format, efforts, asked, expected) in [
        (
            "openai",
            &efforts,
            Some("max"),
            json!({"reasoning_effort": "ultra"}),
        ),
        (
            "openai",
            &efforts,
            Some("off"),
            json!({"reasoning_effort": "none!"}),
        ),
        (
            "openai",
            &efforts,
            None,
            json!({"reasoning_effort": "none!"}),
        ),
        ("openai", &silent, None, json!({})),
        ("openai", &always, None, json!({})),
        (
            "deepseek",
            &efforts,
            Some("low"),
            json!({"thinking": {"type": "enabled"}, "reasoning_effort": "l"}),
        ),
        (
            "deepseek",
            &silent,
            Some("off"),
            json!({"thinking": {"type": "disabled"}}),
        ),
        ("deepseek", &always, None, json!({})),
        (
            "openrouter",
            &efforts,
            Some("low"),
            json!({"reasoning": {"effort": "l"}}),
        ),
        (
            "openrouter",
            &efforts,
            None,
            json!({"reasoning": {"effort": "none!"}}),
        ),
        (
            "openrouter",
            &silent,
            None,
            json!({"reasoning": {"effort": "none"}}),
        ),
        ("openrouter", &always, None, json!({})),
        (
            "together",
            &efforts,
            Some("low"),
            json!({"reasoning": {"enabled": true}, "reasoning_effort": "l"}),
        ),
        (
            "together",
            &efforts,
            None,
            json!({"reasoning": {"enabled": false}}),
        ),
        (
            "zai",
            &efforts,
            Some("low"),
            json!({"thinking": {"type": "enabled", "clear_thinking": false}, "reasoning_effort": "l"}),
        ),
        (
            "zai",
            &efforts,
            None,
            json!({"thinking": {"type": "disabled"}}),
        ),
        (
            "qwen",
            &efforts,
            Some("low"),
            json!({"enable_thinking": true}),
        ),
        ("qwen", &efforts, None, json!({"enable_thinking": false})),
        (
            "qwen-chat-template",
            &efforts,
            Some("low"),
            json!({"chat_template_kwargs": {"enable_thinking": true, "preserve_thinking": true}}),
        ),
        (
            "qwen-chat-template",
            &efforts,
            None,
            json!({"chat_template_kwargs": {"enable_thinking": false, "preserve_thinking": true}}),
        ),
        (
            "string-thinking",
            &efforts,
            Some("low"),
            json!({"thinking": "l"}),
        ),
        (
            "string-thinking",
            &efforts,
            None,
            json!({"thinking": "none!"}),
        ),
        (
            "string-thinking",
            &silent,
            None,
            json!({"thinking": "none"}),
        ),
        ("string-thinking", &always, None, json!({})),
        (
            "ant-ling",
            &efforts,
            Some("low"),
            json!({"reasoning": {"effort": "l"}}),
        ),
        ("ant-ling", &efforts, None, json!({})),
    ] {
        let mut options = json!({});
        if let Some(asked) = asked {
            options["reasoningEffort"] = json!(asked);
        }
        let profile = thinker(efforts, &json!({"thinkingFormat": format}));
        let body = body(&profile, &options);
        let mut found = json!({});
        for name in members {
            if let Some(value) = body.get(name) {
                found[name] = value.clone();
            }
        }
        assert_eq!(found, expected, "{format} {efforts} {asked:?}");
    }
    // A model that does not think is told nothing.
    for format in [
        "openai",
        "deepseek",
        "openrouter",
        "together",
        "zai",
        "qwen",
        "string-thinking",
    ] {
        let body = body(&json!({"compat": {"thinkingFormat": format}}), &json!({}));
        assert!(
            members.iter().all(|name| body.get(name).is_none()),
            "{format}: {body}"
        );
    }
}

#[test]
fn a_chat_template_is_told_what_the_profile_says() {
    let kwargs = json!({"thinkingFormat": "chat-template", "chatTemplateKwargs": {
        "enable_thinking": {"$var": "thinking.enabled"},
        "effort": {"$var": "thinking.effort"},
        "budget": {"$var": "thinking.effort", "omitWhenOff": true},
        "fixed": [1],
    }});
    let efforts = json!({"off": "none", "low": "l"});
    for (asked, expected) in [
        (
            "low",
            json!({"enable_thinking": true, "effort": "l", "budget": "l", "fixed": [1]}),
        ),
        (
            "off",
            json!({"enable_thinking": false, "effort": "none", "fixed": [1]}),
        ),
    ] {
        let body = body(
            &thinker(&efforts, &kwargs),
            &json!({"reasoningEffort": asked}),
        );
        assert_eq!(body["chat_template_kwargs"], expected);
        assert!(body.get("reasoning_effort").is_none());
    }
    let plain = body(
        &json!({"compat": {"thinkingFormat": "chat-template", "chatTemplateKwargs": {"add": true}}}),
        &json!({}),
    );
    assert_eq!(plain["chat_template_kwargs"], json!({"add": true}));
}
