//! A component's manifest: `plugin.toml` as JSON, in a section of its own.
//!
//! It says who the component is, what it asks for, and what it will append. It
//! grants nothing: what is asked for here a person may give.

use serde::Deserialize;
use serde_json::Value;

use crate::error::Error;

/// The custom section's name.
pub const SECTION: &str = "dsh:manifest";

/// What is read of it: larger is no manifest.
const MAX: usize = 1 << 20;

/// A manifest. Members that are not named here are kept in none of the fields.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Manifest {
    /// Who it is.
    pub plugin: About,
    /// Rows that `dsh plugin add` inserts.
    #[serde(default)]
    pub rows: Vec<Value>,
    /// Its configuration.
    #[serde(default)]
    pub config: Config,
    /// Grants that it asks for, by name.
    #[serde(default)]
    pub wants: serde_json::Map<String, Value>,
    /// What it appends to logs.
    #[serde(default)]
    pub events: Events,
    /// Limits that it asks for.
    #[serde(default)]
    pub limits: serde_json::Map<String, Value>,
}

/// Who a component is.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[non_exhaustive]
pub struct About {
    /// `namespace:name`, kebab-case.
    pub name: String,
    /// Its version.
    pub version: String,
    /// In a sentence.
    #[serde(default)]
    pub description: String,
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

/// A component's configuration.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[non_exhaustive]
pub struct Config {
    /// JSON Schema of a row's `config`.
    #[serde(default)]
    pub schema: Option<Value>,
}

/// What a component appends to logs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
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
        return Err(Error::Manifest(format!(
            "{} bytes, and {MAX} are allowed",
            section.len()
        )));
    }
    std::str::from_utf8(section).map_err(|error| Error::Manifest(error.to_string()))
}

impl Manifest {
    /// Reads the section's content.
    pub(crate) fn parse(section: &[u8]) -> Result<Self, Error> {
        let manifest: Self =
            serde_json::from_slice(section).map_err(|error| Error::Manifest(error.to_string()))?;
        let name = &manifest.plugin.name;
        let named = name
            .split_once(':')
            .is_some_and(|(namespace, name)| kebab(namespace) && kebab(name));
        if !named {
            return Err(Error::Manifest(format!(
                "plugin.name is {name:?}, and must be `namespace:name` in kebab-case"
            )));
        }
        Ok(manifest)
    }
}

fn kebab(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= 64
        && text.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_what_a_plugin_toml_says() {
        let text = br#"{"plugin":{"name":"acme:weather","version":"0.3.1","licence":"MIT"},
            "wants":{"kv":true},"events":{"appends":["acme/weather-seen"]},"limits":{"memory":"32MiB"},"x":1}"#;
        let manifest = Manifest::parse(text).unwrap();
        assert_eq!(manifest.plugin.namespace(), "acme");
        assert_eq!(manifest.events.appends, ["acme/weather-seen"]);
        assert_eq!(manifest.limits["memory"], "32MiB");
    }

    #[test]
    fn refuses_a_name_without_a_namespace_and_what_is_no_json() {
        for name in [
            "weather",
            "acme:",
            ":weather",
            "Acme:weather",
            "acme:wea ther",
            "acme:-a",
            "a:b:c",
        ] {
            let text = format!(r#"{{"plugin":{{"name":"{name}","version":"1"}}}}"#);
            assert!(
                matches!(Manifest::parse(text.as_bytes()), Err(Error::Manifest(_))),
                "{name}"
            );
        }
        assert!(matches!(Manifest::parse(b"{"), Err(Error::Manifest(_))));
        assert!(matches!(Manifest::parse(b"{}"), Err(Error::Manifest(_))));
    }
}
