use serde_json::{Value, json};

use super::*;

fn call(name: &str, arguments: &Value) -> String {
    json!({"turn": 1, "callId": "A", "name": name, "arguments": arguments, "raw": "", "result": {}})
        .to_string()
}

/// The counts at which the calls of a run are answered by a reminder.
fn reminded(config: &str, calls: &[(&str, Value)]) -> Vec<String> {
    let settings = Settings::read(config).unwrap();
    let mut counter = Counter::default();
    let drafts = calls
        .iter()
        .filter_map(|(name, arguments)| reminder(&settings, &mut counter, &call(name, arguments)));
    drafts
        .map(|draft| {
            let draft: Value = serde_json::from_str(&draft).unwrap();
            draft["source"]["summary"].as_str().unwrap().to_owned()
        })
        .collect()
}

fn times(count: usize, name: &'static str) -> Vec<(&'static str, Value)> {
    vec![(name, json!({})); count]
}

#[test]
fn a_reminder_comes_at_each_threshold_and_never_after_the_last() {
    assert_eq!(reminded("{}", &times(20, "t")), ["t × 3", "t × 5", "t × 8"]);
    let sorted = reminded(r#"{"thresholds":[4,2]}"#, &times(9, "t"));
    assert_eq!(sorted, ["t × 2", "t × 4"]);
}

#[test]
fn another_call_starts_the_count_anew() {
    let mut calls = times(2, "t");
    calls.push(("t", json!({"a": 1})));
    calls.extend(times(2, "t"));
    calls.extend(times(2, "u"));
    assert_eq!(reminded("{}", &calls), [""; 0]);
    calls.extend(times(1, "u"));
    assert_eq!(reminded("{}", &calls), ["u × 3"]);
}

#[test]
fn members_in_another_order_are_the_same_arguments() {
    let same = [
        r#"{"b":[{"y":1,"x":{"q":2,"p":3}}],"a":"s"}"#,
        r#"{"a":"s","b":[{"x":{"p":3,"q":2},"y":1}]}"#,
    ];
    let [one, two] = same.map(|text| key::canonical(Json::of_host(text)));
    assert_eq!(one, r#"{"a":"s","b":[{"x":{"p":3,"q":2},"y":1}]}"#);
    assert_eq!(one, two);
    let other = key::canonical(Json::of_host(r#"{"a":"s","b":[1,2]}"#));
    assert_ne!(
        other,
        key::canonical(Json::of_host(r#"{"a":"s","b":[2,1]}"#))
    );
    // What the model wrote where it wrote no JSON.
    assert_eq!(key::canonical(Json::of_host(r#""{\"a""#)), r#""{\"a""#);
}

#[test]
fn deep_arguments_are_compared_without_an_end_of_the_stack() {
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(key::canonical(Json::of_host(&deep)), deep);
    let deep = format!("{}1{}", r#"{"a":"#.repeat(50_000), "}".repeat(50_000));
    assert_eq!(key::canonical(Json::of_host(&deep)), deep);
}

#[test]
fn tools_that_are_not_tracked_neither_count_nor_end_a_row() {
    let mut calls = times(2, "t");
    calls.extend(times(5, "job_output"));
    calls.extend(times(1, "t"));
    assert_eq!(reminded(r#"{"exclude":["job_*"]}"#, &calls), ["t × 3"]);
    assert_eq!(reminded(r#"{"include":["t"]}"#, &calls), ["t × 3"]);
    assert_eq!(reminded("{}", &calls), ["job_output × 3", "job_output × 5"]);
}

#[test]
fn a_persons_message_is_found_among_those_of_a_step() {
    let of = |messages: Value| from_a_person(&json!({"turn": 1, "messages": messages}).to_string());
    assert!(!of(json!([])));
    assert!(!of(
        json!([{"source": {"kind": "plugin", "plugin": "user"}}, {}])
    ));
    assert!(of(
        json!([{"source": {"kind": "plugin"}}, {"source": {"kind": "user"}}])
    ));
}

#[test]
fn the_first_reminder_is_gentle_and_later_ones_show_the_call() {
    let settings = Settings::read(r#"{"argumentsPreviewChars":6}"#).unwrap();
    let text = |count| settings.text(count, "bash", r#"{"command":"ls"}"#);
    let gentle = text(3).unwrap();
    assert!(gentle.contains("`bash` 3 times") && !gentle.contains("command"));
    for count in [5, 8] {
        let lines = text(count).unwrap();
        let lines: Vec<_> = lines.lines().collect();
        assert_eq!(lines[1], "- tool: bash");
        assert_eq!(lines[2], format!("- consecutive_calls: {count}"));
        assert_eq!(lines[3], r#"- arguments: {"comm… (+10 more chars)"#);
    }
    assert_eq!([1, 2, 4, 9].map(text), [None, None, None, None]);
}

#[test]
fn the_reminder_stands_before_the_messages_of_others() {
    let outcome = json!({
        "kind": "block", "feedback": "no",
        "additionalContexts": [{"content": [], "id": "inner"}]
    });
    let with: Value = serde_json::from_str(&with_context(
        r#"{"content":["own"]}"#,
        &outcome.to_string(),
    ))
    .unwrap();
    assert_eq!(with["kind"], "block");
    assert_eq!(
        with["additionalContexts"],
        json!([{"content": ["own"]}, {"content": [], "id": "inner"}])
    );
    let alone = with_context("{}", r#"{"kind":"accept"}"#);
    assert_eq!(alone, r#"{"kind":"accept","additionalContexts":[{}]}"#);
}
