use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::Cache;

fn cache() -> (tempfile::TempDir, Cache) {
    let dir = tempfile::tempdir().unwrap();
    let cache = Cache::open(&dir.path().join("code")).unwrap();
    (dir, cache)
}

#[test]
fn gives_back_what_was_put() {
    let (dir, cache) = cache();
    cache.put("a", &[b"content"]).unwrap();
    assert_eq!(cache.get("a").as_deref(), Some(&b"content"[..]));
    let reopened = Cache::open(&dir.path().join("code")).unwrap();
    assert_eq!(reopened.get("a").as_deref(), Some(&b"content"[..]));
    assert_eq!(cache.get("b"), None);
}

#[test]
fn an_entry_changed_in_any_byte_is_absent() {
    let (dir, cache) = cache();
    cache.put("a", &[b"content"]).unwrap();
    let path = dir.path().join("code/a");
    let whole = fs::read(&path).unwrap();
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1;
        fs::write(&path, &changed).unwrap();
        assert_eq!(cache.get("a"), None, "byte {at}");
    }
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert_eq!(cache.get("a"), None, "cut to {len}");
    }
}

#[test]
fn an_entry_under_another_name_is_absent() {
    let (dir, cache) = cache();
    cache.put("a", &[b"content"]).unwrap();
    fs::copy(dir.path().join("code/a"), dir.path().join("code/b")).unwrap();
    assert_eq!(cache.get("b"), None);
}

#[test]
fn an_entry_written_with_another_key_is_absent() {
    let (dir, cache) = cache();
    let other = Cache::open(&dir.path().join("other")).unwrap();
    other.put("a", &[b"content"]).unwrap();
    fs::copy(dir.path().join("other/a"), dir.path().join("code/a")).unwrap();
    assert_eq!(cache.get("a"), None);
}

#[test]
fn a_link_or_a_file_that_others_may_write_is_absent() {
    let (dir, cache) = cache();
    cache.put("a", &[b"content"]).unwrap();
    let path = dir.path().join("code/a");
    let moved = dir.path().join("moved");
    fs::rename(&path, &moved).unwrap();
    symlink(&moved, &path).unwrap();
    assert_eq!(cache.get("a"), None);
    fs::remove_file(&path).unwrap();
    fs::rename(&moved, &path).unwrap();
    assert!(cache.get("a").is_some());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o620)).unwrap();
    assert_eq!(cache.get("a"), None);
}

#[test]
fn key_and_entries_are_for_the_owner_alone() {
    let (dir, cache) = cache();
    cache.put("a", &[b"content"]).unwrap();
    for name in ["a", "key"] {
        let mode = fs::metadata(dir.path().join("code").join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
    assert_eq!(
        fs::metadata(dir.path().join("code"))
            .unwrap()
            .permissions()
            .mode()
            & 0o777,
        0o700
    );
}

#[test]
fn a_directory_that_others_may_write_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let open = dir.path().join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(Cache::open(&open).is_err());
}

#[test]
fn a_lost_key_costs_the_entries_and_nothing_else() {
    let (dir, cache) = cache();
    cache.put("a", &[b"content"]).unwrap();
    fs::remove_file(dir.path().join("code/key")).unwrap();
    let cache = Cache::open(&dir.path().join("code")).unwrap();
    assert_eq!(cache.get("a"), None);
    cache.put("a", &[b"content"]).unwrap();
    assert!(cache.get("a").is_some());
}
