//! Any bytes as a stored log (`spec/session.md` §5): they open to a prefix, what repair makes of them opens clean, and
//! repairing once more changes nothing. On a file system in memory.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use dsh_session::{Event, Seq};
use dsh_store::storage::Storage;
use dsh_store::{
    Compression, Damage, DamageClass, Inspection, Only, Store, StoreConfig, StoreError, Target,
    frame,
};
use dsh_torture::memory::Memory;

const ROOT: &str = "/sessions";
const DIR: &str = "/sessions/_no-cwd/s";
const ID: &str = "s";
/// Logs of seeds are of other sessions; a first line that parses is put under this id instead.
const HEADER: &str =
    "{\"type\":\"session\",\"version\":0,\"id\":\"s\",\"createdAt\":5,\"delegationDepth\":0}\n";

/// The first byte says how the others become a file: as they are, plain or of frames; or as lines behind a sound
/// header, plain, or in a frame for each part between bytes FF, with the last one cut.
pub(crate) fn check(bytes: &[u8]) {
    let Some((&kind, rest)) = bytes.split_first() else {
        return;
    };
    let (compression, file) = match kind % 4 {
        0 => (Compression::None, rest.to_vec()),
        1 => (Compression::Zstd, rest.to_vec()),
        2 => (Compression::None, [HEADER.as_bytes(), rest].concat()),
        _ => (Compression::Zstd, framed(rest, usize::from(kind / 4))),
    };
    let memory = Memory::new();
    for dir in [ROOT, "/sessions/_no-cwd", DIR] {
        memory.create_dir(Path::new(dir)).expect("made");
    }
    let path = Path::new(DIR).join(compression.file_name());
    let mut log = memory.create_new(&path).expect("made");
    log.write_all(&file).expect("written");
    drop(log);
    let mut config = StoreConfig::new(ROOT);
    config.compression = compression;
    let store = Store::with_storage(config, Arc::new(memory.clone())).expect("a store");
    stored(&store, &memory, &path, &file);
}

fn framed(text: &[u8], cut: usize) -> Vec<u8> {
    let mut bytes = frame::encode(HEADER.as_bytes()).expect("encoded");
    for part in text.split(|&b| b == 0xff).filter(|part| !part.is_empty()) {
        bytes.extend(frame::encode(part).expect("encoded"));
    }
    bytes.truncate(bytes.len().saturating_sub(cut));
    bytes
}

fn stored(store: &Store, memory: &Memory, path: &Path, file: &[u8]) {
    let id = Target::Id(ID.to_owned());
    let found = match store.inspect(&id) {
        Ok(found) => found,
        Err(StoreError::Damaged { .. }) => {
            assert!(store.resume(ID, 0).is_err() && store.mend(ID).is_err());
            assert_eq!(read(memory, path), file, "a refused log was changed");
            return;
        }
        Err(e) => panic!("inspect: {e}"),
    };
    assert_eq!(read(memory, path), file, "looking changed the log");
    let events = events(&found);
    for (expected, event) in (0..).zip(&events) {
        assert_eq!(event.seq, Seq(expected), "seq is dense");
    }
    let listed = store.list().expect("listed");
    let rows = store.overview(Only::All).expect("listed");
    assert_eq!((listed.len(), rows.len()), (1, 1), "a log is listed");
    assert_eq!(rows[0].events, events.len() as u64);
    // What is asked for by id is another's for another reason.
    let of_another = |damage: &Damage| damage.class == DamageClass::Identity;
    if !found.damage.as_ref().is_some_and(of_another) {
        assert_eq!(rows[0].damage, found.damage, "list and inspection disagree");
    }

    if found.damage.is_some() {
        assert!(found.closers.is_empty(), "closers for a damaged log");
        assert!(store.resume(ID, 0).is_err(), "a damaged log was resumed");
        assert!(store.repair(ID).is_err());
        assert_eq!(read(memory, path), file, "a refused log was changed");
        if store.mend(ID).is_err() {
            assert_eq!(read(memory, path), file, "a refused repair changed the log");
            return;
        }
    } else {
        store.repair(ID).expect("an undamaged log is repaired");
    }
    let mended = store.inspect(&id).expect("a repaired log opens");
    let fault = (&mended.damage, mended.torn, mended.closers.len());
    assert_eq!(fault, (&None, None, 0), "a repaired log is not sound");
    let after = self::events(&mended);
    assert!(after.len() >= events.len(), "repair lost events");
    for (before, after) in events.iter().zip(&after) {
        assert_eq!(before.line(), after.line(), "repair changed an event");
    }
    let closers: Vec<String> = after[events.len()..].iter().map(|e| e.line()).collect();
    if found.damage.is_none() {
        let expected: Vec<String> = found.closers.iter().map(|e| e.line()).collect();
        assert_eq!(closers, expected, "other closers than were announced");
    }
    let bytes = read(memory, path);
    store.repair(ID).expect("repaired twice");
    assert!(store.mend(ID).expect("nothing to do").is_nothing());
    assert_eq!(
        read(memory, path),
        bytes,
        "a second repair changed something"
    );
}

fn events(found: &Inspection) -> Vec<Arc<Event>> {
    let events: Result<_, _> = found.log.events_from(Seq(0)).collect();
    events.expect("what was read can be read again")
}

fn read(memory: &Memory, path: &Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut file = memory.open_read(path).expect("there");
    file.read_to_end(&mut bytes).expect("read");
    bytes
}
