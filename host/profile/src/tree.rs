//! The composed rows as written, and the one pass that composes them
//! (spec/cli.md §2.3).
//!
//! A patch finds its row by id among all rows as they stand when it is applied,
//! in groups too: rows that an earlier patch inserted, or put into a group by
//! replacing its `config`, can be addressed by a later one. What does not apply
//! is a warning and never fatal, so that one overlay can serve several profiles.

use crate::entry::{Entry, LayerIndex, Slot};
use crate::layer::{Item, Layer, at_item};
use crate::lock::Installed;
use crate::plugin_layer::taken_ids;
use crate::yaml::{Fault, Field, Map, Node, emit_item};
use crate::{Error, Problem, providers};
use std::collections::{BTreeSet, HashMap};
use std::fmt;
use std::path::PathBuf;

/// Which layers are composed.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// Bundles, installed plugins, the person's own layers, then these `--patch` files in order.
    All(&'a [PathBuf]),
    /// Bundles alone: `--safe` and `--dump-default-config`. The lock and the
    /// person's layers are not even opened, so it works when they are broken.
    Bundles,
}

/// A patch that did not apply. Displays as `[layer] patch: entry "X" not found`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The label of the layer that holds the patch.
    pub layer: String,
    /// What did not apply.
    pub message: String,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "[{}] {}", self.layer, self.message)
    }
}

/// The composed rows as written: expressions unevaluated, every row with the
/// layers that made it. [`Tree::dump`] prints them, [`Tree::rows`] evaluates them.
#[derive(Debug, Clone)]
pub struct Tree {
    pub(crate) entries: Vec<Entry>,
    pub(crate) labels: Vec<String>,
    pub(crate) problems: Vec<Problem>,
    /// The plugins that rows may mount.
    pub(crate) installed: Vec<Installed>,
    /// The profile's name, for messages.
    pub(crate) profile: String,
    warnings: Vec<Warning>,
}

impl Tree {
    /// Applies the layers in order over an empty list.
    pub(crate) fn compose(layers: Vec<Layer>, problems: Vec<Problem>) -> Result<Self, Error> {
        let mut tree = Self {
            entries: Vec::new(),
            labels: Vec::new(),
            problems,
            installed: Vec::new(),
            profile: String::new(),
            warnings: Vec::new(),
        };
        let mut taken = taken_ids(&layers);
        for mut layer in layers {
            if layer.plugin.is_some() {
                tree.keep_free(&mut layer, &mut taken);
            }
            let by = tree.labels.len();
            tree.labels.push(layer.label.clone());
            for item in &layer.items {
                tree.apply(item, &layer, by)?;
            }
        }
        Ok(tree)
    }

    /// Leaves out rows of a plugin whose id is taken.
    fn keep_free(&mut self, layer: &mut Layer, taken: &mut HashMap<String, String>) {
        let label = &layer.label;
        let problems = &mut self.problems;
        for item in &mut layer.items {
            item.insert.iter_mut().for_each(|rows| {
                rows.retain(|row| {
                    let id = row.get("id").and_then(Node::as_str).unwrap_or_default();
                    let Some(first) = taken.get(id) else {
                        taken.insert(id.to_owned(), label.clone());
                        return true;
                    };
                    let off = row.get("disabled").is_some();
                    if !off {
                        problems.push(Problem {
                            row: Some(id.to_owned()),
                            message: format!(
                                "row {id} of {label}: {first} has a row of this id; left out; add the plugin again with --as {id}=ANOTHER"
                            ),
                        });
                    }
                    false
                });
            });
        }
    }

    fn apply(&mut self, item: &Item, layer: &Layer, by: LayerIndex) -> Result<(), Error> {
        let faulty = |fault| at_item(&layer.label, item.number, fault);
        let target = match &item.id {
            Some(id) => find(&mut self.entries, id),
            None => None,
        };
        let message = match (&item.insert, &item.id, target) {
            (Some(rows), None, _) => {
                let rows = made(rows, layer, by).map_err(faulty)?;
                self.entries.extend(rows);
                return Ok(());
            }
            (Some(rows), Some(_), Some(group)) if group.is_group() => {
                let rows = made(rows, layer, by).map_err(faulty)?;
                group.rows_mut().extend(rows);
                group.patched_by.insert(by);
                return Ok(());
            }
            (Some(_), Some(id), Some(_)) => format!("patch insert: entry \"{id}\" is not a group"),
            (Some(_), Some(id), None) => format!("patch insert: entry \"{id}\" not found"),
            (None, None, _) => format!(
                "patch: id is required for non-insert patches (item {}, line {})",
                item.number, item.line
            ),
            (None, Some(id), None) => format!("patch: entry \"{id}\" not found"),
            (None, Some(id), Some(row)) => {
                let mut keys = item.keys.clone();
                match guard(&mut keys, row) {
                    Some(mismatch) => format!("patch: entry \"{id}\" {mismatch}"),
                    None => return row.patch(&keys, layer, by).map_err(faulty),
                }
            }
        };
        self.warnings.push(Warning {
            layer: layer.label.clone(),
            message,
        });
        Ok(())
    }

    /// Patches that did not apply.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// What was left out before any row was made: bundles that are not known, and
    /// what is wrong with installed plugins. [`Tree::rows`] repeats them.
    #[must_use]
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// The providers that the grant `route` of a row lists, as it is written.
    #[must_use]
    pub fn providers_of(&self, row: &str) -> Vec<String> {
        let names = providers::granted(&self.entries, row).into_iter();
        names.map(str::to_owned).collect()
    }

    /// YAML: rows in runs of one provenance, each run under a comment
    /// `# == ORIGIN` or `# == ORIGIN, patched by LAYER, LAYER`; expressions verbatim,
    /// values of providers' headers left out. A row that is dealt providers by
    /// another one has a comment with their names.
    #[must_use]
    pub fn dump(&self) -> String {
        let mut out = String::new();
        let mut run = None;
        for entry in &providers::without_headers(&self.entries) {
            let mut patched_by = BTreeSet::new();
            layers_of(entry, &mut patched_by);
            patched_by.remove(&entry.origin);
            let provenance = (entry.origin, patched_by);
            if run.as_ref() != Some(&provenance) {
                if run.is_some() {
                    out.push('\n');
                }
                out.push_str(&self.heading(&provenance.0, &provenance.1));
                run = Some(provenance);
            }
            let dealt = providers::dealt(&self.entries, entry);
            if !dealt.is_empty() {
                let names = dealt.join(", ").replace(['\n', '\r'], " ");
                out.push_str(&format!("# of {}: {names}\n", providers::SECTION));
            }
            emit_entry(&mut out, 0, entry);
        }
        if self.entries.is_empty() {
            out.push_str("[]\n");
        }
        out
    }

    fn heading(&self, origin: &LayerIndex, patched_by: &BTreeSet<LayerIndex>) -> String {
        let mut line = format!("# == {}", self.labels[*origin]);
        for (i, layer) in patched_by.iter().enumerate() {
            line += if i == 0 { ", patched by " } else { ", " };
            line += &self.labels[*layer];
        }
        line.replace(['\n', '\r'], " ") + "\n"
    }
}

/// `name` on a patch is a guard and no rename: what does not match is skipped.
fn guard(keys: &mut Map, row: &Entry) -> Option<String> {
    let at = keys.0.iter().position(|(k, _)| k == "name")?;
    let (_, wanted) = keys.0.remove(at);
    let own = row.str("name");
    if wanted.as_str().is_some() && wanted.as_str() == own {
        return None;
    }
    let own = own.unwrap_or("(none)");
    let wanted = wanted.as_str().unwrap_or_else(|| wanted.noun());
    Some(format!(
        "has the name {own:?}, the patch is for {wanted:?}; skipped"
    ))
}

fn made(rows: &[Map], layer: &Layer, by: LayerIndex) -> Result<Vec<Entry>, Fault> {
    rows.iter()
        .map(|row| Entry::new(row.clone(), layer, by))
        .collect()
}

fn find<'e>(entries: &'e mut [Entry], id: &str) -> Option<&'e mut Entry> {
    for entry in entries {
        if entry.str("id") == Some(id) {
            return Some(entry);
        }
        let rows = entry.fields.iter_mut().find_map(|(_, slot)| match slot {
            Slot::Rows(rows) => Some(rows),
            Slot::Node(_) => None,
        });
        if let Some(found) = rows.and_then(|rows| find(rows, id)) {
            return Some(found);
        }
    }
    None
}

/// All layers that a row and the rows in it have come from.
fn layers_of(entry: &Entry, into: &mut BTreeSet<LayerIndex>) {
    into.insert(entry.origin);
    into.extend(&entry.patched_by);
    for row in entry.rows() {
        layers_of(row, into);
    }
}

fn emit_entry(out: &mut String, indent: usize, entry: &Entry) {
    let fields: Vec<_> = entry
        .fields
        .iter()
        .map(|(key, slot)| {
            let field = match slot {
                Slot::Node(node) => Field::Node(node),
                Slot::Rows(rows) => {
                    let mut lines = String::new();
                    for row in rows {
                        emit_entry(&mut lines, indent + 4, row);
                    }
                    Field::Lines(lines)
                }
            };
            (key.as_str(), field)
        })
        .collect();
    emit_item(out, indent, &fields);
}

#[cfg(test)]
#[path = "tree_tests.rs"]
mod tests;
