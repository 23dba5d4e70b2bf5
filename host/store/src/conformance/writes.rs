//! `kind: live-write`, `resume` and `adopt`: the bytes that a living session leaves.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use dsh_session::{Draft, Event, Header, Json, Kind, Session};
use serde_json::Value;

use super::*;
use crate::{LOCK_FILE, frame};

fn header(expected: &Value) -> Header {
    let mut line = expected.as_object().unwrap().clone();
    line.insert("type".into(), "session".into());
    line.entry("delegationDepth").or_insert(0.into());
    Header::parse_line(&Value::Object(line).to_string()).unwrap()
}

fn event(value: &Value) -> Arc<Event> {
    Arc::new(Event::parse(&value.to_string()).unwrap())
}

/// The plaintext of each frame, or the one text of a plain file.
fn texts(path: &Path) -> Vec<String> {
    let bytes = fs::read(path).unwrap();
    if Compression::of(path) == Compression::None {
        return vec![String::from_utf8(bytes).unwrap()];
    }
    let frames = frame::scan(&bytes).complete;
    frames
        .iter()
        .map(|f| {
            String::from_utf8(frame::decode(&bytes[f.start..f.end], usize::MAX).unwrap()).unwrap()
        })
        .collect()
}

/// How many events each batch of a case had: what was flushed together.
fn batches(name: &str, expected: &Value) -> Vec<usize> {
    match name {
        // Two flushes in the middle: rows are packed within a batch, and here they do not go on over its edge.
        "live-split-run" => vec![6, 2, 3],
        "live-zstd-turn" => expected["frames"].as_array().unwrap()[1..]
            .iter()
            .map(|f| f["plaintext"].as_str().unwrap())
            .map(|text| if text.contains("turn/start") { 3 } else { 10 })
            .collect(),
        _ => vec![expected["events"].as_array().unwrap().len()],
    }
}

#[test]
fn a_live_session_leaves_upstreams_bytes() {
    let live = of_kind("live-write");
    assert_eq!(live.len(), 9);
    for case in live {
        let name = case["case"].as_str().unwrap();
        let expected = json(name, "expected.json");
        let dir = quick_dir();
        let encoding = compression(&case);
        let store = Store::open(StoreConfig {
            compression: encoding,
            pack_chunks: name != "live-plain-unpacked",
            ..StoreConfig::new(dir.path())
        })
        .unwrap();
        let header = header(&expected["header"]);
        let events: Vec<_> = expected["events"]
            .as_array()
            .unwrap()
            .iter()
            .map(event)
            .collect();
        // Seeded ones begin with the seed and the end-seed event.
        let seeded = events
            .iter()
            .position(|e| event_json(e)["type"] == "session/end-seed");
        let session = match seeded {
            None => Session::new(header).unwrap(),
            Some(end) => {
                Session::with_seed(header, events[..end].to_vec(), events[end].time).unwrap()
            }
        };
        let log = session.log().to_vec().unwrap();
        let queued = log.len();
        assert_eq!(log, &events[..queued], "{name}");
        let writer = store.create(&session).unwrap();
        let path = dir.path().join(expected["path"].as_str().unwrap());
        assert_eq!(writer.path(), path, "{name}");
        let mut at = queued;
        let mut end = 0;
        for batch in batches(name, &expected) {
            end += batch;
            while at < end {
                writer.enqueue(events[at].clone()).unwrap();
                at += 1;
            }
            writer.flush_blocking().unwrap();
            assert_eq!(writer.durable_seq().0, end as u64);
        }
        assert_eq!(path.exists(), expected["exists"] == true, "{name}");
        if !path.exists() {
            assert_eq!(
                fs::read_dir(dir.path()).unwrap().count(),
                0,
                "{name}: something is on disk"
            );
            continue;
        }
        let suffix = if encoding == Compression::Zstd {
            ".zstd"
        } else {
            ""
        };
        let upstream = fs::read(cases().join(name).join(format!("input.jsonl{suffix}"))).unwrap();
        assert_eq!(
            String::from_utf8_lossy(&fs::read(&path).unwrap()),
            String::from_utf8_lossy(&upstream),
            "{name}"
        );
        let mode = |path: &Path| {
            format!(
                "{:o}",
                fs::metadata(path).unwrap().permissions().mode() & 0o777
            )
        };
        assert_eq!(mode(&path), expected["mode"].as_str().unwrap());
        assert_eq!(
            mode(path.parent().unwrap()),
            expected["dirMode"].as_str().unwrap()
        );
        let mut siblings: Vec<_> = fs::read_dir(path.parent().unwrap())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        siblings.retain(|name| name != LOCK_FILE);
        assert_eq!(Value::from(siblings), expected["siblings"], "{name}");
    }
}

#[test]
fn an_interrupted_log_is_closed_resumed_and_continued_with_upstreams_bytes() {
    for case in of_kind("resume") {
        let name = case["case"].as_str().unwrap();
        let expected = json(name, "expected.json");
        let encoding = compression(&case);
        let dir = quick_dir();
        let path = dir.path().join("--work-p--/s-1").join(encoding.file_name());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        let suffix = if encoding == Compression::Zstd {
            ".zstd"
        } else {
            ""
        };
        fs::copy(
            cases().join(name).join(format!("input.jsonl{suffix}")),
            &path,
        )
        .unwrap();
        let store = store(dir.path(), encoding);
        let check = |expected: &Value| {
            let ours: Vec<_> = texts(&path).iter().map(|text| neutral_text(text)).collect();
            match expected {
                Value::String(text) => assert_eq!(ours, std::slice::from_ref(text)),
                frames => assert_eq!(Value::from(ours), *frames),
            }
        };
        store.repair("s-1").unwrap();
        check(&expected["afterPrepare"]);
        let (mut session, writer) = store.resume("s-1", 1_700_000_500_001).unwrap();
        assert_eq!(session.first_live_seq().0, expected["firstLiveSeq"]);
        writer.flush_blocking().unwrap();
        for (kind, data, time) in [
            (Kind::TurnStart, r#"{"turn":2}"#, 1_700_000_500_002),
            (
                Kind::TurnEnd,
                r#"{"turn":2,"reason":{"kind":"completed"}}"#,
                1_700_000_500_003,
            ),
        ] {
            let draft = Draft::new(kind, Json::normalise(data).unwrap());
            writer
                .enqueue(session.append(draft, time).unwrap())
                .unwrap();
        }
        writer.flush_blocking().unwrap();
        check(&expected["afterPublishAndTurn"]);
        let log = session.log().to_vec().unwrap();
        let events: Vec<_> = log.iter().map(|e| event_json(e)).collect();
        assert_eq!(Value::from(events), expected["events"]);
        drop(writer);
        let (again, _writer) = store.resume("s-1", 0).unwrap();
        assert_eq!(again.first_live_seq().0, expected["reopen"]["firstLiveSeq"]);
        assert_eq!(again.next_seq().0, expected["reopen"]["eventCount"]);
    }
}

/// What there is of a log is continued when it is the beginning of the live session, and left alone when not. `create`
/// refuses either.
#[test]
fn a_live_session_takes_over_its_own_stored_log_and_no_other() {
    for case in of_kind("adopt") {
        let name = case["case"].as_str().unwrap();
        let expected = json(name, "expected.json");
        let dir = quick_dir();
        let encoding = compression(&case);
        let path = dir.path().join("--work-p--/s-1").join(encoding.file_name());
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::copy(cases().join(name).join("input.jsonl"), &path).unwrap();
        let before = fs::read_to_string(&path).unwrap();
        let mut header = Header::new("s-1", 1_700_000_000_000);
        header.cwd = Some(case["liveCwd"].as_str().unwrap().into());
        let seed = json(name, "seed.json")
            .as_array()
            .unwrap()
            .iter()
            .map(event)
            .collect();
        let session = Session::with_seed(header, seed, 1_700_000_600_000).unwrap();
        let store = store(dir.path(), encoding);
        let refused = store.create(&session).err().expect(name);
        assert_eq!(refused.code(), "SESSION_ALREADY_EXISTS");
        let adopted = store.adopt(&session);
        if expected["flush"]["ok"] == true {
            let writer = adopted.unwrap_or_else(|e| panic!("{name}: {e}"));
            writer.flush_blocking().unwrap();
            let whole = before.rfind('\n').map_or(0, |end| end + 1);
            let appended = expected["appendedText"].as_str().unwrap();
            let after = fs::read_to_string(&path).unwrap();
            assert_eq!(after, before[..whole].to_owned() + appended, "{name}");
            let live = expected["liveEvents"].as_u64().unwrap();
            assert_eq!(writer.durable_seq().0, live, "{name}");
        } else {
            let e = adopted.err().expect(name);
            assert_eq!(e.code(), "SESSION_COLLISION", "{name}: {e}");
            assert_eq!(fs::read_to_string(&path).unwrap(), before, "{name}");
        }
    }
}

#[test]
fn adopting_what_is_not_stored_creates_it() {
    let dir = quick_dir();
    let store = store(dir.path(), Compression::Zstd);
    let session = Session::with_seed(Header::new("new", 1), Vec::new(), 5).unwrap();
    let writer = store.adopt(&session).unwrap();
    writer.flush_blocking().unwrap();
    assert!(writer.path().exists());
    // In one process, too, there is one writer.
    let second = store.adopt(&session).err().unwrap();
    assert_eq!(second.code(), "SESSION_LOCKED");
}
