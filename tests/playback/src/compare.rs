//! Event for event: kind, order, data, what it does to the surface, and what it
//! says it was made of, with numbers of one log read as those of the other.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::recording::{Recording, Told};
use crate::rules::{Outcome, Pair, RULES, walk};

/// Where two logs part.
#[derive(Debug, PartialEq)]
pub struct Difference {
    /// The event's number in the recording; of one that only ours has, in ours.
    pub seq: u64,
    /// What is where.
    pub what: String,
}

/// Compares what is left when every rule was applied. What a stored session began
/// with is not looked at.
#[must_use]
pub fn compare(recording: &Recording, ours: &[Told]) -> Outcome {
    let begin = recording.begin();
    let mut pair = Pair {
        recording,
        theirs: recording.events[begin..].to_vec(),
        ours: ours[begin.min(ours.len())..].to_vec(),
    };
    let used = RULES.iter().filter(|rule| (rule.apply)(&mut pair));
    let rules = used.map(|rule| rule.name).collect();
    let left: BTreeSet<u64> = pair.ours.iter().map(|event| event.seq).collect();
    for event in &mut pair.ours {
        // What a rule took out is no source either.
        event
            .sources
            .retain(|seq| *seq < begin as u64 || left.contains(seq));
    }
    let differences = differences(&pair.theirs, &pair.ours, begin as u64);
    Outcome { differences, rules }
}

fn differences(theirs: &[Told], ours: &[Told], begin: u64) -> Vec<Difference> {
    let kinds = |events: &[Told]| {
        events
            .iter()
            .map(|event| event.kind.clone())
            .collect::<Vec<_>>()
    };
    let (expected, found) = (kinds(theirs), kinds(ours));
    if let Some(at) =
        (0..expected.len().max(found.len())).find(|at| expected.get(*at) != found.get(*at))
    {
        let seq = theirs.get(at).or(ours.get(at)).map_or(0, |event| event.seq);
        let show = |events: &[Told]| {
            let from = at.saturating_sub(2);
            let near = events.iter().skip(from).take(6);
            near.map(|event| format!("{} {}", event.seq, event.kind))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let what = format!("kinds part: theirs {}; ours {}", show(theirs), show(ours));
        return vec![Difference { seq, what }];
    }
    let numbers: BTreeMap<u64, u64> = theirs
        .iter()
        .zip(ours)
        .map(|(their, our)| (our.seq, their.seq))
        .collect();
    // What came before both is the same in both.
    let their_number = |seq: u64| match numbers.get(&seq) {
        Some(number) => json!(number),
        None if seq < begin => json!(seq),
        None => json!(format!("event {seq} of ours")),
    };
    let mut ids = Ids::default();
    let mut found = Vec::new();
    for (their, our) in theirs.iter().zip(ours) {
        let mut expected = plain(their, &|seq| json!(seq));
        let mut got = plain(our, &their_number);
        ids.pair(&mut expected, &mut got, &their.kind);
        if expected != got {
            let what = format!("{}: {}", their.kind, first("", &expected, &got));
            found.push(Difference {
                seq: their.seq,
                what,
            });
        }
    }
    found
}

/// An event as a value without what is never compared.
fn plain(event: &Told, number: &dyn Fn(u64) -> Value) -> Value {
    let mut data = event.data.clone();
    if event.kind == "request/header" {
        let header = data["header"].as_object_mut();
        if let Some(header) = header {
            header.remove("system");
            header.remove("tools");
        }
    }
    for name in ["messageSeqs", "shadowedSeqs"] {
        for seq in data
            .get_mut(name)
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            *seq = number(seq.as_u64().unwrap_or(u64::MAX));
        }
    }
    for range in [data.get_mut("shadowedRange")].into_iter().flatten() {
        renumber(range, number);
    }
    let mut surface = event.surface.clone();
    renumber(&mut surface, number);
    let mut sources: Vec<Value> = event.sources.iter().map(|seq| number(*seq)).collect();
    // Chunks whose order a rule changed are the same chunks.
    sources.sort_by_key(Value::as_u64);
    json!({"data": data, "surfaceOp": surface, "sourceEventSeqs": sources})
}

fn renumber(range: &mut Value, number: &dyn Fn(u64) -> Value) {
    for name in ["start", "end"] {
        if let Some(seq) = range.get_mut(name) {
            *seq = number(seq.as_u64().unwrap_or(u64::MAX));
        }
    }
}

/// Ids of one log by those of the other.
#[derive(Default)]
struct Ids {
    of_ours: BTreeMap<String, String>,
    of_theirs: BTreeMap<String, String>,
}

impl Ids {
    /// Takes ids out of two values; one that does not stand where its pair stood
    /// before stays, so that the values differ.
    fn pair(&mut self, theirs: &mut Value, ours: &mut Value, kind: &str) {
        let (theirs, ours) = (&mut theirs["data"], &mut ours["data"]);
        let (their_ids, our_ids) = (ids(theirs, kind), ids(ours, kind));
        let fits = their_ids.len() == our_ids.len()
            && their_ids.iter().zip(&our_ids).all(|(their, our)| {
                // A placeholder stands for any.
                their.starts_with("{{") || {
                    let stands =
                        |of: &mut BTreeMap<String, String>, one: &String, other: &String| {
                            of.entry(one.clone()).or_insert_with(|| other.clone()) == other
                        };
                    stands(&mut self.of_ours, our, their) && stands(&mut self.of_theirs, their, our)
                }
            });
        if !fits {
            theirs["ids"] = json!(their_ids);
            ours["ids"] = json!(our_ids);
        }
    }
}

/// Takes ids out, in their order. The ids of calls are the model's, and stay.
fn ids(data: &mut Value, kind: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut take = |members: &mut serde_json::Map<String, Value>, name: &str| {
        if let Some(Value::String(id)) = members.remove(name) {
            found.push(id);
        }
    };
    walk(data, &mut |members| {
        if members.contains_key("role") || kind.starts_with("approval/") {
            take(members, "id");
        }
        for name in ["retryId", "compactionId"] {
            take(members, name);
        }
    });
    found
}

/// The first place where two values part.
fn first(path: &str, theirs: &Value, ours: &Value) -> String {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            for (key, value) in a {
                let other = b.get(key).unwrap_or(&Value::Null);
                if value != other || !b.contains_key(key) {
                    return first(&format!("{path}.{key}"), value, other);
                }
            }
            let more: Vec<_> = b.keys().filter(|key| !a.contains_key(*key)).collect();
            format!("{path} has {more:?} in ours alone: {}", cut(ours))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let at = (0..a.len()).find(|at| a[*at] != b[*at]).unwrap_or(0);
            first(&format!("{path}[{at}]"), &a[at], &b[at])
        }
        _ => format!("{path}: theirs {}; ours {}", cut(theirs), cut(ours)),
    }
}

fn cut(value: &Value) -> String {
    value.to_string().chars().take(300).collect()
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
