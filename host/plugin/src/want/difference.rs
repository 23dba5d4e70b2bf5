//! What a person has to decide again when a plugin is updated.
//!
//! A grant is taken apart into pieces that mean something on their own (an event,
//! a host, a program), and a piece that was not granted is more. What is not
//! understood is more as well: asking once too often does no harm.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::{Want, in_words, words};

/// What an update wants, beside what was granted before.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Difference {
    /// What it wants and was not granted. `parameters` are the whole grant as it
    /// would be, `words` only what is new in it.
    pub more: Vec<Want>,
    /// What was granted and is wanted no more, in words.
    pub less: Vec<String>,
    /// Grants that stay as they are, by name.
    pub same: Vec<String>,
}

impl Difference {
    /// Whether nobody has to be asked.
    #[must_use]
    pub fn asks_nothing(&self) -> bool {
        self.more.is_empty()
    }
}

/// Compares what was granted with what is wanted now.
#[must_use]
pub fn difference(before: &Map<String, Value>, after: &[Want]) -> Difference {
    let mut found = Difference::default();
    for want in after {
        let granted = before.get(&want.grant).unwrap_or(&Value::Null);
        let granted = pieces(&want.grant, granted);
        let new: Vec<Value> = pieces(&want.grant, &want.parameters)
            .into_iter()
            .filter(|piece| !granted.iter().any(|own| covers(own, piece)))
            .collect();
        if new.is_empty() {
            found.same.push(want.grant.clone());
        } else {
            found.more.push(Want {
                words: said(&want.grant, &new),
                ..want.clone()
            });
        }
    }
    for (grant, parameters) in before {
        let wanted = after
            .iter()
            .find(|want| want.grant == *grant)
            .map_or(Value::Null, |want| want.parameters.clone());
        let wanted = pieces(grant, &wanted);
        let gone: Vec<Value> = pieces(grant, parameters)
            .into_iter()
            .filter(|piece| !wanted.iter().any(|own| covers(own, piece)))
            .collect();
        found.less.extend(said(grant, &gone));
    }
    found
}

fn said(grant: &str, pieces: &[Value]) -> Vec<String> {
    let mut seen = BTreeSet::new();
    pieces
        .iter()
        .flat_map(|piece| in_words(grant, piece))
        .filter(|words| seen.insert(words.clone()))
        .collect()
}

/// The parts of a grant that mean something on their own, each as parameters of
/// the same grant.
fn pieces(grant: &str, parameters: &Value) -> Vec<Value> {
    match (grant, parameters) {
        (_, Value::Null | Value::Bool(false)) => vec![],
        ("process", parameters) if words::any_program(parameters) => vec![json!("shell")],
        ("workspace", parameters) => {
            let mut parts = match parameters.get("read").and_then(Value::as_array) {
                Some(roots) => roots.iter().map(|root| json!({"read": [root]})).collect(),
                None => vec![json!({})],
            };
            if words::writes(parameters) {
                parts.push(json!({"read": [], "write": true}));
            }
            parts
        }
        ("route", parameters) => {
            let routes = words::items(grant, parameters);
            routes.iter().flat_map(route).collect()
        }
        ("journal", parameters) => {
            // To append at all, and each kind that is not its own.
            let kinds = words::items(grant, parameters);
            let kinds = kinds.into_iter().map(|kind| json!([kind]));
            std::iter::once(json!(true)).chain(kinds).collect()
        }
        (
            "process" | "http" | "secret" | "observe" | "decide" | "tool-names" | "dir" | "env",
            parameters,
        ) => {
            let items = words::items(grant, parameters);
            if items.is_empty() {
                return vec![json!([])];
            }
            items.into_iter().map(|item| json!([item])).collect()
        }
        (_, Value::Bool(true)) => vec![json!({})],
        (_, parameters) => vec![parameters.clone()],
    }
}

fn route(route: &Value) -> Vec<Value> {
    let origins = route.get("origins").and_then(Value::as_array);
    let mut bare = route.clone();
    if let Some(members) = bare.as_object_mut() {
        members.remove("origins");
        members.retain(|_, value| !value.is_null());
    }
    match origins {
        Some(origins) if !origins.is_empty() => origins
            .iter()
            .map(|origin| {
                let mut one = bare.clone();
                one["origins"] = json!([origin]);
                json!([one])
            })
            .collect(),
        _ => vec![json!([bare])],
    }
}

/// Whether who has one piece needs no other for the second.
fn covers(own: &Value, piece: &Value) -> bool {
    if own == piece {
        return true;
    }
    match (own, piece) {
        (Value::String(shell), Value::Array(_)) => shell == "shell",
        // Having some of a thing at all.
        (Value::Array(_), Value::Array(none)) if none.is_empty() => true,
        (Value::Array(own), Value::Array(piece)) => match (own.as_slice(), piece.as_slice()) {
            ([own], [piece]) => folder(own, piece),
            _ => false,
        },
        (Value::Object(own), Value::Object(piece)) => bounds(own, piece),
        _ => false,
    }
}

/// A folder that may be changed may be read.
fn folder(own: &Value, piece: &Value) -> bool {
    own.get("path").is_some()
        && own.get("path") == piece.get("path")
        && own.get("mode").is_some_and(|mode| mode == "rw")
}

/// Bounds of a grant: no member of the second is more than the first's. A bound
/// that the first does not have is none that the second could keep to, but for
/// the roots of a workspace, where none means all.
fn bounds(own: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    if own.is_empty() {
        return piece.keys().all(|name| name == "read") && !piece.is_empty();
    }
    if own.contains_key("read") || own.contains_key("write") || piece.is_empty() {
        return false;
    }
    own.len() == piece.len()
        && piece
            .iter()
            .all(|(name, wanted)| match (own.get(name), wanted) {
                (Some(own), wanted) if own == wanted => true,
                (Some(Value::Array(own)), Value::Array(wanted)) => {
                    wanted.iter().all(|item| own.contains(item))
                }
                (Some(own), wanted) => match (amount(own), amount(wanted)) {
                    (Some(own), Some(wanted)) => wanted <= own,
                    _ => false,
                },
                (None, _) => false,
            })
}

/// A number, or a size like `64MiB`.
fn amount(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) => {
            let digits = text
                .find(|c: char| !c.is_ascii_digit())
                .unwrap_or(text.len());
            let scale: u64 = match text[digits..].trim() {
                "" | "B" => 1,
                "KiB" => 1 << 10,
                "MiB" => 1 << 20,
                "GiB" => 1 << 30,
                _ => return None,
            };
            text[..digits].parse::<u64>().ok()?.checked_mul(scale)
        }
        _ => None,
    }
}
