//! The one engine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::component::Component;
use crate::error::Error;
use crate::mount::{Mounted, Row};

/// How an engine is set up.
#[derive(Debug, Clone, Default)]
pub struct EngineConfig {
    /// Where machine code and metadata are kept; nowhere without one.
    pub cache_dir: Option<PathBuf>,
    /// `version` of `config.about`.
    pub host_version: String,
}

/// The engine that all components of a process run on. Cheap to clone.
#[derive(Clone)]
pub struct Engine {}

impl Engine {
    /// Makes the engine; no thread starts before a component runs.
    ///
    /// # Errors
    /// The machine cannot run it.
    pub fn new(_config: EngineConfig) -> Result<Self, Error> {
        todo!()
    }

    /// A component that was built into this program, with machine code made by
    /// `dsh-aot` beside it (may be empty). Code of another engine is passed over
    /// and the component is compiled through the cache.
    ///
    /// # Errors
    /// As [`Engine::load_bytes`].
    pub async fn load_embedded(
        &self,
        _wasm: &'static [u8],
        _code: &'static [u8],
    ) -> Result<Arc<Component>, Error> {
        todo!()
    }

    /// A component from a file.
    ///
    /// # Errors
    /// Not readable, or as [`Engine::load_bytes`].
    pub async fn load_file(&self, _path: &Path) -> Result<Arc<Component>, Error> {
        todo!()
    }

    /// A component from its bytes: described, then compiled or taken from the
    /// cache.
    ///
    /// # Errors
    /// Not a component, too large, of an unknown contract version, not valid.
    pub async fn load_bytes(&self, _wasm: Vec<u8>) -> Result<Arc<Component>, Error> {
        todo!()
    }

    /// Mounts a row: checks its grants, links it, and asks it once what it offers.
    ///
    /// # Errors
    /// See [`Error`]: each names the row and what to do.
    pub async fn mount(&self, _row: Row) -> Result<Mounted, Error> {
        todo!()
    }
}
