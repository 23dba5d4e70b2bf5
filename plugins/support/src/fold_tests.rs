use super::*;

const CHUNK: &str = r#"{"type":"assistant/chunk","seq":7,"time":1700000000123,"data":{"turn":2,"step":3,"chunk":{"type":"usage","usage":{"inputTokens":1.5,"a":[{"b":"}"}],"outputTokens":20}}}}"#;

#[test]
fn an_event_is_read_as_far_as_it_is_asked() {
    let event = Event::read(CHUNK);
    assert_eq!(
        (event.kind, event.seq, event.time),
        ("assistant/chunk", 7.0, 1_700_000_000_123.0)
    );
    assert_eq!(event.place(), (2.0, 3.0));
    let usage = event.usage().unwrap();
    assert_eq!(number(usage, "inputTokens"), 1.5);
    assert_eq!(number(usage, "outputTokens"), 20.0);
    assert_eq!(number(usage, "a"), 0.0);
    assert_eq!(number(usage, "absent"), 0.0);
    assert!(event.surface_op().is_none());
}

#[test]
fn the_order_of_members_is_not_relied_on() {
    let line = r#"{"data":{"message":{},"turn":1,"usage":{"x":1}},"surfaceOp":{"op":"replace"},"time":-5,"seq":0,"type":"assistant/message"}"#;
    let event = Event::read(line);
    assert_eq!(
        (event.kind, event.seq, event.time),
        ("assistant/message", 0.0, -5.0)
    );
    assert_eq!(event.usage().unwrap().raw(), r#"{"x":1}"#);
    assert!(
        event
            .surface_op()
            .unwrap()
            .member("op")
            .unwrap()
            .is("replace")
    );
    assert!(
        Event::read(r#"{"type":"x","seq":1,"time":1,"data":null}"#)
            .data
            .is_null()
    );
}

#[test]
fn containers_are_walked_to_their_end_and_no_further() {
    let text = Tail::of(r#"{"a":[1,"x,]",{"c":[]}],"b\n":{},"d":null},"after":1}"#);
    let names: Vec<_> = text
        .members()
        .map(|(name, value)| (name, value.raw()))
        .collect();
    assert_eq!(
        names,
        [
            ("a", r#"[1,"x,]",{"c":[]}]"#),
            (r"b\n", "{}"),
            ("d", "null")
        ]
    );
    let items: Vec<_> = text.member("a").unwrap().items().map(Tail::raw).collect();
    assert_eq!(items, ["1", r#""x,]""#, r#"{"c":[]}"#]);
    for empty in ["{}", "[]", "1", "\"[\"", "null"] {
        assert_eq!(Tail::of(empty).members().count(), 0, "{empty}");
        assert_eq!(Tail::of(empty).items().count(), 0, "{empty}");
    }
}

#[test]
fn numbers_are_read_as_they_are_written() {
    for (text, value) in [
        ("0", 0.0),
        ("-1,", -1.0),
        ("12}", 12.0),
        ("1e3]", 1000.0),
        ("1.25", 1.25),
        ("12345678901234567890", 12_345_678_901_234_567_890.0),
    ] {
        assert_eq!(Tail::of(text).number(), Some(value), "{text}");
    }
    for none in ["null", "\"1\"", "{}", "true", "-"] {
        assert_eq!(Tail::of(none).number(), None, "{none}");
    }
    let written = |number| {
        let mut text = String::new();
        write_number(number, &mut text);
        text
    };
    assert_eq!(written(0.0), "0");
    assert_eq!(written(9_007_199_254_740_992.0), "9007199254740992");
    assert_eq!(written(-2.5), "-2.5");
    assert_eq!(written(f64::INFINITY), "null");
    assert_eq!(written(1e22).parse(), Ok(1e22));
}

#[test]
fn strings_are_told_apart() {
    assert!(Tail::of(r#""ab","c""#).is("ab"));
    for other in [r#""abc""#, r#""a""#, "ab", ""] {
        assert!(!Tail::of(other).is("ab"), "{other}");
    }
    assert_eq!(Tail::of(r#""a\"b","c""#).escaped(), Some(r#"a\"b"#));
    assert_eq!(Tail::of("12").escaped(), None);
}

#[test]
fn units_are_those_of_utf16() {
    for text in [
        "",
        "a",
        "plain ascii of more than eight bytes",
        "é",
        "日本語のテキスト",
        "🦀🦀",
        "mixed 🦀 é and\nsome\t\"escapes\" \u{1}",
        "seven77\n",
    ] {
        let quoted = serde_json::to_string(text).unwrap();
        assert_eq!(
            utf16_units(&quoted[1..quoted.len() - 1]),
            text.encode_utf16().count(),
            "{text:?}"
        );
        assert_eq!(
            utf16_units_of_text(&quoted),
            quoted.encode_utf16().count(),
            "{text:?}"
        );
    }
    assert_eq!(
        utf16_units(r"\ud800x\u00e9"),
        3,
        "a half of a pair is one unit"
    );
}
