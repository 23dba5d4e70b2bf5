use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::conformance::sha256;
use crate::storage::Disk;
use crate::storage::Storage;
use crate::testing::{Faulty, quick_dir};
use crate::{Compression, Lost, Store, StoreConfig, StoreError, Target, frame};

const HEADER: &str =
    r#"{"type":"session","version":0,"id":"s","createdAt":5,"cwd":"/w","delegationDepth":0}"#;

/// Two turns, the second one open; `fault` is what its last line is.
fn lines(fault: &str) -> [String; 5] {
    [
        r#"{"type":"turn/start","seq":0,"time":10,"data":{"turn":1}}"#.to_owned(),
        r#"{"type":"turn/end","seq":1,"time":11,"data":{"turn":1,"reason":{"kind":"completed"}}}"#
            .to_owned(),
        r#"{"type":"turn/start","seq":2,"time":12,"data":{"turn":2}}"#.to_owned(),
        fault.to_owned(),
        r#"{"type":"turn/end","seq":4,"time":13,"data":{"turn":2,"reason":{"kind":"completed"}}}"#
            .to_owned(),
    ]
}

/// A required event that nobody knows, an event that continues nothing, and a line that is none.
const FAULTS: [&str; 3] = [
    r#"{"type":"acme/new","seq":3,"time":13,"data":{}}"#,
    r#"{"type":"step/start","seq":9,"time":13,"data":{"turn":2,"step":1}}"#,
    "not json",
];

const CLOSER: &str =
    r#"{"type":"turn/end","seq":3,"time":12,"data":{"turn":2,"reason":{"kind":"interrupted"}}}"#;

fn encoded(compression: Compression, fault: &str) -> Vec<u8> {
    let header = format!("{HEADER}\n");
    let body = lines(fault).join("\n") + "\n";
    match compression {
        Compression::None => (header + &body).into_bytes(),
        Compression::Zstd => [header, body]
            .iter()
            .flat_map(|text| frame::encode(text.as_bytes()).unwrap())
            .collect(),
    }
}

fn plain(compression: Compression, bytes: &[u8]) -> String {
    let bytes = match compression {
        Compression::None => bytes.to_vec(),
        Compression::Zstd => frame::scan(bytes)
            .complete
            .iter()
            .flat_map(|f| frame::decode(&bytes[f.start..f.end], usize::MAX).unwrap())
            .collect(),
    };
    String::from_utf8(bytes).unwrap()
}

fn place(root: &Path, compression: Compression, bytes: &[u8]) -> PathBuf {
    let dir = root.join("--w--/s");
    fs::create_dir_all(&dir).unwrap();
    let path = dir.join(compression.file_name());
    fs::write(&path, bytes).unwrap();
    path
}

fn store(root: &Path, compression: Compression, storage: Arc<dyn Storage>) -> Store {
    let config = StoreConfig {
        compression,
        ..StoreConfig::new(root)
    };
    Store::with_storage(config, storage).unwrap()
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn the_sound_prefix_is_closed_and_the_original_is_kept() {
    for compression in [Compression::None, Compression::Zstd] {
        for fault in FAULTS {
            let root = quick_dir();
            let before = encoded(compression, fault);
            let path = place(root.path(), compression, &before);
            let dir = path.parent().unwrap();
            let store = store(root.path(), compression, Arc::new(Disk));

            let plan = store.plan_repair("s").unwrap();
            assert_eq!((plan.kept, plan.closers.len()), (3, 1), "{fault}");
            assert_eq!(plan.lost.unwrap().from_seq, 3);
            assert_eq!(names(dir).len(), 1, "a plan writes nothing");
            assert_eq!(fs::read(&path).unwrap(), before);
            assert!(matches!(
                store.resume("s", 1),
                Err(StoreError::Damaged { .. })
            ));

            let done = store.mend("s").unwrap();
            let original = done.original.unwrap();
            assert_eq!(fs::read(&original).unwrap(), before);
            let after = plain(compression, &fs::read(&path).unwrap());
            let kept = lines(fault)[..3].join("\n");
            assert_eq!(after, format!("{HEADER}\n{kept}\n{CLOSER}\n"), "{fault}");

            // It resumes, and what was kept is no session to anybody.
            assert_eq!(store.list().unwrap().len(), 1);
            let (session, writer) = store.resume("s", 20).unwrap();
            assert_eq!(session.last_turn(), 2);
            drop(writer);
            assert!(store.plan_repair("s").unwrap().is_nothing());
            assert_eq!(store.inspect(&Target::File(original)).unwrap().log.len(), 3);
        }
    }
}

#[test]
fn what_is_lost_is_told_in_events_or_in_bytes() {
    let root = quick_dir();
    let store = store(root.path(), Compression::None, Arc::new(Disk));
    place(
        root.path(),
        Compression::None,
        &encoded(Compression::None, FAULTS[0]),
    );
    let unknown = Lost {
        from_seq: 3,
        events: Some(2),
        bytes: None,
    };
    assert_eq!(store.plan_repair("s").unwrap().lost, Some(unknown));
    place(
        root.path(),
        Compression::None,
        &encoded(Compression::None, FAULTS[2]),
    );
    let bytes = lines(FAULTS[2])[3..]
        .iter()
        .map(|l| l.len() as u64 + 1)
        .sum();
    let unreadable = Lost {
        from_seq: 3,
        events: None,
        bytes: Some(bytes),
    };
    assert_eq!(store.plan_repair("s").unwrap().lost, Some(unreadable));
}

#[test]
fn the_new_log_takes_the_name_after_the_old_one_has_another_durably() {
    let root = quick_dir();
    let path = place(
        root.path(),
        Compression::Zstd,
        &encoded(Compression::Zstd, FAULTS[1]),
    );
    let faulty = Faulty::new(root.path());
    let store = store(root.path(), Compression::Zstd, faulty.clone());
    store.mend("s").unwrap();
    let journal = faulty.journal();
    let changes: Vec<&str> = journal
        .iter()
        .map(String::as_str)
        .skip_while(|line| !line.starts_with("create"))
        .collect();
    assert_eq!(
        changes,
        [
            "create $/--w--/s/repairing.zst",
            "write",
            "write",
            "sync",
            "link $/--w--/s/damaged-1.zst",
            "syncdir $/--w--/s",
            "rename $/--w--/s/session.jsonl.zstd",
            "syncdir $/--w--/s",
        ]
    );
    assert!(path.exists());
}

#[test]
fn a_repair_that_fails_anywhere_changes_nothing_and_can_be_done_again() {
    let before = encoded(Compression::Zstd, FAULTS[1]);
    for (op, nth) in [
        ("create", 1),
        ("write", 1),
        ("sync", 1),
        ("link", 1),
        ("syncdir", 1),
        ("rename", 1),
    ] {
        let root = quick_dir();
        let path = place(root.path(), Compression::Zstd, &before);
        let faulty = Faulty::new(root.path());
        let store = store(root.path(), Compression::Zstd, faulty.clone());
        if op == "write" {
            faulty.fail("write", 7, io::ErrorKind::StorageFull);
        } else {
            faulty.fail_nth(op, nth, io::ErrorKind::StorageFull);
        }
        let error = store.mend("s").unwrap_err();
        assert!(matches!(error, StoreError::Io { .. }), "{op}: {error}");
        assert_eq!(fs::read(&path).unwrap(), before, "{op}");
        let left = names(path.parent().unwrap());
        assert!(
            !left.iter().any(|name| name.starts_with("repairing")),
            "{op} {left:?}"
        );
        let original = store.mend("s").unwrap().original.unwrap();
        assert!(original.ends_with("damaged-1.zst"), "{op}: one original");
        assert_eq!(fs::read(original).unwrap(), before);
    }
}

#[test]
fn a_second_repair_keeps_the_first_original() {
    let root = quick_dir();
    let store = store(root.path(), Compression::None, Arc::new(Disk));
    for number in 1..=2 {
        let before = encoded(Compression::None, FAULTS[2]);
        place(root.path(), Compression::None, &before);
        // As a new file: what was replaced is not what the first original is another name of.
        let original = store.mend("s").unwrap().original.unwrap();
        assert!(original.ends_with(format!("damaged-{number}.log")));
    }
}

#[test]
fn a_torn_tail_and_an_open_turn_are_mended_in_place() {
    let root = quick_dir();
    let log = format!("{HEADER}\n{}\n{{\"type\":\"turn", lines("")[0]);
    let path = place(root.path(), Compression::None, log.as_bytes());
    let store = store(root.path(), Compression::None, Arc::new(Disk));
    let plan = store.plan_repair("s").unwrap();
    assert!(plan.damage.is_none() && plan.torn.is_some() && plan.closers.len() == 1);
    assert_eq!(fs::read_to_string(&path).unwrap(), log);
    let done = store.mend("s").unwrap();
    assert_eq!(done.original, None);
    assert_eq!(names(path.parent().unwrap()), ["lock", "session.jsonl"]);
    assert!(store.plan_repair("s").unwrap().is_nothing());
    assert!(store.mend("s").unwrap().is_nothing());
}

#[test]
fn a_log_that_is_being_written_is_left_alone() {
    let root = quick_dir();
    let path = place(
        root.path(),
        Compression::None,
        &encoded(Compression::None, "{}"),
    );
    let store = store(root.path(), Compression::None, Arc::new(Disk));
    let lock = path.with_file_name("lock");
    let held = Disk.try_lock(&lock, "").unwrap().unwrap();
    assert!(matches!(store.mend("s"), Err(StoreError::Locked { .. })));
    assert!(store.plan_repair("s").is_ok());
    drop(held);
    store.mend("s").unwrap();
}

#[test]
fn what_cannot_be_repaired_says_why_and_what_to_do() {
    for (header, code) in [
        (
            HEADER.replace("\"/w\"", "\"/elsewhere\""),
            "SESSION_IDENTITY",
        ),
        (
            HEADER.replace("\"id\":\"s\"", "\"id\":\"t\""),
            "SESSION_IDENTITY",
        ),
        (
            HEADER.replace("\"version\":0", "\"version\":7"),
            "SESSION_FORMAT_UNSUPPORTED",
        ),
        (HEADER.replace("session", "other"), "SESSION_DAMAGED"),
        (
            HEADER.replace("\"cwd\":\"/w\"", "\"cwd\":\"/w\",\"parentSession\":5"),
            "SESSION_DAMAGED",
        ),
    ] {
        let root = quick_dir();
        let before = format!("{header}\n{}\n", lines(FAULTS[2]).join("\n"));
        let path = place(root.path(), Compression::None, before.as_bytes());
        let store = store(root.path(), Compression::None, Arc::new(Disk));
        let error = store.mend("s").unwrap_err();
        assert_eq!(error.code(), code, "{error}");
        assert!(error.to_string().contains("; "), "{error}");
        assert_eq!(store.plan_repair("s").unwrap_err().code(), code);
        assert_eq!(fs::read_to_string(&path).unwrap(), before);
    }
}

#[test]
fn a_report_of_a_damaged_log_is_of_what_is_sound() {
    for fault in FAULTS {
        let root = quick_dir();
        place(
            root.path(),
            Compression::Zstd,
            &encoded(Compression::Zstd, fault),
        );
        let store = store(root.path(), Compression::Zstd, Arc::new(Disk));
        let report = store.report(&Target::Id("s".to_owned())).unwrap();
        let sound: String = lines(fault)[..3].iter().map(|l| l.clone() + "\n").collect();
        let sound = sha256(&sound);
        assert_eq!(report.unpacked_sha256, sound, "{fault}");
        assert_eq!(report.packed_sha256, sound, "{fault}");
    }
}
