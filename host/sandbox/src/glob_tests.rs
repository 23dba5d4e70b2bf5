use std::fs;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use super::*;
use crate::files::tests::World;
use crate::mode::Mode;

fn world() -> World {
    let world = World::new(Mode::ReadOnly);
    let work = world.base.join("work");
    for (age, path) in [
        "src/new.rs",
        "src/deep/old.rs",
        ".hidden/x.rs",
        "ignored/y.rs",
        "z.md",
    ]
    .iter()
    .enumerate()
    {
        let path = work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let file = fs::File::create(path).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_secs(1000 - age as u64))
            .unwrap();
    }
    for path in [".git/HEAD.rs", "sub/.jj/a.rs", "sub/.sl/a.rs"] {
        let path = work.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
    }
    fs::write(work.join(".gitignore"), "ignored\n").unwrap();
    world
}

fn glob(world: &World, pattern: &str, path: Option<&str>) -> Vec<String> {
    world
        .files
        .glob(pattern, path, 100, Bounds::SHIPPED, Cancel::default())
        .unwrap()
        .paths
}

#[test]
fn hidden_and_ignored_files_are_found_oldest_first_and_version_control_is_not() {
    let world = world();
    assert_eq!(
        glob(&world, "*.rs", None),
        [
            "ignored/y.rs",
            ".hidden/x.rs",
            "src/deep/old.rs",
            "src/new.rs"
        ]
    );
    assert_eq!(glob(&world, "**/*.rs", None).len(), 4);
}

#[test]
fn a_pattern_with_a_slash_is_anchored_at_the_start_or_the_working_directory() {
    let world = world();
    assert_eq!(glob(&world, "src/*.rs", None), ["src/new.rs"]);
    assert_eq!(glob(&world, "deep/*.rs", Some("src")), ["src/deep/old.rs"]);
    assert_eq!(
        glob(&world, "src/deep/*.rs", Some("src")),
        ["src/deep/old.rs"]
    );
    assert_eq!(glob(&world, "/z.*", None), ["z.md"]);
    assert_eq!(
        glob(&world, &world.path("work/src/*.rs"), None),
        ["src/new.rs"]
    );
    assert_eq!(glob(&world, "*.{md,txt}", None), ["z.md", "a.txt"]);
    assert_eq!(glob(&world, "!*.rs", Some("src")), [""; 0]);
}

#[test]
fn paths_are_shown_as_the_start_was_named() {
    let world = world();
    let absolute = world.path("work/src");
    assert_eq!(
        glob(&world, "new*", Some(&absolute)),
        [format!("{absolute}/new.rs")]
    );
    assert_eq!(glob(&world, "secret", Some("../out")), ["../out/secret"]);
    assert_eq!(glob(&world, "*", Some("z.md")), ["z.md"]);
}

#[test]
fn the_total_counts_what_the_limit_cuts() {
    let world = world();
    let found = world
        .files
        .glob("*.rs", None, 2, Bounds::SHIPPED, Cancel::default())
        .unwrap();
    assert_eq!((found.paths.len(), found.total), (2, 4));
}

#[test]
fn secrets_of_home_are_not_listed() {
    let world = world();
    assert_eq!(
        glob(&world, "*", Some("../home")),
        ["../home/settings.yaml"]
    );
}

#[test]
fn a_search_that_cannot_be_says_why() {
    let world = world();
    let run = |pattern, path, bounds, cancel| {
        world
            .files
            .glob(pattern, path, 9, bounds, cancel)
            .map(|found| found.total)
            .unwrap_err()
            .code()
    };
    let shipped = Bounds::SHIPPED;
    assert_eq!(
        run("[", None, shipped, Cancel::default()),
        "SEARCH_INVALID_PATTERN"
    );
    assert_eq!(
        run("*", Some("none"), shipped, Cancel::default()),
        "FS_NOT_FOUND"
    );
    assert_eq!(
        run("*", None, shipped, Arc::new(AtomicBool::new(true))),
        "SEARCH_ABORTED"
    );
    let small = Bounds {
        bytes: 20,
        ..shipped
    };
    assert_eq!(
        run("*", None, small, Cancel::default()),
        "SEARCH_RAW_OUTPUT_OVERFLOW"
    );
    let short = Bounds {
        time: Duration::ZERO,
        ..shipped
    };
    assert_eq!(run("*", None, short, Cancel::default()), "SEARCH_FAILED");
}
