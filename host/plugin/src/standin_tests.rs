use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use wasmtime_wasi::p2::Pollable;

use super::clock::{Standing, Wait, still};
use super::*;

#[test]
fn imports_of_wasis_second_preview_are_met() {
    for (name, expected) in [
        ("wasi:cli/environment@0.2.6", true),
        ("wasi:io/poll@0.2.0", true),
        ("wasi:http/outgoing-handler@0.2.12", true),
        ("wasi:clocks/timezone@0.2.1", true),
        ("wasi:cli/environment@0.3.0", false),
        ("wasi:cli/environment@0.20.0", false),
        ("wasi:cli/environment@0.2.", false),
        ("wasi:cli/environment@0.2.0-rc", false),
        ("wasi:cli/environment", false),
        ("wasi:cli@0.2.6", false),
        ("wasi:keyvalue/store@0.2.0", false),
        ("acme:cli/environment@0.2.6", false),
        ("dsh:plugin/clock@0.1.0", false),
    ] {
        assert_eq!(meets(&Interface::new(name)), expected, "{name}");
    }
}

#[test]
fn a_wall_clock_without_an_event_shows_a_date_that_programs_believe() {
    assert_eq!(
        still(1_700_000_000_123),
        Duration::from_millis(1_700_000_000_123)
    );
    for none in [0, -1, i64::MIN] {
        assert_eq!(still(none), Duration::from_secs(1_735_689_600));
    }
}

fn wait(clock: &Arc<Standing>, seconds: u64) -> Wait {
    Wait {
        clock: Arc::clone(clock),
        until: clock.now() + seconds * 1_000_000_000,
    }
}

#[tokio::test]
async fn of_several_waits_the_earliest_ends_and_moves_the_clock_so_far() {
    let clock = Arc::new(Standing::default());
    let start = clock.now();
    let (mut late, mut early) = (wait(&clock, 60), wait(&clock, 5));
    tokio::select! {
        () = late.ready() => panic!("the later one came first"),
        () = early.ready() => {}
    }
    assert_eq!(clock.now() - start, 5_000_000_000);
    // It ended, so it ends at once, and moves nothing.
    early.ready().await;
    assert_eq!(clock.now() - start, 5_000_000_000);
    late.ready().await;
    assert_eq!(clock.now() - start, 60_000_000_000);
}

#[tokio::test]
async fn what_is_ready_without_waiting_comes_before_any_time_passes() {
    let clock = Arc::new(Standing::default());
    let start = clock.now();
    let mut late = wait(&clock, 60);
    tokio::select! {
        biased;
        () = late.ready() => panic!("it waited"),
        () = std::future::ready(()) => {}
    }
    assert_eq!(clock.now(), start);
    // One that was given up does not hold others back.
    wait(&clock, 90).ready().await;
    assert_eq!(clock.now() - start, 90_000_000_000);
}

#[test]
fn bytes_of_a_generator_go_on_and_differ_by_row_and_seed() {
    let bytes = |row, seed| {
        let mut generator = Generator::new(row, seed);
        let (mut first, mut second) = ([0; 8], [0; 8]);
        generator.fill(&mut first);
        generator.fill(&mut second);
        (first, second)
    };
    let (first, second) = bytes("row", 1);
    assert_ne!(first, second);
    assert_eq!(bytes("row", 1), (first, second));
    assert_ne!(bytes("row", 2).0, first);
    assert_ne!(bytes("other", 1).0, first);
}

#[test]
fn a_folder_and_dshs_own_are_apart_or_one_lies_in_the_other() {
    for (folder, home, expected) in [
        ("/home/me/work", "/home/me/.dsh", true),
        ("/home/me/.dshx", "/home/me/.dsh", true),
        ("/home/me/.dsh", "/home/me/.dsh", false),
        ("/home/me/.dsh/", "/home/me/.dsh", false),
        ("/home/me/.dsh/plugins", "/home/me/.dsh", false),
        ("/home/me", "/home/me/.dsh", false),
        ("/", "/home/me/.dsh", false),
    ] {
        let apart = folders::apart(Path::new(folder), Path::new(home));
        assert_eq!(apart, expected, "{folder} and {home}");
    }
}
