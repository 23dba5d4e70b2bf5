use std::fs;
use std::io::Read;
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

/// An entry of machine code, by every way that it is read.
fn code(cache: &Cache, name: &str) -> Option<(Vec<u8>, Vec<u8>)> {
    let (file, note) = cache.code(name)?;
    let mut whole = vec![];
    (&file).read_to_end(&mut whole).unwrap();
    let code = whole.len() - note.len() - super::LENGTH - super::MAC;
    assert!(cache.get(name).unwrap().starts_with(&whole[..code]));
    Some((whole[..code].to_vec(), note))
}

#[test]
fn code_and_note_are_given_back_in_pieces_of_any_size() {
    let (_dir, cache) = cache();
    for length in [0, 1, super::PIECE - 1, super::PIECE, 3 * super::PIECE + 7] {
        let content: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
        for note in [&b""[..], b"note"] {
            cache.put_code("a", &content, note).unwrap();
            assert_eq!(
                code(&cache, "a"),
                Some((content.clone(), note.to_vec())),
                "{length}"
            );
        }
    }
}

#[test]
fn machine_code_changed_in_any_byte_cut_or_grown_is_absent() {
    let (dir, cache) = cache();
    cache.put_code("a", b"machine code", b"note").unwrap();
    let path = dir.path().join("code/a");
    let whole = fs::read(&path).unwrap();
    assert_eq!(whole.len(), 12 + 4 + 4 + 32);
    for at in 0..whole.len() {
        for bit in 0..8 {
            let mut changed = whole.clone();
            changed[at] ^= 1 << bit;
            fs::write(&path, &changed).unwrap();
            assert!(cache.code("a").is_none(), "bit {bit} of byte {at}");
        }
    }
    for len in 0..whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        assert!(cache.code("a").is_none(), "cut to {len}");
        fs::write(&path, &whole[whole.len() - len..]).unwrap();
        assert!(cache.code("a").is_none(), "the last {len}");
    }
    for (before, after) in [(&b"x"[..], &b""[..]), (b"", b"x"), (b"", &whole)] {
        fs::write(&path, [before, &whole, after].concat()).unwrap();
        assert!(cache.code("a").is_none());
    }
    fs::write(&path, &whole).unwrap();
    assert!(cache.code("a").is_some());
}

#[test]
fn where_the_code_ends_and_the_note_begins_is_covered_too() {
    let (dir, cache) = cache();
    cache.put_code("a", b"machine code", b"note").unwrap();
    let path = dir.path().join("code/a");
    let mut whole = fs::read(&path).unwrap();
    let length = whole.len() - super::MAC - super::LENGTH;
    for note in [0_u32, 3, 5, 16, 17, u32::MAX] {
        whole[length..length + super::LENGTH].copy_from_slice(&note.to_le_bytes());
        fs::write(&path, &whole).unwrap();
        assert!(cache.code("a").is_none(), "{note}");
    }
}

#[test]
fn machine_code_is_absent_under_another_name_or_key_or_as_a_link_or_open_to_others() {
    let (dir, cache) = cache();
    cache.put_code("a", b"one", b"").unwrap();
    cache.put_code("b", b"two", b"").unwrap();
    let [a, b, c] = ["a", "b", "c"].map(|name| dir.path().join("code").join(name));
    fs::rename(&a, &c).unwrap();
    fs::rename(&b, &a).unwrap();
    assert!(cache.code("a").is_none(), "another's entry");
    fs::rename(&c, &a).unwrap();
    assert!(cache.code("a").is_some());
    fs::rename(&a, &c).unwrap();
    symlink(&c, &a).unwrap();
    assert!(cache.code("a").is_none(), "a link");
    fs::remove_file(&a).unwrap();
    fs::create_dir(&a).unwrap();
    assert!(cache.code("a").is_none(), "a directory");
    fs::remove_dir(&a).unwrap();
    fs::rename(&c, &a).unwrap();
    for mode in [0o620, 0o602, 0o666] {
        fs::set_permissions(&a, fs::Permissions::from_mode(mode)).unwrap();
        assert!(cache.code("a").is_none(), "{mode:o}");
    }
    fs::set_permissions(&a, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(cache.code("a").is_some());
    fs::write(dir.path().join("code/key"), [7; 32]).unwrap();
    let other = Cache::open(&dir.path().join("code")).unwrap();
    assert!(other.code("a").is_none(), "another key");
}

#[test]
fn a_file_of_another_user_is_absent() {
    let (dir, cache) = cache();
    cache.put_code("a", b"one", b"").unwrap();
    // Only root can give a file away; others see the rule in `is_private`.
    let given = std::os::unix::fs::chown(dir.path().join("code/a"), Some(12345), None);
    if given.is_ok() {
        assert!(cache.code("a").is_none());
        assert_eq!(cache.get("a"), None);
    }
}

#[test]
fn an_entry_that_is_replaced_while_it_is_open_stays_what_it_was() {
    let (dir, cache) = cache();
    cache.put_code("a", b"one", b"").unwrap();
    let (file, _) = cache.code("a").unwrap();
    cache.put_code("a", b"two", b"").unwrap();
    fs::remove_file(dir.path().join("code/a")).unwrap();
    let mut content = vec![];
    (&file).read_to_end(&mut content).unwrap();
    assert!(content.starts_with(b"one"));
}

#[test]
fn a_key_that_others_could_read_is_not_used() {
    let (dir, cache) = cache();
    cache.put("a", &[b"content"]).unwrap();
    let key = dir.path().join("code/key");
    let before = fs::read(&key).unwrap();
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let cache = Cache::open(&dir.path().join("code")).unwrap();
    assert_ne!(fs::read(&key).unwrap(), before);
    assert_eq!(cache.get("a"), None);
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
