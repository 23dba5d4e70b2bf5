//! From plugins to the file's text.

use super::{FILE, Installed, Lock, VERSION};
use crate::Error;
use serde::Serialize;
use serde_json::Value;
use std::path::Path;

const HEADER: &str = "\
# The plugins of this profile: which bytes, from where, and what they may do.
# dsh alone writes this file; change it with `dsh plugin`, and rows in cordis.patch.yml.
";

#[derive(Serialize)]
struct Document<'a> {
    version: i64,
    plugin: Vec<Entry<'a>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Entry<'a> {
    Sound(&'a Installed),
    Damaged(&'a toml::Value),
}

impl Lock {
    /// The file's text. What it says reads back equal.
    ///
    /// # Errors
    /// [`Error::Unlockable`]: something that the file cannot hold, or that would
    /// not be read again.
    pub fn to_text(&self) -> Result<String, Error> {
        for plugin in &self.plugins {
            storable(plugin)?;
        }
        let sound = self.plugins.iter().map(Entry::Sound);
        let damaged = self.damaged.iter().map(|entry| Entry::Damaged(&entry.raw));
        let document = Document {
            version: VERSION,
            plugin: sound.chain(damaged).collect(),
        };
        let refused = |plugin: String, reason: String| Error::Unlockable { plugin, reason };
        let body = toml::to_string(&document)
            .map_err(|error| refused("these plugins".to_owned(), error.to_string()))?;
        let text = format!("{HEADER}{body}");
        let back = Self::parse(Path::new(FILE), &text)?;
        if back.plugins.len() < self.plugins.len() {
            let fault = back.damaged.first();
            return Err(refused(
                fault
                    .and_then(|fault| fault.name.clone())
                    .unwrap_or_default(),
                fault.map(|fault| fault.message.clone()).unwrap_or_default(),
            ));
        }
        Ok(text)
    }
}

fn storable(plugin: &Installed) -> Result<(), Error> {
    match unstorable(plugin) {
        None => Ok(()),
        Some(reason) => Err(Error::Unlockable {
            plugin: plugin.name.clone(),
            reason,
        }),
    }
}

/// What of a plugin the file cannot hold, or would hold as something else.
pub(super) fn unstorable(plugin: &Installed) -> Option<String> {
    let configs = plugin
        .rows
        .iter()
        .map(|row| (format!("row {}: config", row.id), &row.config));
    let maps = [("grants", &plugin.grants), ("limits", &plugin.limits)];
    let members = maps.into_iter().flat_map(|(what, map)| {
        map.iter()
            .map(move |(key, value)| (format!("{what}.{key}"), value))
    });
    configs
        .chain(members)
        .find_map(|(at, value)| member(&at, value).err())
}

/// What of a value the file cannot hold, with its path.
fn member(at: &str, value: &Value) -> Result<(), String> {
    match value {
        // `nan` and `inf` come as null too.
        Value::Null => Err(format!(
            "{at} is null or no number, which {FILE} cannot hold; leave the member out"
        )),
        Value::Number(number) if !number.is_i64() && number.is_u64() => Err(format!(
            "{at} is {number}, and a whole number there is at most {}",
            i64::MAX
        )),
        Value::Array(items) => items
            .iter()
            .enumerate()
            .try_for_each(|(i, item)| member(&format!("{at}[{i}]"), item)),
        // How a date of TOML comes, which JSON has not.
        Value::Object(map) if map.keys().any(|key| key.starts_with("$__")) => {
            Err(format!("{at} is a date; quote it"))
        }
        Value::Object(map) => map
            .iter()
            .try_for_each(|(key, item)| member(&format!("{at}.{key}"), item)),
        _ => Ok(()),
    }
}
