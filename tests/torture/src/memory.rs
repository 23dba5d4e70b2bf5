//! A file system in memory that remembers what a crash may take away.
//!
//! # The model
//!
//! What the store does is a list of [`Op`]s. Each is pending until the sync that covers it:
//! - **Data** (writes, truncations) of a file is pending until that file is synced. Each sector (512 B) reaches the disk
//!   on its own, in any order, as it was after some of the operations; a write may be torn at any byte; an operation may
//!   be done a second time after the others. A size may arrive before the data below it, also rounded up to the
//!   next 4 KiB, and then the missing data reads as zeros.
//! - **Names** (create, link, unlink, rename, mkdir, rmdir) in a directory are pending until that directory is synced, and
//!   arrive in any subset. Renaming to a name is atomic: the old file or the new one, never none; the former name
//!   may stay. A file whose data is synced and whose name is not may be gone.
//! - **A sync that fails** promises nothing, ever: the kernel may have dropped the pages and call them clean, so a later
//!   sync that succeeds covers them no more. (Names are metadata, which no kernel forgets; a later sync covers them.)
//!
//! What is not in the model, on purpose: a short write that leaves a few bytes of itself or of its sector over; sectors that were synced change; sectors torn inside; stale bytes of deleted files
//! where data is missing. The last would be a leak between users, so ext4 (ordered), XFS, btrfs, ZFS and APFS all
//! exclude it; only ext4 `data=writeback` does not. It could not be told from damage either: upstream refuses garbage after
//! the last frame, and so do we.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{self, Cursor};
use std::path::{Component, Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use dsh_store::storage::{Held, Meta, ReadSeek, Revision, Storage, StorageFile};

use crate::random::Random;

/// Less is not left over by a short write: what is then missing in a sector could not be told from damage.
const SHORTEST_REST: usize = 20;

/// How much a short write at `at` writes of `len` bytes, if it can be short.
fn short(at: usize, len: usize) -> Option<usize> {
    let half = len.div_ceil(2);
    let missing = 512 - (at + half) % 512;
    let written = if missing < SHORTEST_REST {
        half.checked_sub(SHORTEST_REST)?
    } else {
        half
    };
    (len >= SHORTEST_REST && written > 0).then_some(written)
}

/// Names a file or directory for ever.
pub type Ino = u64;

/// The root directory.
pub const ROOT: Ino = 1;

/// A file or a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// Bytes.
    File(Arc<Vec<u8>>),
    /// Names.
    Dir(BTreeMap<String, Ino>),
}

/// All there is.
#[derive(Debug, Clone)]
pub struct Tree {
    /// By number, also what has no name.
    pub nodes: HashMap<Ino, Node>,
}

impl Default for Tree {
    fn default() -> Self {
        Tree {
            nodes: HashMap::from([(ROOT, Node::Dir(BTreeMap::new()))]),
        }
    }
}

/// One change, as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Op {
    /// An empty file under a new name.
    Create(Ino, String, Ino),
    /// An empty directory under a new name.
    Mkdir(Ino, String, Ino),
    /// A further name.
    Link(Ino, String, Ino),
    /// A name less.
    Unlink(Ino, String),
    /// From a name to another, in place of what that named.
    Rename(Ino, String, Ino, String, Ino),
    /// Bytes at an offset.
    Write(Ino, usize, Arc<[u8]>),
    /// A new length.
    Truncate(Ino, usize),
    /// The file's data is durable.
    SyncFile(Ino),
    /// The directory's names are durable.
    SyncDir(Ino),
    /// A sync of the file failed: what was pending stays doubtful.
    Doubt(Ino),
}

impl Op {
    /// The file whose data it changes.
    pub fn file(&self) -> Option<Ino> {
        match self {
            Op::Write(ino, ..) | Op::Truncate(ino, _) => Some(*ino),
            _ => None,
        }
    }

    /// The directory whose names it changes. (A rename counts for where it leads to.)
    pub fn dir(&self) -> Option<Ino> {
        match self {
            Op::Create(dir, ..) | Op::Mkdir(dir, ..) | Op::Link(dir, ..) | Op::Unlink(dir, _) => {
                Some(*dir)
            }
            Op::Rename(_, _, dir, ..) => Some(*dir),
            _ => None,
        }
    }
}

impl Tree {
    /// The names in a directory.
    pub fn dir(&mut self, ino: Ino) -> &mut BTreeMap<String, Ino> {
        match self
            .nodes
            .entry(ino)
            .or_insert_with(|| Node::Dir(BTreeMap::new()))
        {
            Node::Dir(names) => names,
            Node::File(_) => unreachable!("a number keeps its kind"),
        }
    }

    /// The bytes of a file.
    pub fn file(&mut self, ino: Ino) -> &mut Arc<Vec<u8>> {
        match self
            .nodes
            .entry(ino)
            .or_insert_with(|| Node::File(Arc::default()))
        {
            Node::File(bytes) => bytes,
            Node::Dir(_) => unreachable!("a number keeps its kind"),
        }
    }

    /// Does a change, whole.
    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Create(dir, name, ino) => {
                self.file(*ino);
                self.dir(*dir).insert(name.clone(), *ino);
            }
            Op::Mkdir(dir, name, ino) => {
                self.dir(*ino);
                self.dir(*dir).insert(name.clone(), *ino);
            }
            Op::Link(dir, name, ino) => {
                self.dir(*dir).insert(name.clone(), *ino);
            }
            Op::Unlink(dir, name) => {
                self.dir(*dir).remove(name);
            }
            Op::Rename(from, old, to, new, ino) => {
                if self.dir(*from).get(old) == Some(ino) {
                    self.dir(*from).remove(old);
                }
                self.dir(*to).insert(new.clone(), *ino);
            }
            Op::Write(ino, at, bytes) => write(Arc::make_mut(self.file(*ino)), *at, bytes),
            Op::Truncate(ino, len) => Arc::make_mut(self.file(*ino)).resize(*len, 0),
            Op::SyncFile(_) | Op::SyncDir(_) | Op::Doubt(_) => {}
        }
    }

    /// The number that a path names.
    pub fn find(&self, path: &Path) -> io::Result<Ino> {
        let mut at = ROOT;
        for part in path.components() {
            let Component::Normal(name) = part else {
                continue;
            };
            match self.nodes.get(&at) {
                Some(Node::Dir(names)) => {
                    at = *names
                        .get(name.to_string_lossy().as_ref())
                        .ok_or(io::ErrorKind::NotFound)?;
                }
                _ => return Err(io::ErrorKind::NotADirectory.into()),
            }
        }
        Ok(at)
    }

    /// What has a name, by path; directories end with `/`.
    pub fn files(&self) -> BTreeMap<String, Arc<Vec<u8>>> {
        let mut found = BTreeMap::new();
        self.walk(ROOT, "", &mut found);
        found
    }

    fn walk(&self, dir: Ino, above: &str, found: &mut BTreeMap<String, Arc<Vec<u8>>>) {
        let Some(Node::Dir(names)) = self.nodes.get(&dir) else {
            return;
        };
        for (name, ino) in names {
            let path = format!("{above}/{name}");
            match self.nodes.get(ino) {
                Some(Node::File(bytes)) => drop(found.insert(path, bytes.clone())),
                Some(Node::Dir(_)) => {
                    found.insert(path.clone() + "/", Arc::default());
                    self.walk(*ino, &path, found);
                }
                None => {}
            }
        }
    }
}

/// Writes into bytes, growing them; a gap is zeros.
pub fn write(file: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    if file.len() < at + bytes.len() {
        file.resize(at + bytes.len(), 0);
    }
    file[at..at + bytes.len()].copy_from_slice(bytes);
}

/// How a call fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// With this error.
    Error(io::ErrorKind),
    /// A write writes half and succeeds; any other call just works.
    Short,
    /// A write writes half, and what follows fails with this error.
    Half(io::ErrorKind),
}

/// Calls that will fail.
#[derive(Debug, Clone, Copy)]
pub struct Faults {
    /// From this call on, counted from 0.
    pub first: usize,
    /// So many calls.
    pub count: usize,
    /// How.
    pub how: Fault,
}

#[derive(Default)]
struct Inner {
    tree: Tree,
    journal: Vec<Op>,
    versions: HashMap<Ino, u64>,
    next: Ino,
    locked: HashSet<Ino>,
    calls: usize,
    faults: Option<Faults>,
    suspended: bool,
    /// What hard links, and renaming without clobbering, fail with.
    no_links: Option<io::ErrorKind>,
    no_rename_new: Option<io::ErrorKind>,
    /// What locks fail with.
    no_locks: Option<io::ErrorKind>,
}

/// The file system. Clones share it.
#[derive(Clone, Default)]
pub struct Memory(Arc<Mutex<Inner>>);

impl Memory {
    /// An empty one.
    pub fn new() -> Memory {
        Memory::default()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine comes up again with this on its disk: nobody holds a lock, nothing is pending.
    pub fn boot(&self, tree: Tree) {
        let mut inner = self.lock();
        let next = tree.nodes.keys().max().copied().unwrap_or(ROOT);
        *inner = Inner {
            tree,
            next,
            ..Inner::default()
        };
    }

    /// What was done since the last call.
    pub fn journal(&self) -> Vec<Op> {
        std::mem::take(&mut self.lock().journal)
    }

    /// What is there now.
    pub fn tree(&self) -> Tree {
        self.lock().tree.clone()
    }

    /// How many calls there were.
    pub fn calls(&self) -> usize {
        self.lock().calls
    }

    /// Lets calls fail, counted from now.
    pub fn fail(&self, faults: Option<Faults>) {
        let mut inner = self.lock();
        inner.calls = 0;
        inner.faults = faults;
    }

    /// Lets nothing fail for a while, or go on failing; gives how many calls there were.
    pub fn suspend(&self, suspended: bool) -> usize {
        let mut inner = self.lock();
        inner.suspended = suspended;
        inner.calls
    }

    /// Forgets calls that do not count.
    pub fn set_calls(&self, calls: usize) {
        self.lock().calls = calls;
    }

    /// There are no hard links; nor, if so, is there a rename that does not clobber.
    pub fn without_links(&self, kind: io::ErrorKind, nor_rename_new: bool) {
        let mut inner = self.lock();
        inner.no_links = Some(kind);
        inner.no_rename_new = nor_rename_new.then_some(io::ErrorKind::InvalidInput);
    }

    /// There are no locks.
    pub fn without_locks(&self, kind: io::ErrorKind) {
        self.lock().no_locks = Some(kind);
    }

    /// Counts a call that may fail.
    fn enter(&self) -> io::Result<MutexGuard<'_, Inner>> {
        let mut inner = self.lock();
        match inner.call() {
            Some(Fault::Error(kind) | Fault::Half(kind)) => Err(kind.into()),
            _ => Ok(inner),
        }
    }
}

impl Inner {
    fn call(&mut self) -> Option<Fault> {
        let at = self.calls;
        self.calls += 1;
        let faults = self.faults.filter(|_| !self.suspended)?;
        (at >= faults.first && at - faults.first < faults.count).then_some(faults.how)
    }

    fn change(&mut self, op: Op) {
        self.tree.apply(&op);
        if let Some(ino) = op.file() {
            *self.versions.entry(ino).or_default() += 1;
        }
        self.journal.push(op);
    }

    fn fresh(&mut self) -> Ino {
        self.next = self.next.max(ROOT) + 1;
        self.next
    }

    /// The directory that holds a path, and the path's name in it.
    fn place(&self, path: &Path) -> io::Result<(Ino, String)> {
        let name = path.file_name().ok_or(io::ErrorKind::AlreadyExists)?;
        let parent = self.tree.find(path.parent().unwrap_or(path))?;
        match self.tree.nodes.get(&parent) {
            Some(Node::Dir(_)) => Ok((parent, name.to_string_lossy().into_owned())),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn vacant(&self, path: &Path) -> io::Result<(Ino, String)> {
        if self.tree.find(path).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        self.place(path)
    }

    fn bytes(&self, ino: Ino) -> io::Result<Arc<Vec<u8>>> {
        match self.tree.nodes.get(&ino) {
            Some(Node::File(bytes)) => Ok(bytes.clone()),
            _ => Err(io::ErrorKind::IsADirectory.into()),
        }
    }

    fn meta(&self, ino: Ino) -> io::Result<Meta> {
        let len = match self.tree.nodes.get(&ino) {
            Some(Node::File(bytes)) => Some(bytes.len() as u64),
            Some(Node::Dir(_)) => None,
            None => return Err(io::ErrorKind::NotFound.into()),
        };
        let version = i128::from(self.versions.get(&ino).copied().unwrap_or(0));
        Ok(Meta {
            len: len.unwrap_or(0),
            is_dir: len.is_none(),
            is_file: len.is_some(),
            modified_ms: 1_700_000_000_000,
            revision: Revision(1, ino, len.unwrap_or(0), version, version),
        })
    }
}

struct OpenFile {
    memory: Memory,
    ino: Ino,
}

impl StorageFile for OpenFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut inner = self.memory.lock();
        let at = inner.bytes(self.ino)?.len();
        let half = short(at, bytes.len());
        let written = match inner.call() {
            Some(Fault::Error(kind)) => return Err(kind.into()),
            Some(Fault::Half(kind)) => half.ok_or(kind)?,
            Some(Fault::Short) => half.unwrap_or(bytes.len()),
            None => bytes.len(),
        };
        inner.change(Op::Write(self.ino, at, bytes[..written].into()));
        Ok(written)
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut inner = self.memory.lock();
        match inner.call() {
            Some(Fault::Error(kind) | Fault::Half(kind)) => {
                inner.journal.push(Op::Doubt(self.ino));
                Err(kind.into())
            }
            _ => {
                inner.journal.push(Op::SyncFile(self.ino));
                Ok(())
            }
        }
    }

    fn metadata(&self) -> io::Result<Meta> {
        self.memory.enter()?.meta(self.ino)
    }

    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        let bytes = self.memory.enter()?.bytes(self.ino)?;
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let found = start
            .checked_add(into.len())
            .and_then(|end| bytes.get(start..end));
        into.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// A held lock.
struct Lock {
    memory: Memory,
    ino: Ino,
    path: PathBuf,
}

impl Held for Lock {
    fn has_its_name(&self) -> io::Result<bool> {
        let inner = self.memory.enter()?;
        Ok(inner.tree.find(&self.path).ok() == Some(self.ino))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        self.memory.lock().locked.remove(&self.ino);
    }
}

impl Storage for Memory {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.enter()?;
        let (dir, name) = inner.vacant(path)?;
        let ino = inner.fresh();
        inner.change(Op::Mkdir(dir, name, ino));
        Ok(())
    }

    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let mut inner = self.enter()?;
        let (dir, name) = inner.vacant(path)?;
        let ino = inner.fresh();
        inner.change(Op::Create(dir, name, ino));
        Ok(Box::new(OpenFile {
            memory: self.clone(),
            ino,
        }))
    }

    fn open_append(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let inner = self.enter()?;
        let ino = inner.tree.find(path)?;
        inner.bytes(ino)?;
        Ok(Box::new(OpenFile {
            memory: self.clone(),
            ino,
        }))
    }

    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        let inner = self.enter()?;
        let bytes = inner.bytes(inner.tree.find(path)?)?;
        Ok(Box::new(Cursor::new(bytes.to_vec())))
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.enter()?;
        if let Some(kind) = inner.no_links {
            return Err(kind.into());
        }
        let ino = inner.tree.find(from)?;
        let (dir, name) = inner.vacant(to)?;
        inner.change(Op::Link(dir, name, ino));
        Ok(())
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.enter()?;
        let ino = inner.tree.find(from)?;
        let (from, old) = inner.place(from)?;
        let (to, new) = inner.place(to)?;
        inner.change(Op::Rename(from, old, to, new, ino));
        Ok(())
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut inner = self.enter()?;
        if let Some(kind) = inner.no_rename_new {
            return Err(kind.into());
        }
        let ino = inner.tree.find(from)?;
        let (from, old) = inner.place(from)?;
        let (to, new) = inner.vacant(to)?;
        inner.change(Op::Rename(from, old, to, new, ino));
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.enter()?;
        inner.bytes(inner.tree.find(path)?)?;
        let (dir, name) = inner.place(path)?;
        inner.change(Op::Unlink(dir, name));
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.enter()?;
        match inner.tree.nodes.get(&inner.tree.find(path)?) {
            Some(Node::Dir(names)) if names.is_empty() => {}
            Some(Node::Dir(_)) => return Err(io::ErrorKind::DirectoryNotEmpty.into()),
            _ => return Err(io::ErrorKind::NotADirectory.into()),
        }
        let (dir, name) = inner.place(path)?;
        inner.change(Op::Unlink(dir, name));
        Ok(())
    }

    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let mut inner = self.enter()?;
        let ino = inner.tree.find(path)?;
        inner.bytes(ino)?;
        inner.change(Op::Truncate(
            ino,
            usize::try_from(len).unwrap_or(usize::MAX),
        ));
        drop(inner);
        OpenFile {
            memory: self.clone(),
            ino,
        }
        .sync()
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut inner = self.enter()?;
        let ino = inner.tree.find(path)?;
        inner.journal.push(Op::SyncDir(ino));
        Ok(())
    }

    fn metadata(&self, path: &Path) -> io::Result<Meta> {
        let inner = self.enter()?;
        inner.meta(inner.tree.find(path)?)
    }

    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        let inner = self.enter()?;
        match inner.tree.nodes.get(&inner.tree.find(path)?) {
            Some(Node::Dir(names)) => Ok(names.keys().map(|name| path.join(name)).collect()),
            _ => Err(io::ErrorKind::NotADirectory.into()),
        }
    }

    fn try_lock(&self, path: &Path, contents: &str) -> io::Result<Option<Box<dyn Held>>> {
        let mut inner = self.enter()?;
        if let Some(kind) = inner.no_locks {
            return Err(kind.into());
        }
        let ino = match inner.tree.find(path) {
            Ok(ino) => ino,
            Err(_) => {
                let (dir, name) = inner.place(path)?;
                let ino = inner.fresh();
                inner.change(Op::Create(dir, name, ino));
                ino
            }
        };
        if !inner.locked.insert(ino) {
            return Ok(None);
        }
        inner.change(Op::Truncate(ino, 0));
        inner.change(Op::Write(ino, 0, contents.as_bytes().into()));
        Ok(Some(Box::new(Lock {
            memory: self.clone(),
            ino,
            path: path.to_owned(),
        })))
    }
}

/// What is on the disk for certain, and what is not.
#[derive(Debug, Clone, Default)]
pub struct Disk {
    /// Certain.
    pub durable: Tree,
    /// Pending, in order; the flag marks what a failed sync left in doubt.
    pub pending: Vec<(Op, bool)>,
}

impl Disk {
    /// Goes one operation on. What was in doubt is decided by `random` once a sync makes it matter.
    pub fn advance(&mut self, op: &Op, random: &mut Random) {
        match op {
            Op::SyncFile(ino) => {
                let (covered, rest) = std::mem::take(&mut self.pending)
                    .into_iter()
                    .partition(|(op, _)| op.file() == Some(*ino));
                self.pending = rest;
                self.durable.file(*ino);
                for (op, doubtful) in covered {
                    if !doubtful || random.percent(50) {
                        self.durable.apply(&op);
                    }
                }
            }
            Op::SyncDir(ino) => {
                let (covered, rest): (Vec<_>, _) = std::mem::take(&mut self.pending)
                    .into_iter()
                    .partition(|(op, _)| op.dir() == Some(*ino));
                self.pending = rest;
                covered.iter().for_each(|(op, _)| self.durable.apply(op));
            }
            Op::Doubt(ino) => {
                for (op, doubtful) in &mut self.pending {
                    *doubtful |= matches!(op, Op::Write(..)) && op.file() == Some(*ino);
                }
            }
            op => {
                if let Op::Create(_, _, ino) = op {
                    self.durable.file(*ino);
                }
                if let Op::Mkdir(_, _, ino) = op {
                    self.durable.dir(*ino);
                }
                self.pending.push((op.clone(), false));
            }
        }
    }
}
