//! What a component says of itself, read without running it.
//!
//! Its imports are an audit: nothing else can be called. Its exports say what
//! it is. Both come from the component's own sections, never from the manifest,
//! which can only narrow them. Nested modules are stepped over, so this costs
//! the same for a large component as for a small one.

use std::fmt::{self, Write as _};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use wasmparser::{
    Chunk, ComponentTypeRef, CustomSectionReader, Encoding, KnownCustom, Parser, Payload,
};

use crate::contract;
use crate::error::Error;
use crate::manifest::{self, Manifest};

/// The largest component that is taken: compiling costs memory by its size.
pub(crate) const MAX_SIZE: u64 = 64 << 20;

/// An import or export of a component, by its full name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct Interface {
    name: String,
}

impl Interface {
    pub(crate) fn new(name: impl Into<String>) -> Self {
        Self { name: name.into() }
    }

    /// As the component has it: `dsh:plugin/tool@0.1.0`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The short name and the version, if it is of the contract.
    #[must_use]
    pub fn of_contract(&self) -> Option<(&str, &str)> {
        self.name.strip_prefix("dsh:plugin/")?.split_once('@')
    }
}

impl fmt::Display for Interface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// What can be told of a component without compiling it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Description {
    /// SHA-256 of its bytes, in lower-case hex.
    pub digest: String,
    /// Its size in bytes.
    pub size: u64,
    /// The newest version of the contract that its imports and exports name; none
    /// where it has none of the contract.
    pub contract: Option<String>,
    /// What it imports, in its order.
    pub imports: Vec<Interface>,
    /// What it exports, in its order.
    pub exports: Vec<Interface>,
    /// Its manifest, where it has one.
    pub manifest: Option<Manifest>,
    /// What its standard metadata sections say.
    pub metadata: Metadata,
}

/// Metadata that tools of all kinds write into components, each a text of its own.
/// Nobody checks it, so it is for people to read and for nothing else.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Metadata {
    /// Section `authors`.
    pub authors: Option<String>,
    /// Section `licenses`: an SPDX expression.
    pub licences: Option<String>,
    /// Section `description`.
    pub description: Option<String>,
    /// Section `version`.
    pub version: Option<String>,
    /// Section `producers`: `language Rust`, `processed-by wit-component 0.254.2`.
    pub producers: Vec<String>,
}

impl Description {
    /// Reads a component.
    ///
    /// # Errors
    /// Too large, not a component, a damaged manifest, or a contract version
    /// that this host does not serve.
    pub fn read(wasm: &[u8]) -> Result<Self, Error> {
        // Taken last, of what is known to be a component.
        let mut description = Self::read_with_digest(wasm, "")?;
        description.digest = hex(&Sha256::digest(wasm));
        Ok(description)
    }

    /// The same where the digest is known.
    pub(crate) fn read_with_digest(wasm: &[u8], digest: &str) -> Result<Self, Error> {
        Self::of(Sections::read(wasm)?, digest)
    }

    /// What a component's sections amount to; checked here, whether they were
    /// read now or are kept from before.
    pub(crate) fn of(sections: Sections, digest: &str) -> Result<Self, Error> {
        let manifest = sections
            .manifest
            .map(|section| Manifest::parse(section.as_bytes()))
            .transpose()?;
        let interfaces = |names: Vec<String>| names.into_iter().map(Interface::new).collect();
        let mut description = Self {
            digest: digest.to_owned(),
            size: sections.size,
            contract: None,
            imports: interfaces(sections.imports),
            exports: interfaces(sections.exports),
            manifest,
            metadata: sections.metadata,
        };
        let mut newest = None;
        for interface in description.imports.iter().chain(&description.exports) {
            contract::check_version(interface)?;
            let version = interface.of_contract();
            newest = newest.max(version.and_then(|(_, text)| semver::Version::parse(text).ok()));
        }
        description.contract = newest.map(|version| version.to_string());
        manifest::check(&description)?;
        Ok(description)
    }

    /// Who made it, by its manifest or else by its metadata.
    #[must_use]
    pub fn authors(&self) -> Vec<String> {
        match &self.manifest {
            Some(manifest) if !manifest.plugin.authors.is_empty() => {
                manifest.plugin.authors.clone()
            }
            _ => self.metadata.authors.iter().cloned().collect(),
        }
    }

    /// Its licence, by its manifest or else by its metadata.
    #[must_use]
    pub fn licence(&self) -> Option<&str> {
        match &self.manifest {
            Some(manifest) if !manifest.plugin.licence.is_empty() => Some(&manifest.plugin.licence),
            _ => self.metadata.licences.as_deref(),
        }
    }

    /// Whether it exports this interface of the contract, by its short name.
    #[must_use]
    pub fn exports_interface(&self, short: &str) -> bool {
        self.exports
            .iter()
            .any(|export| export.of_contract().is_some_and(|(name, _)| name == short))
    }
}

/// What a component's own sections say, as the cache keeps it beside machine
/// code: from it a [`Description`] is made without the component's bytes.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sections {
    /// Of the whole component, in bytes.
    size: u64,
    imports: Vec<String>,
    exports: Vec<String>,
    /// The manifest's text, as it stands.
    manifest: Option<String>,
    metadata: Metadata,
}

impl Sections {
    /// Reads them.
    pub(crate) fn read(wasm: &[u8]) -> Result<Self, Error> {
        let size = wasm.len() as u64;
        if size > MAX_SIZE {
            return Err(Error::TooLarge {
                size,
                max: MAX_SIZE,
            });
        }
        if wasmtime::Engine::detect_precompiled(wasm).is_some() {
            return Err(Error::Precompiled);
        }
        let mut sections = walk(wasm)?;
        sections.size = size;
        Ok(sections)
    }
}

fn walk(wasm: &[u8]) -> Result<Sections, Error> {
    let broken = |error: wasmparser::BinaryReaderError| {
        // The first bytes are no magic number: its spelling helps nobody.
        let text = error.message();
        Error::NotWasm(
            text.split_once(" - expected")
                .map_or(text, |(short, _)| short)
                .to_owned(),
        )
    };
    let mut found = Sections::default();
    let mut parser = Parser::new(0);
    let mut rest = wasm;
    loop {
        let (consumed, payload) = match parser.parse(rest, true).map_err(broken)? {
            Chunk::Parsed { consumed, payload } => (consumed, payload),
            Chunk::NeedMoreData(_) => return Err(Error::NotWasm("it ends too early".to_owned())),
        };
        let mut step = consumed;
        match payload {
            Payload::Version {
                encoding: Encoding::Module,
                ..
            } => return Err(Error::CoreModule),
            Payload::ModuleSection {
                unchecked_range: range,
                ..
            }
            | Payload::ComponentSection {
                unchecked_range: range,
                ..
            } => {
                step = step.saturating_add(range.end - range.start);
            }
            Payload::ComponentImportSection(reader) => {
                for import in reader {
                    let import = import.map_err(broken)?;
                    // A type on its own is not something that can be called.
                    if !matches!(import.ty, ComponentTypeRef::Type(_)) {
                        found.imports.push(import.name.name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(reader) => {
                for export in reader {
                    let export = export.map_err(broken)?;
                    found.exports.push(export.name.name.to_owned());
                }
            }
            Payload::CustomSection(section) if section.name() == manifest::SECTION => {
                if found.manifest.is_some() {
                    return Err(Error::Manifest("the component has two of them".to_owned()));
                }
                found.manifest = Some(manifest::text(section.data())?.to_owned());
            }
            Payload::CustomSection(section) => found.metadata.take(&section),
            Payload::End(_) => return Ok(found),
            _ => {}
        }
        rest = rest
            .get(step..)
            .ok_or_else(|| Error::NotWasm("it ends too early".to_owned()))?;
    }
}

/// What is kept of a text of the metadata, in bytes.
const METADATA: usize = 1 << 10;

impl Metadata {
    fn take(&mut self, section: &CustomSectionReader<'_>) {
        let kept = |bytes: &[u8]| {
            let text = String::from_utf8_lossy(&bytes[..bytes.len().min(METADATA)]);
            Some(text.trim().to_owned()).filter(|text| !text.is_empty())
        };
        match section.name() {
            "authors" => self.authors = kept(section.data()),
            "licenses" => self.licences = kept(section.data()),
            "description" => self.description = kept(section.data()),
            "version" => self.version = kept(section.data()),
            _ => {
                let KnownCustom::Producers(fields) = section.as_known() else {
                    return;
                };
                // Damaged, it says nothing, and nothing depends on it.
                self.producers.clear();
                for field in fields.into_iter().flatten().take(8) {
                    for value in field.values.into_iter().flatten().take(8) {
                        let said = format!("{} {} {}", field.name, value.name, value.version);
                        self.producers.extend(kept(said.as_bytes()));
                    }
                }
            }
        }
    }
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

/// A loaded component: what it says of itself, and machine code to mount.
pub struct Component {
    pub(crate) description: Description,
    pub(crate) code: wasmtime::component::Component,
}

impl Component {
    /// SHA-256 of the component's bytes, in lower-case hex.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.description.digest
    }

    /// All that it says of itself.
    #[must_use]
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Its manifest, where it has one.
    #[must_use]
    pub fn manifest(&self) -> Option<&Manifest> {
        self.description.manifest.as_ref()
    }
}

impl fmt::Debug for Component {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Component")
            .field(&self.description.digest)
            .finish()
    }
}

#[cfg(test)]
#[path = "component_tests.rs"]
mod tests;
