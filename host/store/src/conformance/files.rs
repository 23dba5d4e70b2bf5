//! `kind: file`: one file below a root, and everything that reading it gives.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use dsh_session::{Event, REPAIR_TEXTS, Stored, rows};
use serde_json::{Value, json};

use super::*;
use crate::frame;
use crate::load::{Inspection, Target};
use crate::scan::scan;

const ASPECTS: &[&str] = &[
    "list",
    "stored",
    "inspect",
    "inspect-opens",
    "closers",
    "migrated",
    "read",
    "load",
    "after-load",
    "session",
    "surface",
    "measure",
    "projections",
];

#[test]
fn files_are_read_listed_repaired_and_resumed_as_upstream_does() {
    let mut deviations = Deviations::default();
    let mut count = 0;
    for case in of_kind("file") {
        let name = case["case"].as_str().unwrap();
        let expected = crate::testing::json(name, "expected.json");
        if name == "line-huge" {
            let bytes = fs::read(cases().join(name).join("input.jsonl.zstd")).unwrap();
            let lines = frame::scan(&bytes)
                .complete
                .iter()
                .fold(Vec::new(), |mut all, f| {
                    all.extend(frame::decode(&bytes[f.start..f.end], usize::MAX).unwrap());
                    all
                });
            one(
                &case,
                &expected["plain"],
                &lines,
                Compression::None,
                &mut deviations,
            );
            one(
                &case,
                &expected["zstd"],
                &bytes,
                Compression::Zstd,
                &mut deviations,
            );
        } else {
            let encoding = compression(&case);
            let suffix = if encoding == Compression::Zstd {
                ".zstd"
            } else {
                ""
            };
            let bytes = fs::read(cases().join(name).join(format!("input.jsonl{suffix}"))).unwrap();
            one(&case, &expected, &bytes, encoding, &mut deviations);
        }
        count += 1;
    }
    assert_eq!(count, 138);
    deviations.settle(ASPECTS);
}

/// Recorded sessions, where they are at hand: as they are, and as the same log in four frames.
#[test]
fn recorded_sessions_are_read_as_upstream_does() {
    let Some(recorded) = recorded_cases() else {
        println!("skipped: no recorded cases here, set DSH_SHARED to a directory that has them");
        return;
    };
    let mut deviations = Deviations::default();
    let index = json_at(&recorded.join("index.json"));
    for case in index["cases"].as_array().unwrap() {
        let name = case["case"].as_str().unwrap();
        let dir = recorded.join(name);
        let expected = json_at(&dir.join("expected.json"));
        let bytes = fs::read(dir.join("input.jsonl")).unwrap();
        one(case, &expected, &bytes, Compression::None, &mut deviations);
        if let Ok(frames) = fs::read(dir.join("frames.jsonl.zstd")) {
            let log = scan(&frames, Compression::Zstd).unwrap();
            assert_eq!((&log.damage, log.torn), (&None, None), "{name}");
            stored(
                name,
                &expected["loadStored"],
                &frames,
                Compression::Zstd,
                &mut deviations,
            );
        }
    }
    // That a refused log opens for reading is a rule of ours, not a property of a case.
    deviations
        .found
        .retain(|name, _| !name.ends_with("/inspect-opens"));
    assert!(deviations.found.is_empty(), "{:#?}", deviations.found);
}

fn one(
    case: &Value,
    expected: &Value,
    bytes: &[u8],
    encoding: Compression,
    deviations: &mut Deviations,
) {
    let name = case["case"].as_str().unwrap();
    let id = case["id"].as_str().unwrap();
    let dir = quick_dir();
    let path = dir.path().join(expected["path"].as_str().unwrap());
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, bytes).unwrap();
    let store = store(dir.path(), encoding);

    let listed = store.list().unwrap();
    let headers: Vec<Value> = listed
        .iter()
        .filter_map(|e| e.header.as_ref().ok())
        .map(header_json)
        .collect();
    if expected["list"]["ok"] == true {
        deviations.check(name, "list", headers, &expected["list"]["value"]);
    } else if !headers.is_empty() || listed.len() != 1 {
        deviations.note(name, "list", format!("ours {listed:?}"));
    }

    stored(name, &expected["loadStored"], bytes, encoding, deviations);

    let inspection = store.inspect(&Target::Id(id.to_owned()));
    let inspected = match &inspection {
        Ok(inspection) => inspection.damage.as_ref().map_or(Ok(inspection), Err),
        Err(e) => Err(damage_of(e).unwrap_or_else(|| panic!("{name}: {e}"))),
    };
    let outcome = &expected["inspect"];
    match inspected {
        Ok(inspection) if outcome["ok"] == true => {
            good(name, expected, inspection, deviations);
            super::folds::folds(name, expected, inspection, deviations);
        }
        Err(damage) if outcome["ok"] == false => {
            if !matches_error(damage, &outcome["error"]) {
                deviations.note(
                    name,
                    "inspect",
                    format!("ours {damage:?}, upstream {}", outcome["error"]),
                );
            }
            // Upstream gives nothing at all; we give the sound prefix.
            if let Ok(inspection) = &inspection {
                let detail = format!("{} sound events, then {damage}", inspection.log.len());
                deviations.note(name, "inspect-opens", detail);
                assert!(inspection.closers.is_empty(), "{name}");
                assert!(
                    inspection.log.len() <= damage.seq.unwrap_or(u64::MAX),
                    "{name}"
                );
            }
        }
        other => deviations.note(
            name,
            "inspect",
            format!("ours {other:?}, upstream {outcome}"),
        ),
    }
    assert_eq!(
        fs::read(&path).unwrap(),
        bytes,
        "{name}: reading changed the file"
    );

    let loaded = store.repair(id);
    match (&loaded, expected["load"]["ok"] == true) {
        (Ok(inspection), true) => {
            deviations.check(
                name,
                "load",
                inspection.log.len(),
                &expected["load"]["value"]["eventCount"],
            );
            assert!(
                inspection.torn.is_none() && inspection.closers.is_empty(),
                "{name}: repair left work"
            );
        }
        (Err(e), false) => {
            let error = &expected["load"]["error"];
            if !damage_of(e).is_some_and(|damage| matches_error(damage, error)) {
                deviations.note(name, "load", format!("ours {e}, upstream {error}"));
            }
        }
        _ => deviations.note(
            name,
            "load",
            format!("ours {loaded:?}, upstream {}", expected["load"]),
        ),
    }
    after_load(
        name,
        &expected["afterLoad"],
        bytes,
        &path,
        encoding,
        deviations,
    );
    session(name, id, &expected["session"], &store, deviations);
}

/// What the bytes decode to, before the session's rules.
fn stored(
    name: &str,
    expected: &Value,
    bytes: &[u8],
    encoding: Compression,
    deviations: &mut Deviations,
) {
    let scanned = scan(bytes, encoding);
    if expected["ok"] != true {
        if matches!(&scanned, Ok(scanned) if scanned.damage.is_none()) && !is_identity(expected) {
            deviations.note(
                name,
                "stored",
                format!("ours is sound, upstream {expected}"),
            );
        }
        return;
    }
    let scanned = match scanned {
        Ok(scanned) if scanned.damage.is_none() => scanned,
        Ok(scanned) => {
            return deviations.note(name, "stored", format!("ours {:?}", scanned.damage));
        }
        Err(damage) => return deviations.note(name, "stored", format!("ours {damage:?}")),
    };
    let value = &expected["value"];
    let lines: Vec<String> = scanned.stored.iter().map(stored_line).collect();
    let mut ours = serde_json::Map::new();
    ours.insert("meta".into(), header_json(&scanned.header));
    ours.insert("eventCount".into(), lines.len().into());
    ours.insert("lastSeq".into(), (lines.len() as u64).checked_sub(1).into());
    let recovered =
        |torn: crate::load::Torn| (lines.len() - torn.recovered..lines.len()).collect::<Vec<_>>();
    ours.insert(
        "torn".into(),
        scanned.torn.map_or(
            Value::Null,
            |t| json!({"truncateTo": t.truncate_to, "recoveredSeqs": recovered(t)}),
        ),
    );
    ours.insert("unpackedSha256".into(), sha256(&lines.concat()).into());
    let sound: Option<Vec<Arc<Event>>> = scanned
        .stored
        .iter()
        .map(|stored| stored.event().cloned())
        .collect();
    let mut value = value.clone();
    if let Some(events) = sound {
        let mut text = String::new();
        let rows = rows::write_batch(&events, true, &mut text);
        ours.insert("packedSha256".into(), sha256(&text).into());
        ours.insert("packedRows".into(), rows.into());
    } else {
        // Events with a broken envelope are never written again, so how they would pack does not matter.
        value
            .as_object_mut()
            .unwrap()
            .retain(|key, _| !key.starts_with("packed"));
    }
    deviations.check(name, "stored", ours, &value);
}

fn is_identity(expected: &Value) -> bool {
    let message = expected["error"]["message"].as_str().unwrap_or_default();
    message.contains("identify") || message.contains("does not match header id")
}

fn stored_line(stored: &Stored) -> String {
    let mut line = String::new();
    stored.write_line(&mut line);
    line + "\n"
}

fn good(name: &str, expected: &Value, inspection: &Inspection, deviations: &mut Deviations) {
    let value = &expected["inspect"]["value"];
    let count = inspection.log.len() + inspection.closers.len() as u64;
    let ours = json!({"meta": header_json(&inspection.header), "eventCount": count});
    deviations.check(name, "inspect", ours, value);
    let closers: Vec<Value> = inspection.closers.iter().map(|e| event_json(e)).collect();
    // As texts, so that the order of keys counts.
    let upstream = expected["closers"].to_string();
    deviations.check(
        name,
        "closers",
        json!(closers).to_string(),
        &upstream.into(),
    );
    deviations.check(
        name,
        "migrated",
        inspection.migrated > 0,
        &expected["migrated"],
    );
    if let Some(migrated) = expected["migratedEvents"].as_array() {
        for event in migrated {
            let seq = dsh_session::Seq(event["seq"].as_u64().unwrap());
            deviations.check(
                name,
                "migrated",
                event_json(&inspection.log.event(seq).unwrap().unwrap()).to_string(),
                &event.to_string().into(),
            );
        }
    }
    let read = &expected["readFrom0"]["value"];
    let events = inspection.log.to_vec().unwrap();
    let text: String = events.iter().map(|e| e.line() + "\n").collect();
    deviations.check(
        name,
        "read",
        json!({"eventCount": inspection.log.len(), "sha256": sha256(&text)}),
        read,
    );
}

fn after_load(
    name: &str,
    expected: &Value,
    before: &[u8],
    path: &Path,
    encoding: Compression,
    deviations: &mut Deviations,
) {
    let after = fs::read(path).unwrap();
    deviations.check(name, "after-load", after != before, &expected["changed"]);
    let text = expected["appendedText"].as_str().unwrap_or_default();
    let has_sentences = text.contains("{{TEXT:");
    if !has_sentences {
        deviations.check(name, "after-load", after.len(), &expected["bytes"]);
    } else if encoding == Compression::None {
        // Upstream's sentences have other lengths than ours.
        let ours = [REPAIR_TEXTS.outcome_unknown, REPAIR_TEXTS.not_started];
        let kinds = ["{{TEXT:TOOL_OUTCOME_UNKNOWN}}", "{{TEXT:TOOL_NOT_STARTED}}"];
        let mut bytes = after.len();
        for ((ours, upstreams), kind) in ours.iter().zip(super::folds::SENTENCES).zip(kinds) {
            let count = text.matches(kind).count();
            bytes = bytes + count * upstreams - count * ours.len();
        }
        deviations.check(name, "after-load", bytes, &expected["bytes"]);
    }
    if expected["changed"] != true {
        return;
    }
    let kept = before
        .iter()
        .zip(&after)
        .take_while(|(a, b)| a == b)
        .count();
    let appended = match encoding {
        Compression::None => {
            let start = after[..kept]
                .iter()
                .rposition(|&b| b == b'\n')
                .map_or(0, |at| at + 1);
            String::from_utf8(after[start..].to_vec()).unwrap()
        }
        Compression::Zstd => {
            let frames = frame::scan(&after);
            assert_eq!((frames.torn, &frames.invalid), (None, &None), "{name}");
            if !has_sentences {
                let ours: Vec<Value> = frames
                    .complete
                    .iter()
                    .map(|f| json!({"start": f.start, "end": f.end}))
                    .collect();
                deviations.check(name, "after-load", ours, &expected["frames"]);
            }
            let new = frames.complete.iter().filter(|f| f.end > kept);
            new.map(|f| {
                String::from_utf8(frame::decode(&after[f.start..f.end], usize::MAX).unwrap())
                    .unwrap()
            })
            .collect()
        }
    };
    deviations.check(name, "after-load", neutral_text(&appended), &text.into());
}

fn session(name: &str, id: &str, expected: &Value, store: &Store, deviations: &mut Deviations) {
    match (store.resume(id, 1_700_000_500_001), expected["ok"] == true) {
        (Ok((session, _writer)), true) => {
            let value = &expected["value"];
            let last = session
                .last()
                .map_or(Value::Null, |e| event_json(e)["type"].clone());
            let live = session.first_live_seq().0;
            let ours = json!({
                "header": header_json(session.header()),
                "firstLiveSeq": live,
                "eventCount": session.next_seq().0,
                "lastType": last,
                "endSeedAppended": session.next_seq().0 > live,
                "replaceGeneration": session.surface().replace_generation(),
            });
            let upstream: serde_json::Map<_, _> = ours
                .as_object()
                .unwrap()
                .keys()
                .map(|key| (key.clone(), value[key].clone()))
                .collect();
            deviations.check(name, "session", ours, &upstream.into());
        }
        (Err(e), false) => {
            if !damage_of(&e).is_some_and(|damage| matches_error(damage, &expected["error"])) {
                deviations.note(
                    name,
                    "session",
                    format!("ours {e}, upstream {}", expected["error"]),
                );
            }
        }
        (Ok(_), false) => deviations.note(
            name,
            "session",
            format!("ours opens, upstream {}", expected["error"]),
        ),
        (Err(e), true) => deviations.note(name, "session", format!("ours {e}, upstream opens")),
    }
}
