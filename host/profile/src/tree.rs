use crate::{Composition, Environment, Error, Home, Settings};
use std::path::{Path, PathBuf};

/// Which layers are composed.
#[derive(Debug, Clone, Copy)]
pub enum Scope<'a> {
    /// Bundles, the person's own layers, then these `--patch` files in order.
    All(&'a [PathBuf]),
    /// Bundles alone: `--safe` and `--dump-default-config`. The person's layers
    /// are not even opened.
    Bundles,
}

/// A patch that did not apply. Displays as `[layer] patch: entry "X" not found`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The label of the layer that holds the patch.
    pub layer: String,
    /// What did not apply.
    pub message: String,
}

impl std::fmt::Display for Warning {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] {}", self.layer, self.message)
    }
}

/// The composed rows as written: expressions unevaluated, every row with the
/// layers that made it.
pub struct Tree {}

impl Tree {
    /// YAML in the format of spec/cli.md §2.3.
    pub fn dump(&self) -> String {
        todo!()
    }
    /// Patches that did not apply.
    pub fn warnings(&self) -> &[Warning] {
        todo!()
    }
    /// Evaluates the tree into what the host mounts.
    pub fn rows(&self, _inputs: &Inputs<'_>) -> Result<Composition, Error> {
        todo!()
    }
}

/// What expressions and rows may see.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    /// For `process.env.X`.
    pub env: &'a Environment,
    /// For `dshHomePath('…')`.
    pub home: &'a Home,
    /// Sections are laid over the config of the row of the same id.
    pub settings: &'a Settings,
    /// Relative paths in configs are below it.
    pub cwd: &'a Path,
}
