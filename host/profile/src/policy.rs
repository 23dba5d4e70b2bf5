//! What a profile asks of plugins before it has them: `signatures` and
//! `trusted-keys` of its `profile.yml`.
//!
//! It is asked when one is installed, and again at each boot, so that a person who
//! starts to require signatures is not served what came before. At a boot the
//! lock's word is taken for a signature that was verified when it was installed;
//! the digest ties it to the bytes.

use crate::lock::Installed;
use crate::signature::Key;
use crate::yaml::{Fault, Kind, Map, Node};
use crate::{Error, file};
use std::path::Path;

/// What a profile asks of plugins.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// Each has to be signed: `signatures: required`.
    pub required: bool,
    /// Where there are any, a signature counts by these keys alone.
    pub trusted: Vec<Key>,
}

impl Policy {
    /// That of a `profile.yml`; one that asks nothing where there is none.
    ///
    /// # Errors
    /// Not what it has to be, with the line. A profile that asks for what cannot
    /// be checked is refused too: it must not pass for less than it says.
    pub(crate) fn read(path: &Path) -> Result<Self, Error> {
        let Some(text) = file::read_optional(path)? else {
            return Ok(Self::default());
        };
        match file::document(path, &text)? {
            Some(Node {
                kind: Kind::Map(map),
                ..
            }) => Self::of(&map).map_err(|fault| file::at(path, fault)),
            _ => Ok(Self::default()),
        }
    }

    fn of(map: &Map) -> Result<Self, Fault> {
        let mut policy = Self::default();
        // A misspelt word must not be a demand that nobody hears.
        const KNOWN: [&str; 3] = ["bundles", "signatures", "trusted-keys"];
        if let Some((key, node)) = map.0.iter().find(|(key, _)| !KNOWN.contains(&key.as_str())) {
            let message = format!(
                "profile.yml has no member {key:?}; it has {}",
                KNOWN.join(", ")
            );
            return Err(fault(node, &message));
        }
        if let Some(node) = map.get("signatures") {
            policy.required = match node.as_str() {
                Some("required") => true,
                Some("optional") => false,
                Some("sigstore") => {
                    return Err(fault(
                        node,
                        "`signatures: sigstore`: its proofs cannot be checked in full by this dsh, so it takes none; say `required` for minisign signatures",
                    ));
                }
                _ => return Err(fault(node, "`signatures` is `required` or `optional`")),
            };
        }
        if let Some(node) = map.get("trusted-keys") {
            const SHAPE: &str = "`trusted-keys` is a list of minisign public keys in base64";
            let Kind::Seq(keys) = &node.kind else {
                return Err(fault(node, SHAPE));
            };
            for node in keys {
                let text = node.as_str().ok_or_else(|| fault(node, SHAPE))?;
                let key = Key::parse(text)
                    .map_err(|error| fault(node, &format!("`trusted-keys`: {error}")))?;
                policy.trusted.push(key);
            }
        }
        Ok(policy)
    }

    /// Why a plugin that is installed is not to be used, none where it is.
    #[must_use]
    pub fn objection(&self, plugin: &Installed) -> Option<String> {
        let name = &plugin.name;
        match &plugin.signature {
            None if self.required => Some(format!(
                "the profile requires signatures, and it is not signed; install one that is (`dsh plugin add SOURCE --key KEY`), or take `signatures: required` out of profile.yml, or run `dsh plugin remove {name}`"
            )),
            Some(signed) if !self.trusts(&signed.key) => Some(format!(
                "it is signed by key {}, which is none of the profile's trusted-keys; put {} there, or run `dsh plugin remove {name}`",
                Key::parse(&signed.key)
                    .map_or_else(|_| "(damaged)".to_owned(), |key| key.id().to_string()),
                signed.key
            )),
            _ => None,
        }
    }

    /// Whether a signature by this key counts.
    #[must_use]
    pub fn trusts(&self, key: &str) -> bool {
        self.trusted.is_empty() || self.trusted.iter().any(|trusted| trusted.as_str() == key)
    }
}

fn fault(node: &Node, message: &str) -> Fault {
    Fault {
        line: node.line,
        message: message.to_owned(),
    }
}

#[cfg(test)]
#[path = "policy_tests.rs"]
mod tests;
