//! A row as written: its keys in order, and the layers that made it.

use crate::layer::{self, Layer};
use crate::lock::Pin;
use crate::yaml::{Fault, Kind, Map, Node};
use std::collections::BTreeSet;

/// A layer's position in the order of application.
pub(crate) type LayerIndex = usize;

#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) fields: Vec<(String, Slot)>,
    pub(crate) origin: LayerIndex,
    pub(crate) patched_by: BTreeSet<LayerIndex>,
    /// The installed plugin that brought it.
    pub(crate) plugin: Option<Pin>,
    /// Whether these keys are a plugin's and no person's.
    pub(crate) plugins_config: bool,
    pub(crate) plugins_grants: bool,
    pub(crate) plugins_limits: bool,
}

/// A key's value: a node, or the rows that are a group's `config`.
#[derive(Debug, Clone)]
pub(crate) enum Slot {
    Node(Node),
    Rows(Vec<Entry>),
}

impl Entry {
    pub(crate) fn new(map: Map, layer: &Layer, origin: LayerIndex) -> Result<Self, Fault> {
        let mut entry = Self {
            fields: Vec::new(),
            origin,
            patched_by: BTreeSet::new(),
            plugin: layer.plugin.clone(),
            plugins_config: layer.plugin.is_some(),
            plugins_grants: layer.plugin.is_some(),
            plugins_limits: layer.plugin.is_some(),
        };
        for (key, node) in map.0 {
            if key == "id" && !matches!(node.kind, Kind::String(_) | Kind::Null) {
                return Err(Fault {
                    line: node.line,
                    message: format!("a row's `id` is a string, this is {}", node.noun()),
                });
            }
            entry.set(&key, located(&key, node, layer));
        }
        entry.regroup(layer, origin)?;
        Ok(entry)
    }

    /// Assigns all of `keys`; `config` is replaced whole.
    pub(crate) fn patch(&mut self, keys: &Map, layer: &Layer, by: LayerIndex) -> Result<(), Fault> {
        for (key, node) in &keys.0 {
            self.set(key, located(key, node.clone(), layer));
            match key.as_str() {
                "config" => self.plugins_config = false,
                "grants" => self.plugins_grants = false,
                "limits" => self.plugins_limits = false,
                _ => {}
            }
        }
        self.patched_by.insert(by);
        self.regroup(layer, by)
    }

    /// The rows of a group, to insert into. A config that is no list becomes one.
    pub(crate) fn rows_mut(&mut self) -> &mut Vec<Entry> {
        let at = self.fields.iter().position(|(k, _)| k == "config");
        let at = at.unwrap_or_else(|| {
            self.fields.push(("config".into(), Slot::Rows(Vec::new())));
            self.fields.len() - 1
        });
        let slot = &mut self.fields[at].1;
        if matches!(slot, Slot::Node(_)) {
            *slot = Slot::Rows(Vec::new());
        }
        match slot {
            Slot::Rows(rows) => rows,
            Slot::Node(_) => unreachable!("made into rows above"),
        }
    }

    pub(crate) fn rows(&self) -> &[Entry] {
        self.fields
            .iter()
            .find_map(|(_, slot)| match slot {
                Slot::Rows(rows) => Some(rows.as_slice()),
                Slot::Node(_) => None,
            })
            .unwrap_or_default()
    }

    pub(crate) fn node(&self, key: &str) -> Option<&Node> {
        self.fields.iter().find_map(|(k, slot)| match slot {
            Slot::Node(node) if k == key => Some(node),
            _ => None,
        })
    }

    pub(crate) fn str(&self, key: &str) -> Option<&str> {
        self.node(key)?.as_str()
    }

    pub(crate) fn is_group(&self) -> bool {
        matches!(
            self.node("group"),
            Some(Node {
                kind: Kind::Bool(true),
                ..
            })
        )
    }

    fn set(&mut self, key: &str, slot: Slot) {
        match self.fields.iter_mut().find(|(k, _)| k == key) {
            Some((_, old)) => *old = slot,
            None => self.fields.push((key.to_owned(), slot)),
        }
    }

    /// A list under `config` is rows as long as `group` is true, and a plain
    /// value otherwise.
    fn regroup(&mut self, layer: &Layer, by: LayerIndex) -> Result<(), Fault> {
        let group = self.is_group();
        let Some((_, slot)) = self.fields.iter_mut().find(|(k, _)| k == "config") else {
            return Ok(());
        };
        match slot {
            Slot::Node(Node {
                kind: Kind::Seq(nodes),
                ..
            }) if group => {
                let rows = std::mem::take(nodes)
                    .into_iter()
                    .map(|node| Entry::new(layer::mapping(node, "a row of a group")?, layer, by))
                    .collect::<Result<_, Fault>>()?;
                *slot = Slot::Rows(rows);
            }
            Slot::Rows(rows) if !group => {
                let nodes = std::mem::take(rows)
                    .into_iter()
                    .map(Entry::into_node)
                    .collect();
                *slot = Slot::Node(Node::new(0, Kind::Seq(nodes)));
            }
            _ => {}
        }
        Ok(())
    }

    fn into_node(self) -> Node {
        let members = self.fields.into_iter().map(|(key, slot)| match slot {
            Slot::Node(node) => (key, node),
            Slot::Rows(rows) => {
                let nodes = rows.into_iter().map(Entry::into_node).collect();
                (key, Node::new(0, Kind::Seq(nodes)))
            }
        });
        Node::new(0, Kind::Map(Map(members.collect())))
    }
}

/// A component's path is relative to the file that names it; it is made absolute
/// here, as the row forgets which layer set which key.
fn located(key: &str, mut node: Node, layer: &Layer) -> Slot {
    if let (true, Kind::String(path), Some(dir)) = (key == "component", &mut node.kind, &layer.dir)
        && (path.starts_with("./") || path.starts_with("../"))
    {
        let below = path.strip_prefix("./").unwrap_or(path);
        *path = dir.join(below).display().to_string();
    }
    Slot::Node(node)
}
