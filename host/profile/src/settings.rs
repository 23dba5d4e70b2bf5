//! `$DSH_HOME/settings.yaml`: what a person set, laid over the rows.
//!
//! The sections that stand for a row here are checked when the document is read,
//! and a wrong one stops the boot with its line. A section that belongs to
//! nothing here may be another program's: it is left alone.

use crate::providers::{RETRY, SECTION, check_section};
use crate::shape::{self, Rule, Table};
use crate::yaml::{Fault, Kind, Node};
use crate::{Error, Home, file};
use serde_json::{Map, Value};
use std::fmt;

/// The document, read and checked once. `Debug` shows the sections' names.
#[derive(Clone, Default)]
pub struct Settings {
    sections: Map<String, Value>,
}

/// The sections that are laid over the row of the same id, with the members that
/// the host itself reads. A component checks its own by its schema.
const SECTIONS: [(&str, Table); 4] = [
    (
        "agent-default-model",
        &[
            ("provider", Rule::Text),
            ("model", Rule::Text),
            ("reasoningEffort", Rule::Text),
        ],
    ),
    ("agent-loop", &[("maxParallelToolCalls", Rule::Count)]),
    (
        "llm-deepseek",
        &[
            ("apiKeyEnv", Rule::Name),
            ("baseURL", Rule::Url),
            ("retryPolicy", Rule::Map(RETRY)),
        ],
    ),
    ("permission", &[("defaultPreset", Rule::Text)]),
];

impl Settings {
    /// Reads the document; a missing or empty one has no sections.
    ///
    /// # Errors
    /// A document that is no mapping, or a section of ours of a wrong shape, with
    /// file and line.
    pub fn load(home: &Home) -> Result<Self, Error> {
        let path = home.path().join("settings.yaml");
        let Some(text) = file::read_optional(&path)? else {
            return Ok(Self::default());
        };
        match file::document(&path, &text)? {
            Some(root) => check(&root).map_err(|fault| file::at(&path, fault)),
            None => Ok(Self::default()),
        }
    }

    /// One section, of ours or not.
    #[must_use]
    pub fn section(&self, name: &str) -> Option<&Value> {
        self.sections.get(name)
    }

    /// The section that is laid over the row of this id.
    pub(crate) fn for_row(&self, id: &str) -> Option<&Value> {
        let known = id == SECTION || SECTIONS.iter().any(|(name, _)| *name == id);
        self.section(id)
            .filter(|section| known && section.is_object())
    }
}

fn check(root: &Node) -> Result<Settings, Fault> {
    let Kind::Map(map) = &root.kind else {
        if matches!(root.kind, Kind::Null) {
            return Ok(Settings::default());
        }
        return Err(Fault {
            line: root.line,
            message: format!(
                "settings are a mapping of sections, this is {}",
                root.noun()
            ),
        });
    };
    let mut sections = Map::new();
    for (name, node) in &map.0 {
        if name == SECTION {
            check_section(node)?;
        } else if let Some((_, table)) = SECTIONS.iter().find(|(known, _)| known == name) {
            check_known(name, node, table)?;
        }
        sections.insert(name.clone(), node.plain_json()?);
    }
    Ok(Settings { sections })
}

/// The members that are known, and no word of others: they may be another version's.
fn check_known(name: &str, section: &Node, table: Table) -> Result<(), Fault> {
    let map = match &section.kind {
        Kind::Map(map) => map,
        Kind::Null => return Ok(()),
        _ => {
            return Err(Fault {
                line: section.line,
                message: format!(
                    "the section `{name}` is a mapping, this is {}",
                    section.noun()
                ),
            });
        }
    };
    table.iter().try_for_each(|(key, rule)| match map.get(key) {
        Some(node) => shape::check(&format!("{name}.{key}"), node, *rule),
        None => Ok(()),
    })
}

impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Settings")
            .field(&self.sections.keys().collect::<Vec<_>>())
            .finish()
    }
}

#[cfg(test)]
#[path = "settings_tests.rs"]
mod tests;
