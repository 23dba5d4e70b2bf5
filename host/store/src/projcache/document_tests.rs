use dsh_session::projection::{Registry, Row, Rows};
use dsh_session::{Header, Json, Seq};

use super::document::Records;

fn header(id: &str) -> Header {
    header_of(id, 7, Some("/work/p"))
}

fn header_of(id: &str, created_at: u64, cwd: Option<&str>) -> Header {
    let mut header = Header::new(id, created_at);
    header.cwd = cwd.map(Into::into);
    header
}

fn rows(title: &str) -> Rows {
    let mut rows = Rows::default();
    let row = Row {
        version: 1,
        as_of: Some(Seq(4)),
        state: Json::string(title),
    };
    rows.set("title", row);
    rows
}

fn file(sessions: &str) -> String {
    let unit = r#""unit":{"name":"session_projcache","version":3}"#;
    format!(r#"{{{unit},"global":null,"tables":{{"sessions":{sessions}}}}}"#)
}

fn parse(text: &str) -> Result<Records, String> {
    Records::parse(text.as_bytes())
}

#[test]
fn an_empty_table_prints_as_upstream_prints_it() {
    let want = "{\n  \"unit\": {\n    \"name\": \"session_projcache\",\n    \"version\": 3\n  },\n  \"global\": null,\n  \
        \"tables\": {\n    \"sessions\": {}\n  }\n}\n";
    assert_eq!(Records::default().text(), want);
    assert_eq!(parse(want).unwrap().text(), want);
}

#[test]
fn any_value_prints_with_two_spaces_and_comes_back() {
    let odd = r#"{"a \"{[:,]}\" \\":[],"b":[1,"x\ud83d",{"c":{}},[null,true]],"d":-1.5e+300}"#;
    let text = parse(&file(odd)).unwrap().text();
    let want = "\n      \"b\": [\n        1,\n        \"x\\ud83d\",\n        {\n          \"c\": {}\n        },\n        \
        [\n          null,\n          true\n        ]\n      ],\n      \"d\": -1.5e+300\n    }\n";
    assert!(text.contains(want), "{text}");
    assert!(text.contains("\"a \\\"{[:,]}\\\" \\\\\": [],"), "{text}");
    assert_eq!(parse(&text).unwrap().text(), text);
}

#[test]
fn foreign_files_and_other_versions_are_refused() {
    let deep = file(&format!("{{\"s\":{}{}}}", "[".repeat(70), "]".repeat(70)));
    let other_version = file("{}").replace("3}", "4}");
    let other_name = file("{}").replace("projcache", "other");
    let no_table = file("[]");
    for (text, why) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[]", "not a file of"),
        ("{}", "not a file of"),
        (&other_name, "not a file of"),
        (&other_version, "its version is 4"),
        (&no_table, "no table"),
        (&deep, "deep"),
    ] {
        let found = parse(text).unwrap_err();
        assert!(found.contains(why), "{text}: {found}");
    }
}

#[test]
fn a_record_is_of_one_session_by_creation_time_and_directory() {
    let mut records = Records::default();
    records.put(&header("s"), &rows("T"));
    assert_eq!(records.rows(&header("s")), Some(rows("T")));
    let registry = Registry::standard();
    let views = records.snapshot(&registry, &header("s"), 5).unwrap();
    assert_eq!((views.as_of, views.values.len()), (Some(Seq(4)), 1));
    let later = header_of("s", 8, Some("/work/p"));
    let elsewhere = header_of("s", 7, Some("/work/q"));
    let nowhere = header_of("s", 7, None);
    for other in [later, elsewhere, nowhere, header("t")] {
        assert_eq!(records.rows(&other), None, "{other:?}");
        assert_eq!(records.snapshot(&registry, &other, 5), None);
    }
}

#[test]
fn rows_of_unknown_units_stay_until_the_session_is_another() {
    let record = r#"{"identity":{"cwd":"/work/p","createdAt":7},"rows":{"goal":{"ver":4,"seq":2,"val":{"x":1}},"title":{"ver":1,"seq":2,"val":"Old"},"odd":7}}"#;
    let mut records = parse(&file(&format!("{{\"s\":{record}}}"))).unwrap();
    records.put(&header("s"), &rows("New"));
    let text = records.rows(&header("s")).unwrap().json();
    let want = r#"{"goal":{"ver":4,"seq":2,"val":{"x":1}},"title":{"ver":1,"seq":4,"val":"New"}}"#;
    assert_eq!(text.as_str(), want);
    let other = header_of("s", 9, Some("/work/p"));
    records.put(&other, &rows("Other"));
    assert_eq!(records.rows(&other), Some(rows("Other")));
}

#[test]
fn records_of_other_sessions_stay_as_they_are() {
    let mut records = parse(&file(r#"{"b":{"what":[1]},"a":null}"#)).unwrap();
    records.put(&header("10"), &rows("T"));
    let text = records.text();
    assert!(text.contains("\"what\": [\n"), "{text}");
    let at = |key: &str| text.find(&format!("    \"{key}\":")).unwrap();
    // An integer-like id comes first, as in every object of upstream's.
    assert!(at("10") < at("b") && at("b") < at("a"));
    assert_eq!(records.len(), 3);
    records.remove("b");
    assert!(!records.contains("b") && records.contains("a"));
    assert_eq!(records.rows(&header("10")), Some(rows("T")));
}
