use serde_json::{Value, json};

use super::*;

fn glob(count: usize, total: u32) -> Paths {
    Paths {
        paths: (0..count).map(|n| format!("src/f{n}.rs")).collect(),
        total,
    }
}

fn found(path: &str, line: u32, text: &str) -> Found {
    Found {
        path: path.to_owned(),
        line,
        text: text.to_owned(),
    }
}

fn not_kept(_: &str, _: &str) -> Option<String> {
    panic!("nothing is to be kept")
}

fn meta(answer: &Answer) -> Value {
    serde_json::from_str::<Value>(&answer.more).unwrap()["meta"].clone()
}

#[test]
fn paths_are_listed_and_only_more_than_a_hundred_get_a_footer() {
    let answer = paths(&glob(2, 2), not_kept);
    assert_eq!(answer.text, "src/f0.rs\nsrc/f1.rs");
    assert_eq!(
        meta(&answer),
        json!({"shape": "paths", "paths": ["src/f0.rs", "src/f1.rs"], "truncated": false, "total": 2})
    );
    assert_eq!(paths(&glob(100, 100), not_kept).text.lines().count(), 100);
    let answer = paths(&glob(101, 101), |name, content| {
        assert_eq!((name, content.lines().count()), ("glob-results.txt", 101));
        Some("/spill/1".to_owned())
    });
    assert!(
        answer.text.contains(
            "src/f99.rs\n\n(Showing 100 of 101 paths. All paths are stored at: /spill/1. "
        )
    );
    assert_eq!(
        (
            &meta(&answer)["truncated"],
            meta(&answer)["paths"].as_array().unwrap().len()
        ),
        (&json!(true), 100)
    );
}

#[test]
fn a_list_that_could_not_be_saved_or_only_in_part_says_so() {
    assert!(
        paths(&glob(101, 101), |_, _| None)
            .text
            .ends_with("could not be saved; narrow the search to see them.)")
    );
    assert!(
        paths(&glob(101, 900), |_, _| Some("/s".to_owned()))
            .text
            .contains("The first 101 paths are stored at: /s.")
    );
}

#[test]
fn nothing_found_is_said() {
    assert_eq!(paths(&glob(0, 0), not_kept).text, "No files found");
    let none = matches(
        &Matches {
            matches: Vec::new(),
            total: 0,
        },
        not_kept,
    );
    assert_eq!(none.text, "No matches found");
    assert_eq!(
        meta(&none),
        json!({"shape": "matches", "matches": [], "truncated": false, "total": 0})
    );
}

#[test]
fn matches_are_grouped_by_file_in_the_order_of_files() {
    let list = vec![
        found("b.txt", 3, "beta"),
        found("a.txt", 1, "beta x"),
        found("b.txt", 9, "  beta"),
    ];
    let answer = matches(
        &Matches {
            matches: list,
            total: 3,
        },
        not_kept,
    );
    assert_eq!(
        answer.text,
        "Found 3 matches\n\nb.txt\nLine 3: beta\nLine 9:   beta\n\na.txt\nLine 1: beta x"
    );
    assert_eq!(
        meta(&answer)["matches"][1],
        json!({"path": "a.txt", "line": 1, "text": "beta x"})
    );
    let one = matches(
        &Matches {
            matches: vec![found("a", 1, "x")],
            total: 1,
        },
        not_kept,
    );
    assert_eq!(one.text, "Found 1 match\n\na\nLine 1: x");
}

#[test]
fn more_than_two_hundred_and_fifty_matches_are_capped() {
    let list: Vec<_> = (0..300).map(|n| found("a.txt", n, "x")).collect();
    let answer = matches(
        &Matches {
            matches: list,
            total: 7000,
        },
        |name, content| {
            assert_eq!((name, content.lines().count()), ("grep-results.txt", 301));
            Some("/s".to_owned())
        },
    );
    assert!(
        answer
            .text
            .starts_with("Found 250 of 7000 matches\n\na.txt\nLine 0: x\n")
    );
    assert!(answer.text.ends_with("Line 249: x\n\n(The first 300 matches are stored at: /s. Narrow the search, or read that file in parts.)"));
}

#[test]
fn a_long_line_is_cut_on_a_character() {
    let long = format!("{}é", "x".repeat(1999));
    let answer = matches(
        &Matches {
            matches: vec![found("a", 1, &long)],
            total: 1,
        },
        not_kept,
    );
    assert!(
        answer
            .text
            .ends_with(&format!("Line 1: {}", "x".repeat(1999)))
    );
}

#[test]
fn the_listing_is_json_and_neither_tool_overlaps() {
    use crate::bindings::exports::dsh::plugin::tool::Guest;
    let tools = crate::Component::list_tools().unwrap();
    for (tool, name) in tools.iter().zip(["glob", "grep"]) {
        let tool: Value = serde_json::from_str(tool).unwrap();
        assert_eq!(
            (&tool["name"], &tool["concurrent"]),
            (&json!(name), &Value::Null)
        );
        assert_eq!(tool["parameters"]["required"], json!(["pattern"]));
    }
}
