//! Which test compares which member of a file case's expected.json. A member that upstream's data has and that is not
//! in this list fails: it would be compared nowhere.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::testing::{cases, json_at, recorded_cases};

/// Members by path, `*` for any one key, and who compares them: an aspect of `files.rs` here, or a test of
/// `host/session/tests/conformance`.
const COMPARED: &[(&str, &str)] = &[
    ("path", "where the file is put, so every aspect"),
    ("list", "list"),
    ("loadStored.value.*", "stored; session: files"),
    ("inspect.value.*", "inspect; session: files"),
    ("closers", "closers; session: files"),
    ("migrated", "migrated; session: files"),
    ("migratedEvents", "migrated; session: files"),
    (
        "readFrom0.value.*",
        "read; session: files, also where inspect refuses",
    ),
    (
        "fileUnchangedByReads",
        "asserted of every file, by its bytes",
    ),
    ("load.value.eventCount", "load"),
    ("afterLoad.changed", "after-load"),
    (
        "afterLoad.bytes",
        "after-load, our sentences counted as long as upstream's; not of frames with sentences",
    ),
    ("afterLoad.appendedText", "after-load; session: files"),
    (
        "afterLoad.frames",
        "after-load; not of frames with sentences",
    ),
    // A hash of upstream's own sentences in one case: what it hashes is compared as appendedText and kept bytes.
    (
        "afterLoad.decodedSha256",
        "cannot be: a hash over a sentence that we do not have",
    ),
    ("session.value.header", "session; session: files"),
    ("session.value.firstLiveSeq", "session; session: files"),
    ("session.value.eventCount", "session; session: files"),
    ("session.value.lastType", "session; session: files"),
    ("session.value.endSeedAppended", "session; session: files"),
    (
        "session.value.replaceGeneration",
        "session, surface; session: files",
    ),
    ("session.value.nodes", "surface; session: files"),
    ("session.value.replacements", "surface; session: files"),
    ("session.value.messages", "surface; session: files"),
    ("session.value.requestHeader", "surface; session: files"),
    ("session.value.requestContext", "surface; session: files"),
    (
        "session.value.messageTokens",
        "measure; session: projections",
    ),
    ("session.value.tokenMeter", "measure; session: projections"),
    ("projections.*", "projections; session: projections"),
];

/// Outcomes: that there is an error is part of each aspect; of its members class and stage are compared.
const OUTCOMES: [&str; 6] = [
    "list",
    "loadStored",
    "inspect",
    "readFrom0",
    "load",
    "session",
];

fn paths(value: &Value, prefix: &str, out: &mut BTreeSet<String>) {
    let Some(members) = value.as_object() else {
        out.insert(prefix.to_owned());
        return;
    };
    let listed = |path: &str| COMPARED.iter().any(|(known, _)| *known == path);
    for (key, member) in members {
        let path = if prefix.is_empty() {
            key.clone()
        } else {
            format!("{prefix}.{key}")
        };
        if listed(&path) || listed(&format!("{prefix}.*")) {
            continue;
        }
        if OUTCOMES.contains(&prefix) && (key == "ok" || key == "error") {
            continue;
        }
        paths(member, &path, out);
    }
}

fn unlisted(dir: &Path) -> BTreeSet<String> {
    let index = json_at(&dir.join("index.json"));
    let mut out = BTreeSet::new();
    for case in index["cases"].as_array().unwrap() {
        if case["kind"] != "file" {
            continue;
        }
        let expected = json_at(
            &dir.join(case["case"].as_str().unwrap())
                .join("expected.json"),
        );
        match (&expected["plain"], &expected["zstd"]) {
            (Value::Null, _) => paths(&expected, "", &mut out),
            (plain, zstd) => [plain, zstd]
                .into_iter()
                .for_each(|one| paths(one, "", &mut out)),
        }
    }
    out
}

#[test]
fn no_member_of_a_file_case_is_compared_nowhere() {
    assert_eq!(unlisted(&cases()), BTreeSet::new());
    if let Some(recorded) = recorded_cases() {
        assert_eq!(unlisted(&recorded), BTreeSet::new());
    }
}
