//! The projection cache: states of read models of many sessions in one file. `spec/session.md` §10.3.
//!
//! Everything in it can be folded from the logs again, so it may be late, be gone or be refused, and nothing else may
//! happen for it: a failure is for a warning. It must never be *ahead* of a log, for a state that knows events which a
//! crash took away would be believed. So a checkpoint is taken first, then the log is flushed, and only then the file
//! replaced.
//!
//! The file is upstream's, byte for byte, and both may use the same one. It is written whole: a temporary file, synced,
//! then renamed over the old one, then the directory synced. Two processes of ours take turns by an OS lock beside the
//! file, and whoever has it reads the file again before it changes its own record, so no record is lost. Upstream
//! takes no lock and keeps its table in memory; running beside it, the later of two writers wins, and what is lost is
//! time.
//!
//! A run writes it (`dsh_agent::projection`), where upstream mounts its cache in the web profile only: lists of sessions
//! show what is in it. It holds the sessions that were written last, up to [`LARGEST`], as it is written whole.

mod check;
mod document;
pub mod made;
mod policy;

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod document_tests;
#[cfg(test)]
mod made_tests;
#[cfg(test)]
mod policy_tests;
#[cfg(test)]
mod projcache_tests;
#[cfg(test)]
mod write_tests;

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use dsh_session::Header;
use dsh_session::projection::{Registry, Rows, Snapshot};

use crate::StoreError;
use crate::lock::label;
use crate::storage::{Disk, Held, Storage};

pub use document::{LARGEST, Records};
pub use policy::{Due, WRITE_EVERY_EVENTS, WRITE_INTERVAL, WritePoints};

/// The folder of the file below `$DSH_HOME`.
pub const CACHE_DIR: &str = "storages";
/// The name of the file.
pub const CACHE_FILE: &str = "session_projcache.json";

/// Bytes of a file that is read: far above what is written ([`LARGEST`], and indents), as upstream keeps every session
/// for ever in it.
pub const LARGEST_FILE: u64 = 64 << 20;

/// How long a writer waits for another one. A write takes a few milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

/// The file. Calls block on the file system.
#[derive(Clone)]
pub struct ProjectionCache {
    path: PathBuf,
    storage: Arc<dyn Storage>,
}

impl ProjectionCache {
    /// The file where upstream has it: `storages/session_projcache.json` below `home`. It need not exist.
    ///
    /// # Errors
    /// [`StoreError::ProjectionCache`] when there is a file that is no cache of this version; it is left alone.
    pub fn open(home: &Path) -> Result<ProjectionCache, StoreError> {
        Self::with_storage(home.join(CACHE_DIR).join(CACHE_FILE), Arc::new(Disk))
    }

    /// [`ProjectionCache::open`] without a look at the file: whoever reads or writes sees what it is.
    pub fn at(home: &Path) -> ProjectionCache {
        ProjectionCache {
            path: home.join(CACHE_DIR).join(CACHE_FILE),
            storage: Arc::new(Disk),
        }
    }

    /// The file at `path`, on another file system.
    ///
    /// # Errors
    /// As [`ProjectionCache::open`].
    pub fn with_storage(
        path: PathBuf,
        storage: Arc<dyn Storage>,
    ) -> Result<ProjectionCache, StoreError> {
        let cache = ProjectionCache { path, storage };
        cache.read()?;
        Ok(cache)
    }

    /// Where the file is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All records, as they are now; none when there is no file. What is no regular file is not waited for, and of what
    /// is too large no more is read than shows it.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::ProjectionCache`].
    pub fn read(&self) -> Result<Records, StoreError> {
        let failed = |e| StoreError::io("read", &self.path)(e);
        let (file, meta) = match self.storage.open_read_meta(&self.path) {
            Ok(opened) => opened,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Records::default()),
            Err(e) => return Err(failed(e)),
        };
        if !meta.is_file {
            return Err(self.unusable("it is no regular file".to_owned()));
        }
        let mut bytes = Vec::new();
        // Not by the size alone: the file may grow while it is read.
        let read = file.take(LARGEST_FILE + 1).read_to_end(&mut bytes);
        read.map_err(failed)?;
        self.fits(bytes.len())?;
        Records::parse(&bytes).map_err(|reason| self.unusable(reason))
    }

    fn fits(&self, bytes: usize) -> Result<(), StoreError> {
        if bytes as u64 > LARGEST_FILE {
            return Err(self.unusable(format!("it has more than {LARGEST_FILE} bytes")));
        }
        Ok(())
    }

    fn unusable(&self, reason: String) -> StoreError {
        StoreError::ProjectionCache {
            path: self.path.clone(),
            reason,
        }
    }

    /// The rows of one session; `None` when there is no record of just this session.
    ///
    /// # Errors
    /// As [`ProjectionCache::read`].
    pub fn rows(&self, header: &Header) -> Result<Option<Rows>, StoreError> {
        Ok(self.read()?.rows(header))
    }

    /// What is cached of one session, without a look at its log, which has `length` events: the views that `registry`
    /// can make of it, as of the oldest of them.
    ///
    /// # Errors
    /// As [`ProjectionCache::read`].
    pub fn snapshot(
        &self,
        registry: &Registry,
        header: &Header,
        length: u64,
    ) -> Result<Option<Snapshot>, StoreError> {
        Ok(self.read()?.snapshot(registry, header, length))
    }

    /// Replaces the record of one session. Call it only with what the session's log holds durably. Rows that the
    /// record has of units unknown here stay, since a row may be behind the others.
    ///
    /// # Errors
    /// [`StoreError::Io`], [`StoreError::ProjectionCache`]. The file is then what it was.
    pub fn put(&self, header: &Header, rows: &Rows) -> Result<(), StoreError> {
        self.change(|records| records.put(header, rows))
    }

    /// Forgets a session.
    ///
    /// # Errors
    /// As [`ProjectionCache::put`].
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        if self.read()?.contains(id) {
            self.change(|records| records.remove(id))?;
        }
        Ok(())
    }

    fn change(&self, change: impl FnOnce(&mut Records) -> bool) -> Result<(), StoreError> {
        self.make_dir()?;
        let _held = self.lock()?;
        // The file is read under the lock: another process may have written since it was last seen.
        let mut records = self.read()?;
        if !change(&mut records) {
            return Ok(());
        }
        let text = records.text();
        // What could not be read again is not written.
        self.fits(text.len())?;
        self.replace(text.as_bytes())
    }

    fn dir(&self) -> &Path {
        self.path.parent().unwrap_or(Path::new("."))
    }

    fn make_dir(&self) -> Result<(), StoreError> {
        let dir = self.dir();
        match self.storage.create_dir(dir) {
            Ok(()) => {
                let above = dir.parent().unwrap_or(Path::new("/"));
                self.storage
                    .sync_dir(above)
                    .map_err(StoreError::io("sync", above))
            }
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(e) => Err(StoreError::io("make", dir)(e)),
        }
    }

    /// Beside the file, not the file itself: that one is replaced, and a lock on it would go with the old one.
    fn lock(&self) -> Result<Box<dyn Held>, StoreError> {
        let path = self.beside("lock");
        let failed = |e| StoreError::io("lock", &path)(e);
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(held) = self.storage.try_lock(&path, &label()).map_err(failed)? {
                return Ok(held);
            }
            if Instant::now() >= end {
                return Err(failed(io::ErrorKind::WouldBlock.into()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".");
        name.push(suffix);
        name.into()
    }

    /// Called under the lock, so a temporary file that is there was left by a process that died.
    fn replace(&self, bytes: &[u8]) -> Result<(), StoreError> {
        let tmp = self.beside("tmp");
        let written = self.write_new(&tmp, bytes).and_then(|()| {
            let renamed = self.storage.rename(&tmp, &self.path);
            renamed.map_err(StoreError::io("replace", &self.path))
        });
        if let Err(e) = written {
            let _ = self.storage.remove_file(&tmp);
            return Err(e);
        }
        let dir = self.dir();
        self.storage
            .sync_dir(dir)
            .map_err(StoreError::io("sync", dir))
    }

    fn write_new(&self, tmp: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = match self.storage.create_new(tmp) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                self.storage
                    .remove_file(tmp)
                    .map_err(StoreError::io("remove", tmp))?;
                self.storage.create_new(tmp)
            }
            created => created,
        }
        .map_err(StoreError::io("create", tmp))?;
        file.write_all(bytes)
            .map_err(StoreError::io("write", tmp))?;
        file.sync().map_err(StoreError::io("sync", tmp))
    }
}
