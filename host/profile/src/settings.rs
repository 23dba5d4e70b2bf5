//! `$DSH_HOME/settings.yaml`: what a person set, laid over the rows.
//!
//! The sections that stand for a row here are checked when the document is read,
//! and a wrong one stops the boot with its line. A section that belongs to
//! nothing here may be another program's: it is left alone.

use crate::yaml::{Fault, Kind, Node};
use crate::{Error, Home, file};
use serde_json::{Map, Value};
use std::fmt;

/// The document, read and checked once. `Debug` shows the sections' names.
#[derive(Clone, Default)]
pub struct Settings {
    sections: Map<String, Value>,
}

/// A member of a section, and what it has to be.
#[derive(Clone, Copy)]
enum Rule {
    Text,
    Count,
}

/// The sections that are laid over the row of the same id, with the members that
/// the host itself reads. A component checks its own by its schema.
const SECTIONS: [(&str, &[(&str, Rule)]); 4] = [
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
        &[("apiKeyEnv", Rule::Text), ("baseURL", Rule::Text)],
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
        let known = SECTIONS.iter().any(|(name, _)| *name == id);
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
        if let Some((_, rules)) = SECTIONS.iter().find(|(known, _)| known == name) {
            check_section(name, node, rules)?;
        }
        sections.insert(name.clone(), node.plain_json()?);
    }
    Ok(Settings { sections })
}

fn check_section(name: &str, section: &Node, rules: &[(&str, Rule)]) -> Result<(), Fault> {
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
    for (key, rule) in rules {
        let Some(node) = map.get(key) else { continue };
        let wanted = match (rule, &node.kind) {
            (Rule::Text, Kind::String(text)) if !text.trim().is_empty() => continue,
            (Rule::Text, _) => "a string that is not empty",
            (Rule::Count, Kind::Number(n)) if n.as_u64().is_some_and(|n| n > 0) => continue,
            (Rule::Count, _) => "a whole number above 0",
        };
        return Err(Fault {
            line: node.line,
            message: format!("`{name}.{key}` must be {wanted}"),
        });
    }
    Ok(())
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
