use super::*;

const FULL: &str = r#"{"provider":"p","id":"m","name":"M","context":{"contextWindow":1000},
    "defaultMaxTokens":50,"inputModalities":["text"],
    "reasoning":{"efforts":[{"id":"off","name":"Off"},{"id":"high","name":"High"}],"defaultEffort":"high"}}"#;

fn config() -> CallConfig {
    CallConfig {
        provider: String::from("p"),
        model: String::from("m"),
        ..CallConfig::default()
    }
}

#[test]
fn model_info_is_read_whole() {
    let info = ModelInfo::parse(FULL, "p", "m").unwrap();
    assert_eq!(
        (info.context_window, info.default_max_tokens),
        (Some(1000), Some(50))
    );
    assert!(!info.takes_images());
    assert_eq!(
        info.reasoning.unwrap().default_effort.as_deref(),
        Some("high")
    );
    let least = ModelInfo::parse(r#"{"id":"m","name":"M"}"#, "p", "m").unwrap();
    assert!(least.takes_images() && least.reasoning.is_none());
}

#[test]
fn each_unsound_part_has_its_code() {
    let table = [
        ("[]", "INVALID_MODEL_INFO"),
        ("{", "INVALID_MODEL_INFO"),
        (r#"{"id":"m"}"#, "INVALID_MODEL_INFO"),
        (r#"{"id":"m","name":""}"#, "INVALID_MODEL_INFO"),
        (r#"{"id":"x","name":"M"}"#, "INVALID_MODEL_INFO"),
        (
            r#"{"id":"m","name":"M","provider":"q"}"#,
            "INVALID_MODEL_INFO",
        ),
        (
            r#"{"id":"m","name":"M","inputModalities":"text"}"#,
            "INVALID_MODEL_INFO",
        ),
        (
            r#"{"id":"m","name":"M","context":{}}"#,
            "INVALID_MODEL_CONTEXT",
        ),
        (
            r#"{"id":"m","name":"M","context":{"contextWindow":0}}"#,
            "INVALID_MODEL_CONTEXT",
        ),
        (
            r#"{"id":"m","name":"M","context":{"contextWindow":1.5}}"#,
            "INVALID_MODEL_CONTEXT",
        ),
        (
            r#"{"id":"m","name":"M","defaultMaxTokens":0}"#,
            "INVALID_MODEL_MAX_TOKENS",
        ),
        (
            r#"{"id":"m","name":"M","defaultMaxTokens":"9"}"#,
            "INVALID_MODEL_MAX_TOKENS",
        ),
        (
            r#"{"id":"m","name":"M","reasoning":{}}"#,
            "INVALID_MODEL_REASONING",
        ),
        (
            r#"{"id":"m","name":"M","reasoning":{"efforts":[]}}"#,
            "INVALID_MODEL_REASONING",
        ),
        (
            r#"{"id":"m","name":"M","reasoning":{"efforts":[{"id":"a"}]}}"#,
            "INVALID_MODEL_REASONING",
        ),
        (
            r#"{"id":"m","name":"M","reasoning":{"efforts":[{"id":"a","name":"A"},{"id":"a","name":"A"}]}}"#,
            "INVALID_MODEL_REASONING",
        ),
        (
            r#"{"id":"m","name":"M","reasoning":{"efforts":[{"id":"a","name":"A"}],"defaultEffort":"b"}}"#,
            "INVALID_MODEL_REASONING",
        ),
    ];
    for (text, code) in table {
        assert_eq!(
            ModelInfo::parse(text, "p", "m").unwrap_err().code(),
            code,
            "{text}"
        );
    }
}

#[test]
fn defaults_fill_what_is_absent_and_nothing_else() {
    let info = ModelInfo::parse(FULL, "p", "m").unwrap();
    let filled = info.resolve(config()).unwrap();
    assert_eq!(
        (filled.reasoning_effort.as_deref(), filled.max_tokens),
        (Some("high"), Some(50))
    );
    let set = CallConfig {
        reasoning_effort: Some(String::from("off")),
        max_tokens: Some(7),
        ..config()
    };
    assert_eq!(info.resolve(set.clone()).unwrap(), set);
}

#[test]
fn an_effort_that_the_model_does_not_have_is_refused_not_bent() {
    let wanted = CallConfig {
        reasoning_effort: Some(String::from("max")),
        ..config()
    };
    let info = ModelInfo::parse(FULL, "p", "m").unwrap();
    let error = info.resolve(wanted.clone()).unwrap_err();
    assert_eq!(error.code(), "UNSUPPORTED_REASONING_EFFORT");
    assert!(error.to_string().contains("off, high"), "{error}");
    let plain = ModelInfo::parse(r#"{"id":"m","name":"M"}"#, "p", "m").unwrap();
    assert_eq!(
        plain.resolve(wanted).unwrap_err().code(),
        "UNSUPPORTED_REASONING_EFFORT"
    );
}
