use dsh_profile::Implementation;
use serde_json::{Value, json};

use super::*;

fn row(config: Value) -> Row {
    Row {
        id: "session-title".to_owned(),
        implementation: Implementation::Host("session-title".to_owned()),
        config,
        grants: json!({}),
        limits: json!({}),
        disabled: false,
        plugin: None,
        locked_grants: false,
        locked_limits: false,
        dormant: false,
        endpoints: Vec::new(),
        origin: String::new(),
        patched_by: vec![],
    }
}

#[test]
fn the_lengths_are_the_rows_or_the_usual_ones() {
    assert_eq!(limits(&row(json!({}))), Ok(Limits::default()));
    let config = json!({"fallbackMaxWords": 2, "fallbackMaxBytes": 20, "maxTitleBytes": 20});
    let limits = limits(&row(config)).unwrap();
    assert_eq!(
        (
            limits.fallback_words,
            limits.fallback_bytes,
            limits.max_bytes
        ),
        (2, 20, 20)
    );
}

#[test]
fn a_length_that_is_none_is_refused_with_what_it_was() {
    for (config, word) in [
        (json!({"fallbackMaxWords": 0}), "fallbackMaxWords: 0"),
        (json!({"maxTitleBytes": "80"}), "maxTitleBytes: \"80\""),
        (json!({"fallbackMaxBytes": 1.5}), "fallbackMaxBytes: 1.5"),
        (json!({"fallbackMaxBytes": 81}), "above maxTitleBytes (80)"),
    ] {
        let reason = limits(&row(config)).unwrap_err();
        assert!(reason.contains(word), "{reason}");
    }
}
