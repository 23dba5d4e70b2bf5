use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use dsh_session::projection::{Row, Rows};
use dsh_session::{Header, Json, Seq};

use super::*;
use crate::testing::{Faulty, quick_dir};

fn rows(seq: u64) -> Rows {
    let mut rows = Rows::default();
    let row = Row {
        version: 1,
        as_of: Some(Seq(seq)),
        state: Json::string("T"),
    };
    rows.set("title", row);
    rows
}

fn header(id: &str) -> Header {
    Header::new(id, 1)
}

fn path(dir: &Path) -> PathBuf {
    dir.join(CACHE_DIR).join(CACHE_FILE)
}

fn faulty(dir: &Path) -> (ProjectionCache, Arc<Faulty>) {
    let storage = Faulty::new(dir);
    let cache = ProjectionCache::with_storage(path(dir), storage.clone()).unwrap();
    (cache, storage)
}

#[test]
fn a_write_is_a_temporary_file_a_sync_a_rename_and_a_sync_of_the_directory() {
    let dir = quick_dir();
    let (cache, storage) = faulty(dir.path());
    assert!(cache.read().unwrap().is_empty());
    assert_eq!(storage.journal(), [""; 0], "looking touches nothing");
    cache.put(&header("a"), &rows(1)).unwrap();
    let write = [
        "lock $/storages/session_projcache.json.lock",
        "create TMP",
        "write",
        "sync",
        "rename $/storages/session_projcache.json",
        "syncdir $/storages",
    ];
    let made = ["mkdir $/storages", "syncdir $"];
    assert_eq!(storage.journal(), [&made[..], &write[..]].concat());
    cache.put(&header("b"), &rows(1)).unwrap();
    assert_eq!(storage.journal(), [&made[..1], &write[..]].concat());
    cache.put(&header("b"), &rows(1)).unwrap();
    let unchanged = storage.journal();
    assert!(
        !unchanged.iter().any(|op| op == "create TMP"),
        "{unchanged:?}"
    );
    cache.remove("a").unwrap();
    assert_eq!(cache.read().unwrap().len(), 1);
    storage.journal();
    cache.remove("a").unwrap();
    assert_eq!(storage.journal(), [""; 0]);
}

#[test]
fn whatever_fails_the_file_is_the_old_one_or_the_new_one_and_the_next_write_works() {
    for op in [
        "mkdir", "lock", "create", "write", "sync", "rename", "syncdir",
    ] {
        let dir = quick_dir();
        let (cache, storage) = faulty(dir.path());
        if op != "mkdir" {
            cache.put(&header("a"), &rows(1)).unwrap();
        }
        let before = std::fs::read(path(dir.path())).ok();
        storage.fail(op, 0, io::ErrorKind::StorageFull);
        let error = cache.put(&header("a"), &rows(2)).unwrap_err();
        assert_eq!(error.code(), "STORE_IO", "{op}");
        let left = std::fs::read(path(dir.path())).ok();
        // Only the names of a directory that cannot be synced may be new already.
        assert_eq!(left == before, op != "syncdir", "{op}");
        let names = std::fs::read_dir(dir.path().join(CACHE_DIR));
        let names = names
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().file_name());
        assert!(
            !names
                .into_iter()
                .any(|name| name.to_string_lossy().ends_with(".tmp")),
            "{op}"
        );
        cache.put(&header("a"), &rows(3)).unwrap();
        assert_eq!(cache.rows(&header("a")).unwrap(), Some(rows(3)), "{op}");
    }
}

#[test]
fn a_temporary_file_of_a_dead_writer_is_in_nobodys_way() {
    let dir = quick_dir();
    let cache = ProjectionCache::open(dir.path()).unwrap();
    cache.put(&header("a"), &rows(1)).unwrap();
    let tmp = dir.path().join(CACHE_DIR).join(format!("{CACHE_FILE}.tmp"));
    std::fs::write(&tmp, "{\"unit\":").unwrap();
    cache.put(&header("b"), &rows(1)).unwrap();
    assert!(!tmp.exists());
    assert_eq!(cache.read().unwrap().len(), 2);
}

#[test]
fn a_file_of_another_version_is_refused_and_left_alone() {
    let dir = quick_dir();
    let cache = ProjectionCache::open(dir.path()).unwrap();
    cache.put(&header("a"), &rows(1)).unwrap();
    let text = std::fs::read_to_string(path(dir.path())).unwrap();
    let newer = text.replace("\"version\": 3", "\"version\": 4");
    std::fs::write(path(dir.path()), &newer).unwrap();
    let Err(error) = ProjectionCache::open(dir.path()) else {
        panic!("opened");
    };
    assert_eq!(error.code(), "PROJECTION_CACHE_UNUSABLE");
    assert!(error.to_string().contains("version is 4"), "{error}");
    assert!(cache.put(&header("a"), &rows(2)).is_err());
    assert_eq!(std::fs::read_to_string(path(dir.path())).unwrap(), newer);
}

#[test]
fn a_writer_waits_for_the_one_before_it() {
    let dir = quick_dir();
    let (cache, storage) = faulty(dir.path());
    cache.put(&header("a"), &rows(1)).unwrap();
    let held = cache.lock().unwrap();
    storage.journal();
    let other = cache.clone();
    let waiting = std::thread::spawn(move || other.put(&header("a"), &rows(2)));
    let tried = |op: &String| op.starts_with("lock");
    while !storage.journal().iter().any(tried) && !waiting.is_finished() {
        std::thread::yield_now();
    }
    assert_eq!(cache.rows(&header("a")).unwrap(), Some(rows(1)));
    drop(held);
    waiting.join().unwrap().unwrap();
    assert_eq!(cache.rows(&header("a")).unwrap(), Some(rows(2)));
}

const WRITES: u64 = 60;

/// One of the processes of [`two_processes_lose_no_record`].
#[test]
#[ignore = "run as a child of another test"]
fn child_that_writes_records() {
    let (Some(home), Some(name)) = (
        std::env::var_os("CACHE_HOME"),
        std::env::var("CACHE_NAME").ok(),
    ) else {
        return;
    };
    let cache = ProjectionCache::open(Path::new(&home)).unwrap();
    for seq in 0..WRITES {
        cache
            .put(&header(&format!("{name}-{}", seq % 7)), &rows(seq))
            .unwrap();
        cache.put(&header("shared"), &rows(seq)).unwrap();
        cache.read().unwrap();
    }
}

#[test]
fn two_processes_lose_no_record() {
    let dir = quick_dir();
    let child = |name: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", "--ignored", "--nocapture"])
            .arg("projcache::projcache_tests::child_that_writes_records")
            .env("CACHE_HOME", dir.path())
            .env("CACHE_NAME", name);
        command.stdout(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut children = [child("one"), child("two")];
    for child in &mut children {
        assert!(child.wait().unwrap().success());
    }
    let records = ProjectionCache::open(dir.path()).unwrap().read().unwrap();
    assert_eq!(records.len(), 15);
    for name in ["one", "two"] {
        for at in 0..7 {
            let last = (0..WRITES).rfind(|seq| seq % 7 == at).unwrap();
            let id = format!("{name}-{at}");
            assert_eq!(records.rows(&header(&id)), Some(rows(last)), "{id}");
        }
    }
    assert_eq!(records.rows(&header("shared")), Some(rows(WRITES - 1)));
}
