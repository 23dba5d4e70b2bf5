//! Whole plain files: decoded, judged, closed, restored, and compared with everything that upstream measured.

use std::path::Path;
use std::sync::Arc;

use dsh_session::{
    ConsumedWork, ErrorClass, Event, Header, Json, Messages, Seq, Session, Stored, Surface,
    SurfaceOp, Value, closers_with, estimate, interpret, interpret_prefix, rows, scan, title,
};
use sha2::{Digest, Sha256};

use crate::cases::{flag, json, member, number, recorded, root, seqs, text};
use crate::sweeps::TOKENS;
use crate::tables::header_json;

/// Refused for where the file lies, which only the store knows.
const IDENTITY: [&str; 3] = ["hdr-id-mismatch", "hdr-cwd-mismatch", "hdr-cwd-number"];

#[test]
fn crafted_files_read_as_upstream_reads_them() {
    let (checked, others) = check_all(&root());
    assert!(checked > 100, "only {checked} cases were found");
    println!("{checked} cases checked, {others} of other kinds");
}

#[test]
fn recorded_files_read_as_upstream_reads_them() {
    match recorded() {
        Some(dir) => println!("{:?} recorded cases checked", check_all(&dir)),
        None => {
            println!(
                "skipped: no recorded cases here, set DSH_SHARED to a directory that has them"
            );
        }
    }
}

fn check_all(dir: &Path) -> (usize, usize) {
    let (mut checked, mut others) = (0, 0);
    let mut cases: Vec<_> = std::fs::read_dir(dir)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    cases.sort();
    for case in cases {
        let name = case.file_name().unwrap().to_string_lossy().into_owned();
        let (input, output) = (case.join("input.jsonl"), case.join("expected.json"));
        if !input.is_file() || !output.is_file() || IDENTITY.contains(&&*name) {
            others += 1;
            continue;
        }
        let expected = json(&output);
        // Cases of kind file have a load; other kinds with an input.jsonl have none.
        if expected.get("loadStored").is_none() {
            others += 1;
            continue;
        }
        let bytes = std::fs::read(&input).unwrap();
        Case {
            name: &name,
            bytes: &bytes,
            expected: expected.value(),
        }
        .check();
        checked += 1;
    }
    (checked, others)
}

struct Case<'a> {
    name: &'a str,
    bytes: &'a [u8],
    expected: Value<'a>,
}

fn sha256(bytes: &str) -> String {
    Sha256::digest(bytes.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn lines(events: &[Stored]) -> String {
    let mut out = String::new();
    for item in events {
        item.write_line(&mut out);
        out.push('\n');
    }
    out
}

fn class_of(error: Value<'_>) -> ErrorClass {
    match text(error, "name").as_str() {
        "SessionFormatUnsupportedError" => ErrorClass::Unsupported,
        _ => ErrorClass::Corrupt,
    }
}

impl Case<'_> {
    fn check(&self) {
        let name = self.name;
        let stored = member(self.expected, "loadStored");
        let scan = match scan::plain(self.bytes) {
            Ok(scan) => scan,
            Err(error) => {
                assert!(!flag(stored, "ok"), "{name}: {error}");
                assert_eq!(
                    error.class(),
                    class_of(member(stored, "error")),
                    "{name}: {error}"
                );
                return;
            }
        };
        assert!(flag(stored, "ok"), "{name}: upstream refuses {stored:?}");
        self.check_decoded(&scan, member(stored, "value"));
        let inspect = member(self.expected, "inspect");
        let result = interpret(&scan.header, &scan.events);
        self.check_read(&scan, result.as_ref().ok());
        let result = result.and_then(|log| {
            // Closers are made before the session judges what is left, as upstream does.
            let mut events = log.events.clone();
            let closers = closers_with(&log.events, TOKENS);
            events.extend(closers.iter().cloned());
            let session = Session::restore(scan.header.clone(), events, 9_999)?;
            Ok((log, closers, session))
        });
        match result {
            Err(error) => {
                assert!(!flag(inspect, "ok"), "{name}: {error}");
                assert_eq!(
                    error.class(),
                    class_of(member(inspect, "error")),
                    "{name}: {error}"
                );
                let (prefix, _) = interpret_prefix(&scan.header, &scan.events);
                if scan.header.check().is_ok() {
                    let kept = Session::salvage(scan.header.clone(), prefix.events, 0).unwrap();
                    assert!(
                        kept.0.first_live_seq().0 <= scan.events.len() as u64,
                        "{name}"
                    );
                }
            }
            Ok((log, closers, mut session)) => {
                assert!(flag(inspect, "ok"), "{name}: upstream refuses {inspect:?}");
                self.check_repair(&scan, &log, &closers, member(inspect, "value"));
                self.check_session(&mut session, &log.events, !closers.is_empty());
                self.check_title(&session);
                self.check_work(&session);
            }
        }
    }

    fn check_decoded(&self, scan: &scan::Scan, want: Value<'_>) {
        let name = self.name;
        assert_eq!(
            scan.events.len() as u64,
            number(want, "eventCount"),
            "{name}"
        );
        let last = scan
            .events
            .last()
            .map(|item| item.seq().0 as f64)
            .unwrap_or(-1.0);
        assert_eq!(
            Some(last),
            member(want, "lastSeq").f64().or(Some(-1.0)),
            "{name}"
        );
        assert_eq!(
            sha256(&lines(&scan.events)),
            text(want, "unpackedSha256"),
            "{name}: unpacked"
        );
        let sound: Vec<Arc<Event>> = scan
            .events
            .iter()
            .filter_map(Stored::event)
            .cloned()
            .collect();
        if sound.len() == scan.events.len() {
            let mut packed = String::new();
            let rows = rows::write_batch(&sound, true, &mut packed);
            assert_eq!(rows as u64, number(want, "packedRows"), "{name}");
            assert_eq!(
                sha256(&packed),
                text(want, "packedSha256"),
                "{name}: packed"
            );
        }
        let torn = member(want, "torn");
        let cut = torn.get("truncateTo").and_then(Value::u64);
        let ours = (scan.committed_bytes < self.bytes.len()).then_some(scan.committed_bytes as u64);
        assert_eq!(ours, cut, "{name}: torn");
        if scan.header.check().is_ok() {
            assert_eq!(
                header_json(&scan.header, true).value(),
                member(want, "meta"),
                "{name}"
            );
        }
    }

    /// Upstream's detached read, which looks neither at envelopes nor at the surface, gives events also of a log that
    /// it refuses; they are then as they were decoded.
    fn check_read(&self, scan: &scan::Scan, log: Option<&dsh_session::Interpreted>) {
        let (name, read) = (self.name, member(self.expected, "readFrom0"));
        if !flag(read, "ok") {
            assert!(
                log.is_none() || scan.header.check().is_err(),
                "{name}: {read:?}"
            );
            return;
        }
        let text = match log {
            Some(log) => log.events.iter().map(|event| event.line() + "\n").collect(),
            None => lines(&scan.events),
        };
        let want = member(read, "value");
        assert_eq!(
            scan.events.len() as u64,
            number(want, "eventCount"),
            "{name}"
        );
        assert_eq!(
            sha256(&text),
            self::text(want, "sha256"),
            "{name}: read from 0"
        );
    }

    fn check_repair(
        &self,
        scan: &scan::Scan,
        log: &dsh_session::Interpreted,
        closers: &[Arc<Event>],
        inspect: Value<'_>,
    ) {
        let name = self.name;
        let total = (log.events.len() + closers.len()) as u64;
        assert_eq!(total, number(inspect, "eventCount"), "{name}");
        let got: Vec<String> = closers.iter().map(|event| event.line()).collect();
        let want: Vec<&str> = member(self.expected, "closers")
            .items()
            .map(Value::as_str)
            .collect();
        assert_eq!(got, want, "{name}");
        assert_eq!(
            !log.migrated.is_empty(),
            flag(self.expected, "migrated"),
            "{name}"
        );
        let migrated = log
            .migrated
            .iter()
            .map(|seq| log.events[seq.0 as usize].line());
        let want = self.expected.get("migratedEvents");
        let want = want
            .into_iter()
            .flat_map(Value::items)
            .map(|event| event.as_str().to_owned());
        assert!(
            migrated.clone().eq(want.clone()),
            "{name}: {:?}",
            migrated.collect::<Vec<_>>()
        );
        if flag(member(self.expected, "afterLoad"), "changed") {
            let mut appended = String::new();
            rows::write_batch(closers, true, &mut appended);
            let after = member(self.expected, "afterLoad");
            assert_eq!(appended, text(after, "appendedText"), "{name}");
            if closers.is_empty() {
                assert_eq!(
                    scan.committed_bytes as u64,
                    number(after, "bytes"),
                    "{name}"
                );
            }
        }
    }

    fn check_session(&self, session: &mut Session, stored: &[Arc<Event>], closed: bool) {
        let name = self.name;
        let want = member(member(self.expected, "session"), "value");
        assert_eq!(
            header_json(session.header(), true).value(),
            member(want, "header"),
            "{name}"
        );
        assert_eq!(
            session.first_live_seq().0,
            number(want, "firstLiveSeq"),
            "{name}"
        );
        assert_eq!(session.next_seq().0, number(want, "eventCount"), "{name}");
        let ended = session.next_seq() > session.first_live_seq();
        assert_eq!(ended, flag(want, "endSeedAppended"), "{name}");
        let last = session.last().map_or("", |event| event.kind.as_str());
        assert_eq!(last, text(want, "lastType"), "{name}");
        assert_eq!(
            seqs(session.surface().nodes()).value(),
            member(want, "nodes"),
            "{name}"
        );
        let generation = session.surface().replace_generation();
        assert_eq!(generation, number(want, "replaceGeneration"), "{name}");
        let messages = session.messages().unwrap();
        assert_eq!(
            messages.to_json().value(),
            member(want, "messages"),
            "{name}"
        );
        assert_eq!(messages.len(), messages.iter().count(), "{name}");
        if !closed {
            // The estimates of closed logs depend on the length of the repair sentences.
            let got = messages
                .iter()
                .map(|message| Some(estimate::message(message.value())));
            assert!(
                got.eq(member(want, "messageTokens").items().map(Value::u64)),
                "{name}"
            );
        }
        let header = session
            .request_header()
            .map_or(Json::null(), |header| header.json().clone());
        assert_eq!(header.value(), member(want, "requestHeader"), "{name}");
        let context = session
            .request_context()
            .map_or(Json::null(), |context| context.data());
        assert!(
            context.value().same(member(want, "requestContext")),
            "{name}"
        );
        assert_eq!(
            replacements(session).value(),
            member(want, "replacements"),
            "{name}"
        );
        check_increments(name, session.header(), stored, &messages, closed);
    }

    fn check_work(&self, session: &Session) {
        let name = self.name;
        let Some(want) = self
            .expected
            .path(&["projections", "consumedWork", "value"])
        else {
            return;
        };
        let work = ConsumedWork::of(&stored_part(session));
        let end = work.end.map(|seq| seq.0);
        assert_eq!(end, member(want, "endSeq").u64(), "{name}");
        assert_eq!(work.dropped_unrun, flag(want, "droppedUnrun"), "{name}");
    }

    fn check_title(&self, session: &Session) {
        let name = self.name;
        let Some(want) = self.expected.path(&["projections", "title", "value"]) else {
            return;
        };
        let log = stored_part(session);
        let mut titles = title::Titles::default();
        log.iter().for_each(|event| titles.fold(event));
        let prompts = titles.prompts();
        assert_eq!(prompts.len() as u64, number(want, "eligible"), "{name}");
        let fallback = prompts
            .first()
            .map(|prompt| title::fallback(&prompt.text, 5, 40));
        let wanted = want.get("fallback5words40bytes").and_then(Value::text);
        assert_eq!(fallback.as_deref(), wanted.as_deref(), "{name}");
        let snapshot = titles.snapshot();
        assert_eq!(snapshot.value(), member(want, "snapshot"), "{name}");
    }
}

/// The events that were there before the session lived.
fn stored_part(session: &Session) -> Vec<Arc<Event>> {
    let mut events = session.log().to_vec().unwrap();
    events.truncate(session.first_live_seq().0 as usize);
    events
}

/// What each replace took off the surface, found by folding again.
fn replacements(session: &Session) -> Json {
    let mut surface = Surface::default();
    Json::array(|a| {
        for event in &session.log().to_vec().unwrap() {
            let before = surface.nodes().to_vec();
            surface.push(event, |seq| session.event(seq)).unwrap();
            let Some(SurfaceOp::Replace { start, end }) = event.surface_op else {
                continue;
            };
            let at = |seq: Seq| before.iter().position(|node| *node == seq).unwrap();
            a.object(|o| {
                o.u64("seq", event.seq.0)
                    .u64("start", start.0)
                    .u64("end", end.0);
                let shadowed = seqs(&before[at(start)..=at(end)]);
                o.json("shadowedSeqs", &shadowed);
            });
        }
    })
}

/// Appending one by one, looking at the messages each time, comes to the same list and digest as restoring at once.
fn check_increments(
    name: &str,
    header: &Header,
    stored: &[Arc<Event>],
    restored: &Messages,
    closed: bool,
) {
    let mut live = Session::new(header.clone()).unwrap();
    let mut seen = live.messages().unwrap();
    for event in stored {
        let before = (seen.digest(), seen.to_json());
        let draft = dsh_session::Draft {
            kind: event.kind.clone(),
            data: event.data.clone(),
            surface_op: event.surface_op,
            source_event_seqs: event.source_event_seqs.as_ref().map(|seqs| seqs.to_vec()),
            ignorable: event.ignorable,
        };
        live.append(draft, event.time).unwrap();
        let now = live.messages().unwrap();
        assert_eq!(
            (seen.digest(), seen.to_json()),
            before,
            "{name}: a snapshot stays as it was"
        );
        assert_eq!(
            now.digest() == seen.digest(),
            now.to_json() == before.1,
            "{name}"
        );
        seen = now;
    }
    if !closed {
        assert_eq!(seen.digest(), restored.digest(), "{name}");
        assert_eq!(seen.to_json(), restored.to_json(), "{name}");
    }
}
