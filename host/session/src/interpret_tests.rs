use super::*;
use crate::{ErrorClass, rows};

fn log(lines: &[&str]) -> Vec<Stored> {
    lines
        .iter()
        .flat_map(|line| rows::decode_line(line).unwrap())
        .collect()
}

fn header() -> Header {
    Header::new("s", 0)
}

const START: &str = r#"{"type":"turn/start","seq":0,"time":0,"data":{"turn":1}}"#;
const NEWER: &str = r#"{"type":"acme/thing","seq":1,"time":0,"data":{}}"#;
const ODD: &str = r#"{"type":"turn/start","seq":1,"time":0,"data":{"turn":1},"x":1}"#;
const NO_MESSAGE: &str =
    r#"{"type":"tool/result","seq":2,"time":0,"data":{},"surfaceOp":"append"}"#;

fn class(lines: &[&str]) -> ErrorClass {
    interpret(&header(), &log(lines)).unwrap_err().class()
}

#[test]
fn a_log_of_a_newer_program_is_not_called_damaged() {
    assert_eq!(class(&[START, NEWER]), ErrorClass::Unsupported);
    // Even when an envelope before it is unsound, which a newer program may have widened.
    assert_eq!(
        class(&[START, ODD, &NEWER.replace(":1,", ":2,")]),
        ErrorClass::Unsupported
    );
    assert_eq!(class(&[START, ODD]), ErrorClass::Corrupt);
    assert_eq!(class(&[START, NEWER, NO_MESSAGE]), ErrorClass::Corrupt);
}

#[test]
fn ignorable_foreign_events_stay_and_required_ones_do_not() {
    let marked = NEWER.replace("{}}", "{},\"ignorable\":true}");
    let events = interpret(&header(), &log(&[START, &marked]))
        .unwrap()
        .events;
    assert_eq!(events[1].kind.as_str(), "acme/thing");
    assert!(check_known(&events).is_ok());
}

#[test]
fn the_prefix_before_the_first_fault_is_kept() {
    let (kept, fault) = interpret_prefix(&header(), &log(&[START, NEWER, NO_MESSAGE]));
    assert_eq!(kept.events.len(), 1);
    assert_eq!(fault.unwrap().code(), "EVENT_KIND_UNKNOWN");
}

/// One event through the upgrade; the new data, or the code of the error.
fn upgraded(kind: &str, data: &str) -> String {
    let op = if kind.starts_with("turn/") {
        ""
    } else {
        ",\"surfaceOp\":\"append\""
    };
    let line = format!(r#"{{"type":"{kind}","seq":0,"time":0,"data":{data}{op}}}"#);
    match interpret(&header(), &log(&[&line])) {
        Ok(log) => format!("{} {}", log.events[0].kind, log.events[0].data),
        Err(error) => error.code().to_owned(),
    }
}

#[test]
fn older_messages_get_an_id_and_a_role() {
    assert_eq!(
        upgraded("user/message", r#"{"content":[],"source":{"kind":"user"}}"#),
        r#"user/message {"content":[],"source":{"kind":"user"},"id":"legacy-message:s:0","role":"user"}"#
    );
    assert_eq!(
        upgraded(
            "assistant/message",
            r#"{"turn":1,"content":[],"provenance":{"provider":"p","model":"m"},"usage":{}}"#
        ),
        r#"assistant/message {"turn":1,"usage":{},"message":{"id":"legacy-message:s:0","role":"assistant","content":[],"source":{"provider":"p","model":"m","kind":"model"}}}"#
    );
    assert_eq!(
        upgraded(
            "tool/result",
            r#"{"turn":1,"callId":"c","content":[],"isError":false}"#
        ),
        r#"tool/result {"turn":1,"message":{"id":"legacy-message:s:0","role":"user","content":[{"type":"tool-result","toolCallId":"c","content":[],"isError":false}],"source":{"kind":"tool","callId":"c"}}}"#
    );
    assert_eq!(
        upgraded("user/message", r#"{"content":[],"id":"a"}"#),
        "MESSAGE_SHAPE_INVALID"
    );
}

#[test]
fn a_replacing_older_tool_result_keeps_the_id_it_replaces() {
    let result = |seq: u64, rest: &str| {
        format!(
            r#"{{"type":"tool/result","seq":{seq},"time":0,"data":{{"callId":"c","content":[],"isError":false}},{rest}}}"#
        )
    };
    let first = result(0, r#""surfaceOp":"append""#);
    let second = result(
        1,
        r#""sourceEventSeqs":[0],"surfaceOp":{"op":"replace","start":0,"end":0}"#,
    );
    let log = interpret(&header(), &log(&[&first, &second])).unwrap();
    let id = log.events[1]
        .data
        .get("message")
        .and_then(|message| message.get("id"));
    assert!(id.is_some_and(|id| id.is("legacy-message:s:0")));
    assert_eq!(log.migrated, [Seq(0), Seq(1)]);
}

#[test]
fn older_turn_ends_say_why_in_todays_words() {
    for (reason, want) in [
        (
            r#"{"kind":"aborted"}"#,
            r#"{"kind":"aborted","reason":{"kind":"legacy"}}"#,
        ),
        (
            r#"{"kind":"disposed"}"#,
            r#"{"kind":"aborted","reason":{"kind":"disposed"}}"#,
        ),
        (
            r#"{"kind":"error","step":0,"message":"m"}"#,
            r#"{"kind":"error","error":{"message":"m","code":"UNKNOWN"}}"#,
        ),
        (r#"{"kind":"later","x":1}"#, r#"{"kind":"later","x":1}"#),
        (
            r#"{"kind":"aborted","reason":{"kind":"user"}}"#,
            r#"{"kind":"aborted","reason":{"kind":"user"}}"#,
        ),
    ] {
        let data = format!(r#"{{"turn":1,"reason":{reason}}}"#);
        assert_eq!(
            upgraded("turn/end", &data),
            format!(r#"turn/end {{"turn":1,"reason":{want}}}"#)
        );
    }
    for data in [
        r#"{"turn":0,"reason":{"kind":"completed"}}"#,
        r#"{"turn":1,"reason":{"kind":"completed","x":1}}"#,
        r#"{"turn":1,"reason":{"kind":"error","step":-1,"message":"m"}}"#,
        r#"{"turn":1,"reason":{"kind":"disposed","x":1}}"#,
        r#"{"turn":1}"#,
        "null",
    ] {
        assert_eq!(upgraded("turn/end", data), "LEGACY_SHAPE_INVALID", "{data}");
    }
}
