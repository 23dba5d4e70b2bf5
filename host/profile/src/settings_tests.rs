use super::*;
use serde_json::json;
use std::path::Path;

fn load(text: &str) -> Result<Settings, Error> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("settings.yaml"), text).unwrap();
    Settings::load(&Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap())
}

#[test]
fn a_missing_or_empty_document_has_no_sections() {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap();
    assert!(Settings::load(&home).unwrap().sections.is_empty());
    for text in ["", "# nothing\n", "~\n"] {
        assert!(load(text).unwrap().sections.is_empty(), "{text:?}");
    }
}

#[test]
fn sections_of_others_are_kept_and_laid_over_nothing() {
    let settings =
        load("ui-theme: dark\nllm-pi-ai: {providers: {}}\nagent-loop: {maxParallelToolCalls: 3}\n")
            .unwrap();
    assert_eq!(settings.section("ui-theme"), Some(&json!("dark")));
    assert_eq!(settings.for_row("ui-theme"), None);
    assert_eq!(
        settings.for_row("llm-pi-ai"),
        Some(&json!({"providers": {}}))
    );
    assert_eq!(
        settings.for_row("agent-loop"),
        Some(&json!({"maxParallelToolCalls": 3}))
    );
}

#[test]
fn an_invalid_document_is_an_error_with_file_and_line() {
    for (text, line) in [
        ("- a\n", 1),
        ("a: 1\nagent-default-model: deepseek\n", 2),
        ("agent-default-model:\n  provider: x\n  model: ''\n", 3),
        ("agent-default-model:\n  provider: 7\n", 2),
        ("agent-loop:\n  maxParallelToolCalls: 0\n", 2),
        ("permission:\n  defaultPreset: [x]\n", 2),
        ("llm-deepseek:\n  apiKeyEnv: 1\n", 2),
        ("llm-deepseek:\n  baseURL: ftp://x\n", 2),
        ("x:\n  y: !!js process.env.X\n", 2),
        ("a: 1\na: 2\n", 2),
    ] {
        match load(text).unwrap_err() {
            Error::Document {
                path, line: found, ..
            } => {
                assert!(path.ends_with("settings.yaml"));
                assert_eq!(found, line, "{text:?}");
            }
            other => panic!("{text:?}: {other}"),
        }
    }
}

/// A line each, so that the fault's line is the profile's.
#[test]
fn a_wrong_member_of_a_provider_is_an_error_with_file_and_line() {
    for (lines, line, what) in [
        ("providers: [{provider: openai}]", 2, "older versions"),
        ("providers: 7", 2, "this is a number"),
        (
            "providers:\n    p: yes",
            3,
            "`llm-pi-ai.providers.p` must be a mapping",
        ),
        (
            "providers:\n    p:\n      api: gemini",
            4,
            "must be one of openai-completions",
        ),
        (
            "providers:\n    p:\n      baseURL: api.example.com",
            4,
            "no scheme",
        ),
        (
            "providers:\n    p:\n      baseURL: 'https://me:hush@x'",
            4,
            "password",
        ),
        (
            "providers:\n    p:\n      models:\n        - id: m\n          maxTokens: -1",
            6,
            "models[0].maxTokens",
        ),
        (
            "providers:\n    p:\n      models:\n        - id: 7",
            5,
            "models[0].id",
        ),
        (
            "providers:\n    p:\n      baseUrl: https://x",
            4,
            "did you mean `baseURL`",
        ),
        ("providers:\n    p:\n      maxRetryDelayMs: 1", 4, "backoff"),
        (
            "providers:\n    p:\n      retryPolicy: {mode: never}",
            4,
            "normal, always",
        ),
    ] {
        let text = format!("llm-pi-ai:\n  {lines}\n");
        match load(&text).unwrap_err() {
            Error::Document {
                line: found,
                message,
                ..
            } => {
                assert_eq!(found, line, "{lines:?}: {message}");
                assert!(message.contains(what), "{lines:?}: {message}");
                assert!(!message.contains("hush"));
            }
            other => panic!("{lines:?}: {other}"),
        }
    }
}

#[test]
fn a_member_that_only_another_version_knows_is_let_be() {
    let text = "llm-pi-ai:\n  providers:\n    openai: {pricing: {tier: flex}, headers: {x: ''}}\nllm-deepseek: {newer: 1}\n";
    load(text).unwrap();
}
