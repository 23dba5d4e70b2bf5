//! What is derived from components, kept on disk: machine code and metadata.
//!
//! An entry is its content followed by a 32-byte MAC: BLAKE3, keyed with 32
//! random bytes that only this user can read, over the entry's name and its
//! content. An entry that another user, a sync tool or a restored backup put
//! there has no valid MAC, is counted as absent and is written anew. It is opened
//! once, without following links, and what is used is what was read from that
//! descriptor. Code that already runs as this user is not kept out.
//!
//! Losing all of it, or being unable to write, costs time only.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::OFlags;

const KEY_FILE: &str = "key";
const MAC: usize = 32;

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
        let mut content = read_private(&self.dir.join(name), MAX_ENTRY)?;
        let end = content.len().checked_sub(MAC)?;
        let stored: [u8; MAC] = content[end..].try_into().ok()?;
        // `blake3::Hash` compares in constant time.
        if self.mac(name, &[&content[..end]]) != blake3::Hash::from_bytes(stored) {
            return None;
        }
        content.truncate(end);
        Some(content)
    }

    /// Writes an entry of these parts in turn, whole or not at all.
    pub(crate) fn put(&self, name: &str, parts: &[&[u8]]) -> io::Result<()> {
        let mac = self.mac(name, parts);
        let mut all = parts.to_vec();
        all.push(mac.as_bytes());
        write_whole(&self.dir, name, &all)
    }

    fn mac(&self, name: &str, parts: &[&[u8]]) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&(name.len() as u64).to_le_bytes());
        hasher.update(name.as_bytes());
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize()
    }
}

fn read_key(dir: &Path) -> Option<[u8; MAC]> {
    read_private(&dir.join(KEY_FILE), MAC as u64)?
        .try_into()
        .ok()
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

/// The content of a regular file of this user's own, read through one
/// descriptor; nothing if it is anything else.
fn read_private(path: &Path, max: u64) -> Option<Vec<u8>> {
    let flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    let mut file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .ok()?;
    let meta = file.metadata().ok()?;
    if !meta.is_file() || !is_private(&meta) || meta.len() > max {
        return None;
    }
    let mut content = Vec::with_capacity(usize::try_from(meta.len()).ok()?);
    Read::by_ref(&mut file)
        .take(max)
        .read_to_end(&mut content)
        .ok()?;
    Some(content)
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
#[path = "cache_tests.rs"]
mod tests;
