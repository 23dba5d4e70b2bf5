use super::*;

fn between(expected: &str, got: &str) -> Option<String> {
    let (expected, got) = (
        Json::restore(expected).unwrap(),
        Json::restore(got).unwrap(),
    );
    difference("it", expected.value(), Some(got.value()))
}

#[test]
fn the_first_difference_is_told_with_its_place_and_both_values() {
    for (expected, got, says) in [
        ("1", "2", "it is 2; expected 1"),
        ("[1,2]", "[1,3]", "it[1] is 3; expected 2"),
        ("[1,2]", "[1]", "it[1] is missing; expected 2"),
        ("[1]", "[1,2]", "it[1] is 2; expected none"),
        (
            r#"{"a":{"b":1}}"#,
            r#"{"a":{"b":2}}"#,
            "it.a.b is 2; expected 1",
        ),
        (r#"{"a":1}"#, "{}", "it.a is missing; expected 1"),
        ("{}", r#"{"a":1}"#, "it.a is 1; expected none"),
        (r#"{"a":null}"#, "{}", "it.a is missing; expected null"),
        ("[]", "{}", "it is {}; expected []"),
        (r#""a""#, r#""b""#, r#"it is "b"; expected "a""#),
    ] {
        assert_eq!(
            between(expected, got).as_deref(),
            Some(says),
            "{expected} {got}"
        );
    }
}

#[test]
fn what_a_recording_leaves_open_may_be_anything() {
    for (expected, got) in [
        (r#"{"a":1,"b":[2]}"#, r#"{"b":[2],"a":1.0}"#),
        (
            r#"{"code":"X","message":null}"#,
            r#"{"code":"X","message":"mine"}"#,
        ),
        (
            r#""before {{a placeholder naming N1}} after""#,
            r#""before [N1] after""#,
        ),
    ] {
        assert_eq!(between(expected, got), None, "{expected}");
    }
    for (expected, got) in [
        // An empty message is none, and a `null` elsewhere is a null.
        (
            r#"{"code":"X","message":null}"#,
            r#"{"code":"X","message":""}"#,
        ),
        (
            r#"{"code":"X","message":null}"#,
            r#"{"code":"Y","message":"mine"}"#,
        ),
        (r#"{"message":null}"#, r#"{"message":"mine"}"#),
        (
            r#""before {{a placeholder naming N1}} after""#,
            r#""before [N2] after""#,
        ),
        (
            r#""before {{a placeholder naming N1}} after""#,
            r#""[N1] after""#,
        ),
    ] {
        assert!(between(expected, got).is_some(), "{expected}");
    }
}

#[test]
fn of_a_request_the_recorded_headers_count_and_all_of_the_body() {
    let got = r#"{"method":"POST","path":"/a","url":"u","headers":{"user-agent":"mine","x":"1","y":"2"},"body":{"m":1}}"#;
    let got = Json::restore(got).unwrap();
    let compare =
        |expected: &str| request(Some(&Json::restore(expected).unwrap()), Some(got.value()));
    for expected in [
        "{}",
        r#"{"method":"POST","path":"/a","headers":{"User-Agent":"theirs","X":"1"},"body":{"m":1}}"#,
    ] {
        assert_eq!(compare(expected), None, "{expected}");
    }
    for (expected, says) in [
        (r#"{"method":"GET"}"#, "http.method"),
        (r#"{"path":"/b"}"#, "http.path"),
        (r#"{"body":{}}"#, "http.body.m"),
        (r#"{"headers":{"x":"2"}}"#, "http.headers.x"),
        (r#"{"headers":{"z":"2"}}"#, "http.headers.z is missing"),
    ] {
        let found = compare(expected).unwrap();
        assert!(found.starts_with(says), "{found}");
    }
    assert!(
        request(None, Some(got.value()))
            .unwrap()
            .contains("expected none")
    );
    assert!(
        request(Some(&got), None)
            .unwrap()
            .contains("no request was made")
    );
    assert_eq!(request(None, None), None);
}
