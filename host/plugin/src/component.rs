//! What a component says of itself, read without running it.

use serde_json::Value;

/// An import or export that is an interface.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Interface {
    /// As the component names it: `dsh:plugin/tool@0.1.0`.
    pub name: String,
}

/// The manifest in the component's section `dsh:manifest`: `plugin.toml` as JSON.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// The whole of it.
    pub value: Value,
}

/// A loaded component: machine code that can be mounted, and its description.
/// Cheap to share as `Arc`.
#[derive(Debug)]
pub struct Component {
    digest: String,
    imports: Vec<Interface>,
    exports: Vec<Interface>,
    manifest: Option<Manifest>,
}

impl Component {
    /// SHA-256 of the component's bytes, in lower-case hex.
    #[must_use]
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What it imports, in its order.
    #[must_use]
    pub fn imports(&self) -> &[Interface] {
        &self.imports
    }

    /// What it exports, in its order.
    #[must_use]
    pub fn exports(&self) -> &[Interface] {
        &self.exports
    }

    /// Its manifest, where it has one.
    #[must_use]
    pub fn manifest(&self) -> Option<&Manifest> {
        self.manifest.as_ref()
    }
}
