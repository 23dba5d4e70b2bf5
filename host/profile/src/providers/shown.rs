//! What the dump shows of providers: which row gets which, and no header's value, as
//! people put keys there.

use super::{ROWS, SECTION};
use crate::entry::{Entry, Slot};
use crate::yaml::{Kind, Map, Node};

/// In place of a header's value. One that only names the key is shown.
const HIDDEN: &str = "(not shown)";

/// The rows without the values of their providers' headers.
pub(crate) fn without_headers(entries: &[Entry]) -> Vec<Entry> {
    let mut entries = entries.to_vec();
    hide(&mut entries);
    entries
}

fn hide(entries: &mut [Entry]) {
    for entry in entries {
        let id = entry.str("id").unwrap_or_default().to_owned();
        let own = id == SECTION || ROWS.iter().any(|(_, row)| *row == id);
        for (key, slot) in &mut entry.fields {
            match slot {
                Slot::Rows(rows) => hide(rows),
                Slot::Node(node) if own && key == "config" => {
                    let providers = member(node, "providers").and_then(map);
                    for (_, profile) in providers.into_iter().flatten() {
                        let headers = member(profile, "headers").and_then(map);
                        headers
                            .into_iter()
                            .flatten()
                            .for_each(|(_, value)| cover(value));
                    }
                }
                Slot::Node(_) => {}
            }
        }
    }
}

fn cover(value: &mut Node) {
    let plain = value
        .as_str()
        .is_some_and(|text| text.is_empty() || text.contains("{credential}"));
    if !plain {
        value.kind = Kind::String(HIDDEN.to_owned());
    }
}

fn map(node: &mut Node) -> Option<&mut Vec<(String, Node)>> {
    match &mut node.kind {
        Kind::Map(Map(members)) => Some(members),
        _ => None,
    }
}

fn member<'n>(node: &'n mut Node, key: &str) -> Option<&'n mut Node> {
    let mut members = map(node)?.iter_mut();
    members.find(|(name, _)| name == key).map(|(_, node)| node)
}

/// The providers that a row of ours is dealt, as far as the layers tell: those that
/// name its protocol, and those that it ships. The settings may add some.
pub(crate) fn dealt(entries: &[Entry], row: &Entry) -> Vec<String> {
    let id = row.str("id").unwrap_or_default();
    let Some((api, _)) = ROWS.iter().find(|(_, own)| *own == id) else {
        return Vec::new();
    };
    let Some(from) = find(entries, SECTION).and_then(|from| from.node("config")) else {
        return Vec::new();
    };
    let Kind::Map(config) = &from.kind else {
        return Vec::new();
    };
    let Some(Kind::Map(providers)) = config.get("providers").map(|node| &node.kind) else {
        return Vec::new();
    };
    let gets = |(name, profile): &&(String, Node)| {
        let written = match &profile.kind {
            Kind::Map(profile) => profile.get("api").and_then(Node::as_str),
            _ => None,
        };
        written.map_or_else(|| ships(row, name), |written| written == *api)
    };
    let names = providers.0.iter().filter(gets);
    names.map(|(name, _)| name.clone()).collect()
}

fn find<'e>(entries: &'e [Entry], id: &str) -> Option<&'e Entry> {
    entries.iter().find_map(|entry| {
        let own = entry.str("id") == Some(id);
        own.then_some(entry).or_else(|| find(entry.rows(), id))
    })
}

fn ships(row: &Entry, provider: &str) -> bool {
    names(row).contains(&provider)
}

/// The providers that the grant of a row lists, as it is written: for a row that could
/// not be evaluated too.
pub(crate) fn granted<'e>(entries: &'e [Entry], row: &str) -> Vec<&'e str> {
    find(entries, row).map(names).unwrap_or_default()
}

fn names(row: &Entry) -> Vec<&str> {
    let Some(Kind::Map(grants)) = row.node("grants").map(|node| &node.kind) else {
        return Vec::new();
    };
    let routes = match grants.get("route") {
        None => &[],
        Some(one) => match &one.kind {
            Kind::Seq(routes) => routes.as_slice(),
            _ => std::slice::from_ref(one),
        },
    };
    routes.iter().filter_map(provider).collect()
}

fn provider(route: &Node) -> Option<&str> {
    match &route.kind {
        Kind::Map(route) => route.get("provider").and_then(Node::as_str),
        _ => None,
    }
}
