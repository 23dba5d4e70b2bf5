use super::*;

fn normal(text: &str) -> Option<String> {
    Json::normalise(text)
        .ok()
        .map(|json| json.as_str().to_owned())
}

#[test]
fn loose_texts_come_out_in_normal_form() {
    for (text, want) in [
        (
            " { \"b\" : 1 , \"10\" : 2 , \"2\" : 3 , \"01\" : 4 } ",
            r#"{"2":3,"10":2,"b":1,"01":4}"#,
        ),
        (r#"{"a":1,"b":2,"a":3}"#, r#"{"a":3,"b":2}"#),
        (r#"{"a":-0,"a":1}"#, r#"{"a":1}"#),
        (
            r#""\u0041\/\ud83d\ude00\uD800\u000a""#,
            "\"A/😀\\ud800\\n\"",
        ),
        ("[1.0,[ ],{ }]", "[1,[],{}]"),
        (r#"{"\u0061":1,"a":2}"#, r#"{"a":2}"#),
    ] {
        assert_eq!(normal(text).as_deref(), Some(want), "{text}");
        assert_eq!(normal(want).as_deref(), Some(want));
    }
}

#[test]
fn what_is_not_json_is_refused() {
    for text in [
        "",
        " ",
        "nul",
        "01",
        "-",
        "1.",
        ".5",
        "1e",
        "+1",
        "[1,]",
        "[",
        "{",
        "{\"a\"}",
        "{\"a\":1,}",
        "{a:1}",
        "\"\n\"",
        "\"\\x\"",
        "\"\\u12g4\"",
        "\"abc",
        "1 2",
        "]",
        "[}",
        "{]",
        "\u{feff}1",
        "NaN",
        "'a'",
        "[1}",
    ] {
        assert!(
            matches!(Json::restore(text), Err(JsonError::Syntax { .. })),
            "{text:?}"
        );
    }
}

#[test]
fn the_lossless_boundary_refuses_what_a_stored_text_may_hold() {
    for (text, stored) in [
        ("-0", "0"),
        ("[-0.0]", "[0]"),
        ("1e400", "null"),
        ("-1e-400", "0"),
    ] {
        assert_eq!(Json::normalise(text), Err(JsonError::NotLossless));
        assert_eq!(Json::restore(text).unwrap().as_str(), stored);
    }
}

#[test]
fn nesting_is_not_limited_by_the_stack() {
    let deep = format!("{}{}", "[".repeat(300_000), "]".repeat(300_000));
    let json = Json::normalise(&deep).unwrap();
    assert!(!json.value().same(json.value().items().next().unwrap()));
    let spaced = format!(" {deep}");
    assert_eq!(Json::normalise(&spaced).unwrap(), json);
    let objects = format!("{}1{}", "{\"a\": ".repeat(100_000), "}".repeat(100_000));
    assert!(Json::normalise(&objects).unwrap().value().is_object());
}

#[test]
fn views_read_members_items_and_strings() {
    let json =
        Json::normalise(r#"{"a":[1,"x\ny",{"k":null}],"q\"":true,"n":-2.5,"s":"\ud83d"}"#).unwrap();
    let value = json.value();
    assert_eq!(value.get("n").and_then(Value::f64), Some(-2.5));
    assert_eq!(value.get("n").and_then(Value::safe_int), None);
    assert_eq!(value.get("q\"").and_then(Value::bool), Some(true));
    let items: Vec<_> = value.get("a").unwrap().items().collect();
    assert_eq!(items[0].u64(), Some(1));
    assert_eq!(items[1].text().as_deref(), Some("x\ny"));
    assert!(items[1].is("x\ny") && !items[1].is("x\\ny"));
    assert!(items[2].get("k").unwrap().is_null());
    let lone = value.get("s").and_then(Value::string).unwrap();
    assert_eq!(
        (lone.utf16_len(), lone.utf16(), lone.decode().as_ref()),
        (1, vec![0xD83D], "\u{FFFD}")
    );
    assert_eq!(value.get("missing"), None);
}

#[test]
fn deep_equality_ignores_the_order_of_members() {
    let a = Json::normalise(r#"{"x":[1,{"p":1,"q":2}],"y":null}"#).unwrap();
    let b = Json::normalise(r#"{"y":null,"x":[1,{"q":2,"p":1}]}"#).unwrap();
    let c = Json::normalise(r#"{"y":null,"x":[1,{"q":2}]}"#).unwrap();
    assert!(a.value().same(b.value()));
    assert!(!a.value().same(c.value()) && !c.value().same(a.value()));
}

#[test]
fn writers_keep_the_order_of_the_calls_and_escape() {
    let json = Json::object(|o| {
        o.str("z", "a\"\u{1}\n/😀").u64("n", 7).opt_str("no", None);
        o.array("list", |a| {
            a.u64(1).object(|o| {
                o.null("k");
            });
        });
    });
    assert_eq!(
        json.as_str(),
        "{\"z\":\"a\\\"\\u0001\\n/😀\",\"n\":7,\"list\":[1,{\"k\":null}]}"
    );
    let sorted = Json::object(|o| {
        o.bool("b", true).i64("2", -1).i64("1", -2);
    });
    assert_eq!(sorted.as_str(), r#"{"1":-2,"2":-1,"b":true}"#);
}
