use std::io;

use dsh_session::{Header, Session};

use super::*;
use crate::testing::{Faulty, quick_dir, todo_event};
use crate::{Store, StoreConfig, Target};

fn empty(id: &str) -> Session {
    Session::new(Header::new(id, 1)).unwrap()
}

/// A store whose window never passes, so that only barriers write.
fn slow(root: &Path) -> StoreConfig {
    StoreConfig {
        write_batch_max_delay: Duration::from_secs(3600),
        ..StoreConfig::new(root)
    }
}

fn count(store: &Store, id: &str) -> u64 {
    let found = store.inspect(&Target::Id(id.into())).unwrap();
    assert_eq!((found.damage, found.torn), (None, None));
    found.log.len()
}

#[tokio::test]
async fn a_flush_says_durable_and_an_enqueue_does_not() {
    let dir = quick_dir();
    let store = Store::open(slow(dir.path())).unwrap();
    let writer = store.create(&empty("a")).unwrap();
    writer.enqueue(todo_event(0)).unwrap();
    writer.enqueue(todo_event(1)).unwrap();
    assert_eq!(writer.durable_seq().0, 0);
    assert!(!writer.path().exists());
    writer.flush().await.unwrap();
    assert_eq!(writer.durable_seq().0, 2);
    assert_eq!(count(&store, "a"), 2);
}

#[test]
fn a_window_that_passes_writes_by_itself() {
    let dir = quick_dir();
    let config = StoreConfig {
        write_batch_max_delay: Duration::from_millis(1),
        ..StoreConfig::new(dir.path())
    };
    let disk = Faulty::new(dir.path());
    let store = Store::with_storage(config, disk.clone()).unwrap();
    let writer = store.create(&empty("a")).unwrap();
    for seq in 0..20 {
        writer.enqueue(todo_event(seq)).unwrap();
        disk.wait_for_syncs(usize::try_from(seq).unwrap() + 1);
    }
    writer.flush_blocking().unwrap();
    assert_eq!(count(&store, "a"), 20);
}

#[tokio::test]
async fn many_sessions_share_the_threads() {
    let dir = quick_dir();
    let store = Store::open(slow(dir.path())).unwrap();
    let writers: Vec<_> = (0..40)
        .map(|i| store.create(&empty(&format!("s-{i}"))).unwrap())
        .collect();
    for seq in 0..3 {
        for writer in &writers {
            writer.enqueue(todo_event(seq)).unwrap();
        }
        let flushes: Vec<_> = writers.iter().map(Writer::flush).collect();
        for flush in flushes {
            flush.await.unwrap();
        }
    }
    assert_eq!(
        store
            .list()
            .unwrap()
            .iter()
            .filter(|e| e.header.is_ok())
            .count(),
        40
    );
    assert!((0..40).all(|i| count(&store, &format!("s-{i}")) == 3));
}

#[tokio::test]
async fn a_full_disk_loses_nothing_and_the_hook_hears_of_it() {
    let dir = quick_dir();
    let disk = Faulty::new(dir.path());
    let (tell, mut heard) = tokio::sync::mpsc::unbounded_channel();
    let config = StoreConfig {
        write_batch_max_delay: Duration::from_millis(1),
        on_failure: Some(Arc::new(move |id, e| {
            tell.send(format!("{id}: {e}")).unwrap();
        })),
        ..StoreConfig::new(dir.path())
    };
    let store = Store::with_storage(config, disk.clone()).unwrap();
    let writer = store.create(&empty("a")).unwrap();
    writer.enqueue(todo_event(0)).unwrap();
    writer.flush().await.unwrap();

    disk.fail("write", 7, io::ErrorKind::StorageFull);
    writer.enqueue(todo_event(1)).unwrap();
    assert!(
        heard
            .recv()
            .await
            .unwrap()
            .starts_with("a: cannot append to")
    );
    assert_eq!(writer.paused().unwrap().code(), "STORE_IO");
    assert_eq!(count(&store, "a"), 1);

    // Space is still missing when a barrier asks; then it is back.
    disk.fail("sync", 0, io::ErrorKind::StorageFull);
    let e = writer.flush().await.unwrap_err();
    assert!(e.to_string().contains("append to"), "{e}");
    writer.enqueue(todo_event(2)).unwrap();
    writer.flush().await.unwrap();
    assert!(writer.paused().is_none());
    assert_eq!(count(&store, "a"), 3);
    assert!(
        heard.try_recv().is_err(),
        "a barrier's failure is the barrier's to tell"
    );
}

#[tokio::test]
async fn a_log_changed_by_somebody_else_stops_its_writer_for_good() {
    let dir = quick_dir();
    let store = Store::open(slow(dir.path())).unwrap();
    let writer = store.create(&empty("a")).unwrap();
    writer.enqueue(todo_event(0)).unwrap();
    writer.flush().await.unwrap();
    let bytes = std::fs::read(writer.path()).unwrap();
    std::fs::write(writer.path(), [&bytes[..], &bytes[..]].concat()).unwrap();
    writer.enqueue(todo_event(1)).unwrap();
    assert_eq!(
        writer.flush().await.unwrap_err().code(),
        "SESSION_TAIL_CHANGED"
    );
    assert_eq!(
        writer.enqueue(todo_event(2)).unwrap_err().code(),
        "SESSION_TAIL_CHANGED"
    );
    assert_eq!(
        writer.flush().await.unwrap_err().code(),
        "SESSION_TAIL_CHANGED"
    );
}

#[test]
fn dropping_a_writer_writes_what_is_queued_and_gives_the_lock_back() {
    let dir = quick_dir();
    let store = Store::open(slow(dir.path())).unwrap();
    let writer = store.create(&empty("a")).unwrap();
    writer.enqueue(todo_event(0)).unwrap();
    drop(writer);
    assert_eq!(count(&store, "a"), 1);
    let (session, writer) = store.resume("a", 5).unwrap();
    assert_eq!(store.resume("a", 5).err().unwrap().code(), "SESSION_LOCKED");
    assert_eq!(
        session.next_seq().0,
        2,
        "end-seed is the session's first new event"
    );
    drop(writer);
    // It outlives its store, too.
    let (session, writer) = store.resume("a", 5).unwrap();
    drop(store);
    assert_eq!(
        session.next_seq().0,
        2,
        "reopening an untouched session does not grow it"
    );
    writer.enqueue(todo_event(2)).unwrap();
    drop(writer);
    let store = Store::open(StoreConfig::new(dir.path())).unwrap();
    assert_eq!(count(&store, "a"), 3);
}

#[tokio::test]
async fn a_closed_writer_takes_nothing_more() {
    let dir = quick_dir();
    let store = Store::open(slow(dir.path())).unwrap();
    let writer = store.create(&empty("a")).unwrap();
    writer.enqueue(todo_event(0)).unwrap();
    writer.close().await.unwrap();
    assert_eq!(
        writer.enqueue(todo_event(1)).unwrap_err().code(),
        "SESSION_WRITER_CLOSED"
    );
    assert_eq!(
        writer.flush().await.unwrap_err().code(),
        "SESSION_WRITER_CLOSED"
    );
    store.resume("a", 5).unwrap();
}

#[test]
fn an_event_out_of_order_is_refused() {
    let dir = quick_dir();
    let store = Store::open(slow(dir.path())).unwrap();
    let writer = store.create(&empty("a")).unwrap();
    assert_eq!(
        writer.enqueue(todo_event(1)).unwrap_err().code(),
        "SESSION_SEQUENCE"
    );
    writer.enqueue(todo_event(0)).unwrap();
    assert_eq!(
        writer.enqueue(todo_event(0)).unwrap_err().code(),
        "SESSION_SEQUENCE"
    );
}
