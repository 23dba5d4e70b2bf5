use super::*;

fn headers(headers: &[(&str, &str)]) -> Vec<(String, String)> {
    headers
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect()
}

#[test]
fn retry_after_is_seconds_or_a_date_against_the_response_s_own() {
    let wait = |pairs: &[(&str, &str)]| retry_after_ms(&headers(pairs));
    let date = ("date", "Wed, 21 Oct 2015 07:28:00 GMT");
    assert_eq!(wait(&[("retry-after", "7")]), Some(7000));
    assert_eq!(wait(&[("retry-after", "0")]), None);
    assert_eq!(wait(&[("retry-after", "1.5")]), None);
    assert_eq!(
        wait(&[("retry-after", "99999999999999999999")]),
        Some(4_294_967_295_000)
    );
    assert_eq!(
        wait(&[("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT"), date]),
        Some(90_000)
    );
    assert_eq!(
        wait(&[
            ("retry-after", "Tue, 01 Mar 2016 00:00:00 GMT"),
            ("date", "Mon, 29 Feb 2016 23:59:59 GMT")
        ]),
        Some(1000)
    );
    assert_eq!(
        wait(&[("retry-after", "Wed, 21 Oct 2015 07:27:00 GMT"), date]),
        None
    );
    assert_eq!(
        wait(&[("retry-after", "Wed, 21 Oct 2015 07:29:30 GMT")]),
        None
    );
    assert_eq!(http_date("Thu, 01 Jan 1970 00:00:00 GMT"), Some(0));
}

#[test]
fn a_status_that_http_does_not_know_is_said_in_words() {
    for (status, message, kept, expected) in [
        (599, "no", Some(599), "no"),
        (999, "no", None, "HTTP status 999: no"),
        (600, "600: no", None, "600: no"),
        (99, "no", None, "HTTP status 99: no"),
    ] {
        let failure = Failure::new("SERVER", message).of_response(status, &[]);
        assert_eq!((failure.status, failure.message.as_str()), (kept, expected));
    }
}

#[test]
fn a_failure_says_what_is_known_and_no_more() {
    let plain = Failure::new("SERVER", "it \"broke\"");
    assert_eq!(
        finish_error(&plain),
        r#"{"type":"finish","reason":{"kind":"error","failure":{"message":"it \"broke\"","code":"SERVER"}}}"#
    );
    let told = plain.of_response(
        503,
        &headers(&[("Retry-After", " 2 "), ("Request-Id", "r1")]),
    );
    assert_eq!(
        finish_error(&told),
        r#"{"type":"finish","reason":{"kind":"error","failure":{"message":"it \"broke\"","code":"SERVER","status":503,"providerRetryAfterMs":2000,"requestId":"r1"}}}"#
    );
}

#[test]
fn what_a_body_escapes_without_need_is_shown_as_it_is() {
    for (text, shown) in [
        (r"plain \ text", r"plain \ text"),
        (r"no: sk\/a\u002Bb\u003d\u003D", "no: sk/a+b=="),
        // What must be escaped, what is no escape, and what is no character of a key.
        (
            r#"{"a":"\u0022\u005c\"\n\u0020\u00e9\ud800"}"#,
            r#"{"a":"\u0022\u005c\"\n\u0020\u00e9\ud800"}"#,
        ),
        (r"\u+041 \u00", r"\u+041 \u00"),
        (r"\u00é1", r"\u00é1"),
        (r"\\u0041\\/", r"\\u0041\\/"),
        (r"\\\u0041", r"\\A"),
        (r"\", r"\"),
    ] {
        assert_eq!(unescaped(text), shown, "{text}");
        let finish: serde_json::Value =
            serde_json::from_str(&finish_error(&Failure::new("SERVER", text))).unwrap();
        assert_eq!(finish["reason"]["failure"]["message"], shown);
    }
}

#[test]
fn a_message_is_cut_and_ends_with_its_cut() {
    let long = format!("{}é", "x".repeat(MAX_MESSAGE - 1));
    let failure = Failure::new("SERVER", long).of_response(999, &[]);
    let finish: serde_json::Value = serde_json::from_str(&finish_error(&failure)).unwrap();
    let message = finish["reason"]["failure"]["message"].as_str().unwrap();
    assert!(message.starts_with("HTTP status 999: x") && message.ends_with('x'));
    assert_eq!(message.len(), MAX_MESSAGE);
}
