use super::*;

const TEXTS: &[&str] = &[
    "",
    " ",
    "null",
    "true",
    "tru",
    "nul",
    "0",
    "-0",
    "01",
    "1.",
    "1.5e+3",
    "1e",
    "-",
    "\"",
    "\"a\"",
    "\"\\u12\"",
    "\"\\x\"",
    "\"\u{1}\"",
    "[]",
    "[1,2]",
    "[1,]",
    "[,1]",
    "[",
    "]",
    "{}",
    "{\"a\":1}",
    "{\"a\":1,}",
    "{\"a\"}",
    "{a:1}",
    "{\"a\":[{\"b\":\"]}\"},[],{}],\"c\":-1.5}",
    " [ 1 , { \"x\" : null } ] ",
    "1 2",
    "[1}",
    "{\"a\":1]",
    "\"é🦀\"",
];

#[test]
fn accepts_what_the_grammar_accepts() {
    for text in TEXTS {
        let theirs = serde_json::from_str::<serde_json::Value>(text).is_ok();
        assert_eq!(Json::parse(text).is_some(), theirs, "{text:?}");
    }
}

#[test]
fn reads_values_as_they_were_written() {
    let text = r#"{"a" : [ {"b":"x\n\"y\""}, 12, true ], "c":"\ud83e\udd80é" ,"a2":{}}"#;
    let json = Json::parse(text).unwrap();
    let items: Vec<_> = json.get("a").unwrap().items().collect();
    assert_eq!(items[0].get("b").unwrap().string().unwrap(), "x\n\"y\"");
    assert_eq!(items[1].whole(), Some(12));
    assert_eq!(items[2].bool(), Some(true));
    assert_eq!(json.get("c").unwrap().string().unwrap(), "🦀é");
    assert_eq!(
        json.members().map(|(name, _)| name).collect::<Vec<_>>(),
        ["a", "c", "a2"]
    );
    assert_eq!(json.get("b"), None);
}

#[test]
fn a_lone_surrogate_passes_escaped_and_is_replaced_when_decoded() {
    let json = Json::parse(r#"{"t":"a\ud800b"}"#).unwrap();
    let t = json.get("t").unwrap();
    assert_eq!(t.escaped(), Some(r"a\ud800b"));
    assert_eq!(t.string().unwrap(), "a\u{FFFD}b");
}

#[test]
fn a_length_is_that_of_the_decoded_text() {
    for text in [
        r#""""#,
        r#""é🦀\n\"\\\/""#,
        r#""\u0041\u00e9\u20ac""#,
        r#""\ud83e\udd80x""#,
        r#""\ud83e\ud83e\udd80\udd80\ud83e""#,
    ] {
        let json = Json::parse(text).unwrap();
        assert_eq!(
            json.string_len(),
            Some(json.string().unwrap().len()),
            "{text}"
        );
    }
    assert_eq!(Json::parse("1").unwrap().string_len(), None);
}

#[test]
fn the_last_of_two_members_counts() {
    assert_eq!(
        Json::parse(r#"{"a":1,"\u0061":2}"#)
            .unwrap()
            .get("a")
            .unwrap()
            .raw(),
        "2"
    );
}

#[test]
fn a_text_of_the_host_is_read_up_to_what_is_asked_for() {
    let json = Json::of_host(r#"{"a":{"b":"x"},"name":"t","rest": never looked at"#);
    assert_eq!(json.first("name").unwrap().string().unwrap(), "t");
    assert_eq!(Json::of_host(r#"{"a":1}"#).first("b").map(Json::raw), None);
}

#[test]
fn nesting_has_no_bound() {
    let text = format!("{}{}", "[".repeat(200_000), "]".repeat(200_000));
    let json = Json::parse(&text).unwrap();
    assert_eq!(json.items().count(), 1);
}

#[test]
fn quotes_so_that_it_reads_back() {
    let all: String = (0..300u32).filter_map(char::from_u32).collect();
    assert_eq!(serde_json::from_str::<String>(&quote(&all)).unwrap(), all);
    let object = Object::new()
        .string("a", "x")
        .number("b", 3)
        .raw("c", &array(["1", "2"]))
        .build();
    assert_eq!(object, r#"{"a":"x","b":3,"c":[1,2]}"#);
}

#[test]
fn whole_numbers_are_whole() {
    let whole = |text| Json::parse(text).unwrap().whole();
    assert_eq!(whole("5.0"), Some(5));
    assert_eq!(whole("5.5"), None);
    assert_eq!(whole("-1"), None);
    assert_eq!(whole("1e400"), None);
    assert_eq!(whole("\"1\""), None);
}

#[test]
fn a_special_character_is_found_wherever_it_stands() {
    for length in 0..20 {
        for at in 0..=length {
            for special in [
                "\"", "\\", "\\\"", "\u{1}", "\u{1f}", " ", "\u{7f}", "é", "\u{20ac}", "\\n",
            ] {
                let mut text = "x".repeat(length);
                text.insert_str(at, special);
                let text = format!("[\"{text}\",1]");
                let theirs = serde_json::from_str::<Vec<serde_json::Value>>(&text).ok();
                let ours = Json::parse(&text)
                    .map(|json| json.items().next().unwrap().string().unwrap().into_owned());
                assert_eq!(
                    ours.as_deref(),
                    theirs.as_ref().and_then(|items| items[0].as_str()),
                    "{text}"
                );
            }
        }
    }
}
