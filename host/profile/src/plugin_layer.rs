//! An installed plugin as a layer: its rows, with what the lock says of them.
//!
//! A plugin's text is a stranger's, so its rows are made of plain values: nothing
//! in them is an expression, nothing is a path, and what they mount is the plugin
//! itself. A row's id that a bundle, a person or an earlier plugin has is theirs.

use crate::layer::{Item, Layer};
use crate::lock::Installed;
use crate::yaml::{Kind, Map, Node};
use std::collections::HashMap;

impl Layer {
    /// The layer of an installed plugin.
    pub(crate) fn of_plugin(plugin: &Installed) -> Self {
        let rows = plugin.rows.iter().map(|row| {
            let mut members = vec![
                ("id".to_owned(), string(&row.id)),
                ("component".to_owned(), string(&plugin.name)),
            ];
            if plugin.disabled || row.disabled {
                members.push(("disabled".to_owned(), Node::new(0, Kind::Bool(true))));
            }
            let grants = plugin.granted();
            let objects = [
                ("config", row.config.as_object()),
                ("grants", Some(&grants)),
                ("limits", Some(&plugin.limits)),
            ];
            for (key, object) in objects {
                if let Some(object) = object.filter(|object| !object.is_empty()) {
                    members.push((key.to_owned(), Node::of_object(object)));
                }
            }
            Map(members)
        });
        let item = Item {
            number: 1,
            line: 0,
            id: None,
            insert: Some(rows.collect()),
            keys: Map::default(),
        };
        Self {
            label: plugin.label(),
            dir: None,
            items: vec![item],
            plugin: Some(plugin.pin()),
        }
    }
}

fn string(text: &str) -> Node {
    Node::new(0, Kind::String(text.to_owned()))
}

/// The ids of rows that layers bring, with the label of the first that does.
/// Plugins' own are not among them.
pub(crate) fn taken_ids(layers: &[Layer]) -> HashMap<String, String> {
    let mut taken = HashMap::new();
    for layer in layers.iter().filter(|layer| layer.plugin.is_none()) {
        for item in &layer.items {
            for row in item.insert.iter().flatten() {
                take(&mut taken, row, &layer.label);
            }
            below(&mut taken, &item.keys, &layer.label);
        }
    }
    taken
}

fn take(taken: &mut HashMap<String, String>, row: &Map, label: &str) {
    if let Some(id) = row.get("id").and_then(Node::as_str) {
        taken
            .entry(id.to_owned())
            .or_insert_with(|| label.to_owned());
    }
    below(taken, row, label);
}

/// The rows of a group: a list under `config`, of which each mounts something.
fn below(taken: &mut HashMap<String, String>, row: &Map, label: &str) {
    let Some(Kind::Seq(nodes)) = row.get("config").map(|node| &node.kind) else {
        return;
    };
    for node in nodes {
        if let Kind::Map(row) = &node.kind
            && ["component", "host", "name", "group"]
                .iter()
                .any(|key| row.get(key).is_some())
        {
            take(taken, row, label);
        }
    }
}

#[cfg(test)]
#[path = "plugin_layer_tests.rs"]
mod tests;
