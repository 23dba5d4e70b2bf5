use std::fs::{self, File};

use super::*;

const FINGERPRINT: &str = "abababababababababababababababab0123";

fn code(digest: char, engine: &str) -> String {
    format!("{}-{engine}.cwasm", digest.to_string().repeat(64))
}

#[test]
fn only_names_that_the_cache_gives_are_its_own() {
    let ours = "ab".repeat(16);
    let offer = format!("{}.offer", "0".repeat(64));
    assert_eq!(
        kind(&code('a', &ours), FINGERPRINT),
        Some(Kind::Code { ours: true })
    );
    assert_eq!(
        kind(&code('a', &"cd".repeat(16)), FINGERPRINT),
        Some(Kind::Code { ours: false })
    );
    assert_eq!(kind(&offer, FINGERPRINT), Some(Kind::Offer));
    for partial in [
        format!(".{offer}.7.0"),
        format!(".{}.7.12", code('a', &ours)),
        ".key.7.1".to_owned(),
    ] {
        assert_eq!(
            kind(&partial, FINGERPRINT),
            Some(Kind::Partial { process: 7 }),
            "{partial}"
        );
    }
    for other in [
        "key",
        "sessions.index",
        "x.cwasm",
        "x.offer",
        ".offer",
        "..7.0",
        ".sessions.index.7.0",
        &code('g', &ours),
        &code('a', "ab"),
        &format!(".{offer}.x.0"),
    ] {
        assert_eq!(kind(other, FINGERPRINT), None, "{other}");
    }
}

#[test]
fn an_entry_goes_by_its_engine_its_age_and_the_sum_of_all() {
    let kept = |name: &str, days: u32, other_engine, bytes| Kept {
        path: name.into(),
        bytes,
        unused: DAY * days,
        other_engine,
    };
    assert_eq!(
        gone(vec![
            kept("new", 0, false, 1),
            kept("ours", 29, false, 1),
            kept("old", 31, false, 1),
            kept("others", 6, true, 1),
            kept("others-old", 8, true, 1),
        ]),
        ["others-old", "old"].map(PathBuf::from)
    );
    let half = ALL / 2;
    assert_eq!(
        gone(vec![
            kept("third", 3, false, half),
            kept("first", 1, false, half),
            kept("second", 2, false, half),
        ]),
        ["third"].map(PathBuf::from)
    );
}

#[test]
fn a_sweep_leaves_what_is_used_and_what_is_not_the_caches() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path()).unwrap();
    let ours = "ab".repeat(16);
    let dead = format!(".{}.{}.0", code('c', &ours), u32::MAX);
    let alive = format!(".{}.{}.0", code('c', &ours), std::process::id());
    let names = [
        (code('a', &ours), 40, false),
        (code('b', &ours), 1, true),
        ("sessions.index".to_owned(), 400, true),
        (dead, 0, false),
        (alive, 0, true),
    ];
    for (name, days, _) in &names {
        let file = File::create(dir.path().join(name)).unwrap();
        file.set_modified(SystemTime::now() - DAY * *days).unwrap();
    }
    cache.sweep(FINGERPRINT);
    for (name, _, stays) in names {
        assert_eq!(fs::exists(dir.path().join(&name)).unwrap(), stays, "{name}");
    }
    assert!(dir.path().join(KEY_FILE).exists());
}

#[test]
fn what_is_used_again_is_counted_as_new() {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(dir.path()).unwrap();
    let name = code('a', &"ab".repeat(16));
    cache.put_code(&name, b"code", b"note").unwrap();
    let path = dir.path().join(&name);
    let age = |days: u32| {
        let file = File::options().write(true).open(&path).unwrap();
        file.set_modified(SystemTime::now() - DAY * days).unwrap();
    };
    age(40);
    assert!(cache.code(&name).is_some());
    cache.sweep(FINGERPRINT);
    assert!(path.exists());
    age(40);
    assert!(cache.get(&name).is_some());
    cache.sweep(FINGERPRINT);
    assert!(path.exists());
}
