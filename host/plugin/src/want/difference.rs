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
    match (grant, words::canonical(grant, parameters)) {
        (_, Value::Null | Value::Bool(false)) => vec![],
        ("workspace", parameters) => {
            let write = words::writes(&parameters);
            match parameters.get("read").and_then(Value::as_array) {
                Some(roots) => roots
                    .iter()
                    .map(|root| json!({"read": [root], "write": write}))
                    .collect(),
                None => vec![json!({"write": write})],
            }
        }
        ("route", Value::Array(routes)) => routes.iter().flat_map(route).collect(),
        // To append at all, and each kind that is not its own.
        ("journal", Value::Array(kinds)) => {
            let kinds = kinds.into_iter().map(|kind| json!([kind]));
            std::iter::once(json!(true)).chain(kinds).collect()
        }
        (_, Value::Array(items)) if items.is_empty() => vec![json!([])],
        (_, Value::Array(items)) => items.into_iter().map(|item| json!([item])).collect(),
        (_, parameters) => vec![parameters],
    }
}

/// A route to one address.
fn route(route: &Value) -> Vec<Value> {
    match route.get("origins").and_then(Value::as_array) {
        Some(origins) if origins.len() > 1 => origins
            .iter()
            .map(|origin| {
                let mut one = route.clone();
                one["origins"] = json!([origin]);
                json!([one])
            })
            .collect(),
        _ => vec![json!([route])],
    }
}

/// Whether who has one piece needs no other for the second.
fn covers(own: &Value, piece: &Value) -> bool {
    if own == piece {
        return true;
    }
    match (own, piece) {
        // Any program.
        (Value::String(own), Value::Array(_)) => own == "shell",
        // Having some of a thing at all.
        (Value::Array(_), Value::Array(none)) if none.is_empty() => true,
        (Value::Array(own), Value::Array(piece)) => match (own.as_slice(), piece.as_slice()) {
            ([own], [piece]) => folder(own, piece),
            _ => false,
        },
        // Without a bound.
        (Value::Bool(true), Value::Object(_)) => true,
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

/// No member of the second goes further than the first's; one that the first does
/// not have bounds nothing.
fn bounds(own: &Map<String, Value>, piece: &Map<String, Value>) -> bool {
    own.iter().all(|(name, own)| match (own, piece.get(name)) {
        (own, Some(wanted)) if own == wanted => true,
        (Value::Bool(own), wanted) => *own || wanted == Some(&Value::Bool(false)),
        (Value::Array(own), Some(Value::Array(wanted))) => {
            wanted.iter().all(|item| own.contains(item))
        }
        (Value::Number(own), Some(Value::Number(wanted))) => own
            .as_u64()
            .zip(wanted.as_u64())
            .is_some_and(|(own, wanted)| wanted <= own),
        _ => false,
    })
}
