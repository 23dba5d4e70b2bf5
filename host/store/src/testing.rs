//! What the tests of this crate share.

use std::collections::VecDeque;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dsh_session::Event;

use crate::storage::{Disk, Held, Meta, ReadSeek, Storage, StorageFile};

/// The crafted conformance cases of the session format.
pub(crate) fn cases() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/session")
}

/// A directory for tests that do not care whether a sync reaches a disk: in memory where there is such a place.
pub(crate) fn quick_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap_or_else(|_| tempfile::tempdir().unwrap())
}

/// The recorded cases, which are not part of the project: below `DSH_SHARED`, or a `shared` beside a parent directory.
pub(crate) fn recorded_cases() -> Option<PathBuf> {
    let named = std::env::var_os("DSH_SHARED").map(PathBuf::from);
    let above = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .map(|dir| dir.join("shared"));
    let mut places = named
        .into_iter()
        .chain(above)
        .map(|dir| dir.join("conformance/session/recorded"));
    places.find(|dir| dir.join("index.json").exists())
}

/// A case's file as JSON. Half surrogate pairs, which serde_json refuses, come out as U+FFFD.
pub(crate) fn json(case: &str, file: &str) -> serde_json::Value {
    json_at(&cases().join(case).join(file))
}

pub(crate) fn json_at(path: &Path) -> serde_json::Value {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    serde_json::from_str(&whole_pairs(&text)).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// Replaces the escapes of half surrogate pairs.
pub(crate) fn whole_pairs(text: &str) -> String {
    let unit = |at: usize| {
        let hex = text.get(at..at + 6)?.strip_prefix("\\u")?;
        u16::from_str_radix(hex, 16).ok()
    };
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let high = unit(at).is_some_and(|u| (0xd800..0xdc00).contains(&u));
        let low = unit(at).is_some_and(|u| (0xdc00..0xe000).contains(&u));
        let followed = unit(at + 6).is_some_and(|u| (0xdc00..0xe000).contains(&u));
        let len = match (c, high, low) {
            ('\\', true, _) if followed => 12,
            ('\\', true, _) | ('\\', _, true) => {
                out.push_str("\\ufffd");
                at += 6;
                continue;
            }
            ('\\', ..) => 2,
            _ => c.len_utf8(),
        };
        out.push_str(&text[at..at + len]);
        at += len;
    }
    out
}

/// The disk, with a journal of what was asked of it and faults on order.
pub(crate) struct Faulty {
    disk: Disk,
    root: PathBuf,
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Condvar>,
}

#[derive(Default)]
struct Inner {
    journal: Vec<String>,
    faults: VecDeque<Fault>,
    /// How many files were synced.
    synced: usize,
}

/// One operation that will fail once.
struct Fault {
    /// The operation's name in the journal.
    op: &'static str,
    /// For `write`: how many bytes still reach the file first. Else: how many times it works first.
    after: usize,
    kind: io::ErrorKind,
}

impl Inner {
    fn fault(&mut self, op: &str) -> Option<Fault> {
        let next = self.faults.front_mut().filter(|f| f.op == op)?;
        if next.after > 0 {
            next.after -= 1;
            return None;
        }
        self.faults.pop_front()
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Faulty {
    pub(crate) fn new(root: &Path) -> Arc<Self> {
        Arc::new(Self {
            disk: Disk,
            root: root.to_owned(),
            inner: Arc::default(),
            changed: Arc::default(),
        })
    }

    /// Lets the next `op` fail, after the faults that are on order already.
    pub(crate) fn fail(&self, op: &'static str, after: usize, kind: io::ErrorKind) {
        lock(&self.inner)
            .faults
            .push_back(Fault { op, after, kind });
    }

    /// Lets the `nth` `op` from now fail, counted from 1.
    pub(crate) fn fail_nth(&self, op: &'static str, nth: usize, kind: io::ErrorKind) {
        self.fail(op, nth - 1, kind);
    }

    /// Waits until so many files were synced in all; a minute means that they never will be.
    pub(crate) fn wait_for_syncs(&self, count: usize) {
        let minute = Duration::from_secs(60);
        let waited = self
            .changed
            .wait_timeout_while(lock(&self.inner), minute, |inner| inner.synced < count);
        assert!(
            !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out(),
            "nothing was synced"
        );
    }

    /// What changed the disk since the last call; `$` is the root, names of temporary files are `TMP`.
    pub(crate) fn journal(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.inner).journal)
    }

    fn note<T>(
        &self,
        op: &str,
        path: &Path,
        result: impl FnOnce() -> io::Result<T>,
    ) -> io::Result<T> {
        let mut name = path.strip_prefix(&self.root).map_or_else(
            |_| "outside".to_owned(),
            |p| {
                if p.as_os_str().is_empty() {
                    "$".to_owned()
                } else {
                    format!("$/{}", p.display())
                }
            },
        );
        if name.ends_with(".tmp") {
            name = "TMP".to_owned();
        }
        let mut inner = lock(&self.inner);
        inner.journal.push(format!("{op} {name}"));
        match inner.fault(op) {
            Some(fault) => Err(fault.kind.into()),
            None => {
                drop(inner);
                result()
            }
        }
    }
}

struct FaultyFile {
    file: Box<dyn StorageFile>,
    inner: Arc<Mutex<Inner>>,
    changed: Arc<Condvar>,
}

impl StorageFile for FaultyFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = lock(&self.inner);
        let Some(fault) = inner.faults.front_mut().filter(|f| f.op == "write") else {
            inner.journal.push("write".to_owned());
            drop(inner);
            return self.file.write(bytes);
        };
        let (after, kind) = (fault.after.min(bytes.len()), fault.kind);
        // A short write first, then the error, as a full disk does it.
        if after > 0 {
            fault.after = 0;
            inner.journal.push(format!("short write {after}"));
            drop(inner);
            return self.file.write(&bytes[..after]);
        }
        inner.faults.pop_front();
        inner.journal.push("failed write".to_owned());
        Err(kind.into())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = lock(&self.inner);
        inner.journal.push("sync".to_owned());
        if let Some(fault) = inner.fault("sync") {
            return Err(fault.kind.into());
        }
        drop(inner);
        self.file.sync()?;
        lock(&self.inner).synced += 1;
        self.changed.notify_all();
        Ok(())
    }

    fn metadata(&self) -> io::Result<Meta> {
        self.file.metadata()
    }

    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_exact_at(into, offset)
    }
}

impl Faulty {
    fn wrap(&self, file: Box<dyn StorageFile>) -> Box<dyn StorageFile> {
        Box::new(FaultyFile {
            file,
            inner: self.inner.clone(),
            changed: self.changed.clone(),
        })
    }
}

impl Storage for Faulty {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        self.note("mkdir", path, || self.disk.create_dir(path))
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.note("create", path, || self.disk.create_new(path))
            .map(|file| self.wrap(file))
    }
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        self.note("append", path, || self.disk.open_append(path))
            .map(|file| self.wrap(file))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        self.disk.open_read(path)
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("link", to, || self.disk.link(from, to))
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("rename", to, || self.disk.rename(from, to))
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.note("rename-new", to, || self.disk.rename_new(from, to))
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.note("unlink", path, || self.disk.remove_file(path))
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        self.note("rmdir", path, || self.disk.remove_dir(path))
    }
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        self.note("truncate", path, || self.disk.truncate(path, len))
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        self.note("syncdir", path, || self.disk.sync_dir(path))
    }
    fn metadata(&self, path: &Path) -> io::Result<Meta> {
        self.disk.metadata(path)
    }
    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        self.disk.is_symlink(path)
    }
    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        self.disk.read_dir(path)
    }
    fn try_lock(&self, path: &Path, contents: &str) -> io::Result<Option<Box<dyn Held>>> {
        self.note("lock", path, || self.disk.try_lock(path, contents))
    }
}

/// An event without meaning, for logs that are only counted.
pub(crate) fn todo_event(seq: u64) -> Arc<Event> {
    let line = format!(
        "{{\"type\":\"todo/write\",\"seq\":{seq},\"time\":{},\"data\":{{\"todos\":[]}}}}",
        1_700_000_000_000 + seq
    );
    Arc::new(Event::parse(&line).unwrap())
}
