use std::time::{Duration, SystemTime};

use super::*;

fn aged(path: &Path, bytes: usize, age: u64) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, vec![0; bytes]).unwrap();
    let time = SystemTime::now() - Duration::from_secs(age);
    File::options()
        .write(true)
        .open(path)
        .unwrap()
        .set_modified(time)
        .unwrap();
}

#[test]
fn the_oldest_variants_go_first_and_only_when_there_are_too_many() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(&name[..2]).join(name);
    for (name, age) in [("aa1", 40), ("ab2", 10), ("aa3", 30), ("ac4", 20)] {
        aged(&path(name), 100, age);
    }
    sweep(folder.path(), 400);
    assert!(path("aa1").exists());
    sweep(folder.path(), 399);
    let left: Vec<_> = ["aa1", "aa3", "ac4", "ab2"]
        .into_iter()
        .filter(|name| path(name).exists())
        .collect();
    assert_eq!(left, ["ac4", "ab2"]);
}

#[test]
fn what_a_write_left_behind_goes_once_nobody_can_be_writing_it() {
    let root = tempfile::tempdir().unwrap();
    let (old, new, other) = (".new-old", ".new-new", "kept");
    for (name, age) in [(old, 2 * 24 * 3600), (new, 60), (other, 2 * 24 * 3600)] {
        aged(&root.path().join(name), 1, age);
    }
    Store::at(root.path()).put(b"content").unwrap();
    assert!(!root.path().join(old).exists());
    assert!(root.path().join(new).exists() && root.path().join(other).exists());
}

#[test]
fn a_put_leaves_one_file_and_a_second_one_changes_nothing() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::at(root.path());
    let id = store.put(b"content").unwrap();
    let modified = || fs::metadata(store.path(&id)).unwrap().modified().unwrap();
    let first = modified();
    assert_eq!(store.put(b"content").unwrap(), id);
    assert_eq!(modified(), first);
    assert_eq!(store.read(&id).unwrap(), b"content");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);
}

#[test]
fn a_folder_where_an_object_should_be_is_an_error_that_names_it() {
    let root = tempfile::tempdir().unwrap();
    let store = Store::at(root.path());
    let id = AttachmentId::of_digest(&Sha256::digest(b"x"));
    fs::create_dir_all(store.path(&id)).unwrap();
    let error = store.read(&id).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
}
