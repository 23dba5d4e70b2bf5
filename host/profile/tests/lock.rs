//! `docs/schema/dsh.lock` is a lock that each later version must still read, with
//! every member that there is.

use dsh_profile::Lock;
use std::path::Path;

fn example() -> (String, Lock) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema/dsh.lock");
    let text = std::fs::read_to_string(&path).unwrap();
    let lock = Lock::parse(&path, &text).unwrap();
    (text, lock)
}

/// Without comments.
fn lines(text: &str) -> Vec<&str> {
    text.lines().filter(|line| !line.starts_with('#')).collect()
}

#[test]
fn the_example_is_sound_and_is_what_would_be_written() {
    let (text, lock) = example();
    assert_eq!(lock.faults().collect::<Vec<_>>(), Vec::<&str>::new());
    assert_eq!(lock.plugins.len(), 2);
    assert_eq!(lines(&lock.to_text().unwrap()), lines(&text));
}

#[test]
fn the_example_has_every_member() {
    let (_, lock) = example();
    let weather = lock.find("acme:weather").unwrap();
    let count = lock.find("me:count").unwrap();
    assert!(weather.signature.is_some() && !weather.commands.is_empty());
    assert_eq!(weather.granted().len(), 2);
    assert_eq!(weather.limits["memory"], "32MiB");
    assert_eq!(weather.rows[0].config["units"], "metric");
    assert!(weather.rows[1].disabled);
    assert!(count.disabled && count.fetched.is_some());
}
