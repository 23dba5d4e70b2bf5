//! A component's manifest: `plugin.toml` as JSON, in a section of its own.
//!
//! It says who the component is, what it asks for, and what it will append. It
//! grants nothing: what is asked for here a person may give. What is not of its
//! shape is refused when the component is read (`Manifest::parse`), and so is a
//! manifest that says what its component is not (`manifest/lies.rs`). Members
//! that this host does not know are passed over, since a later one may, and
//! listed for who looks.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::Error;
use crate::grants::Grants;
use crate::limits::Limits;

mod lies;

pub(crate) use lies::{check, export_for, lacks};

/// The custom section's name.
pub const SECTION: &str = "dsh:manifest";

/// What is read of it: larger is no manifest.
const MAX: usize = 1 << 20;

/// Rows that a plugin may bring.
const MAX_ROWS: usize = 64;

/// A manifest.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// Who it is.
    pub plugin: About,
    /// Rows that `dsh plugin add` inserts.
    #[serde(default)]
    pub rows: Vec<Row>,
    /// Its configuration.
    #[serde(default)]
    pub config: Config,
    /// Grants that it asks for, by name.
    #[serde(default)]
    pub wants: Map<String, Value>,
    /// What it appends to logs.
    #[serde(default)]
    pub events: Events,
    /// Limits that it asks for.
    #[serde(default)]
    pub limits: Map<String, Value>,
    /// Members that this host does not know, as `rows[0].colour`.
    #[serde(default)]
    pub unknown: Vec<String>,
}

/// Who a component is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct About {
    /// `namespace:name`, kebab-case.
    pub name: String,
    /// Its version, by the rules of semver.
    pub version: String,
    /// In a sentence.
    #[serde(default)]
    pub description: String,
    /// An SPDX expression.
    #[serde(default, alias = "license")]
    pub licence: String,
    /// Who made it.
    #[serde(default)]
    pub authors: Vec<String>,
    /// The contract's version that it says it was built for. What its imports and
    /// exports name decides; one that differs from them is refused.
    #[serde(default)]
    pub contract: Option<String>,
    /// Whether a tool's instance is to be kept between calls.
    #[serde(default)]
    pub stateful: bool,
    /// When its tools are listed.
    #[serde(default)]
    pub tools: Listing,
}

/// When a component's tools are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Listing {
    /// When it is mounted.
    #[default]
    Static,
    /// Before each step, too.
    Dynamic,
}

impl About {
    /// The part of the name before the colon.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.name
            .split_once(':')
            .map_or("", |(namespace, _)| namespace)
    }
}

/// A row that installing the plugin adds to the profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Row {
    /// Its id, kebab-case.
    pub id: String,
    /// Its configuration, an object.
    #[serde(default)]
    pub config: Map<String, Value>,
    /// Whether a person has to enable it first.
    #[serde(default)]
    pub disabled: bool,
}

/// A component's configuration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Config {
    /// JSON Schema of a row's `config`.
    #[serde(default)]
    pub schema: Option<Value>,
}

/// What a component appends to logs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Events {
    /// Event kinds of its own namespace.
    #[serde(default)]
    pub appends: Vec<String>,
    /// Message source kinds that it may stamp.
    #[serde(default)]
    pub sources: Vec<String>,
}

/// The section's content as text.
pub(crate) fn text(section: &[u8]) -> Result<&str, Error> {
    if section.len() > MAX {
        return Err(bad(format!(
            "{} bytes, and {MAX} are allowed",
            section.len()
        )));
    }
    std::str::from_utf8(section).map_err(|error| bad(error.to_string()))
}

impl Manifest {
    /// Reads the section's content.
    pub(crate) fn parse(section: &[u8]) -> Result<Self, Error> {
        let value: Value =
            serde_json::from_slice(section).map_err(|error| bad(error.to_string()))?;
        let unknown = unknown(&value);
        let mut manifest: Self =
            serde_json::from_value(value).map_err(|error| bad(error.to_string()))?;
        manifest.unknown = unknown;
        manifest.shape()?;
        Ok(manifest)
    }

    /// What can be told of its fields on their own.
    fn shape(&self) -> Result<(), Error> {
        let About { name, version, .. } = &self.plugin;
        let named = name
            .split_once(':')
            .is_some_and(|(namespace, name)| kebab(namespace) && kebab(name));
        if !named {
            return Err(bad(format!(
                "plugin.name is {name:?}, and must be `namespace:name` in kebab-case"
            )));
        }
        if let Err(error) = semver::Version::parse(version) {
            return Err(bad(format!(
                "plugin.version is {version:?}, and must be a version like `0.3.1`: {error}"
            )));
        }
        if self.rows.len() > MAX_ROWS {
            return Err(bad(format!(
                "it has {} rows, and {MAX_ROWS} are allowed",
                self.rows.len()
            )));
        }
        for (index, Row { id, .. }) in self.rows.iter().enumerate() {
            if !kebab(id) {
                return Err(bad(format!(
                    "rows[{index}].id is {id:?}, and must be an id in kebab-case"
                )));
            }
            if self.rows[..index].iter().any(|row| row.id == *id) {
                return Err(bad(format!("two of its rows have the id {id}")));
            }
        }
        if self
            .config
            .schema
            .as_ref()
            .is_some_and(|schema| !schema.is_object())
        {
            return Err(bad("config.schema must be a JSON Schema, an object"));
        }
        match Limits::default().with(&Value::Object(self.limits.clone())) {
            Err(Error::Limit { limit, reason }) => {
                return Err(bad(format!("limits.{limit}: {reason}")));
            }
            other => drop(other?),
        }
        match Grants::parse(&Value::Object(self.wants.clone())) {
            Err(Error::Grant { grant, reason }) => Err(bad(format!("wants.{grant}: {reason}"))),
            other => other.map(drop),
        }
    }
}

fn bad(reason: impl Into<String>) -> Error {
    Error::Manifest(reason.into())
}

/// Members of each table; of `wants` and `limits`, those who read them know.
const TABLES: [(&str, &[&str]); 3] = [
    (
        "plugin",
        &[
            "name",
            "version",
            "description",
            "licence",
            "license",
            "authors",
            "contract",
            "stateful",
            "tools",
        ],
    ),
    ("config", &["schema"]),
    ("events", &["appends", "sources"]),
];

fn unknown(manifest: &Value) -> Vec<String> {
    let mut found = Vec::new();
    let mut look = |path: &str, table: Option<&Value>, known: &[&str]| {
        for key in table
            .and_then(Value::as_object)
            .into_iter()
            .flat_map(Map::keys)
        {
            if !known.contains(&key.as_str()) {
                found.push(format!("{path}{}", key.escape_debug()));
            }
        }
    };
    let tables = ["plugin", "rows", "config", "wants", "events", "limits"];
    look("", Some(manifest), &tables);
    for (table, known) in TABLES {
        look(&format!("{table}."), manifest.get(table), known);
    }
    let rows = manifest.get("rows").and_then(Value::as_array);
    for (index, row) in rows.into_iter().flatten().enumerate() {
        look(
            &format!("rows[{index}]."),
            Some(row),
            &["id", "config", "disabled"],
        );
    }
    found
}

pub(crate) fn kebab(text: &str) -> bool {
    text.len() <= 64
        && text.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

#[cfg(test)]
#[path = "manifest_tests.rs"]
mod tests;
