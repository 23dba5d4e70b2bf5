use super::*;

#[test]
fn arguments_become_compact_json_whatever_the_model_wrote() {
    for (text, expected) in [
        ("", "{}"),
        ("  ", "{}"),
        ("nonsense", "{}"),
        (r#"{ "b" : 1 , "a" : [ 1, 2 ] }"#, r#"{"b":1,"a":[1,2]}"#),
        (r#"{"a":"x"#, r#"{"a":"x"}"#),
        (r#"{"a":"x\"#, r#"{"a":"x"}"#),
        (r#"{"a":"x\u00"#, r#"{"a":"x"}"#),
        (r#"{"a":"x","b"#, r#"{"a":"x"}"#),
        (r#"{"a":"x","b""#, r#"{"a":"x"}"#),
        (r#"{"a":"x","b":"#, r#"{"a":"x"}"#),
        (r#"{"a":"x","b":t"#, r#"{"a":"x","b":true}"#),
        (r#"{"a":"x","b":tx"#, r#"{"a":"x"}"#),
        (r#"{"a":1.5e"#, r#"{"a":1.5}"#),
        (r#"{"a":-"#, "{}"),
        (r#"{"a":[1,{"b":[2,"#, r#"{"a":[1,{"b":[2]}]}"#),
        (r#"{"a":1,}"#, r#"{"a":1}"#),
        (r#"{"a":1}{"b":2}"#, r#"{"a":1}"#),
        (r#"{"a":1] more"#, r#"{"a":1}"#),
        ("{\"a\":\"1\n2\t\u{1}\"}", r#"{"a":"1\n2\t\u0001"}"#),
        (r#"{"p":"C:\dir\x"}"#, r#"{"p":"C:\\dir\\x"}"#),
        (r#"{"p":"\u12zz"}"#, r#"{"p":"\\u12zz"}"#),
        ("[1]", "[1]"),
        ("\"é\"", "\"é\""),
        ("null", "null"),
    ] {
        let found = compact(text);
        assert_eq!(found, expected, "{text}");
        assert!(
            serde_json::from_str::<serde_json::Value>(&found).is_ok(),
            "{found}"
        );
    }
}

#[test]
fn every_cut_of_a_value_is_completed_to_json() {
    let text = "{\"a\":[1,-2.5e3,true,null,{\"b\":\"é\\n\\u0041\"}],\"c\":\"x y\",\"d\":{}}";
    for (cut, _) in text.char_indices() {
        let found = compact(&text[..cut]);
        assert!(
            serde_json::from_str::<serde_json::Value>(&found).is_ok(),
            "{cut}: {found}"
        );
    }
    assert_eq!(compact(text), text);
}

#[test]
fn nesting_has_no_bound() {
    assert_eq!(compact(&"[".repeat(200_000)).len(), 400_000);
}

#[test]
fn a_call_of_the_history_has_an_object_or_nothing() {
    for (escaped, expected) in [
        (r#"{\"a\": 1}"#, r#"{"a":1}"#),
        (r#"{\"a\": "#, "{}"),
        ("[1]", "{}"),
        ("", "{}"),
    ] {
        let seen = object_escaped(escaped, |why| panic!("{why}"));
        assert_eq!(seen, expected, "{escaped}");
    }
}

#[test]
fn arguments_that_nest_too_deep_for_a_provider_are_none() {
    let nested = |levels: usize| {
        let (open, close) = ("[".repeat(levels - 1), "]".repeat(levels - 1));
        format!(r#"{{"a":{open}"\\\"[{{"{close}}}"#)
    };
    let seen = |text: &str| {
        let mut escaped = String::new();
        guest_support::json::escape(text, &mut escaped);
        let mut warned = false;
        let text = object_escaped(&escaped, |_| warned = true);
        (text, warned)
    };
    for levels in [2, MAX_DEPTH] {
        assert_eq!(seen(&nested(levels)), (nested(levels), false));
    }
    for levels in [MAX_DEPTH + 1, 100_000] {
        assert_eq!(seen(&nested(levels)), ("{}".to_owned(), true), "{levels}");
    }
    // Many beside each other, and brackets of a text, are not deep.
    for flat in [
        format!(r#"{{"a":[{}[]]}}"#, "[],".repeat(1000)),
        format!(r#"{{"a":"{}"}}"#, "[{".repeat(1000)),
    ] {
        assert_eq!(seen(&flat), (flat, false));
    }
}

#[test]
fn strings_are_mended_and_the_rest_is_left_alone() {
    for (text, expected) in [
        ("{\"a\" : \"x\ty\"}", "{\"a\" : \"x\\ty\"}"),
        (r#"{"a":"\d"}"#, r#"{"a":"\\d"}"#),
        (r#"{"a":"x"#, r#"{"a":"x"#),
        (r#"{"a": }"#, r#"{"a": }"#),
        (r#"{"a":"\u0041"}"#, r#"{"a":"\u0041"}"#),
    ] {
        assert_eq!(mend_strings(text), expected, "{text}");
    }
}
