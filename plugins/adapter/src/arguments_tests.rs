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
        assert_eq!(object_escaped(escaped), expected, "{escaped}");
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
