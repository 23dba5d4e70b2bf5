//! What is derived from components, kept on disk: machine code and metadata.
//!
//! An entry is its content followed by a 32-byte MAC: BLAKE3, keyed with 32
//! random bytes that only this user can read, over the entry's name and all of
//! its content. An entry that another user, a sync tool or a restored backup put
//! there has no valid MAC, is counted as absent and is written anew. It is opened
//! once, without following links, its owner and mode are checked, and what is used
//! comes from that descriptor.
//!
//! Machine code is mapped rather than read, which is three times faster, so the
//! pages that run are the file's. Nothing of dsh writes to an entry that is there:
//! a new one takes its name, and a mapped one lives on without a name. Code that
//! already runs as this user could write to it between check and use, or after;
//! it could as well write to this process, and is not kept out.
//!
//! ```text
//! machine code: code | note | length of the note, u32 little-endian | MAC
//! metadata:     content | MAC
//! ```
//!
//! An ELF reader takes no notice of what follows the code. Losing all of it, or
//! being unable to write, costs time only. What goes when is in `sweep`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

mod sweep;

pub(crate) const KEY_FILE: &str = "key";
const MAC: usize = 32;
const LENGTH: usize = size_of::<u32>();

/// Read and hashed at once: fits the processor's cache, and is long enough for
/// BLAKE3 to use the widest instructions.
const PIECE: usize = 64 << 10;

/// How exactly it is known when an entry was last used: its file's time is set
/// when it is this old, so that a run seldom writes.
const USED: Duration = Duration::from_secs(24 * 60 * 60);

/// Larger than any entry: what a planted file may make the host read.
const MAX_ENTRY: u64 = 1 << 30;

/// The entries of one directory.
pub(crate) struct Cache {
    dir: PathBuf,
    key: [u8; MAC],
}

impl Cache {
    /// Opens a directory, making it and its key where they are absent.
    pub(crate) fn open(dir: &Path) -> io::Result<Self> {
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)?;
        let meta = fs::symlink_metadata(dir)?;
        if !meta.is_dir() || !is_private(&meta) {
            return Err(io::Error::new(
                io::ErrorKind::PermissionDenied,
                format!(
                    "{} must be a directory that only its owner can write",
                    dir.display()
                ),
            ));
        }
        let key = match read_key(dir) {
            Some(key) => key,
            None => make_key(dir)?,
        };
        Ok(Self {
            dir: dir.to_owned(),
            key,
        })
    }

    /// An entry's content, if it is there and was written with this key.
    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        let (file, meta) = open_private(&self.dir.join(name), MAX_ENTRY)?;
        let mut content = read(&file, &meta)?;
        let end = content.len().checked_sub(MAC)?;
        let stored: [u8; MAC] = content[end..].try_into().ok()?;
        // `blake3::Hash` compares in constant time.
        if self.mac(name, &[&content[..end]]) != blake3::Hash::from_bytes(stored) {
            return None;
        }
        content.truncate(end);
        touch(&file, &meta);
        Some(content)
    }

    /// An entry of machine code with its note, if it is there and was written
    /// with this key. Every byte of the file has been read and is as it was
    /// written; the code is in the file, from its start on.
    pub(crate) fn code(&self, name: &str) -> Option<(File, Vec<u8>)> {
        let (file, meta) = open_private(&self.dir.join(name), MAX_ENTRY)?;
        let end = meta.len().checked_sub((LENGTH + MAC) as u64)?;
        let mut last = [0; LENGTH + MAC];
        file.read_exact_at(&mut last, end).ok()?;
        let (length, stored) = last.split_at(LENGTH);
        let note = u32::from_le_bytes(length.try_into().ok()?);
        let code = end.checked_sub(u64::from(note))?;

        let mut hasher = self.hasher(name);
        let mut piece = vec![0; PIECE];
        let mut at = 0;
        while at < code {
            let some = usize::try_from(code - at).map_or(PIECE, |left| left.min(PIECE));
            file.read_exact_at(&mut piece[..some], at).ok()?;
            hasher.update(&piece[..some]);
            at += some as u64;
        }
        let mut note = vec![0; usize::try_from(note).ok()?];
        file.read_exact_at(&mut note, code).ok()?;
        hasher.update(&note).update(length);
        if hasher.finalize() != blake3::Hash::from_bytes(stored.try_into().ok()?) {
            return None;
        }
        touch(&file, &meta);
        Some((file, note))
    }

    /// Writes an entry of machine code, whole or not at all.
    pub(crate) fn put_code(&self, name: &str, code: &[u8], note: &[u8]) -> io::Result<()> {
        let length = u32::try_from(note.len())
            .map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "the note is too long"))?;
        self.put(name, &[code, note, &length.to_le_bytes()])
    }

    /// Writes an entry of these parts in turn, whole or not at all.
    pub(crate) fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mac = self.mac(name, parts);
        let mut all = parts.to_vec();
        all.push(mac.as_bytes());
        write_whole(&self.dir, name, &all)
    }

    fn mac(&self, name: &str, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = self.hasher(name);
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize()
    }

    fn hasher(&self, name: &str) -> blake3::Hasher {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        hasher
    }
}

/// The key, if nobody else can have read it.
fn read_key(dir: &Path) -> Option<[u8; MAC]> {
    let (file, meta) = open_private(&dir.join(KEY_FILE), MAC as u64)?;
    if meta.mode() & 0o077 != 0 {
        return None;
    }
    read(&file, &meta)?.try_into().ok()
}

/// Makes a key. Of two processes that do so at once, the later one's stays, and
/// the other's entries are counted as absent.
fn make_key(dir: &Path) -> io::Result<[u8; MAC]> {
    let mut key = [0; MAC];
    getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
    write_whole(dir, KEY_FILE, &[&key])?;
    read_key(dir).ok_or_else(|| io::Error::other("the key could not be read back"))
}

/// Owned by this user, and writable by no other.
fn is_private(meta: &fs::Metadata) -> bool {
    meta.uid() == rustix::process::geteuid().as_raw() && meta.mode() & 0o022 == 0
}

/// A regular file of this user's own, opened without following a link; nothing
/// if it is anything else.
fn open_private(path: &Path, max: u64) -> Option<(File, fs::Metadata)> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    (meta.is_file() && is_private(&meta) && meta.len() <= max).then_some((file, meta))
}

/// All of a file, as long as it was when it was opened.
fn read(file: &File, meta: &fs::Metadata) -> Option<Vec<u8>> {
    let mut content = Vec::with_capacity(usize::try_from(meta.len()).ok()?);
    file.take(meta.len()).read_to_end(&mut content).ok()?;
    Some(content)
}

/// Notes that an entry was used.
fn touch(file: &File, meta: &fs::Metadata) {
    let now = SystemTime::now();
    let recent = meta
        .modified()
        .is_ok_and(|then| now.duration_since(then).is_ok_and(|age| age < USED));
    if !recent {
        // Else it is counted as unused, and made anew some day.
        let _ = file.set_modified(now);
    }
}

fn write_whole(dir: &Path, name: &str, parts: &[&[u8]]) -> io::Result<()> {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let unique = NEXT.fetch_add(1, Ordering::Relaxed);
    let temporary = dir.join(format!(".{name}.{}.{unique}", std::process::id()));
    let written = (|| {
        let mut file = create_private(&temporary)?;
        for part in parts {
            file.write_all(part)?;
        }
        // No fsync: an entry that a crash tore has no valid MAC.
        drop(file);
        fs::rename(&temporary, dir.join(name))
    })();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn create_private(path: &Path) -> io::Result<File> {
    // What a killed process of the same number left behind.
    let _ = fs::remove_file(path);
    OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)
}

#[cfg(test)]
mod tests;
