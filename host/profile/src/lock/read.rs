//! From the file's text to plugins, one by one.

use super::write::unstorable;
use super::{
    Damaged, FILE, Installed, Lock, VERSION, is_digest, is_obeyed, is_plugin_name, is_row_id,
};
use crate::{Error, yaml::Fault};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use std::collections::HashSet;
use std::path::Path;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

impl Lock {
    /// Reads a lock; `path` is for messages.
    ///
    /// # Errors
    /// No TOML, or of a version that is not known: nothing in it can be trusted
    /// to mean what it says.
    pub fn parse(path: &Path, text: &str) -> Result<Self, Error> {
        let place = Place { path, text };
        let table =
            DeTable::parse(text).map_err(|error| place.error(error.span(), not_toml(&error)))?;
        let root = table.into_inner();
        check_version(&place, &root)?;
        let mut lock = Self::default();
        for (key, value) in root {
            match key.get_ref().as_ref() {
                "version" => {}
                "plugin" => lock.read_plugins(&place, value)?,
                other => lock.problems.push(place.line(
                    Some(value.span()),
                    format_args!("{FILE} has no member {other:?}, so it is ignored; take it out"),
                )),
            }
        }
        Ok(lock)
    }

    fn read_plugins(
        &mut self,
        place: &Place<'_>,
        value: Spanned<DeValue<'_>>,
    ) -> Result<(), Error> {
        let span = value.span();
        let DeValue::Array(items) = value.into_inner() else {
            let message = "`plugin` is a list of tables ([[plugin]]); mend it, or delete the file and add its plugins again";
            return Err(place.error(Some(span), message.to_owned()));
        };
        for item in items {
            let span = item.span();
            // A number that nothing holds is no TOML, and could not be kept.
            let raw =
                toml::Value::deserialize(item.clone().into_deserializer()).map_err(|error| {
                    place.error(error.span().or(Some(span.clone())), not_toml(&error))
                })?;
            let text = |key: &str| raw.get(key).and_then(toml::Value::as_str);
            let name = text("name").map(str::to_owned);
            let source = text("source").map(str::to_owned);
            let (at, reason) = match Installed::deserialize(item.into_deserializer()) {
                Err(error) => (error.span(), error.message().to_owned()),
                Ok(plugin) => match self.fault(&plugin) {
                    Some(reason) => (None, reason),
                    None => {
                        if let Some(reason) = ungranted(&plugin) {
                            self.problems.push(place.line(Some(span), reason));
                        }
                        self.plugins.push(plugin);
                        continue;
                    }
                },
            };
            let message = place.line(
                Some(at.unwrap_or(span)),
                Broken {
                    name: name.as_deref(),
                    source: source.as_deref(),
                    reason: &reason,
                },
            );
            self.damaged.push(Damaged { name, message, raw });
        }
        Ok(())
    }

    /// The rule that a plugin breaks, given those before it.
    fn fault(&self, plugin: &Installed) -> Option<String> {
        if !is_plugin_name(&plugin.name) {
            return Some(
                "its name must be `namespace:name` in kebab-case, and not of `dsh`".to_owned(),
            );
        }
        if self.find(&plugin.name).is_some() {
            return Some("there are two entries of this name, and the first is used".to_owned());
        }
        let digests = [
            ("digest", Some(plugin.digest.as_str())),
            ("fetched", plugin.fetched.as_deref()),
            (
                "granted-to",
                Some(plugin.granted_to.as_str()).filter(|text| !text.is_empty()),
            ),
        ];
        for (key, digest) in digests {
            if let Some(digest) = digest.filter(|digest| !is_digest(digest)) {
                return Some(format!(
                    "`{key}` must be a SHA-256 in lower-case hex, and is {digest:?}"
                ));
            }
        }
        // They go to people's terminals.
        let texts = [
            ("version", &plugin.version),
            ("source", &plugin.source),
            ("contract", &plugin.contract),
        ];
        let lists = [("tools", &plugin.tools), ("commands", &plugin.commands)];
        let lists = lists
            .into_iter()
            .flat_map(|(key, list)| list.iter().map(move |text| (key, text)));
        for (key, text) in texts.into_iter().chain(lists) {
            if text.is_empty() || text.contains(is_obeyed) {
                return Some(format!(
                    "`{key}` must be text without control characters, and is {text:?}"
                ));
            }
        }
        let mut ids = HashSet::new();
        for row in &plugin.rows {
            if !is_row_id(&row.id) {
                return Some(format!(
                    "row {:?}: an id has letters, digits, `.`, `_` and `-`, and at most 64",
                    row.id
                ));
            }
            if !ids.insert(&row.id) {
                return Some(format!("row {}: two of its rows have this id", row.id));
            }
            if !row.config.is_object() {
                return Some(format!("row {}: `config` must be a table", row.id));
            }
        }
        unstorable(plugin)
    }
}

fn not_toml(error: &toml::de::Error) -> String {
    let message = error.message().lines().collect::<Vec<_>>().join(" ");
    format!("not TOML: {message}; mend the line, or delete the file and add its plugins again")
}

fn check_version(place: &Place<'_>, root: &DeTable<'_>) -> Result<(), Error> {
    let found = root.get("version");
    let span = found.map(Spanned::span);
    let number = found.and_then(|value| {
        let integer = value.get_ref().as_integer()?;
        i64::from_str_radix(integer.as_str(), integer.radix()).ok()
    });
    match number {
        Some(VERSION) => Ok(()),
        Some(other) => Err(place.error(
            span,
            format!(
                "version {other} of {FILE}, and this dsh knows {VERSION}; use the dsh that wrote it, or delete the file and add its plugins again"
            ),
        )),
        None => Err(place.error(
            span,
            format!(
                "`version = {VERSION}` is missing at its top; put it there, or delete the file and add its plugins again"
            ),
        )),
    }
}

/// Why a plugin has no grants although some are written.
fn ungranted(plugin: &Installed) -> Option<String> {
    (!plugin.grants.is_empty() && plugin.granted_to != plugin.digest).then(|| {
        let name = &plugin.name;
        format!(
            "plugin {name}: its grants were given to other bytes (`granted-to` differs from `digest`), so it has none; decide again with `dsh plugin grant {name} …`"
        )
    })
}

struct Broken<'a> {
    name: Option<&'a str>,
    source: Option<&'a str>,
    reason: &'a str,
}

impl std::fmt::Display for Broken<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // TOML's own messages may go over lines.
        let reason = self.reason.lines().collect::<Vec<_>>().join(" ");
        match self.name {
            Some(name) if is_plugin_name(name) => {
                write!(f, "plugin {name}: {reason}; left out; run `dsh plugin ")?;
                match self.source {
                    Some(source) if !source.contains(is_obeyed) => {
                        write!(f, "add {source}`")?;
                    }
                    _ => write!(f, "add SOURCE`")?,
                }
                write!(f, ", or `dsh plugin remove {name}`")
            }
            Some(name) => write!(
                f,
                "plugin {name:?}: {reason}; left out; take the entry out, and add the plugin again"
            ),
            None => write!(
                f,
                "a plugin: {reason}; left out; take the entry out, and add the plugin again"
            ),
        }
    }
}

/// Where a lock's text is, for messages with a line.
struct Place<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Place<'_> {
    fn number(&self, span: Option<std::ops::Range<usize>>) -> usize {
        let start = span.map_or(0, |span| span.start.min(self.text.len()));
        1 + self.text.as_bytes()[..start]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count()
    }

    fn line(
        &self,
        span: Option<std::ops::Range<usize>>,
        message: impl std::fmt::Display,
    ) -> String {
        format!("{}:{}: {message}", self.path.display(), self.number(span))
    }

    fn error(&self, span: Option<std::ops::Range<usize>>, message: String) -> Error {
        let line = self.number(span);
        crate::file::at(self.path, Fault { line, message })
    }
}
