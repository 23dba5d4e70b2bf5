use std::thread;

use super::*;

fn home(dir: &tempfile::TempDir) -> Home {
    Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap()
}

fn map(dir: &tempfile::TempDir, plugin: &str, row: &str, reach: Reach<'_>) -> PluginMap {
    PluginData::at(&home(dir)).map("headless", plugin, row, reach)
}

const QUOTA: u64 = 100;

#[test]
fn what_was_set_is_there_for_whoever_opens_the_map_next() {
    let dir = tempfile::tempdir().unwrap();
    let one = map(&dir, "acme:a", "a", Reach::Profile);
    assert_eq!(one.get("k").unwrap(), None);
    one.set("k", vec![0, 255], QUOTA).unwrap();
    one.set("other", vec![], QUOTA).unwrap();
    let again = map(&dir, "acme:a", "a", Reach::Profile);
    assert_eq!(again.get("k").unwrap(), Some(vec![0, 255]));
    assert_eq!(again.keys("").unwrap(), ["k", "other"]);
    assert_eq!(again.keys("o").unwrap(), ["other"]);
    again.remove("k").unwrap();
    again.remove("k").unwrap();
    assert_eq!(one.get("k").unwrap(), None);
}

/// Every two of these are two maps.
#[test]
fn h63_no_other_plugin_row_profile_project_or_session_sees_a_map() {
    let dir = tempfile::tempdir().unwrap();
    let data = PluginData::at(&home(&dir));
    let project = Path::new("/work/a");
    let maps = [
        data.map("headless", "acme:a", "a", Reach::Profile),
        data.map("headless", "acme:a", "b", Reach::Profile),
        data.map("headless", "acme:b", "a", Reach::Profile),
        data.map("other", "acme:a", "a", Reach::Profile),
        data.map("headless", "acme:a", "a", Reach::Project(project)),
        data.map(
            "headless",
            "acme:a",
            "a",
            Reach::Project(Path::new("/work/b")),
        ),
        data.map("headless", "acme:a", "a", Reach::Session("s1")),
        data.map("headless", "acme:a", "a", Reach::Session("s2")),
        // Names that look for a way out, or for another's place.
        data.map("headless", "../acme", "a", Reach::Profile),
        data.map("headless", "acme%3Aa", "a", Reach::Profile),
        data.map("headless", "acme:a/a", "", Reach::Profile),
        data.map("headless", "acme:a", "..", Reach::Profile),
        data.map("headless", "acme:a", &"x".repeat(300), Reach::Profile),
    ];
    for (index, map) in maps.iter().enumerate() {
        assert_eq!(map.get("k").unwrap(), None, "{}", map.path().display());
        map.set("k", vec![u8::try_from(index).unwrap()], QUOTA)
            .unwrap();
        let inside = map.path();
        let inside = inside
            .strip_prefix(dir.path().join("plugins/data"))
            .unwrap();
        assert!(!inside.components().any(|part| part.as_os_str() == ".."));
    }
}

#[test]
fn a_swap_takes_place_only_over_the_value_that_was_seen() {
    let dir = tempfile::tempdir().unwrap();
    let map = map(&dir, "p", "r", Reach::Profile);
    assert!(!map.swap("k", Some(b"a"), b"b".to_vec(), QUOTA).unwrap());
    assert!(map.swap("k", None, b"a".to_vec(), QUOTA).unwrap());
    assert!(!map.swap("k", None, b"b".to_vec(), QUOTA).unwrap());
    assert!(map.swap("k", Some(b"a"), b"b".to_vec(), QUOTA).unwrap());
    assert_eq!(map.get("k").unwrap().unwrap(), b"b");
}

#[test]
fn of_many_that_count_at_once_none_is_lost() {
    let dir = tempfile::tempdir().unwrap();
    let map = &map(&dir, "p", "r", Reach::Profile);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(move || {
                for _ in 0..5 {
                    loop {
                        let old = map.get("n").unwrap();
                        let next = old.as_ref().map_or(1, |old| old[0] + 1);
                        if map.swap("n", old.as_deref(), vec![next], QUOTA).unwrap() {
                            break;
                        }
                    }
                }
            });
        }
    });
    assert_eq!(map.get("n").unwrap().unwrap(), [20]);
}

#[test]
fn a_map_ends_at_its_quota_and_keeps_what_it_had() {
    let dir = tempfile::tempdir().unwrap();
    let map = map(&dir, "p", "r", Reach::Profile);
    map.set("k", vec![1; 99], QUOTA).unwrap();
    let error = map.set("l", vec![1], QUOTA).unwrap_err();
    assert!(
        matches!(
            error,
            Error::DataFull {
                needed: 102,
                quota: 100,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(map.keys("").unwrap(), ["k"]);
    // The quota became smaller: less is taken, more is not.
    map.set("k", vec![1; 50], 10).unwrap();
    assert!(map.set("k", vec![1; 51], 10).is_err());
    map.remove("k").unwrap();
}

#[test]
fn a_map_that_was_changed_by_another_hand_is_refused_with_its_file() {
    let dir = tempfile::tempdir().unwrap();
    let map = map(&dir, "p", "r", Reach::Profile);
    map.set("key", b"value".to_vec(), QUOTA).unwrap();
    let whole = fs::read(map.path()).unwrap();
    let mut wrong: Vec<Vec<u8>> = (0..whole.len()).map(|end| whole[..end].to_vec()).collect();
    for at in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        wrong.push(bytes);
    }
    for bytes in wrong {
        fs::write(map.path(), bytes).unwrap();
        let error = map.get("key").unwrap_err().to_string();
        assert!(error.contains(&*map.path().to_string_lossy()), "{error}");
        assert!(map.set("key", vec![], QUOTA).is_err());
    }
}

#[test]
fn what_a_session_kept_goes_with_it_and_nothing_else_does() {
    let dir = tempfile::tempdir().unwrap();
    let data = PluginData::at(&home(&dir));
    let gone = data.map("headless", "p", "r", Reach::Session("s1"));
    let stays = [
        data.map("headless", "p", "r", Reach::Session("s2")),
        data.map("headless", "p", "r", Reach::Profile),
    ];
    for map in stays.iter().chain([&gone]) {
        map.set("k", vec![1], QUOTA).unwrap();
    }
    data.forget_session("s1").unwrap();
    data.forget_session("s1").unwrap();
    assert_eq!(gone.get("k").unwrap(), None);
    assert!(stays.iter().all(|map| map.get("k").unwrap().is_some()));
}

#[test]
fn a_link_in_the_way_is_not_followed() {
    let dir = tempfile::tempdir().unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    fs::create_dir(dir.path().join("plugins")).unwrap();
    std::os::unix::fs::symlink(elsewhere.path(), dir.path().join("plugins/data")).unwrap();
    let map = map(&dir, "p", "r", Reach::Profile);
    assert!(map.set("k", vec![1], QUOTA).is_err());
    assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
}
