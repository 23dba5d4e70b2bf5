use super::*;
use serde_json::json;

fn read(text: &str) -> Value {
    let node = parse(text).unwrap().expect("a document");
    node.to_json::<()>(&mut |e| Ok(Some(format!("js<{e}>"))))
        .unwrap()
        .unwrap()
}

fn fails(text: &str) -> (usize, String) {
    let fault = parse(text).unwrap_err();
    (fault.line, fault.message)
}

#[test]
fn plain_scalars_resolve_as_in_the_json_schema() {
    let text = "[~, null, Null, true, FALSE, yes, no, on, 1, -2, +3, 0x1f, 0o17, 0b101, 1_000, 1.5, -1.5e3, .5, 1e3, 0123, 1.2.3, '1', \"true\", !!str 7, 2024-01-01, 9007199254740993, 12345678901234567890123]";
    assert_eq!(
        read(text),
        json!([
            null,
            null,
            null,
            true,
            false,
            "yes",
            "no",
            "on",
            1,
            -2,
            3,
            31,
            15,
            5,
            1000,
            1.5,
            -1500,
            0.5,
            1000,
            123,
            "1.2.3",
            "1",
            "true",
            "7",
            "2024-01-01",
            9_007_199_254_740_993_u64,
            1.234_567_890_123_456_8e22
        ])
    );
}

#[test]
fn keeps_the_js_tag_apart_from_strings() {
    assert_eq!(
        read("a: !!js process.env.X ?? 'y'\nb: process.env.X\nc: !!js \"dshHomePath('s')\"\n"),
        json!({"a": "js<process.env.X ?? 'y'>", "b": "process.env.X", "c": "js<dshHomePath('s')>"})
    );
}

#[test]
fn an_empty_text_or_comments_alone_are_no_document() {
    for text in ["", "\n\n", "# only this\n", "\u{feff}# x\n", "---\n"] {
        let node = parse(text).unwrap();
        assert!(
            matches!(
                node,
                None | Some(Node {
                    kind: Kind::Null,
                    ..
                })
            ),
            "{text:?}"
        );
    }
}

#[test]
fn faults_name_their_line() {
    assert_eq!(fails("a: 1\nb: [1, 2\n").0, 2);
    assert_eq!(
        fails("a: 1\nb: 2\na: 3\n"),
        (3, "the key \"a\" is there twice".into())
    );
    assert_eq!(fails("a: 1\nb: !foo 2\n"), (2, "unknown tag !foo".into()));
    assert_eq!(fails("a: 1\nb: !!js [1]\n").0, 2);
    assert_eq!(
        fails("a: .inf\n"),
        (1, "not a number that JSON can hold".into())
    );
    assert_eq!(fails("- a\n---\n- b\n").0, 3);
    assert!(fails("[]\n- id: x\n").0 >= 1);
}

#[test]
fn aliases_are_copies_and_cannot_explode() {
    assert_eq!(
        read("a: &x {k: 1}\nb: *x\n"),
        json!({"a": {"k": 1}, "b": {"k": 1}})
    );
    let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
    for i in 1..12 {
        let prev = vec![format!("*a{}", i - 1); 10].join(", ");
        bomb += &format!("a{i}: &a{i} [{prev}]\n");
    }
    assert_eq!(fails(&bomb).1, "the document is too large");
    assert_eq!(
        fails("a: &a [*a]\n").1,
        "an alias inside of what it stands for"
    );
}

#[test]
fn deep_nesting_is_refused_not_a_crash() {
    let (_, message) = fails(&"[".repeat(100_000));
    assert!(!message.is_empty());
}

fn emitted(node: &Node) -> String {
    let mut out = String::new();
    emit_item(&mut out, 0, &[("v", Field::Node(node))]);
    out
}

#[test]
fn what_is_emitted_reads_back_equal() {
    let strings = [
        "",
        " ",
        "a",
        "a b",
        "a: b",
        "a #b",
        "#a",
        "- a",
        "'q'",
        "\"q\"",
        "true",
        "1",
        "1.5",
        "~",
        "null",
        "@scope/x",
        "a\nb",
        "a\nb\n",
        "a\n\nb",
        "a\n\n",
        "\na",
        " a\nb",
        "a\n b\n",
        "a\n  \nb",
        "tab\there",
        "a\r\nb",
        "\u{0}\u{7f}",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "ünï😀",
        "key:",
        "---",
        "...",
        "...x",
        "!!js x",
        "{a}",
        "[a]",
        "%x",
        "`x`",
        "|",
        ">",
        "a\\b",
        "C:\\x",
        "x\n# y\n",
        "=",
        "<<",
        "0x1f",
        "1_000",
        "-",
        "?",
        "a,b",
        "💥\n💥",
    ];
    for s in strings {
        let tree = json!({"plain": s, "list": [s, [s], {"k": s, (s): 1}], "deep": {"x": {"y": [[], {}, [[s]]]}}});
        let node = Node::new(1, to_kind(&tree));
        let text = emitted(&node);
        assert_eq!(read(&text)[0]["v"], tree, "{text}");
    }
}

fn to_kind(value: &Value) -> Kind {
    match value {
        Value::Null => Kind::Null,
        Value::Bool(b) => Kind::Bool(*b),
        Value::Number(n) => Kind::Number(n.clone()),
        Value::String(s) => Kind::String(s.clone()),
        Value::Array(a) => Kind::Seq(a.iter().map(|v| Node::new(1, to_kind(v))).collect()),
        Value::Object(o) => Kind::Map(Map(o
            .iter()
            .map(|(k, v)| (k.clone(), Node::new(1, to_kind(v))))
            .collect())),
    }
}

#[test]
fn expressions_are_emitted_verbatim() {
    for e in [
        "process.env.X ?? 'y'",
        "dshHomePath('sessions')",
        "(process.env.A)",
        "'lit'",
        "a: b",
        "process.platform === 'win32'",
        "a ? b : c",
    ] {
        let text = emitted(&Node::new(1, Kind::Js(e.into())));
        assert_eq!(read(&text)[0]["v"], json!(format!("js<{e}>")), "{text}");
    }
    assert_eq!(
        emitted(&Node::new(1, Kind::Js("process.env.X ?? 'y'".into()))),
        "- v: !!js process.env.X ?? 'y'\n"
    );
}
