//! A file system that refuses: for a moment, until space returns, or for good.

use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use dsh_session::{Header, Session};
use dsh_store::{Compression, Store, StoreConfig, StoreError, Target};
use dsh_torture::check::{ID, STORE, Setup, events};
use dsh_torture::faults::sweep;
use dsh_torture::memory::{Fault, Faults, Memory};
use dsh_torture::play::Play;

fn setup(compression: Compression) -> Setup {
    Setup {
        compression,
        pack: true,
    }
}

#[test]
fn any_call_may_fail_in_any_way_and_nothing_is_lost() {
    for compression in [Compression::Zstd, Compression::None] {
        let runs = sweep(setup(compression)).unwrap();
        assert!(runs > 1000, "{runs}");
    }
}

fn empty() -> Session {
    let mut header = Header::new(ID, 1);
    header.cwd = Some("/work/p".into());
    Session::new(header).unwrap()
}

#[test]
fn an_outage_is_told_of_once() {
    let memory = Memory::new();
    let told = Arc::new(Mutex::new(Vec::new()));
    let into = told.clone();
    let config = StoreConfig {
        write_batch_max_delay: Duration::from_millis(1),
        on_failure: Some(Arc::new(move |id, e| {
            into.lock().unwrap().push(format!("{id}: {e}"));
        })),
        ..StoreConfig::new(STORE)
    };
    let store = Store::with_storage(config, Arc::new(memory.clone())).unwrap();
    let mut session = empty();
    let mut play = Play::new(1);
    let writer = store.create(&session).unwrap();
    for outage in 1..3 {
        memory.fail(Some(Faults {
            first: 0,
            count: usize::MAX,
            how: Fault::Error(io::ErrorKind::StorageFull),
        }));
        for _ in 0..5 {
            for event in play.append(&mut session, 2) {
                writer.enqueue(event).unwrap();
            }
            while writer.paused().is_none() {
                std::thread::yield_now();
            }
        }
        while told.lock().unwrap().len() < outage {
            std::thread::yield_now();
        }
        memory.fail(None);
        writer.flush_blocking().unwrap();
    }
    drop((writer, store));
    let told = told.lock().unwrap();
    assert_eq!(told.len(), 2, "{told:?}");
}

#[test]
fn where_there_are_no_hard_links_a_session_is_published_all_the_same() {
    for (kind, nor_rename_new) in [
        (io::ErrorKind::PermissionDenied, false),
        (io::ErrorKind::Unsupported, true),
    ] {
        let memory = Memory::new();
        memory.without_links(kind, nor_rename_new);
        let store = setup(Compression::Zstd).store(&memory);
        let mut session = empty();
        let made = Play::new(1).append(&mut session, 5);
        let writer = store.create(&session).unwrap();
        let dir = writer.path().parent().unwrap().to_owned();
        writer.flush_blocking().unwrap();
        let found = store.inspect(&Target::Id(ID.to_owned())).unwrap();
        assert_eq!(events(&found), made);
        let names: Vec<String> = memory.tree().files().into_keys().collect();
        let inside = names
            .iter()
            .filter(|name| Path::new(name).starts_with(&dir));
        assert_eq!(inside.count(), 3, "{names:?}");
    }
}

#[test]
fn where_there_are_no_locks_nothing_is_written() {
    let memory = Memory::new();
    memory.without_locks(io::ErrorKind::Unsupported);
    let store = setup(Compression::Zstd).store(&memory);
    let mut session = empty();
    Play::new(1).append(&mut session, 5);
    let writer = store.create(&session).unwrap();
    let e = writer.flush_blocking().unwrap_err();
    assert!(matches!(e, StoreError::CannotLock { .. }), "{e}");
    assert!(
        e.to_string().contains("no file locks") && !e.is_transient(),
        "{e}"
    );
    assert!(
        !memory
            .tree()
            .files()
            .keys()
            .any(|name| name.contains("session.jsonl"))
    );
    // The next event says so at once.
    let next = Play::new(1).append(&mut session, 1).remove(0);
    assert_eq!(
        writer.enqueue(next).unwrap_err().code(),
        "STORE_CANNOT_LOCK"
    );
}

/// A file system of 64 KiB that fills up and is cleared again.
#[test]
fn a_full_tmpfs_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mount = |arguments: &[&str]| {
        let done = Command::new(arguments[0])
            .args(&arguments[1..])
            .arg(dir.path())
            .output();
        done.is_ok_and(|done| done.status.success())
    };
    if !mount(&[
        "mount",
        "-t",
        "tmpfs",
        "-o",
        "size=64k,mode=700",
        "dsh-torture",
    ]) {
        println!("skipped: this test may not mount a tmpfs here");
        return;
    }
    let filler = dir.path().join("filler");
    let result = std::panic::catch_unwind(|| {
        let store = Store::open(StoreConfig {
            write_batch_max_delay: Duration::from_secs(1000),
            ..StoreConfig::new(dir.path().join("sessions"))
        })
        .unwrap();
        let mut session = empty();
        let mut play = Play::new(3);
        let writer = store.create(&session).unwrap();
        let mut refused = 0;
        for round in 0..60 {
            if round % 20 == 10 {
                // Takes all that is left.
                let _ = std::fs::write(&filler, vec![1; 64 << 10]);
            }
            for event in play.append(&mut session, 12) {
                writer.enqueue(event).unwrap();
            }
            if let Err(e) = writer.flush_blocking() {
                assert!(e.is_transient(), "{e}");
                refused += 1;
                let found = store.inspect(&Target::Id(ID.to_owned())).unwrap();
                assert!(found.damage.is_none() && found.log.len() >= writer.durable_seq().0);
            }
            if round % 20 == 19 {
                let _ = std::fs::remove_file(&filler);
                writer.flush_blocking().unwrap();
            }
        }
        assert!(refused > 0, "it never filled up");
        drop(writer);
        let found = store.inspect(&Target::Id(ID.to_owned())).unwrap();
        assert_eq!(events(&found), session.log().to_vec().unwrap());
    });
    assert!(mount(&["umount"]));
    result.unwrap();
}
