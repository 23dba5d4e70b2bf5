use serde_json::json;

use super::*;

#[test]
fn sizes_and_times_are_numbers_or_texts_with_a_unit_and_counts_are_numbers() {
    let limits = Limits::default()
        .with(&json!({
            "memory": "256MiB", "output": 4096, "text": "1KiB", "cpu": "500ms", "call": "2m",
            "tables": 7, "instances": 2, "memories": 1, "log-lines": 0, "calls": 9, "handles": 3,
        }))
        .unwrap();
    let expected = Limits {
        memory: 256 * MIB,
        output: 4096,
        text: 1024,
        cpu: Duration::from_millis(500),
        call: Duration::from_secs(120),
        tables: 7,
        instances: 2,
        memories: 1,
        log_lines: 0,
        calls: 9,
        handles: 3,
    };
    assert_eq!(limits, expected);
    let ten = Limits::default().with(&json!({"call": "10 s"})).unwrap();
    assert_eq!(ten.call, Duration::from_secs(10));
}

#[test]
fn what_is_no_limit_or_cannot_be_is_refused() {
    for value in [
        json!({"fuel": 1}),
        json!({"memory": "lots"}),
        json!({"memory": "64MB"}),
        json!({"memory": -1}),
        json!({"memory": "99999999999999999999GiB"}),
        json!({"memory": "5GiB"}),
        json!({"memory": "MiB"}),
        json!({"text": "2GiB"}),
        json!({"cpu": 0}),
        json!({"cpu": "forever"}),
        json!({"call": 1.5}),
        json!({"calls": "many"}),
        json!({"calls": -1}),
        json!({"tables": 10_000_001}),
        json!([]),
    ] {
        assert!(
            matches!(Limits::default().with(&value), Err(Error::Limit { .. })),
            "{value}"
        );
    }
}

#[test]
fn what_is_written_of_limits_reads_back_as_the_same() {
    for limits in [Limits::default(), CEILING] {
        let written = Value::Object(limits.to_value());
        let other = Limits {
            memory: 1,
            ..Limits::default()
        };
        assert_eq!(other.with(&written).unwrap(), limits);
    }
}

#[test]
fn a_manifest_may_ask_for_less_of_anything() {
    let half = |value: u64| value / 2;
    let of = Limits::default();
    let less = Limits {
        memory: half(of.memory),
        tables: half(of.tables),
        instances: half(of.instances),
        memories: half(of.memories),
        cpu: of.cpu / 2,
        call: of.call / 2,
        output: half(of.output),
        text: half(of.text),
        log_lines: half(of.log_lines),
        calls: half(of.calls),
        handles: half(of.handles),
    };
    assert_eq!(of.lesser(&less), less);
    assert_eq!(less.lesser(&of), less);
}
