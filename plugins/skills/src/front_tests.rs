use super::*;

fn front(lines: &str) -> Result<Front, String> {
    read(&format!("---\n{lines}\n---\nbody")).map(|(front, _)| front)
}

fn described(lines: &str) -> Result<String, String> {
    front(&format!("name: a\n{lines}")).map(|front| front.description)
}

#[test]
fn the_members_of_a_skill_are_read_and_others_passed_over() {
    let text = "\u{feff}---\r\nname: say-hello2\r\ndescription: Says hello\r\nwhenToUse: \"when: asked\"\r\nlicense: MIT\r\n\
                metadata:\r\n  author: me\r\n  tags: [a, *b]\r\nallowed-tools:\r\n- read\r\nuser-invocable: No\r\n\
                disable-model-invocation: on\r\n---\r\n# Body\r\n";
    let (front, body) = read(text).unwrap();
    let expected = Front {
        name: "say-hello2".to_owned(),
        description: "Says hello".to_owned(),
        when_to_use: Some("when: asked".to_owned()),
        model: false,
        person: false,
    };
    assert_eq!((front, &text[body..]), (expected, "# Body\r\n"));
}

#[test]
fn every_style_of_a_text_is_read() {
    for (lines, expected) in [
        ("description: a: b, c # and no more", "a: b, c"),
        ("description: a\n  b\n\n  c # no\n  # no", "a b c"),
        ("description:\n  a\n  b", "a b"),
        ("description: 'it''s' # no", "it's"),
        ("description: 'a\n  b'", "a b"),
        (r#"description: "a \"b\" \u00e9\n\\""#, "a \"b\" é\n\\"),
        ("description: |\n  a\n    b\n\n  c", "a\n  b\n\nc"),
        ("description: >-\n  a\n  b\n\n  c", "a b\nc"),
        ("\"description\": a#b", "a#b"),
    ] {
        assert_eq!(described(lines).as_deref(), Ok(expected), "{lines}");
    }
}

#[test]
fn booleans_are_words_of_several_kinds_and_nothing_else() {
    for (word, expected) in [
        ("true", Some(true)),
        ("YES", Some(true)),
        ("on", Some(true)),
        ("1", Some(true)),
        ("false", Some(false)),
        ("no", Some(false)),
        ("'Off'", Some(false)),
        ("0", Some(false)),
        ("maybe", None),
        ("2", None),
    ] {
        let read = front(&format!("name: a\ndescription: b\nuser-invocable: {word}"));
        assert_eq!(read.ok().map(|front| front.person), expected, "{word}");
    }
}

#[test]
fn what_is_not_understood_is_refused_with_its_place() {
    for (lines, reason) in [
        ("description: b", "no `name`"),
        ("name: a", "no `description`"),
        ("name: a\ndescription: ''", "no `description`"),
        ("name: A\ndescription: b", "its `name`"),
        ("name: a--b\ndescription: b", "its `name`"),
        ("name: ../a\ndescription: b", "its `name`"),
        ("name: a\u{7}\ndescription: b", "its `name`"),
        (
            "name: a\nname: b\ndescription: c",
            "line 3 of its front matter gives `name` a second time",
        ),
        ("name: &x a\ndescription: b", "line 2"),
        ("name: a\ndescription: *x", "line 3"),
        ("name: a\ndescription: [b]", "line 3"),
        (
            "name: a\ndescription:\n  - b",
            "line 3 of its front matter is a list",
        ),
        ("name: a\ndescription: \"b", "nothing closes"),
        ("name: a\ndescription: 'b' c", "behind its closing quote"),
        ("name: a\ndescription: \"\\q\"", "escape"),
        ("name: a\ndescription: |x\n  b", "starts a block"),
        (
            "just words",
            "line 2 of its front matter is no `key: value`",
        ),
        ("  name: a", "line 2 of its front matter is indented"),
    ] {
        let error = front(lines).unwrap_err();
        assert!(error.contains(reason), "{lines}: {error}");
    }
    assert!(
        read("# no front matter")
            .unwrap_err()
            .contains("does not start")
    );
    assert!(read("---\nname: a\n").unwrap_err().contains("does not end"));
    assert!(read("").unwrap_err().contains("does not start"));
}

#[test]
fn a_bomb_of_aliases_is_small() {
    let mut lines = "name: a\ndescription: b\nmetadata:\n  a: &a [x,x,x,x,x,x,x,x]\n".to_owned();
    for at in 0..1_000 {
        lines.push_str(&format!("  k{at}: &k{at} [*a,*a,*a,*a,*a,*a,*a,*a]\n"));
    }
    assert_eq!(front(&lines).unwrap().description, "b");
}
