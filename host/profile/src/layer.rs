//! A layer: one patch file, or a bundle's list, checked for its shape.
//!
//! A file that is not a list of mappings is refused with its place; what its
//! items mean is decided when they are applied (`tree.rs`). An empty file is an
//! empty list, so that a template needs no `[]` for people to append after.

use crate::lock::Pin;
use crate::yaml::{Fault, Kind, Map, Node};
use crate::{Error, file};
use std::path::{Path, PathBuf};

pub(crate) struct Layer {
    /// How people see it: a bundle's name, or the file's path.
    pub(crate) label: String,
    /// Relative component paths are below it; none for a bundle.
    pub(crate) dir: Option<PathBuf>,
    pub(crate) items: Vec<Item>,
    /// The installed plugin that it is of.
    pub(crate) plugin: Option<Pin>,
}

/// One item of the list.
pub(crate) struct Item {
    /// 1-based.
    pub(crate) number: usize,
    pub(crate) line: usize,
    pub(crate) id: Option<String>,
    /// The rows of `insert`.
    pub(crate) insert: Option<Vec<Map>>,
    /// All other keys.
    pub(crate) keys: Map,
}

impl Layer {
    /// A file; none where it is missing.
    pub(crate) fn read_optional(path: &Path) -> Result<Option<Self>, Error> {
        match file::read_optional(path)? {
            Some(text) => Self::of_file(path, &text).map(Some),
            None => Ok(None),
        }
    }

    /// A file that has to be there.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        Self::of_file(path, &file::read(path)?)
    }

    fn of_file(path: &Path, text: &str) -> Result<Self, Error> {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        Self::parse(path, absolute.parent(), text)
    }

    /// A text under the label `path`.
    pub(crate) fn parse(path: &Path, dir: Option<&Path>, text: &str) -> Result<Self, Error> {
        let root = file::document(path, text).map_err(|e| hint_at_empty_list(e, text))?;
        let label = path.display().to_string();
        let items = match root {
            None => Vec::new(),
            Some(Node {
                kind: Kind::Null, ..
            }) => Vec::new(),
            Some(Node {
                kind: Kind::Seq(nodes),
                ..
            }) => nodes
                .into_iter()
                .enumerate()
                .map(|(i, node)| item(i + 1, node).map_err(|fault| at_item(&label, i + 1, fault)))
                .collect::<Result<_, _>>()?,
            Some(other) => {
                let message = format!(
                    "a patch file is a list of items (`- id: …`), this is {}",
                    other.noun()
                );
                return Err(file::at(
                    path,
                    Fault {
                        line: other.line,
                        message,
                    },
                ));
            }
        };
        Ok(Self {
            label,
            dir: dir.map(Path::to_owned),
            items,
            plugin: None,
        })
    }
}

pub(crate) fn at_item(label: &str, item: usize, fault: Fault) -> Error {
    Error::Item {
        layer: label.to_owned(),
        item,
        line: fault.line,
        message: fault.message,
    }
}

/// Items appended below a template's `[]` are the most common way to break the
/// file, and the parser's message does not tell it.
fn hint_at_empty_list(error: Error, text: &str) -> Error {
    match error {
        Error::Document {
            path,
            line,
            message,
        } if text.lines().any(|l| l.trim() == "[]") => Error::Document {
            path,
            line,
            message: format!("{message} (remove the line `[]` when items follow it)"),
        },
        other => other,
    }
}

fn item(number: usize, node: Node) -> Result<Item, Fault> {
    let line = node.line;
    let mut keys = mapping(node, "an item")?;
    let id = match take(&mut keys, "id") {
        None => None,
        Some(Node {
            kind: Kind::Null, ..
        }) => None,
        Some(Node {
            kind: Kind::String(id),
            ..
        }) => Some(id),
        Some(other) => return Err(wrong(&other, "`id` is a string")),
    };
    let insert = match take(&mut keys, "insert") {
        None => None,
        Some(Node {
            kind: Kind::Seq(rows),
            ..
        }) => Some(
            rows.into_iter()
                .map(|row| mapping(row, "a row of `insert`"))
                .collect::<Result<_, _>>()?,
        ),
        Some(other) => return Err(wrong(&other, "`insert` is a list of rows")),
    };
    Ok(Item {
        number,
        line,
        id,
        insert,
        keys,
    })
}

/// The members of a mapping, with `what` it has to be in the error otherwise.
pub(crate) fn mapping(node: Node, what: &str) -> Result<Map, Fault> {
    match node.kind {
        Kind::Map(map) => Ok(map),
        _ => Err(wrong(&node, &format!("{what} is a mapping"))),
    }
}

fn wrong(node: &Node, rule: &str) -> Fault {
    Fault {
        line: node.line,
        message: format!("{rule}, this is {}", node.noun()),
    }
}

fn take(map: &mut Map, key: &str) -> Option<Node> {
    let at = map.0.iter().position(|(k, _)| k == key)?;
    Some(map.0.remove(at).1)
}
