//! `dsh.lock`: the plugins that a profile has installed.
//!
//! It is TOML, written whole by `dsh` alone, and its order is the order of the
//! plugins' layers. It pins each plugin's bytes by digest and holds what a person
//! granted, together with the digest that it was granted to: bytes of another
//! digest have no grants, whatever else the file says.
//!
//! A person may have edited it, so reading goes plugin by plugin. One that breaks
//! a rule is left out with a line ([`Lock::damaged`]) and is written back as it
//! stands until it is removed or installed again; the others are used. Only what
//! is no TOML, or a version that is not known, is an error as a whole, which a
//! boot reports and does without ([`crate::Profile::compose`]).
//!
//! TOML has no null, so a configuration that holds one is refused when it is
//! written, with the member's path, rather than changed into something else.

mod read;
mod write;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt;

/// The file's name in a profile's directory.
pub(crate) const FILE: &str = "dsh.lock";

/// The version of the file's shape.
const VERSION: i64 = 1;

/// What a profile has installed.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Lock {
    /// In the order of their layers; names are unique.
    pub plugins: Vec<Installed>,
    /// Entries that break a rule. They are not used, and not lost either.
    pub damaged: Vec<Damaged>,
    /// What else is wrong with the file: lines that name it and the fix.
    pub problems: Vec<String>,
}

/// One installed plugin.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Installed {
    /// `namespace:name` in kebab-case, as in `acme:weather`.
    pub name: String,
    /// As its manifest says it.
    pub version: String,
    /// An absolute path or an `https://` URL: where an update looks.
    pub source: String,
    /// SHA-256 of the component's bytes as they are stored, in lower-case hex.
    pub digest: String,
    /// SHA-256 of what the source gave, where a component was made of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fetched: Option<String>,
    /// The version of the contract that it was built for, as in `0.1.0`.
    pub contract: String,
    /// None of its rows is mounted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// Names of tools that it reserves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
    /// Names of commands that it reserves.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub commands: Vec<String>,
    /// The digest that `grants` were given to; blank where none were.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub granted_to: String,
    /// Who signed it, where that was verified.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signed>,
    /// Grant's name -> `true` or its parameters, for each of its rows. Ask
    /// [`Installed::granted`] for what counts.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub grants: Map<String, Value>,
    /// Limits of each of its rows.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub limits: Map<String, Value>,
    /// What it brings into the profile, in order; ids are unique among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<LockedRow>,
}

/// A row that an installed plugin brings.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct LockedRow {
    /// Letters, digits, `.`, `_` and `-`, at most 64.
    pub id: String,
    /// Not mounted.
    #[serde(default, skip_serializing_if = "is_false")]
    pub disabled: bool,
    /// An object.
    #[serde(default = "empty", skip_serializing_if = "is_empty")]
    pub config: Value,
}

impl Default for LockedRow {
    fn default() -> Self {
        Self {
            id: String::new(),
            disabled: false,
            config: empty(),
        }
    }
}

/// A verified signature.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub struct Signed {
    /// The minisign public key in base64.
    pub key: String,
    /// The trusted comment, which the signature covers.
    #[serde(default)]
    pub comment: String,
}

/// An entry of the lock that breaks a rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Damaged {
    /// Its name, where that can be read.
    pub name: Option<String>,
    /// A whole line: file, place, plugin, rule and fix.
    pub message: String,
    raw: toml::Value,
}

impl Lock {
    /// The plugin of a name.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<&Installed> {
        self.plugins.iter().find(|plugin| plugin.name == name)
    }

    /// The plugin of a name, to change it.
    pub fn find_mut(&mut self, name: &str) -> Option<&mut Installed> {
        self.plugins.iter_mut().find(|plugin| plugin.name == name)
    }

    /// Puts a plugin in the place of the one of its name (a damaged entry of
    /// that name goes), else at the end.
    pub fn put(&mut self, plugin: Installed) {
        self.damaged
            .retain(|damaged| damaged.name.as_deref() != Some(&plugin.name));
        match self.find_mut(&plugin.name) {
            Some(old) => *old = plugin,
            None => self.plugins.push(plugin),
        }
    }

    /// Takes a plugin out, and damaged entries of its name with it; whether there
    /// was any.
    pub fn remove(&mut self, name: &str) -> bool {
        let before = self.plugins.len() + self.damaged.len();
        self.plugins.retain(|plugin| plugin.name != name);
        self.damaged
            .retain(|damaged| damaged.name.as_deref() != Some(name));
        before != self.plugins.len() + self.damaged.len()
    }

    /// All that is wrong with the file, a line each.
    pub fn faults(&self) -> impl Iterator<Item = &str> {
        let damaged = self.damaged.iter().map(|damaged| damaged.message.as_str());
        self.problems.iter().map(String::as_str).chain(damaged)
    }
}

impl Installed {
    /// Its grants, if they were given to these bytes; else nothing.
    #[must_use]
    pub fn granted(&self) -> Map<String, Value> {
        if self.granted_to == self.digest {
            self.grants.clone()
        } else {
            Map::new()
        }
    }

    /// How its layer is named: `acme:weather 0.3.1`.
    #[must_use]
    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// What a row needs to know of it.
    #[must_use]
    pub fn pin(&self) -> Pin {
        Pin {
            name: self.name.clone(),
            version: self.version.clone(),
            digest: self.digest.clone(),
            source: self.source.clone(),
        }
    }
}

/// Which bytes a row of an installed plugin mounts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    /// `acme:weather`
    pub name: String,
    /// `0.3.1`
    pub version: String,
    /// SHA-256 of the component's bytes, in lower-case hex.
    pub digest: String,
    /// Where it came from, and can be had again.
    pub source: String,
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.version)
    }
}

/// Whether a text names an installed plugin: `namespace:name` in kebab-case, and
/// not one of the first party's, whose namespace is `dsh`.
#[must_use]
pub fn is_plugin_name(text: &str) -> bool {
    text.split_once(':').is_some_and(|(namespace, name)| {
        namespace != FIRST_PARTY && is_kebab(namespace) && is_kebab(name)
    })
}

/// The namespace of the components that are built in.
pub(crate) const FIRST_PARTY: &str = "dsh";

fn is_kebab(text: &str) -> bool {
    text.len() <= 64
        && text.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

/// Whether a text is a SHA-256 in lower-case hex.
#[must_use]
pub fn is_digest(text: &str) -> bool {
    text.len() == 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a plugin's row may have this id.
#[must_use]
pub fn is_row_id(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"._-".contains(&byte))
}

/// What a terminal obeys rather than shows: controls, and marks that turn text
/// around.
pub(crate) fn is_obeyed(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_false(value: &bool) -> bool {
    !value
}

fn empty() -> Value {
    Value::Object(Map::new())
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(Map::is_empty)
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
