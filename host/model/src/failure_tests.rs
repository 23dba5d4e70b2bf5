use super::*;

#[test]
fn a_failure_comes_back_as_it_was_written() {
    let mut failure = LlmFailure::new("RATE_LIMIT", "slow down");
    assert_eq!(
        failure.to_json().as_str(),
        r#"{"message":"slow down","code":"RATE_LIMIT"}"#
    );
    failure.status = Some(429);
    failure.provider_retry_after_ms = Some(7000.0);
    failure.request_id = Some(String::from("req-1"));
    let text = failure.to_json();
    assert_eq!(
        text.as_str(),
        r#"{"message":"slow down","code":"RATE_LIMIT","status":429,"providerRetryAfterMs":7000,"requestId":"req-1"}"#
    );
    assert_eq!(LlmFailure::from_value(text.value()), Some(failure));
}

#[test]
fn unsound_facts_are_not_read_as_a_failure() {
    for text in [
        r#"{}"#,
        r#"{"message":"","code":"X"}"#,
        r#"{"message":"m","code":""}"#,
        r#"{"message":"m","code":1}"#,
        r#"{"message":"m","code":"X","status":99}"#,
        r#"{"message":"m","code":"X","status":600}"#,
        r#"{"message":"m","code":"X","status":"429"}"#,
        r#"{"message":"m","code":"X","providerRetryAfterMs":0}"#,
        r#"{"message":"m","code":"X","requestId":""}"#,
        r#"null"#,
    ] {
        let value = Json::normalise(text).unwrap();
        assert_eq!(LlmFailure::from_value(value.value()), None, "{text}");
    }
}

#[test]
fn an_adapters_error_keeps_its_sound_details_and_loses_unsound_ones() {
    let error = |details: &str| PluginError {
        details: Some(details.to_owned()),
        ..PluginError::new("SERVER", "down")
    };
    let failure = LlmFailure::from(error(r#"{"status":503,"requestId":"r"}"#));
    assert_eq!(
        (failure.status, failure.request_id.as_deref()),
        (Some(503), Some("r"))
    );
    for details in [r#"{"status":5}"#, "not json", "[]"] {
        assert_eq!(
            LlmFailure::from(error(details)),
            LlmFailure::new("SERVER", "down"),
            "{details}"
        );
    }
}

#[test]
fn a_cancelled_call_is_an_aborted_one() {
    assert_eq!(
        LlmFailure::from(PluginError::cancelled()).code,
        code::ABORTED
    );
}
