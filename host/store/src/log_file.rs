//! One log file as its writer sees it: absent, then published whole, then growing batch by batch.
//!
//! The order of the calls below is the promise. A first batch is written to a file of
//! another name, synced, and linked to its real name, so header and batch appear
//! together or not at all, and two writers cannot both publish. Later batches are
//! appended and synced; what a failed append left is cut off again, so that the file
//! always ends at a batch that was called durable (spec/session.md §9.4).

use std::collections::HashSet;
use std::ffi::OsStr;
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dsh_session::{Event, Header, rows};
use rustix::io::Errno;

use crate::checkpoint;
use crate::layout::{self, Compression};
use crate::lock::{self, LOCK_FILE};
use crate::storage::{self, Held, Storage, StorageFile};
use crate::{StoreError, frame};

/// So many bytes at the end of the file are compared before each append; with
/// Zstandard they hold the last frame's checksum.
const TAIL: usize = 64;

/// How batches become bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Encoding {
    pub(crate) compression: Compression,
    pub(crate) pack: bool,
}

impl Encoding {
    pub(crate) fn text(self, text: &str) -> io::Result<Vec<u8>> {
        match self.compression {
            Compression::None => Ok(text.as_bytes().to_vec()),
            Compression::Zstd => frame::encode(text.as_bytes()),
        }
    }

    pub(crate) fn batch(self, events: &[Arc<Event>]) -> io::Result<Vec<u8>> {
        let mut text = String::new();
        rows::write_batch(events, self.pack, &mut text);
        self.text(&text)
    }
}

/// The end of the file as we left it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) len: u64,
    pub(crate) last: Vec<u8>,
}

impl Tail {
    /// The end after more bytes.
    pub(crate) fn after(mut self, bytes: &[u8]) -> Self {
        self.len += bytes.len() as u64;
        self.last
            .extend_from_slice(&bytes[bytes.len().saturating_sub(TAIL)..]);
        let surplus = self.last.len().saturating_sub(TAIL);
        self.last.drain(..surplus);
        self
    }
}

enum State {
    /// Nothing is published.
    Absent,
    /// Published under its name, but the name is not durable yet. Holds the other name.
    Linked(PathBuf),
    /// Ready for appends.
    Ready,
    /// A failed append could not be undone: bytes after the tail are ours and worthless.
    Dirty,
}

/// Directories whose names this store has synced: the root and its projects need that once, not for each session.
#[derive(Clone, Default)]
pub(crate) struct Settled(Arc<Mutex<HashSet<PathBuf>>>);

impl Settled {
    fn has(&self, dir: &Path) -> bool {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(dir)
    }

    fn add(&self, dir: &Path) {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(dir.to_owned());
    }
}

/// The log of one session, exclusively ours once the lock is held.
pub(crate) struct LogFile {
    storage: Arc<dyn Storage>,
    root: PathBuf,
    path: PathBuf,
    id: String,
    header_line: String,
    encoding: Encoding,
    lock: Option<Box<dyn Held>>,
    /// The published file, open from its first append on. What is appended goes there even when its name has
    /// come to name another file since it was compared.
    file: Option<Box<dyn StorageFile>>,
    state: State,
    tail: Tail,
    next_seq: u64,
    settled: Settled,
}

/// Takes the lock of a session's directory, which must exist.
pub(crate) fn take_lock(
    storage: &dyn Storage,
    dir: &Path,
    id: &str,
) -> Result<Box<dyn Held>, StoreError> {
    let path = dir.join(LOCK_FILE);
    match storage.try_lock(&path, &lock::label()) {
        Ok(Some(held)) => Ok(held),
        Ok(None) => Err(StoreError::Locked {
            id: id.to_owned(),
            holder: lock::holder(storage, &path),
            path,
        }),
        Err(e) if cannot_lock(&e) => Err(StoreError::CannotLock {
            path,
            source: Arc::new(e),
        }),
        Err(e) => Err(StoreError::io("lock", &path)(e)),
    }
}

/// Whether an error says that this file system has no locks at all, now or ever.
fn cannot_lock(e: &io::Error) -> bool {
    let none = [Errno::NOLCK, Errno::NOTSUP, Errno::OPNOTSUPP, Errno::NOSYS];
    e.kind() == io::ErrorKind::Unsupported
        || none
            .iter()
            .any(|errno| e.raw_os_error() == Some(errno.raw_os_error()))
}

/// Gives a whole, synced file its name, in one step and never over another file. Some file systems have no hard
/// links (FAT, some network and FUSE mounts); there it is renamed. Where even that cannot spare a file of that
/// name, the lock and a look must do: only a program that ignores the lock could come between.
fn name(storage: &dyn Storage, tmp: &Path, path: &Path) -> io::Result<()> {
    match storage.link(tmp, path) {
        Err(e) if without(&e) => {}
        done => return done,
    }
    match storage.rename_new(tmp, path) {
        Err(e) if without(&e) => {}
        done => return done,
    }
    if storage::exists(storage, path)? {
        return Err(io::ErrorKind::AlreadyExists.into());
    }
    storage.rename(tmp, path)
}

/// Whether a file system answers so that does not know the operation.
fn without(e: &io::Error) -> bool {
    use io::ErrorKind::{InvalidInput, PermissionDenied, Unsupported};
    matches!(e.kind(), InvalidInput | PermissionDenied | Unsupported)
        || e.raw_os_error() == Some(Errno::MLINK.raw_os_error())
}

impl LogFile {
    /// A log that does not exist yet.
    pub(crate) fn absent(
        storage: Arc<dyn Storage>,
        root: &Path,
        header: &Header,
        encoding: Encoding,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            storage,
            root: root.to_owned(),
            path: layout::log_path(root, header, encoding.compression)?,
            id: header.id.to_string(),
            header_line: header.line() + "\n",
            encoding,
            lock: None,
            file: None,
            state: State::Absent,
            tail: Tail::default(),
            next_seq: 0,
            settled: Settled::default(),
        })
    }

    /// Shares what other logs of the store know of its directories.
    pub(crate) fn sharing(mut self, settled: &Settled) -> Self {
        self.settled = settled.clone();
        self
    }

    /// The log at `path`, read under `lock`: it ends with `end`, and decodes to `next_seq` events.
    pub(crate) fn opened(
        mut self,
        path: &Path,
        lock: Box<dyn Held>,
        end: Tail,
        next_seq: u64,
    ) -> Self {
        path.clone_into(&mut self.path);
        self.lock = Some(lock);
        self.state = State::Ready;
        self.tail = end;
        self.next_seq = next_seq;
        self
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    /// Gives the lock back. Of a session that was never published nothing is left: the lock file goes while it
    /// is held (who waits at its door looks again whether it still has the name, [`lock::try_lock`]), then the directory.
    /// A long log's checkpoint is left for who opens it next.
    pub(crate) fn release(&mut self) {
        self.file = None;
        let Some(held) = self.lock.take() else {
            return;
        };
        if matches!(self.state, State::Ready) {
            checkpoint::refresh(&self.storage, &self.path, &self.tail);
        }
        if !matches!(self.state, State::Absent) {
            return;
        }
        let dir = self.path.parent().unwrap_or(&self.root);
        let removed = self.storage.remove_file(&dir.join(LOCK_FILE));
        drop(held);
        if removed.is_ok() {
            // Not when somebody else came in meanwhile.
            let _ = self.storage.remove_dir(dir);
        }
    }

    /// Makes durable what a killed writer may have left in the system's memory alone: bytes that were read are
    /// acknowledged from now on. Removes what else it left.
    pub(crate) fn settle_found(&self) -> Result<(), StoreError> {
        let dir = self.path.parent().unwrap_or(&self.root);
        sweep(&*self.storage, dir);
        self.storage
            .open_append(&self.path)
            .and_then(|mut file| file.sync())
            .map_err(StoreError::io("sync", &self.path))?;
        self.storage
            .sync_dir(dir)
            .map_err(StoreError::io("sync", dir))
    }

    /// Makes a batch durable, or changes nothing that a reader would accept.
    ///
    /// May be called again with the same batch, or a longer one that begins with it.
    pub(crate) fn write(&mut self, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        if let State::Linked(tmp) = &self.state {
            let tmp = tmp.clone();
            self.settle(&tmp)?;
        }
        // A publish whose last sync failed has its events in the file already.
        let written = batch.iter().take_while(|e| e.seq.0 < self.next_seq).count();
        let batch = &batch[written..];
        let Some(first) = batch.first() else {
            return Ok(());
        };
        if first.seq.0 != self.next_seq {
            return Err(StoreError::Sequence {
                id: self.id.clone(),
                expected: self.next_seq,
                got: first.seq.0,
            });
        }
        let bytes = self
            .encoding
            .batch(batch)
            .map_err(StoreError::io("encode a batch for", &self.path))?;
        match self.state {
            State::Absent => self.publish(&bytes, batch.len() as u64),
            _ => self.append(&bytes, batch.len() as u64),
        }
    }

    fn publish(&mut self, batch: &[u8], events: u64) -> Result<(), StoreError> {
        let dir = self.path.parent().unwrap_or(&self.root).to_owned();
        self.make_dirs(&dir)?;
        if self.lock.is_none() {
            self.lock = Some(take_lock(&*self.storage, &dir, &self.id)?);
        }
        sweep(&*self.storage, &dir);
        let other = dir.join(self.encoding.compression.other().file_name());
        for path in [&other, &self.path] {
            if storage::exists(&*self.storage, path).map_err(StoreError::io("look for", path))? {
                return Err(StoreError::AlreadyExists {
                    id: self.id.clone(),
                    path: path.clone(),
                });
            }
        }
        let mut bytes = self
            .encoding
            .text(&self.header_line)
            .map_err(StoreError::io("encode the header of", &self.path))?;
        bytes.extend_from_slice(batch);
        let tmp = tmp_name(&self.path);
        let linked = self.write_new(&tmp, &bytes).and_then(|()| {
            name(&*self.storage, &tmp, &self.path).map_err(|e| match e.kind() {
                io::ErrorKind::AlreadyExists => StoreError::AlreadyExists {
                    id: self.id.clone(),
                    path: self.path.clone(),
                },
                _ => StoreError::io("publish", &self.path)(e),
            })
        });
        if let Err(e) = linked {
            let _ = self.storage.remove_file(&tmp);
            return Err(e);
        }
        self.tail = Tail::default().after(&bytes);
        self.next_seq += events;
        self.state = State::Linked(tmp.clone());
        self.settle(&tmp)
    }

    /// Makes the published name durable. The other name is only litter then.
    fn settle(&mut self, tmp: &Path) -> Result<(), StoreError> {
        let dir = self.path.parent().unwrap_or(&self.root);
        self.storage
            .sync_dir(dir)
            .map_err(StoreError::io("sync", dir))?;
        let _ = self.storage.remove_file(tmp);
        self.state = State::Ready;
        Ok(())
    }

    fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<(), StoreError> {
        let mut file = self
            .storage
            .create_new(path)
            .map_err(StoreError::io("create", path))?;
        file.write_all(bytes)
            .map_err(StoreError::io("write", path))?;
        file.sync().map_err(StoreError::io("sync", path))
    }

    /// Makes root, project and session directory, each name durable before anything lies in it.
    fn make_dirs(&self, dir: &Path) -> Result<(), StoreError> {
        self.make_above(&self.root)?;
        if let Some(project) = dir.parent() {
            self.make_settled(project)?;
        }
        make_dir(&*self.storage, dir)
    }

    /// Makes the root and what is missing above it.
    fn make_above(&self, root: &Path) -> Result<(), StoreError> {
        let storage = &*self.storage;
        if let Some(parent) = root.parent()
            && !storage::exists(storage, root).map_err(StoreError::io("look for", root))?
        {
            self.make_above(parent)?;
        }
        self.make_settled(root)
    }

    /// [`make_dir`] for a directory that many sessions share.
    fn make_settled(&self, dir: &Path) -> Result<(), StoreError> {
        if self.settled.has(dir)
            && storage::exists(&*self.storage, dir).map_err(StoreError::io("look for", dir))?
        {
            return Ok(());
        }
        make_dir(&*self.storage, dir)?;
        self.settled.add(dir);
        Ok(())
    }

    fn append(&mut self, bytes: &[u8], events: u64) -> Result<(), StoreError> {
        let mut file = match self.file.take() {
            Some(file) => file,
            None => self
                .storage
                .open_append(&self.path)
                .map_err(|e| self.gone(e, "open"))?,
        };
        self.check_tail(&*file)?;
        let written = file.write_all(bytes).and_then(|()| file.sync());
        // After a failure it is opened anew.
        self.file = written.is_ok().then_some(file);
        if let Err(source) = written {
            let source = Arc::new(source);
            let action = "append to";
            let path = self.path.clone();
            return Err(match self.storage.truncate(&self.path, self.tail.len) {
                Ok(()) => StoreError::Io {
                    action,
                    path,
                    source,
                },
                Err(rollback) => {
                    self.state = State::Dirty;
                    StoreError::Rollback {
                        action,
                        path,
                        source,
                        rollback: Arc::new(rollback),
                    }
                }
            });
        }
        let tail = std::mem::take(&mut self.tail);
        self.tail = tail.after(bytes);
        self.next_seq += events;
        Ok(())
    }

    /// A log whose name is gone was changed; anything else is the file system's failure.
    fn gone(&self, e: io::Error, action: &'static str) -> StoreError {
        if e.kind() == io::ErrorKind::NotFound {
            self.changed("it is gone".to_owned())
        } else {
            StoreError::io(action, &self.path)(e)
        }
    }

    fn changed(&self, reason: String) -> StoreError {
        StoreError::TailChanged {
            path: self.path.clone(),
            reason,
        }
    }

    /// Compares lock, name and end of the file with what we hold and wrote; cuts off what a failed append of ours left.
    fn check_tail(&mut self, file: &dyn StorageFile) -> Result<(), StoreError> {
        if let Some(lock) = &self.lock
            && !lock
                .has_its_name()
                .map_err(StoreError::io("look at the lock of", &self.path))?
        {
            return Err(self.changed("its lock was taken away".to_owned()));
        }
        let named = self.storage.metadata(&self.path);
        let named = named.map_err(|e| self.gone(e, "look at"))?;
        let open = file
            .metadata()
            .map_err(StoreError::io("look at", &self.path))?;
        if (named.revision.0, named.revision.1) != (open.revision.0, open.revision.1) {
            return Err(self.changed("another file has its name".to_owned()));
        }
        let found = open.len;
        let dirty = matches!(self.state, State::Dirty);
        let expected = self.tail.len;
        if found < expected || (found > expected && !dirty) {
            return Err(self.changed(format!("it has {found} bytes, {expected} were written")));
        }
        let mut last = [0; TAIL];
        let last = &mut last[..self.tail.last.len()];
        file.read_exact_at(last, expected - last.len() as u64)
            .map_err(StoreError::io("read the end of", &self.path))?;
        if last != self.tail.last {
            let len = last.len();
            return Err(self.changed(format!(
                "the last {len} bytes before {expected} are not what was written"
            )));
        }
        if dirty {
            self.storage
                .truncate(&self.path, expected)
                .map_err(StoreError::io("cut a half-written batch off", &self.path))?;
            self.state = State::Ready;
        }
        Ok(())
    }

    /// Cuts a torn tail off: the kept part is `kept`, which decodes to `next_seq` events.
    pub(crate) fn cut(&mut self, kept: Tail, next_seq: u64) -> Result<(), StoreError> {
        self.storage
            .truncate(&self.path, kept.len)
            .map_err(StoreError::io("cut the torn tail of", &self.path))?;
        self.tail = kept;
        self.next_seq = next_seq;
        Ok(())
    }
}

/// Makes one directory and its name durable; one that is there is as good, whoever made it.
fn make_dir(storage: &dyn Storage, path: &Path) -> Result<(), StoreError> {
    match storage.create_dir(path) {
        Ok(()) => {}
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        Err(e) => return Err(StoreError::io("create directory", path)(e)),
    }
    let Some(parent) = path.parent() else {
        return Ok(());
    };
    match storage.sync_dir(parent) {
        // A parent that may not be opened was not made by us.
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done.map_err(StoreError::io("sync", parent)),
    }
}

/// Removes files of first batches whose writer died before they had their name, or the other name of those that have.
/// Under the lock nobody else is writing one. Litter does no harm, so failing does not either.
fn sweep(storage: &dyn Storage, dir: &Path) {
    for path in storage.read_dir(dir).unwrap_or_default() {
        if path.file_name().is_some_and(is_tmp_name) {
            let _ = storage.remove_file(&path);
        }
    }
}

/// Whether [`tmp_name`] makes it, of a log or of its checkpoint.
fn is_tmp_name(name: &OsStr) -> bool {
    let hex = name
        .to_str()
        .and_then(|name| {
            let log = name.strip_prefix("session.jsonl");
            let log = log.map(|name| name.strip_prefix(".zstd").unwrap_or(name));
            log.or_else(|| name.strip_prefix(checkpoint::FILE))
        })
        .and_then(|name| name.strip_prefix('.')?.strip_suffix(".tmp"));
    hex.is_some_and(|hex| hex.len() == 12 && hex.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// `<final>.<12 hex>.tmp`, as upstream names a file that is being written. That nobody else has the name is for the
/// exclusive create to see to.
pub(crate) fn tmp_name(path: &Path) -> PathBuf {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:012x}.tmp", hasher.finish() & 0xffff_ffff_ffff));
    name.into()
}

#[cfg(test)]
#[path = "log_file_tests.rs"]
mod tests;
