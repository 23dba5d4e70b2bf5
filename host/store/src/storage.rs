//! The seam to the file system: every operation that the store does on disk, and no more.
//!
//! The order of these calls is what makes a log survive, so they go through one
//! trait: a fake can journal them, fail one of them, or stop the world between two.
//! Nothing above this module touches `std::fs`. Calls block.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use rustix::fs::OFlags;

use crate::lock;

/// Mode of every directory that the store makes.
pub const DIR_MODE: u32 = 0o700;
/// Mode of every file that the store makes.
pub const FILE_MODE: u32 = 0o600;

/// What the store needs of a file system.
pub trait Storage: Send + Sync {
    /// Makes one directory (0700). `AlreadyExists` is an error here; the caller decides.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes a file that must not exist yet (0600) and opens it for writing.
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Opens an existing file for reading, and so that every write goes to its end.
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn StorageFile>>;
    /// Opens an existing file for reading.
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>>;
    /// Gives a file a second name; fails with `AlreadyExists` when that is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Gives a file another name, whatever had that name before; a reader sees the old file or the new one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// [`Storage::rename`] that fails with `AlreadyExists` when the name is taken, for file systems without
    /// hard links. Fails with `Unsupported` or `InvalidInput` where the system cannot do it in one step.
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes one name of a file.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;
    /// Cuts a file to `len` bytes and makes that durable.
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()>;
    /// Makes the names inside a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Size, kind and identity of what a path names (links are followed).
    fn metadata(&self, path: &Path) -> io::Result<Meta>;
    /// Whether a path is a symbolic link. A file system without any need not say so.
    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        let _ = path;
        Ok(false)
    }
    /// The names in a directory, in its own order.
    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>>;
    /// The names in a directory with what they name, in its own order. What cannot be looked at is [`EntryKind::Other`].
    fn read_entries(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let entry = |path: PathBuf| {
            let kind = match self.metadata(&path) {
                Ok(meta) if meta.is_dir => EntryKind::Dir,
                Ok(_) => EntryKind::File,
                Err(_) => EntryKind::Other,
            };
            let name = path.file_name()?.to_owned();
            Some(DirEntry { name, kind })
        };
        Ok(self.read_dir(path)?.into_iter().filter_map(entry).collect())
    }
    /// [`Storage::open_read`], and what [`Storage::metadata`] says of the very file that was opened.
    fn open_read_meta(&self, path: &Path) -> io::Result<(Box<dyn ReadSeek>, Meta)> {
        Ok((self.open_read(path)?, self.metadata(path)?))
    }
    /// Takes the OS lock on `path` (made when absent) without waiting and writes
    /// `contents` into it. `None` when somebody else holds it.
    fn try_lock(&self, path: &Path, contents: &str) -> io::Result<Option<Box<dyn Held>>>;
}

/// A file being written.
pub trait StorageFile: Send {
    /// Writes some of `bytes`; may write less than all.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize>;
    /// Makes data and length durable.
    fn sync(&mut self) -> io::Result<()>;
    /// Size, kind and identity of the open file, whatever its name names by now.
    fn metadata(&self) -> io::Result<Meta>;
    /// Reads `into` from `offset`, all of it.
    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()>;

    /// Writes all of `bytes`, however short the single writes are.
    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            match self.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(n) => bytes = &bytes[n..],
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }
}

/// A file being read.
pub trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// Something whose life is the life of an OS lock.
pub trait Held: Send + Sync {
    /// Whether the path still names the locked file. Once it does not (somebody moved the directory away and put
    /// another one there), others may lock what it names now.
    fn has_its_name(&self) -> io::Result<bool>;
}

/// What [`Storage::metadata`] tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Meta {
    /// Bytes.
    pub len: u64,
    /// Whether it is a directory.
    pub is_dir: bool,
    /// Whether it is a regular file: no pipe, no device, whose reading may never end.
    pub is_file: bool,
    /// Time of the last write, epoch milliseconds.
    pub modified_ms: i64,
    /// A token that changes whenever the file does: device, inode, size and both times.
    pub revision: Revision,
}

/// One name in a directory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// The name alone.
    pub name: OsString,
    /// What it names; links are followed.
    pub kind: EntryKind,
}

/// What a name in a directory stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A directory.
    Dir,
    /// Anything else that is there.
    File,
    /// Nothing that can be looked at: a link that leads nowhere, a file that went away.
    Other,
}

/// Names one state of one file (spec/session.md §9.6): device, inode, size, mtime and ctime in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Revision(pub u64, pub u64, pub u64, pub i128, pub i128);

/// Reads a whole file.
pub(crate) fn read(storage: &dyn Storage, path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    storage.open_read(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Puts a file with these bytes in the place of `path`, written beside as `tmp` first. Nothing is synced: for what is
/// derived and carries its own checksum.
pub(crate) fn replace(
    storage: &dyn Storage,
    tmp: &Path,
    path: &Path,
    bytes: &[u8],
) -> io::Result<()> {
    let written = storage
        .create_new(tmp)
        .and_then(|mut file| file.write_all(bytes))
        .and_then(|()| storage.rename(tmp, path));
    if written.is_err() {
        let _ = storage.remove_file(tmp);
    }
    written
}

/// Whether a path names anything. Only "no such file" counts as absent.
pub(crate) fn exists(storage: &dyn Storage, path: &Path) -> io::Result<bool> {
    match storage.metadata(path) {
        Ok(_) => Ok(true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

/// The real file system.
#[derive(Debug, Clone, Copy, Default)]
pub struct Disk;

struct DiskFile(File);

impl StorageFile for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }
    /// Without the times: `fdatasync` makes the data durable and what is needed to find it, so the size too.
    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
    fn metadata(&self) -> io::Result<Meta> {
        meta(&self.0.metadata()?)
    }
    fn read_exact_at(&self, into: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(&self.0, into, offset)
    }
}

fn meta(m: &fs::Metadata) -> io::Result<Meta> {
    let nanos = |secs: i64, nsec: i64| i128::from(secs) * 1_000_000_000 + i128::from(nsec);
    let modified = m.modified()?;
    let modified_ms = match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    };
    Ok(Meta {
        len: m.len(),
        is_dir: m.is_dir(),
        is_file: m.is_file(),
        modified_ms,
        revision: Revision(
            m.dev(),
            m.ino(),
            m.size(),
            nanos(m.mtime(), m.mtime_nsec()),
            nanos(m.ctime(), m.ctime_nsec()),
        ),
    })
}

#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use rustix::fs::{CWD, RenameFlags, renameat_with};
    Ok(renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

#[cfg(not(target_os = "linux"))]
fn rename_new(_: &Path, _: &Path) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// Opens for reading without waiting: a pipe of a log's name must not hold up the list of all others.
fn open_at_once(path: &Path) -> io::Result<(File, fs::Metadata)> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or(0);
    let mut options = OpenOptions::new();
    let file = options.read(true).custom_flags(flags).open(path)?;
    let found = file.metadata()?;
    Ok((file, found))
}

impl Storage for Disk {
    fn create_dir(&self, path: &Path) -> io::Result<()> {
        fs::DirBuilder::new().mode(DIR_MODE).create(path)
    }
    fn create_new(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(FILE_MODE)
            .open(path)?;
        Ok(Box::new(DiskFile(file)))
    }
    fn open_append(&self, path: &Path) -> io::Result<Box<dyn StorageFile>> {
        Ok(Box::new(DiskFile(
            OpenOptions::new().read(true).append(true).open(path)?,
        )))
    }
    fn open_read(&self, path: &Path) -> io::Result<Box<dyn ReadSeek>> {
        let (file, kind) = open_at_once(path)?;
        if !kind.is_file() && !kind.is_dir() {
            let why = "it is a pipe, a device or a socket, not a file";
            return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
        }
        Ok(Box::new(file))
    }
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }
    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        rename_new(from, to)
    }
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }
    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }
    fn truncate(&self, path: &Path, len: u64) -> io::Result<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(len)?;
        file.sync_all()
    }
    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }
    fn metadata(&self, path: &Path) -> io::Result<Meta> {
        meta(&fs::metadata(path)?)
    }
    fn is_symlink(&self, path: &Path) -> io::Result<bool> {
        Ok(fs::symlink_metadata(path)?.is_symlink())
    }
    fn read_dir(&self, path: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(path)?.map(|entry| Ok(entry?.path())).collect()
    }
    fn read_entries(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let entry = |entry: fs::DirEntry| {
            // Most file systems tell the kind with the name; only links need a look of their own.
            let kind = match entry.file_type() {
                Ok(kind) if kind.is_dir() => EntryKind::Dir,
                Ok(kind) if !kind.is_symlink() => EntryKind::File,
                _ => match fs::metadata(entry.path()) {
                    Ok(meta) if meta.is_dir() => EntryKind::Dir,
                    Ok(_) => EntryKind::File,
                    Err(_) => EntryKind::Other,
                },
            };
            let name = entry.file_name();
            DirEntry { name, kind }
        };
        fs::read_dir(path)?.map(|found| found.map(entry)).collect()
    }
    fn open_read_meta(&self, path: &Path) -> io::Result<(Box<dyn ReadSeek>, Meta)> {
        let (file, found) = open_at_once(path)?;
        Ok((Box::new(file), meta(&found)?))
    }
    fn try_lock(&self, path: &Path, contents: &str) -> io::Result<Option<Box<dyn Held>>> {
        Ok(lock::try_lock(path, contents)?.map(|held| Box::new(held) as Box<dyn Held>))
    }
}
