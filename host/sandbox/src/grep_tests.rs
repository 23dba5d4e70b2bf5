use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use super::*;
use crate::files::tests::World;
use crate::mode::Mode as Fenced;

fn world() -> World {
    let world = World::new(Fenced::ReadOnly);
    let work = world.base.join("work");
    fs::create_dir_all(work.join(".git")).unwrap();
    for (path, content) in [
        ("src/c.txt", "delta beta\r\nx\nbeta\n"),
        ("src/d.rs", "let beta = 1;\n"),
        (".hidden", "beta"),
        (".git/config", "beta"),
        ("skipped.log", "beta"),
        ("binary", "beta\n\0beta\n"),
        (".gitignore", "*.log\n"),
    ] {
        let path = work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    world
}

fn grep(world: &World, pattern: &str, path: Option<&str>, files: Option<&str>) -> Vec<String> {
    let found = world
        .files
        .grep(
            pattern,
            path,
            files,
            250,
            Bounds::SHIPPED,
            Cancel::default(),
        )
        .unwrap();
    found
        .matches
        .iter()
        .map(|found| format!("{}:{}:{}", found.path, found.line, found.text))
        .collect()
}

#[test]
fn lines_are_found_by_path_and_ignored_hidden_and_binary_files_are_left_out() {
    let world = world();
    let found = grep(&world, "beta", None, None);
    assert_eq!(
        found,
        [
            "a.txt:2:beta",
            "src/c.txt:1:delta beta",
            "src/c.txt:3:beta",
            "src/d.rs:1:let beta = 1;"
        ]
    );
}

#[test]
fn files_narrow_a_search_and_a_named_file_is_searched_whatever_it_is() {
    let world = world();
    assert_eq!(
        grep(&world, "beta", None, Some("*.rs")),
        ["src/d.rs:1:let beta = 1;"]
    );
    assert_eq!(
        grep(&world, r"^beta$", Some("src"), None),
        ["src/c.txt:3:beta"]
    );
    assert_eq!(
        grep(&world, "beta", Some("skipped.log"), None),
        ["skipped.log:1:beta"]
    );
    assert_eq!(
        grep(&world, "outs", Some("../out"), None),
        ["../out/secret:1:outside"]
    );
    assert_eq!(
        grep(&world, "(?i)ALPHA", Some(&world.path("work/a.txt")), None).len(),
        1
    );
}

#[test]
fn a_shown_line_has_at_most_two_thousand_bytes_of_whole_characters() {
    let world = world();
    fs::write(
        world.base.join("work/long.txt"),
        format!("needle {}\n", "ä".repeat(3000)),
    )
    .unwrap();
    let found = world
        .files
        .grep("needle", None, None, 9, Bounds::SHIPPED, Cancel::default())
        .unwrap();
    assert_eq!(found.matches[0].text.len(), 1999);
    assert!(found.matches[0].text.ends_with('ä'));
}

#[test]
fn the_total_counts_what_the_limit_cuts() {
    let world = world();
    let found = world
        .files
        .grep("beta", None, None, 2, Bounds::SHIPPED, Cancel::default())
        .unwrap();
    assert_eq!((found.matches.len(), found.total), (2, 4));
}

#[test]
fn secrets_are_not_searched_by_any_name() {
    let world = world();
    fs::hard_link(
        world.base.join("home/.env"),
        world.base.join("work/env.txt"),
    )
    .unwrap();
    assert_eq!(grep(&world, "sesame", None, None), [""; 0]);
    assert_eq!(grep(&world, "sesame", Some("../home"), Some(".*")), [""; 0]);
    assert_eq!(grep(&world, "sesame", Some(".."), Some("**")), [""; 0]);
}

#[test]
fn a_search_that_cannot_be_says_why() {
    let world = world();
    let run = |pattern, bounds, cancel| {
        world
            .files
            .grep(pattern, None, None, 9, bounds, cancel)
            .map(|found| found.total)
            .unwrap_err()
            .code()
    };
    let shipped = Bounds::SHIPPED;
    assert_eq!(
        run("(", shipped, Cancel::default()),
        "SEARCH_INVALID_PATTERN"
    );
    assert_eq!(
        run("a\nb", shipped, Cancel::default()),
        "SEARCH_INVALID_PATTERN"
    );
    assert_eq!(
        run("beta", shipped, Arc::new(AtomicBool::new(true))),
        "SEARCH_ABORTED"
    );
    assert_eq!(
        run(
            "beta",
            Bounds {
                bytes: 300,
                ..shipped
            },
            Cancel::default()
        ),
        "SEARCH_RAW_OUTPUT_OVERFLOW"
    );
    assert_eq!(
        run(
            "beta",
            Bounds {
                time: Duration::ZERO,
                ..shipped
            },
            Cancel::default()
        ),
        "SEARCH_FAILED"
    );
}
