use std::fs;

use super::*;
use crate::scan::scan;
use crate::testing::{Faulty, todo_event};

const FULL: io::ErrorKind = io::ErrorKind::StorageFull;

struct Bench {
    dir: tempfile::TempDir,
    disk: Arc<Faulty>,
    log: LogFile,
}

fn bench(compression: Compression) -> Bench {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("root");
    let disk = Faulty::new(&root);
    let mut header = Header::new("s-1", 1_700_000_000_000);
    header.cwd = Some("/work/p".into());
    let log = LogFile::absent(
        disk.clone(),
        &root,
        &header,
        Encoding {
            compression,
            pack: true,
        },
    )
    .unwrap();
    Bench { dir, disk, log }
}

fn events(range: std::ops::Range<u64>) -> Vec<Arc<Event>> {
    range.map(todo_event).collect()
}

impl Bench {
    fn stored(&self) -> u64 {
        let bytes = fs::read(self.log.path()).unwrap();
        let scanned = scan(&bytes, Compression::of(self.log.path())).unwrap();
        assert_eq!((scanned.torn, scanned.damage), (None, None));
        scanned.stored.len() as u64
    }

    fn names(&self) -> Vec<String> {
        let dir = self.log.path().parent().unwrap();
        let mut names: Vec<_> = fs::read_dir(dir)
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

#[test]
fn the_first_batch_is_published_in_the_order_that_survives() {
    let mut b = bench(Compression::Zstd);
    b.log.write(&events(0..2)).unwrap();
    let dir = "$/--work-p--/s-1";
    let expected = [
        "mkdir outside".to_owned(),
        "syncdir outside".to_owned(),
        "mkdir $".to_owned(),
        "syncdir outside".to_owned(),
        "mkdir $/--work-p--".to_owned(),
        "syncdir $".to_owned(),
        format!("mkdir {dir}"),
        "syncdir $/--work-p--".to_owned(),
        format!("lock {dir}/lock"),
        "create TMP".to_owned(),
        "write".to_owned(),
        "sync".to_owned(),
        format!("link {dir}/session.jsonl.zstd"),
        format!("syncdir {dir}"),
        "unlink TMP".to_owned(),
    ];
    assert_eq!(b.disk.journal(), expected);
    assert_eq!(b.stored(), 2);
    assert_eq!(b.names(), ["lock", "session.jsonl.zstd"]);
    b.log.write(&events(2..3)).unwrap();
    assert_eq!(
        b.disk.journal(),
        [
            format!("append {dir}/session.jsonl.zstd"),
            "write".to_owned(),
            "sync".to_owned()
        ]
    );
    assert_eq!(b.stored(), 3);
}

#[test]
fn a_full_disk_on_append_is_rolled_back_and_the_batch_can_be_written_again() {
    for compression in [Compression::None, Compression::Zstd] {
        for (op, after) in [
            ("write", 0),
            ("write", 1),
            ("write", 20),
            ("sync", 0),
            ("append", 0),
        ] {
            let mut b = bench(compression);
            b.log.write(&events(0..2)).unwrap();
            let before = fs::read(b.log.path()).unwrap();
            b.disk.fail(op, after, FULL);
            let e = b.log.write(&events(2..5)).unwrap_err();
            assert!(
                e.is_transient() && e.to_string().contains("session.jsonl"),
                "{e}"
            );
            assert_eq!(
                fs::read(b.log.path()).unwrap(),
                before,
                "{op} after {after}"
            );
            b.log.write(&events(2..6)).unwrap();
            assert_eq!(b.stored(), 6);
        }
    }
}

#[test]
fn a_failed_roll_back_is_made_good_by_the_next_write() {
    let mut b = bench(Compression::None);
    b.log.write(&events(0..2)).unwrap();
    let before = fs::metadata(b.log.path()).unwrap().len();
    b.disk.fail("write", 11, FULL);
    b.disk.fail("truncate", 0, io::ErrorKind::Other);
    let e = b.log.write(&events(2..3)).unwrap_err();
    assert!(matches!(e, StoreError::Rollback { .. }), "{e}");
    assert_eq!(fs::metadata(b.log.path()).unwrap().len(), before + 11);
    b.log.write(&events(2..4)).unwrap();
    assert_eq!(b.stored(), 4);
}

#[test]
fn a_failed_publish_leaves_nothing_but_the_lock_and_can_be_tried_again() {
    for (op, after) in [
        ("mkdir", 0),
        ("syncdir", 0),
        ("lock", 0),
        ("create", 0),
        ("write", 30),
        ("sync", 0),
        ("link", 0),
    ] {
        let mut b = bench(Compression::Zstd);
        b.disk.fail(op, after, FULL);
        b.log.write(&events(0..2)).unwrap_err();
        assert!(!b.log.path().exists(), "{op}");
        b.log.write(&events(0..3)).unwrap();
        assert_eq!(b.stored(), 3, "{op}");
        assert_eq!(b.names(), ["lock", "session.jsonl.zstd"], "{op}");
    }
}

#[test]
fn a_published_name_that_is_not_durable_yet_is_not_written_twice() {
    let mut b = bench(Compression::Zstd);
    // Directories are synced four times before the lock is taken; the fifth time is behind the link.
    b.disk.fail_nth("syncdir", 5, io::ErrorKind::Other);
    b.log.write(&events(0..2)).unwrap_err();
    assert!(b.log.path().exists());
    b.log.write(&events(0..3)).unwrap();
    assert_eq!(b.stored(), 3);
    assert_eq!(b.names(), ["lock", "session.jsonl.zstd"]);
}

#[test]
fn a_changed_tail_stops_the_writer() {
    type Change = fn(Vec<u8>) -> Option<Vec<u8>>;
    let changes: [(&str, Change); 5] = [
        ("appended", |bytes| Some([&bytes[..], b"{}\n"].concat())),
        ("cut", |bytes| Some(bytes[..50].to_vec())),
        ("last byte", |mut bytes| {
            *bytes.last_mut()? ^= 1;
            Some(bytes)
        }),
        ("emptied", |_| Some(Vec::new())),
        ("removed", |_| None),
    ];
    for (name, change) in changes {
        let mut b = bench(Compression::Zstd);
        b.log.write(&events(0..2)).unwrap();
        match change(fs::read(b.log.path()).unwrap()) {
            Some(bytes) => fs::write(b.log.path(), bytes).unwrap(),
            None => fs::remove_file(b.log.path()).unwrap(),
        }
        let after = fs::read(b.log.path()).ok();
        let e = b.log.write(&events(2..3)).unwrap_err();
        assert!(
            matches!(e, StoreError::TailChanged { .. }) && !e.is_transient(),
            "{name}: {e}"
        );
        assert_eq!(fs::read(b.log.path()).ok(), after, "{name}");
    }
}

#[test]
fn an_existing_log_is_not_published_over() {
    for name in ["session.jsonl", "session.jsonl.zstd"] {
        let mut b = bench(Compression::Zstd);
        let dir = b.log.path().parent().unwrap().to_owned();
        fs::create_dir_all(&dir).unwrap();
        fs::write(dir.join(name), b"somebody else's").unwrap();
        let e = b.log.write(&events(0..2)).unwrap_err();
        assert!(matches!(e, StoreError::AlreadyExists { .. }), "{e}");
        assert_eq!(fs::read(dir.join(name)).unwrap(), b"somebody else's");
    }
}

#[test]
fn directories_are_0700_and_files_0600() {
    use std::os::unix::fs::PermissionsExt;
    let mut b = bench(Compression::None);
    b.log.write(&events(0..1)).unwrap();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(b.log.path()), 0o600);
    let mut dir = b.log.path().parent().unwrap();
    assert_eq!(mode(&dir.join(LOCK_FILE)), 0o600);
    while dir != b.dir.path() {
        assert_eq!(mode(dir), 0o700, "{}", dir.display());
        dir = dir.parent().unwrap();
    }
}

#[test]
fn events_out_of_order_are_refused() {
    let mut b = bench(Compression::None);
    let e = b.log.write(&events(1..2)).unwrap_err();
    assert!(
        matches!(
            e,
            StoreError::Sequence {
                expected: 0,
                got: 1,
                ..
            }
        ),
        "{e}"
    );
    assert!(!b.dir.path().join("root").exists());
}
