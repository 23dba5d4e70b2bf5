use super::*;

fn parse(text: &str) -> Result<RetryPolicy, String> {
    RetryPolicy::parse(Json::normalise(text).unwrap().value())
}

#[test]
fn an_empty_policy_is_the_default_one() {
    assert_eq!(parse("{}"), Ok(RetryPolicy::default()));
    assert_eq!(
        RetryPolicy::default().key(),
        r#"["normal",5,["EMPTY_RESPONSE","RATE_LIMIT","SERVER","TIMEOUT","TRANSPORT"],500,10000,0.1]"#
    );
}

#[test]
fn keys_are_the_same_for_the_same_chain() {
    let a =
        parse(r#"{"retryableCodes":["B","A"],"maxRetries":1,"backoff":{"initialDelayMs":1.5}}"#)
            .unwrap();
    assert_eq!(a.key(), r#"["normal",1,["A","B"],1.5,10000,0.1]"#);
    let always = parse(r#"{"mode":"always","maxRetries":"ignored"}"#).unwrap();
    assert_eq!(always.key(), r#"["always",500,10000,0.1]"#);
}

#[test]
fn unsound_policies_are_refused() {
    for text in [
        r#"[]"#,
        r#"{"mode":"never"}"#,
        r#"{"mode":1}"#,
        r#"{"retries":1}"#,
        r#"{"maxRetries":-1}"#,
        r#"{"maxRetries":1.5}"#,
        r#"{"retryableCodes":[]}"#,
        r#"{"retryableCodes":["A","A"]}"#,
        r#"{"retryableCodes":[""]}"#,
        r#"{"backoff":{"initialDelayMs":0}}"#,
        r#"{"backoff":{"initialDelayMs":20000}}"#,
        r#"{"backoff":{"maxDelayMs":2147483648}}"#,
        r#"{"backoff":{"jitterRatio":1.1}}"#,
        r#"{"backoff":{"jitterRatio":"0"}}"#,
        r#"{"backoff":7}"#,
    ] {
        assert!(parse(text).is_err(), "{text}");
    }
}

#[test]
fn waits_double_up_to_their_bound() {
    let policy = parse(r#"{"maxRetries":9999,"backoff":{"jitterRatio":0}}"#).unwrap();
    let failure = LlmFailure::new("SERVER", "x");
    let waits: Vec<Option<f64>> = [1, 2, 5, 6, 2000]
        .map(|retry| policy.delay(&failure, retry, 0.9))
        .to_vec();
    assert_eq!(waits, [500.0, 1000.0, 8000.0, 10_000.0, 10_000.0].map(Some));
}

#[test]
fn jitter_spreads_both_ways_and_stays_under_the_bound() {
    let policy = RetryPolicy::default();
    let failure = LlmFailure::new("TIMEOUT", "x");
    assert_eq!(policy.delay(&failure, 1, 0.0), Some(450.0));
    assert_eq!(policy.delay(&failure, 1, 0.5), Some(500.0));
    assert!(policy.delay(&failure, 5, 0.999).unwrap() <= 10_000.0);
}

#[test]
fn a_normal_policy_retries_its_codes_so_often_and_no_more() {
    let policy = RetryPolicy::default();
    assert!(
        policy
            .delay(&LlmFailure::new("SERVER", "x"), 5, 0.5)
            .is_some()
    );
    assert!(
        policy
            .delay(&LlmFailure::new("SERVER", "x"), 6, 0.5)
            .is_none()
    );
    assert!(
        policy
            .delay(&LlmFailure::new("STREAM_CLOSED", "x"), 1, 0.5)
            .is_none()
    );
    let always = parse(r#"{"mode":"always"}"#).unwrap();
    assert!(
        always
            .delay(&LlmFailure::new("STREAM_CLOSED", "x"), 600, 0.5)
            .is_some()
    );
}

#[test]
fn the_providers_wish_counts_where_it_is_not_too_long() {
    let wish = |ms| LlmFailure {
        provider_retry_after_ms: Some(ms),
        ..LlmFailure::new("RATE_LIMIT", "x")
    };
    let always = parse(r#"{"mode":"always"}"#).unwrap();
    assert_eq!(
        RetryPolicy::default().delay(&wish(7000.0), 1, 0.5),
        Some(7000.0)
    );
    assert_eq!(RetryPolicy::default().delay(&wish(10_001.0), 1, 0.5), None);
    assert_eq!(always.delay(&wish(10_001.0), 1, 0.5), Some(500.0));
}
