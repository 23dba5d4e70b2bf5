//! How answers end: as their status says, by an error, or broken off.

use super::*;

#[test]
fn an_end_at_any_event_but_the_last_is_a_broken_connection() {
    let all = [
        r#"{"type":"response.created","response":{"id":"r"}}"#,
        MESSAGE,
        TIN,
        MESSAGE_DONE,
        COMPLETED,
    ];
    for length in 0..all.len() {
        let chunks = chunks(&all[..length]);
        let [.., usage, finish] = &chunks[..] else {
            panic!("usage and finish")
        };
        assert_eq!(line(usage), "usage 0 0 0 0");
        assert_eq!(finish["reason"]["failure"]["code"], "TRANSPORT", "{length}");
        assert!(finish.get("replayState").is_none());
    }
    assert_eq!(
        play(&all),
        ["0 text", "0+ Tin", "0. Tin", "usage 2 1 0 0", "stop"]
    );
}

#[test]
fn an_answer_ends_as_its_status_says() {
    let ended = |kind: &str, response: &str| {
        let event = format!(r#"{{"type":"{kind}","response":{response}}}"#);
        play(&[MESSAGE, TIN, &event]).pop().unwrap()
    };
    for (kind, response, end) in [
        ("response.completed", "{}", "stop"),
        ("response.done", r#"{"status":"completed"}"#, "stop"),
        ("response.completed", r#"{"status":"in_progress"}"#, "stop"),
        (
            "response.completed",
            r#"{"status":"incomplete"}"#,
            "max-tokens",
        ),
        (
            "response.incomplete",
            r#"{"incomplete_details":{"reason":"max_output_tokens"}}"#,
            "max-tokens",
        ),
        (
            "response.incomplete",
            r#"{"incomplete_details":null}"#,
            "max-tokens",
        ),
    ] {
        assert_eq!(ended(kind, response), end, "{kind} {response}");
    }
    for (kind, response, code, text) in [
        (
            "response.incomplete",
            r#"{"incomplete_details":{"reason":"content_filter"}}"#,
            "PI_AI_ERROR",
            "content_filter",
        ),
        (
            "response.failed",
            r#"{"error":{"code":"rate_limit_exceeded","message":"Rate limit reached for m"}}"#,
            "RATE_LIMIT",
            "rate_limit_exceeded: Rate limit reached for m",
        ),
        (
            "response.failed",
            r#"{"error":{"code":"server_error","message":"An error occurred."}}"#,
            "SERVER",
            "server_error: An error occurred.",
        ),
        (
            "response.failed",
            r#"{"error":{"code":"context_length_exceeded","message":"Your input exceeds the context window of this model."}}"#,
            "CONTEXT_WINDOW_EXCEEDED",
            "context_length_exceeded",
        ),
        (
            "response.failed",
            r#"{"error":{"code":"insufficient_quota","message":"You exceeded your current quota"}}"#,
            "QUOTA",
            "insufficient_quota",
        ),
        (
            "response.failed",
            r#"{"error":null}"#,
            "PI_AI_ERROR",
            "no reason",
        ),
        (
            "response.failed",
            r#"{"incomplete_details":{"reason":"odd"}}"#,
            "PI_AI_ERROR",
            "odd",
        ),
        (
            "response.completed",
            r#"{"status":"failed"}"#,
            "PI_AI_ERROR",
            "no reason",
        ),
        (
            "response.completed",
            r#"{"status":"cancelled"}"#,
            "PI_AI_ERROR",
            "cancelled",
        ),
        ("response.cancelled", "{}", "PI_AI_ERROR", "cancelled"),
    ] {
        let end = ended(kind, response);
        assert!(
            end.starts_with(code) && end.contains(text),
            "{kind} {response}: {end}"
        );
    }
}

#[test]
fn an_error_ends_the_answer_in_whichever_shape_it_comes() {
    for (event, end) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"Slow down","param":null}"#,
            "RATE_LIMIT rate_limit_exceeded: Slow down",
        ),
        (
            r#"{"type":"error","error":{"type":"server_error","code":null,"message":"The server had an error"}}"#,
            "SERVER server_error: The server had an error",
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","code":"E7","message":"Later"}}"#,
            "SERVER E7: Later",
        ),
        (
            r#"{"error":{"message":"litellm.Timeout: Request timed out","type":null,"code":"408"}}"#,
            "TIMEOUT 408: litellm.Timeout: Request timed out",
        ),
        (
            r#"{"type":"error","code":null,"message":"Odd"}"#,
            "PI_AI_ERROR Odd",
        ),
        (
            r#"{"error":"model not found"}"#,
            "PI_AI_ERROR model not found",
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","code":529}}"#,
            "SERVER 529",
        ),
        (
            r#"{"type":"response.error","error":{"detail":"x"}}"#,
            r#"PI_AI_ERROR {"detail":"x"}"#,
        ),
    ] {
        assert_eq!(
            play(&[MESSAGE, event, COMPLETED]).pop().unwrap(),
            end,
            "{event}"
        );
    }
    let bare = play(&[r#"{"type":"error"}"#]).pop().unwrap();
    assert!(bare.starts_with("PI_AI_ERROR "), "{bare}");
    // What is no error is none.
    for event in [
        r#"{"type":"x","error":null}"#,
        r#"{"error":false}"#,
        r#"{"error":{}}"#,
    ] {
        assert_eq!(
            play(&[MESSAGE, TIN, event, COMPLETED]).pop().unwrap(),
            "stop",
            "{event}"
        );
    }
}

#[test]
fn an_event_that_is_no_json_ends_the_answer() {
    // What is quoted of it tells nothing of the failure.
    for event in [
        "{\"type\":",
        "<html>503 Service Unavailable",
        "{\"type\":\"response.completed\",\"n\":NaN}",
    ] {
        let end = play(&[MESSAGE, TIN, event, COMPLETED]).pop().unwrap();
        assert!(
            end.starts_with("PI_AI_ERROR ") && end.contains(event),
            "{end}"
        );
    }
}

#[test]
fn a_done_line_ends_the_stream_and_is_no_end_of_an_answer() {
    assert!(
        play(&[MESSAGE, TIN, "[DONE]", COMPLETED])
            .pop()
            .unwrap()
            .starts_with("TRANSPORT")
    );
}
