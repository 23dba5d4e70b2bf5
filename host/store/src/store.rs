//! The front: one store is one root directory.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use dsh_session::Session;

use crate::StoreError;
use crate::layout::Compression;
use crate::list::Entry;
use crate::load::{Inspection, Target};
use crate::storage::{Disk, Storage};
use crate::writer::Writer;

/// Called for each background write that failed; the events are kept and the next one, or a flush, tries again.
/// Gets the session's id and the cause. Must not block.
pub type FailureHook = Arc<dyn Fn(&str, &StoreError) + Send + Sync>;

/// How a store works. Start from [`StoreConfig::new`].
#[derive(Clone)]
pub struct StoreConfig {
    /// Where the projects lie; made on the first write. A relative path is resolved once.
    pub root: PathBuf,
    /// How logs are encoded.
    pub compression: Compression,
    /// Whether runs of streamed chunks are written as one line. Affects writing only.
    pub pack_chunks: bool,
    /// How long the first event of a batch may wait for others, 1 ms to 2^31-1 ms.
    pub write_batch_max_delay: Duration,
    /// Told of failed background writes.
    pub on_failure: Option<FailureHook>,
}

impl StoreConfig {
    /// Upstream's defaults: Zstandard, packed, 200 ms.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self {
            root: root.into(),
            compression: Compression::Zstd,
            pack_chunks: true,
            write_batch_max_delay: Duration::from_millis(200),
            on_failure: None,
        }
    }
}

/// Session logs below one root. Cheap to clone; clones share the writing threads.
///
/// Calls block on the file system; an async caller wraps the reading ones
/// ([`Store::resume`], [`Store::inspect`], [`Store::list`]) in `spawn_blocking`.
#[derive(Clone)]
pub struct Store {
    _config: StoreConfig,
}

impl Store {
    /// A store on the real file system. Nothing is touched yet.
    ///
    /// # Errors
    /// [`StoreError::Config`].
    pub fn open(config: StoreConfig) -> Result<Self, StoreError> {
        Self::with_storage(config, Arc::new(Disk))
    }

    /// A store on another file system.
    ///
    /// # Errors
    /// [`StoreError::Config`].
    pub fn with_storage(
        config: StoreConfig,
        storage: Arc<dyn Storage>,
    ) -> Result<Self, StoreError> {
        let _ = (config, storage);
        todo!()
    }

    /// The absolute root.
    pub fn root(&self) -> &Path {
        todo!()
    }

    /// A writer for a session that is not stored yet. Events that the session already has are queued. Nothing is on
    /// disk before the first batch, which takes the lock.
    ///
    /// # Errors
    /// [`StoreError::AlreadyExists`], [`StoreError::Layout`], [`StoreError::EmptyName`], [`StoreError::Io`].
    pub fn create(&self, session: &Session) -> Result<Writer, StoreError> {
        let _ = session;
        todo!()
    }

    /// Opens a stored session for writing: takes the lock, cuts a torn tail, commits the closers of an open turn, and
    /// restores the session. `session/end-seed`, stamped with `time_ms`, is queued as the first event.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Locked`], [`StoreError::Damaged`], [`StoreError::Layout`], [`StoreError::Io`].
    pub fn resume(&self, id: &str, time_ms: i64) -> Result<(Session, Writer), StoreError> {
        let _ = (id, time_ms);
        todo!()
    }

    /// Commits the repair that [`Store::resume`] would, and nothing else.
    ///
    /// # Errors
    /// As [`Store::resume`].
    pub fn repair(&self, id: &str) -> Result<Inspection, StoreError> {
        let _ = id;
        todo!()
    }

    /// Reads a log without changing anything: the longest sound prefix, and the damage if there is one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Layout`], [`StoreError::Io`]; [`StoreError::Damaged`] only when not even
    /// the header can be read.
    pub fn inspect(&self, target: &Target) -> Result<Inspection, StoreError> {
        let _ = target;
        todo!()
    }

    /// All stored sessions, ordered by path, by their headers alone. One that cannot be read is an entry with its
    /// damage; it hides no other.
    ///
    /// # Errors
    /// [`StoreError::Io`] when the root itself cannot be read; an absent root is empty.
    pub fn list(&self) -> Result<Vec<Entry>, StoreError> {
        todo!()
    }

    /// The log of a session.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Layout`], [`StoreError::Io`].
    pub fn find(&self, id: &str) -> Result<PathBuf, StoreError> {
        let _ = id;
        todo!()
    }
}
