//! The strict shape of `.credentials.yaml`: one thing wrong refuses it whole.
//!
//! ```yaml
//! version: 1
//! refs: {NAME: value}
//! records: {"scope/id": {kind: api-key, key: value} | {kind: grant, payload: {…}}}
//! ```
//!
//! Errors name the place and the rule, never a value.

use crate::yaml::{Fault, Kind, Map, Node};
use std::collections::BTreeMap;

pub(super) type Refs = BTreeMap<String, String>;

/// `[A-Za-z_][A-Za-z0-9_]*`
pub(super) fn is_reference(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// The layout of early releases: names and values at the top.
pub(super) fn is_early(root: &Node) -> bool {
    match &root.kind {
        Kind::Map(top) => {
            !top.0.is_empty()
                && top.get("version").is_none()
                && top.0.iter().all(|(_, node)| node.as_str().is_some())
        }
        _ => false,
    }
}

/// The references of a document of the right shape.
pub(super) fn refs(root: &Node) -> Result<Refs, Fault> {
    let top = mapping(root, "the document")?;
    if is_early(root) {
        return Err(fault(
            root,
            "an early layout of this file; put its lines under `refs:` and `version: 1` above them, \
             which the next `dsh credentials set` does by itself",
        ));
    }
    only(top, &["version", "refs", "records"])?;
    match top.get("version") {
        Some(Node {
            kind: Kind::Number(n),
            ..
        }) if n.as_u64() == Some(1) => {}
        Some(other) => return Err(fault(other, "`version` must be 1")),
        None => return Err(fault(root, "`version: 1` is missing")),
    }
    if let Some(records) = top.get("records") {
        for (name, record) in &mapping(records, "`records`")?.0 {
            check_record(name, record)?;
        }
    }
    let mut refs = Refs::new();
    if let Some(node) = top.get("refs") {
        for (name, value) in &mapping(node, "`refs`")?.0 {
            if !is_reference(name) {
                return Err(fault(
                    value,
                    "a name in `refs` is letters, digits and _, not starting with a digit",
                ));
            }
            refs.insert(name.clone(), text(value, "a value in `refs`")?.to_owned());
        }
    }
    Ok(refs)
}

/// Records are of other programs so far; they are checked and not read.
fn check_record(name: &str, record: &Node) -> Result<(), Fault> {
    let scoped = name
        .split_once('/')
        .is_some_and(|(scope, id)| !scope.is_empty() && !id.is_empty());
    if !scoped {
        return Err(fault(record, "a name in `records` is `scope/id`"));
    }
    let map = mapping(record, "a record")?;
    match map.get("kind").and_then(Node::as_str) {
        Some("api-key") => {
            only(map, &["kind", "key", "env"])?;
            if let Some(key) = map.get("key") {
                text(key, "`key`")?;
            }
            match map.get("env") {
                Some(Node {
                    kind: Kind::Map(env),
                    ..
                }) => {
                    for (_, value) in &env.0 {
                        text(value, "a value in `env`")?;
                    }
                }
                Some(env) => drop(text(env, "`env`")?),
                None => {}
            }
            Ok(())
        }
        Some("grant") => {
            only(map, &["kind", "payload"])?;
            match map.get("payload") {
                Some(_) => Ok(()),
                None => Err(fault(record, "a grant needs its `payload`")),
            }
        }
        _ => Err(fault(record, "a record's `kind` is `api-key` or `grant`")),
    }
}

fn fault(node: &Node, message: &str) -> Fault {
    Fault {
        line: node.line,
        message: message.to_owned(),
    }
}

fn mapping<'n>(node: &'n Node, what: &str) -> Result<&'n Map, Fault> {
    match &node.kind {
        Kind::Map(map) => Ok(map),
        _ => Err(fault(
            node,
            &format!("{what} must be a mapping, this is {}", node.noun()),
        )),
    }
}

fn text<'n>(node: &'n Node, what: &str) -> Result<&'n str, Fault> {
    match node.as_str() {
        Some(text) if !text.is_empty() => Ok(text),
        Some(_) => Err(fault(node, &format!("{what} must not be empty"))),
        None => Err(fault(
            node,
            &format!("{what} must be a string, this is {}", node.noun()),
        )),
    }
}

fn only(map: &Map, known: &[&str]) -> Result<(), Fault> {
    match map.0.iter().find(|(key, _)| !known.contains(&key.as_str())) {
        Some((key, node)) => Err(fault(
            node,
            &format!("unknown key {key:?}; known are {}", known.join(", ")),
        )),
        None => Ok(()),
    }
}
