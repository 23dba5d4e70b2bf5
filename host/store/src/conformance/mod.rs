//! Upstream's measured behaviour against this crate.
//!
//! Every deviation is looked up in `tests/conformance/session-differences.toml`, where it stands with its reason. A
//! deviation that is not listed fails, and so does a listed one that is none any more.

mod files;
mod folds;
mod layouts;
mod members;
mod reports;
mod torn;
mod writes;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dsh_session::{Event, Header};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::testing::{cases, json, json_at, quick_dir, recorded_cases};
use crate::{Compression, Damage, DamageClass, Stage, Store, StoreConfig, StoreError};

/// The cases of one kind, from the index.
fn of_kind(kind: &str) -> Vec<Value> {
    let index = json("", "index.json");
    index["cases"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|c| c["kind"] == kind)
        .cloned()
        .collect()
}

fn compression(case: &Value) -> Compression {
    if case["compression"] == "zstd" {
        Compression::Zstd
    } else {
        Compression::None
    }
}

fn store(root: &Path, compression: Compression) -> Store {
    Store::open(StoreConfig {
        compression,
        ..StoreConfig::new(root)
    })
    .unwrap()
}

pub(crate) fn sha256(text: &str) -> String {
    use std::fmt::Write;
    Sha256::digest(text.as_bytes())
        .iter()
        .fold(String::new(), |mut hex, byte| {
            write!(hex, "{byte:02x}").unwrap();
            hex
        })
}

/// A header as upstream's API shows it.
fn header_json(header: &Header) -> Value {
    let mut value: Value = serde_json::from_str(&header.line()).unwrap();
    value.as_object_mut().unwrap().remove("type");
    value
}

/// An event as JSON, the sentence of a repair result replaced by the token that the data has.
fn event_json(event: &Event) -> Value {
    let mut value: Value =
        serde_json::from_str(&crate::testing::whole_pairs(&event.line())).unwrap();
    neutral(&mut value);
    value
}

fn neutral(event: &mut Value) {
    if event["type"] != "tool/result" || event["data"]["error"]["code"].is_null() {
        return;
    }
    let token = format!(
        "{{{{TEXT:{}}}}}",
        event["data"]["error"]["code"].as_str().unwrap_or_default()
    );
    let id = event["data"]["message"]["id"].as_str().unwrap_or_default();
    if id.starts_with("interrupted-tool-result-")
        && let Some(text) = event.pointer_mut("/data/message/content/0/content/0/text")
    {
        *text = token.into();
    }
}

/// Lines with the sentences of repair results replaced; other lines stay byte for byte.
fn neutral_text(text: &str) -> String {
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        if line.contains("\"interrupted-tool-result-") && line.ends_with('\n') {
            let mut event: Value = serde_json::from_str(line).unwrap();
            neutral(&mut event);
            out.push_str(&(event.to_string() + "\n"));
        } else {
            out.push_str(line);
        }
    }
    out
}

/// Whether a damage is what upstream's error says: its class, and for plain errors that it came before the session layer.
fn matches_error(damage: &Damage, error: &Value) -> bool {
    match error["name"].as_str().unwrap() {
        "SessionFormatUnsupportedError" => damage.class == DamageClass::Unsupported,
        "SessionPersistenceCorruptionError" => {
            (damage.class, damage.stage) == (DamageClass::Corrupt, Stage::Interpret)
        }
        _ => damage.class != DamageClass::Unsupported && damage.stage != Stage::Interpret,
    }
}

/// The damage that a refusal is about.
fn damage_of(error: &StoreError) -> Option<&Damage> {
    match error {
        StoreError::Damaged { damage, .. } => Some(damage),
        _ => None,
    }
}

/// Deviations by `case/aspect`.
#[derive(Default)]
struct Deviations {
    found: BTreeMap<String, String>,
}

impl Deviations {
    fn note(&mut self, case: &str, aspect: &str, detail: impl Into<String>) {
        self.found.insert(format!("{case}/{aspect}"), detail.into());
    }

    fn check(&mut self, case: &str, aspect: &str, ours: impl Into<Value>, upstream: &Value) {
        let ours = ours.into();
        if ours != *upstream {
            self.note(case, aspect, format!("ours {ours}, upstream {upstream}"));
        }
    }

    /// Compares with the listed differences whose aspect is one of `aspects`.
    fn settle(self, aspects: &[&str]) {
        let path = cases().join("../session-differences.toml");
        let text = std::fs::read_to_string(&path).unwrap();
        let table: toml::Table = toml::from_str(&text).unwrap();
        let mut listed = BTreeSet::new();
        for difference in table["difference"].as_array().unwrap() {
            let aspect = difference["aspect"].as_str().unwrap();
            assert!(
                difference["reason"].as_str().is_some_and(|r| r.len() > 20),
                "{aspect} has no reason"
            );
            if aspects.contains(&aspect) {
                for case in difference["cases"].as_array().unwrap() {
                    listed.insert(format!("{}/{aspect}", case.as_str().unwrap()));
                }
            }
        }
        let mut wrong = Vec::new();
        for (name, detail) in &self.found {
            if !listed.remove(name) {
                wrong.push(format!("not listed: {name}: {detail}"));
            }
        }
        wrong.extend(
            listed
                .iter()
                .map(|name| format!("listed, but no difference: {name}")),
        );
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}
