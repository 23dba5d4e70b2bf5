use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use dsh_session::{Draft, Header, Json, Kind, Session};

use crate::testing::{Faulty, quick_dir};
use crate::{Store, StoreConfig, StoreError, Writer};

fn header(id: &str) -> Header {
    let mut header = Header::new(id, 5);
    header.cwd = Some("/w".into());
    header
}

fn stored(store: &Store, id: &str) -> (Session, Writer) {
    let mut session = Session::new(header(id)).unwrap();
    session
        .append(Draft::new(Kind::FeedbackRecord, Json::empty_object()), 1)
        .unwrap();
    let writer = store.create(&session).unwrap();
    writer.flush_blocking().unwrap();
    (session, writer)
}

fn dir(root: &Path, id: &str) -> PathBuf {
    root.join("--w--").join(id)
}

#[test]
fn the_log_goes_first_and_the_lock_last() {
    let root = quick_dir();
    let faulty = Faulty::new(root.path());
    let store = Store::with_storage(StoreConfig::new(root.path()), faulty.clone()).unwrap();
    drop(stored(&store, "s"));
    let own = dir(root.path(), "s");
    fs::write(own.join("damaged-1.zst"), "x").unwrap();
    fs::create_dir(own.join("sub")).unwrap();
    fs::write(own.join("sub/file"), "x").unwrap();
    faulty.journal();
    let removed = store.remove("s").unwrap();
    assert_eq!(removed.dir, own);
    assert!(removed.bytes > 0);
    let journal = faulty.journal();
    let changes: Vec<&str> = journal
        .iter()
        .map(String::as_str)
        .filter(|line| !line.starts_with("try_lock") && !line.starts_with("lock"))
        .collect();
    assert_eq!(
        changes,
        [
            "unlink $/--w--/s/session.jsonl.zstd",
            "syncdir $/--w--/s",
            "unlink $/--w--/s/damaged-1.zst",
            "unlink $/--w--/s/sub/file",
            "rmdir $/--w--/s/sub",
            "unlink $/--w--/s/lock",
            "rmdir $/--w--/s",
            "syncdir $/--w--",
            "rmdir $/--w--",
            "syncdir $",
        ]
    );
    assert!(!root.path().join("--w--").exists());
    assert!(root.path().exists());
}

#[test]
fn other_sessions_of_the_project_stay() {
    let root = quick_dir();
    let store = Store::open(StoreConfig::new(root.path())).unwrap();
    drop(stored(&store, "one"));
    drop(stored(&store, "two"));
    store.remove("one").unwrap();
    assert!(!dir(root.path(), "one").exists());
    assert!(store.find("two").is_ok());
    assert!(matches!(
        store.remove("one"),
        Err(StoreError::NotFound { .. })
    ));
}

#[test]
fn a_session_that_is_being_written_stays() {
    let root = quick_dir();
    let store = Store::open(StoreConfig::new(root.path())).unwrap();
    let (_session, writer) = stored(&store, "s");
    let error = store.remove("s").unwrap_err();
    assert!(matches!(error, StoreError::Locked { .. }), "{error}");
    assert!(store.find("s").is_ok());
    drop(writer);
    store.remove("s").unwrap();
}

#[test]
fn a_link_is_removed_and_never_followed() {
    let root = quick_dir();
    let outside = quick_dir();
    fs::write(outside.path().join("file"), "x").unwrap();
    let store = Store::open(StoreConfig::new(root.path())).unwrap();
    drop(stored(&store, "s"));
    symlink(outside.path(), dir(root.path(), "s").join("link")).unwrap();
    store.remove("s").unwrap();
    assert!(outside.path().join("file").exists());

    // A session's directory that is a link elsewhere.
    let other = quick_dir();
    drop(stored(&store, "t"));
    let own = dir(root.path(), "t");
    fs::rename(&own, other.path().join("t")).unwrap();
    symlink(other.path().join("t"), &own).unwrap();
    let error = store.remove("t").unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    assert!(other.path().join("t/session.jsonl.zstd").exists());
}
