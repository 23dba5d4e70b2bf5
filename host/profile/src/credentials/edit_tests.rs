use super::*;

fn set(text: &str, name: &str, value: &str) -> Result<String, Refused> {
    edit(text, name, Some(value)).map(|edited| edited.text)
}

fn unset(text: &str, name: &str) -> Result<String, Refused> {
    edit(text, name, None).map(|edited| edited.text)
}

#[test]
fn a_new_name_stands_behind_the_others_and_nothing_else_changes() {
    for (before, after) in [
        ("", "version: 1\nrefs:\n  NEW: sk-new-value\n"),
        (
            "# mine\n",
            "# mine\nversion: 1\nrefs:\n  NEW: sk-new-value\n",
        ),
        ("# mine", "# mine\nversion: 1\nrefs:\n  NEW: sk-new-value\n"),
        (
            "\u{feff}version: 1\n",
            "\u{feff}version: 1\nrefs:\n  NEW: sk-new-value\n",
        ),
        ("version: 1\n", "version: 1\nrefs:\n  NEW: sk-new-value\n"),
        ("version: 1", "version: 1\nrefs:\n  NEW: sk-new-value\n"),
        (
            "---\nversion: 1\n",
            "---\nversion: 1\nrefs:\n  NEW: sk-new-value\n",
        ),
        (
            "{version: 1}\n",
            "{version: 1, refs: {NEW: sk-new-value}}\n",
        ),
        (
            "version: 1\nrefs: {}\n",
            "version: 1\nrefs: {NEW: sk-new-value}\n",
        ),
        (
            "version: 1\nrefs: {A: x} # c\n",
            "version: 1\nrefs: {A: x, NEW: sk-new-value} # c\n",
        ),
        (
            "version: 1\nrefs:\n    A: x # of the team\n    # B: y\nrecords:\n  a/b: {kind: api-key}\n",
            "version: 1\nrefs:\n    A: x # of the team\n    NEW: sk-new-value\n    # B: y\nrecords:\n  a/b: {kind: api-key}\n",
        ),
        (
            "refs:\n  A: x\nversion: 1",
            "refs:\n  A: x\n  NEW: sk-new-value\nversion: 1",
        ),
        (
            "version: 1\nrefs:\n  A: x",
            "version: 1\nrefs:\n  A: x\n  NEW: sk-new-value\n",
        ),
        (
            "version: 1\nrefs:\n  A: |\n    x\n",
            "version: 1\nrefs:\n  A: |\n    x\n  NEW: sk-new-value\n",
        ),
        (
            "version: 1\r\nrefs:\r\n  A: x\r\n",
            "version: 1\r\nrefs:\r\n  A: x\r\n  NEW: sk-new-value\n",
        ),
    ] {
        assert_eq!(
            set(before, "NEW", "sk-new-value").as_deref(),
            Ok(after),
            "{before:?}"
        );
    }
}

#[test]
fn a_known_name_gets_its_value_where_it_stands() {
    for (before, after) in [
        (
            "version: 1\nrefs:\n  A: x # c\n  B: y\n",
            "version: 1\nrefs:\n  A: 'n' # c\n  B: y\n",
        ),
        (
            "version: 1\nrefs:\n  \"A\": \"x\"\n",
            "version: 1\nrefs:\n  \"A\": 'n'\n",
        ),
        (
            "version: 1\nrefs: {B: y, A: x}\n",
            "version: 1\nrefs: {B: y, A: 'n'}\n",
        ),
        (
            "version: 1\nrefs:\n  A: |-\n    x\n  B: y\n",
            "version: 1\nrefs:\n  A: 'n'\n  B: y\n",
        ),
        (
            "version: 1\nrefs:\n  A: >-\n    x\n",
            "version: 1\nrefs:\n  A: 'n'\n",
        ),
        (
            "version: 1\nrefs:\n  A:\n    x\n",
            "version: 1\nrefs:\n  A:\n    'n'\n",
        ),
    ] {
        assert_eq!(set(before, "A", "n").as_deref(), Ok(after), "{before:?}");
    }
    assert!(
        edit("version: 1\nrefs: {A: x}\n", "A", Some("n"))
            .unwrap()
            .had
    );
    assert!(
        !edit("version: 1\nrefs: {A: x}\n", "B", Some("n"))
            .unwrap()
            .had
    );
}

#[test]
fn a_name_is_taken_out_with_its_line_and_no_other() {
    for (before, after) in [
        (
            "version: 1\nrefs:\n  A: x # c\n  B: y\n",
            "version: 1\nrefs:\n  B: y\n",
        ),
        (
            "version: 1\nrefs:\n  B: y\n  A: x\nrecords: {}\n",
            "version: 1\nrefs:\n  B: y\nrecords: {}\n",
        ),
        ("version: 1\nrefs:\n  A: x\n", "version: 1\nrefs: {}\n"),
        (
            "version: 1\nrefs: # keys\n  A: x\nrecords: {}\n",
            "version: 1\nrefs: {} # keys\nrecords: {}\n",
        ),
        (
            "version: 1\nrefs: {A: x, B: y}\n",
            "version: 1\nrefs: {B: y}\n",
        ),
        (
            "version: 1\nrefs: {B: y, A: x}\n",
            "version: 1\nrefs: {B: y}\n",
        ),
        ("version: 1\nrefs: {A: x}\n", "version: 1\nrefs: {}\n"),
        (
            "version: 1\nrefs:\n  A: |\n    x\n    z\n  B: y\n",
            "version: 1\nrefs:\n  B: y\n",
        ),
        ("version: 1\nrefs: {B: y}\n", "version: 1\nrefs: {B: y}\n"),
        ("", ""),
    ] {
        assert_eq!(unset(before, "A").as_deref(), Ok(after), "{before:?}");
    }
}

#[test]
fn the_early_layout_is_moved_below_refs() {
    for (before, after) in [
        (
            "A: x\n# of the team\nB: y\n",
            "version: 1\nrefs:\n  A: x\n  # of the team\n  B: y\n  NEW: 'n'\n",
        ),
        ("{A: x}\n", "version: 1\nrefs: {A: x, NEW: 'n'}\n"),
    ] {
        let edited = edit(before, "NEW", Some("n")).unwrap();
        assert_eq!(
            (&*edited.text, edited.moved, edited.had),
            (after, true, false),
            "{before:?}"
        );
    }
    // Names that no reference may have do not become ones.
    assert!(matches!(
        edit("a-b: x\n", "A", Some("n")),
        Err(Refused::Shape { .. })
    ));
}

#[test]
fn any_value_that_a_key_may_have_comes_back_as_it_was() {
    for value in [
        "sk-0123456789",
        "'",
        "''",
        "a'b",
        "true",
        "null",
        "123",
        "0x1F",
        "a: b#c",
        "#",
        "!x",
        "&a",
        "*a",
        "{",
        "%",
        "@",
        "`",
        "\\",
        "~",
        "-",
        "|",
        ">",
    ] {
        for before in [
            "",
            "version: 1\nrefs: {A: x}\n",
            "version: 1\nrefs:\n  A: x\n",
        ] {
            let text = set(before, "A", value).unwrap();
            let root = yaml::parse(&text).unwrap().unwrap();
            assert_eq!(document::refs(&root).unwrap()["A"], value, "{text}");
        }
    }
}

#[test]
fn what_could_change_more_than_one_name_is_refused() {
    for text in [
        // One node under two names.
        "version: 1\nrefs:\n  A: &k x\n  B: *k\n",
        "version: 1\nrefs: &r\n  A: x\n...\n",
    ] {
        let result = set(text, "A", "n").and_then(|text| set(&text, "NEW", "n"));
        if let Ok(text) = &result {
            let root = yaml::parse(text).unwrap().unwrap();
            let refs = document::refs(&root).unwrap();
            assert_eq!((&*refs["A"], &*refs["NEW"]), ("n", "n"), "{text}");
            assert!(refs.get("B").is_none_or(|b| b == "x"), "{text}");
        } else {
            assert_eq!(result, Err(Refused::Layout), "{text:?}");
        }
    }
    assert_eq!(
        set("version: 1\nrefs:\n  A: &k x\n  B: *k\n", "A", "n"),
        Err(Refused::Layout)
    );
    assert_eq!(set("version: 1\n...\n", "A", "n"), Err(Refused::Layout));
}

#[test]
fn a_document_of_another_shape_is_refused_with_its_line() {
    for (text, at) in [
        ("version: 2\n", 1),
        ("version: 1\nrefs:\n", 2),
        ("version: 1\nrefs: [x]\n", 2),
        ("- a\n", 1),
        ("version: 1\nextra: y\n", 2),
        ("version: 1\nrefs: {A: 'sk-secret\n", 2),
    ] {
        match set(text, "A", "n") {
            Err(Refused::Shape { line, message }) => {
                assert!(
                    line >= at && !message.contains("sk-secret"),
                    "{text:?}: {line} {message}"
                );
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
}
