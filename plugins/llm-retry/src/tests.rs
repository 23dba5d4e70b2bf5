use serde_json::{Value, json};

use crate::policy::{Answer, answer};
use crate::{cap, retry, unless_wanted};

fn normal() -> Value {
    json!({
        "mode": "normal", "maxRetries": 5, "retryableCodes": ["RATE_LIMIT", "SERVER"],
        "backoff": {"initialDelayMs": 500, "maxDelayMs": 10000, "jitterRatio": 0.1},
    })
}

fn always() -> Value {
    let mut policy = normal();
    policy["mode"] = json!("always");
    policy
}

fn ask(policy: &Value, failure: &Value, retries: u64, random: f64) -> Answer {
    let payload = json!({"retryPolicy": policy, "failure": failure, "retries": retries});
    answer(&payload.to_string(), None, random)
}

#[test]
fn a_wait_doubles_up_to_the_longest_and_differs_by_a_tenth() {
    let failure = json!({"code": "SERVER"});
    for (retries, random, expected) in [
        (0, 0.5, 500.0),
        (1, 0.5, 1000.0),
        (4, 0.5, 8000.0),
        (0, 0.0, 450.0),
        (3, 0.0, 3600.0),
    ] {
        let Answer::Retry(delay) = ask(&normal(), &failure, retries, random) else {
            panic!("{retries}");
        };
        assert!((delay - expected).abs() < 0.001, "{retries} {delay}");
    }
    let Answer::Unless(delay) = ask(&always(), &failure, 2000, 0.99) else {
        panic!("it goes on");
    };
    assert!((delay - 10_000.0).abs() < 0.001, "{delay}");
}

#[test]
fn what_is_not_retryable_or_was_retried_enough_is_left_to_others() {
    let failure = json!({"code": "SERVER"});
    assert_eq!(
        ask(&normal(), &json!({"code": "AUTH"}), 0, 0.5),
        Answer::Delegate
    );
    assert!(matches!(ask(&normal(), &failure, 4, 0.5), Answer::Retry(_)));
    assert_eq!(ask(&normal(), &failure, 5, 0.5), Answer::Delegate);
    assert!(matches!(
        ask(&always(), &json!({"code": "AUTH"}), 99, 0.5),
        Answer::Unless(_)
    ));
}

#[test]
fn an_overloaded_provider_and_a_silent_cut_are_retried_on_every_route() {
    let ask = |failure: Value, spoke: bool| {
        let payload =
            json!({"retryPolicy": normal(), "failure": failure, "retries": 0, "spoke": spoke});
        answer(&payload.to_string(), None, 0.5) != Answer::Delegate
    };
    let cut = || json!({"code": "STREAM_CLOSED"});
    let overloaded = || json!({"code": "INSUFFICIENT_SYSTEM_RESOURCE"});
    assert!(ask(overloaded(), true));
    assert!(ask(json!({"code": "HTTP_529", "status": 529}), true));
    assert!(ask(json!({"code": "OTHER", "status": 503}), true));
    assert!(!ask(json!({"code": "HTTP_418", "status": 418}), false));
    assert!(ask(cut(), false));
    assert!(!ask(cut(), true));
}

#[test]
fn what_the_provider_asks_for_is_waited_for_as_far_as_the_policy_goes() {
    let failure = |ms: f64| json!({"code": "RATE_LIMIT", "providerRetryAfterMs": ms});
    assert_eq!(
        ask(&normal(), &failure(10_000.0), 0, 0.9),
        Answer::Retry(10_000.0)
    );
    assert_eq!(ask(&normal(), &failure(10_001.0), 0, 0.5), Answer::Delegate);
    let Answer::Unless(delay) = ask(&always(), &failure(10_001.0), 0, 0.5) else {
        panic!("it goes on");
    };
    assert!((delay - 500.0).abs() < 0.001, "{delay}");
}

#[test]
fn the_row_may_bound_every_wait() {
    let payload = json!({"retryPolicy": normal(), "failure": {"code": "SERVER"}, "retries": 0});
    let cap = cap(r#"{"maxDelayMs": 2.5}"#);
    assert_eq!(answer(&payload.to_string(), cap, 0.5), Answer::Retry(2.5));
    assert_eq!(crate::cap("{}"), None);
}

#[test]
fn what_it_cannot_read_it_leaves_alone() {
    for payload in ["{}", r#"{"retryPolicy":{"mode":"normal"}}"#] {
        assert_eq!(answer(payload, None, 0.5), Answer::Delegate);
    }
}

#[test]
fn under_always_the_others_come_first() {
    let own = retry(500.5);
    assert_eq!(own, r#"{"kind":"retry","delayMs":500.5}"#);
    assert_eq!(unless_wanted(own.clone(), "null"), Some(own.clone()));
    assert_eq!(unless_wanted(own, r#"{"kind":"retry"}"#), None);
}
