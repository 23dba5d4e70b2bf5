use std::fs;

use dsh_session::{Draft, Header, Json, Kind, Seq, Session, Target as List};

use super::*;
use crate::storage::Disk;
use crate::testing::quick_dir;
use crate::{Store, StoreConfig, Target};

fn store(root: &Path) -> Store {
    Store::open(StoreConfig::new(root)).unwrap()
}

fn data(text: &str) -> Json {
    Json::normalise(text).unwrap()
}

fn user(turn: u64, source: &str) -> Draft {
    let text = format!(
        r#"{{"content":[{{"type":"text","text":"prompt {turn}"}}],"source":{source},"role":"user","id":"u{turn}"}}"#
    );
    Draft::new(Kind::UserMessage, data(&text)).append()
}

/// One turn, with something of everything that a fold keeps.
fn turn(session: &mut Session, turn: u64) -> Vec<Arc<Event>> {
    let from = session.next_seq();
    let inbox = session.inbox().unwrap();
    let mut put = |draft| session.append(draft, 1000 + turn as i64).unwrap().seq;
    put(Draft::new(
        Kind::TurnStart,
        data(&format!(r#"{{"turn":{turn}}}"#)),
    ));
    let note = data(&format!(r#"{{"id":"m{turn}","text":"later"}}"#));
    put(inbox.push(List::NextStep, note).unwrap().draft());
    if turn.is_multiple_of(3) {
        let clear = r#"{"target":"next-step","start":0,"removedCount":1,"inserted":[]}"#;
        put(Draft::new(Kind::InboxSpliced, data(clear)));
    }
    put(Draft::new(
        Kind::StepStart,
        data(&format!(r#"{{"turn":{turn},"step":1}}"#)),
    ));
    put(user(turn, r#"{"kind":"user"}"#));
    let told = put(user(1000 + turn, r#"{"kind":"plugin","plugin":"acme"}"#));
    for word in 0..30 {
        let chunk = format!(
            r#"{{"turn":{turn},"step":1,"chunk":{{"type":"text-delta","index":0,"text":" w{word}-{turn}"}}}}"#
        );
        put(Draft::new(Kind::AssistantChunk, data(&chunk)));
    }
    let id = format!("c{turn}");
    let said = format!(
        r#"{{"turn":{turn},"step":1,"message":{{"role":"assistant","content":[{{"type":"tool-call","id":"{id}","name":"t","arguments":"{{}}"}}],"source":{{"kind":"model","provider":"p","model":"m"}},"id":"a{turn}"}}}}"#
    );
    put(Draft::new(Kind::AssistantMessage, data(&said)).append());
    put(Draft::new(
        Kind::from_name(&format!("acme/{}", turn % 2)),
        Json::null(),
    ));
    if turn % 4 == 1 {
        put(user(2000 + turn, r#"{"kind":"user"}"#)
            .replace(told, told)
            .sources(vec![told]));
    }
    put(Draft::new(
        Kind::StepEnd,
        data(&format!(r#"{{"turn":{turn},"step":1}}"#)),
    ));
    let end = format!(r#"{{"turn":{turn},"reason":{{"kind":"completed"}}}}"#);
    put(Draft::new(Kind::TurnEnd, data(&end)));
    session.live_from(from).to_vec()
}

/// A log of so many turns, in many frames, and its path.
fn written(root: &Path, id: &str, turns: u64) -> PathBuf {
    let mut session = Session::new(Header::new(id, 5)).unwrap();
    let store = store(root);
    let writer = store.create(&session).unwrap();
    for count in 1..=turns {
        for event in turn(&mut session, count) {
            writer.enqueue(event).unwrap();
        }
        writer.flush_blocking().unwrap();
    }
    writer.path().to_owned()
}

fn disk() -> Arc<dyn Storage> {
    Arc::new(Disk)
}

/// All that a session shows, as text.
fn shown(session: &mut Session) -> String {
    let kinds = ["acme/0", "acme/1", "acme/2"].map(Kind::from_name);
    let newest: Vec<_> = Kind::KNOWN
        .iter()
        .chain(&kinds)
        .map(|kind| session.last_of(kind).map(|event| event.line()))
        .collect();
    let events: Vec<_> = session
        .log()
        .to_vec()
        .unwrap()
        .iter()
        .map(|e| e.line())
        .collect();
    let inbox = session.inbox().map(|inbox| {
        (
            inbox.list(List::NextStep).to_vec(),
            inbox.list(List::NextTurn).to_vec(),
        )
    });
    format!(
        "{:?}\n{:?}",
        (
            session.surface().nodes().to_vec(),
            session.surface().replace_generation(),
            session.messages().unwrap().to_json(),
            session.digest().unwrap(),
            session.first_live_seq(),
        ),
        (
            newest,
            inbox,
            session.last_from("acme").map(|e| e.seq),
            session.in_turn(),
            events
        )
    )
}

/// The session as it is opened without a checkpoint.
fn whole(path: &Path) -> String {
    let dir = quick_dir();
    let copy = dir.path().join(path.parent().unwrap().file_name().unwrap());
    let copy = dir.path().join("_no-cwd").join(copy.file_name().unwrap());
    fs::create_dir_all(&copy).unwrap();
    fs::copy(path, copy.join(path.file_name().unwrap())).unwrap();
    let id = copy.file_name().unwrap().to_str().unwrap().to_owned();
    let (mut session, _writer) = store(dir.path()).resume(&id, 77).unwrap();
    shown(&mut session)
}

#[test]
fn a_session_reopened_by_its_checkpoint_is_the_one_that_a_full_read_gives() {
    let dir = quick_dir();
    let path = written(dir.path(), "s", 12);
    let known = read(&disk(), &path).expect("closing wrote a checkpoint");
    assert_eq!(known.covered, fs::metadata(&path).unwrap().len());
    let mode =
        std::os::unix::fs::MetadataExt::mode(&fs::metadata(path.with_file_name(FILE)).unwrap());
    assert_eq!(mode & 0o777, 0o600);
    let expected = whole(&path);
    let (mut session, writer) = store(dir.path()).resume("s", 77).unwrap();
    assert_eq!(session.log().kept(), 0, "it was not read whole");
    assert_eq!(shown(&mut session), expected);
    // And it goes on: what was appended behind a checkpoint is folded the next time.
    for count in 13..16 {
        for event in turn(&mut session, count) {
            writer.enqueue(event).unwrap();
        }
        writer.flush_blocking().unwrap();
    }
    let old = fs::read(path.with_file_name(FILE)).unwrap();
    drop(writer);
    let new = fs::read(path.with_file_name(FILE)).unwrap();
    assert_ne!(old, new, "the log has grown by enough for a new one");
    let expected = whole(&path);
    for bytes in [old, new] {
        fs::write(path.with_file_name(FILE), bytes).unwrap();
        assert!(read(&disk(), &path).is_some());
        let place = crate::load::Place {
            root: dir.path(),
            id: Some("s"),
        };
        let (_, mut session) = crate::load::reopen(&disk(), &path, place, 77).unwrap();
        assert_eq!(shown(&mut session), expected);
    }
}

#[test]
fn a_checkpoint_with_any_byte_changed_or_missing_is_none() {
    let dir = quick_dir();
    let path = written(dir.path(), "s", 12);
    let sidecar = path.with_file_name(FILE);
    let sound = fs::read(&sidecar).unwrap();
    for at in 0..sound.len() {
        let mut bytes = sound.clone();
        bytes[at] ^= 1 << (at % 8);
        fs::write(&sidecar, &bytes).unwrap();
        assert!(read(&disk(), &path).is_none(), "byte {at}");
        fs::write(&sidecar, &sound[..at]).unwrap();
        assert!(read(&disk(), &path).is_none(), "cut at {at}");
    }
    let expected = whole(&path);
    let (mut session, _writer) = store(dir.path()).resume("s", 77).unwrap();
    assert_eq!(shown(&mut session), expected);
    assert!(
        read(&disk(), &path).is_some(),
        "a full open wrote a new one"
    );
}

/// Bytes of the right hash and shape, and wrong in what they say: no part is believed unread.
#[test]
fn a_checkpoint_that_lies_is_none_or_harmless() {
    let dir = quick_dir();
    let path = written(dir.path(), "s", 12);
    let sidecar = path.with_file_name(FILE);
    let sound = fs::read(&sidecar).unwrap();
    let content = &sound[..sound.len() - 32];
    for at in 16..content.len() {
        for bytes in [
            [&content[..at], &[content[at] ^ 1], &content[at + 1..]].concat(),
            content[..at].to_vec(),
        ] {
            let hash = blake3::hash(&bytes);
            fs::write(&sidecar, [&bytes[..], hash.as_bytes()].concat()).unwrap();
            // Nothing panics, whatever it says.
            let _ = read(&disk(), &path);
        }
    }
}

#[test]
fn a_checkpoint_of_another_file_or_another_time_is_none() {
    let dir = quick_dir();
    let path = written(dir.path(), "s", 12);
    let other = written(dir.path(), "t", 12);
    fs::copy(path.with_file_name(FILE), other.with_file_name(FILE)).unwrap();
    assert!(read(&disk(), &other).is_none(), "of another session");
    // The same bytes in another file.
    let bytes = fs::read(&path).unwrap();
    fs::rename(&path, path.with_file_name("kept")).unwrap();
    fs::write(&path, &bytes).unwrap();
    assert!(read(&disk(), &path).is_none(), "of another inode");
    fs::rename(path.with_file_name("kept"), &path).unwrap();
    assert!(read(&disk(), &path).is_some());
    fs::write(&path, &bytes[..bytes.len() - 1]).unwrap();
    assert!(read(&disk(), &path).is_none(), "the log is shorter");
    let mut changed = bytes.clone();
    *changed.last_mut().unwrap() ^= 1;
    fs::write(&path, &changed).unwrap();
    assert!(
        read(&disk(), &path).is_none(),
        "the log ends with other bytes"
    );
    let torn = [&bytes[..], &[0x28, 0xb5]].concat();
    fs::write(&path, torn).unwrap();
    assert!(read(&disk(), &path).is_none(), "the log has a torn tail");
    let (_, writer) = store(dir.path()).resume("s", 0).unwrap();
    writer.flush_blocking().unwrap();
    assert!(fs::read(&path).unwrap().starts_with(&bytes));
}

#[test]
fn damage_behind_the_back_of_a_checkpoint_is_an_error_where_it_is_read() {
    let dir = quick_dir();
    let path = written(dir.path(), "s", 12);
    let mut bytes = fs::read(&path).unwrap();
    let frames = frame::scan(&bytes).complete;
    let middle = frames[5];
    bytes[(middle.start + middle.end) / 2] ^= 0x10;
    fs::write(&path, &bytes).unwrap();
    let index = read(&disk(), &path)
        .expect("its end still fits")
        .survey
        .index;
    let first = index.frames[4].1;
    let next = index.frames[5].1;
    let (mut session, _writer) = store(dir.path()).resume("s", 0).unwrap();
    for seq in 0..session.next_seq().0 {
        let event = session.event(Seq(seq));
        if (first..next).contains(&seq) {
            assert_eq!(event.unwrap_err().code(), "SESSION_READ_FAILED");
        } else {
            assert_eq!(event.unwrap().unwrap().seq, Seq(seq));
        }
    }
    assert_eq!(
        session.messages().unwrap_err().code(),
        "SESSION_READ_FAILED"
    );
    // A report never believes a checkpoint.
    let found = store(dir.path()).inspect(&Target::Id("s".into())).unwrap();
    assert_eq!(found.damage.unwrap().seq, Some(first));
}

#[test]
fn small_logs_and_readers_leave_no_checkpoint() {
    let dir = quick_dir();
    let path = written(dir.path(), "s", 1);
    assert!(fs::metadata(&path).unwrap().len() < SMALLEST);
    assert!(!path.with_file_name(FILE).exists());
    let path = written(dir.path(), "t", 12);
    fs::remove_file(path.with_file_name(FILE)).unwrap();
    store(dir.path()).inspect(&Target::Id("t".into())).unwrap();
    assert!(!path.with_file_name(FILE).exists());
    // A directory in its place is a failure to write one, which is nothing.
    fs::create_dir(path.with_file_name(FILE)).unwrap();
    drop(store(dir.path()).resume("t", 0).unwrap());
    let litter = fs::read_dir(path.parent().unwrap()).unwrap();
    let names: Vec<_> = litter.map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
}
