//! `docs/differences.md`, `docs/security.md`, `docs/hostile.md` and `docs/loop.md`
//! name the tests of what they say; this looks whether they are there.

use std::path::{Path, PathBuf};

use crate::support::root;

/// The rows of the table: a difference, and the tests in its last column.
fn rows() -> Vec<(String, Vec<String>)> {
    let text = std::fs::read_to_string(root().join("docs/differences.md")).unwrap();
    let rows = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| ---"));
    rows.skip_while(|line| !line.contains("| test"))
        // The head, and what stands between the parts of the table.
        .filter(|line| !line.ends_with("| test |") && !line.starts_with("| **"))
        .map(|line| {
            let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
            let tests = cells.last().unwrap().split('`').skip(1).step_by(2);
            (
                cells[0].trim().to_owned(),
                tests.map(str::to_owned).collect(),
            )
        })
        .collect()
}

/// What `docs/security.md` claims names its tests in the same way, in the text.
#[test]
fn each_test_that_a_claim_of_security_names_exists() {
    let text = std::fs::read_to_string(root().join("docs/security.md")).unwrap();
    let named: Vec<&str> = text
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|code| code.contains("::"))
        .collect();
    assert!(named.len() > 20, "{named:?}");
    let sources = sources();
    for test in named {
        assert!(exists(&sources, test), "{test} is nowhere");
    }
}

/// `crate::module::name`, of which the file and the name are looked at.
fn exists(sources: &[(PathBuf, String)], test: &str) -> bool {
    let (place, name) = test.rsplit_once("::").unwrap_or(("", test));
    let head = format!("fn {name}(");
    sources.iter().any(|(path, text)| {
        text.contains(&head) && place.split("::").all(|part| in_path(path, part))
    })
}

#[test]
fn each_difference_has_a_test_that_exists() {
    let sources = sources();
    let rows = rows();
    assert!(rows.len() > 10, "the table is read: {rows:?}");
    for (difference, tests) in rows {
        assert!(!tests.is_empty(), "no test for: {difference}");
        for test in tests {
            let there = exists(&sources, &test);
            assert!(there, "{test}, the test of {difference:?}, is nowhere");
        }
    }
}

#[test]
fn each_hostile_number_has_a_test_that_exists_or_says_why_not() {
    numbered("docs/hostile.md", 70);
}

#[test]
fn each_rule_of_the_loop_has_a_test_that_exists_or_says_why_not() {
    numbered("docs/loop.md", 57);
}

/// Each number of a table has its tests, or says what is missing.
fn numbered(path: &str, count: u32) {
    let sources = sources();
    let text = std::fs::read_to_string(root().join(path)).unwrap();
    let mut next = 1;
    for line in text.lines() {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").collect();
        let [number, _, tests] = cells[..] else {
            continue;
        };
        let Ok(number) = number.trim().parse::<u32>() else {
            continue;
        };
        assert_eq!(number, next, "a number is missing, or stands twice");
        next += 1;
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if tests.trim().starts_with("not yet: ") || tests.trim().starts_with("not here: ") {
            continue;
        }
        assert!(!named.is_empty(), "no test for {number}");
        for test in named {
            assert!(
                exists(&sources, test),
                "{test}, of number {number} in {path}, is nowhere"
            );
        }
    }
    assert_eq!(next, count + 1, "{path} has {count} numbers");
}

fn in_path(path: &Path, part: &str) -> bool {
    let parts = path.strip_prefix(root()).unwrap().with_extension("");
    part.is_empty()
        || parts.iter().any(|found| {
            let found = found.to_string_lossy().replace('-', "_");
            found == part || found == format!("{part}_tests")
        })
}

fn sources() -> Vec<(PathBuf, String)> {
    let mut open = vec![
        root().join("host"),
        root().join("plugins"),
        root().join("tests"),
    ];
    let mut found = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() && !path.ends_with("target") {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}
