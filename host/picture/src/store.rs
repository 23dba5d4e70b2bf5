//! The files: `objects/<2 hex>/<digest>` holds an attachment, and
//! `request-images/<2 hex>/<variant>` what was made of one.
//!
//! An object is written beside, flushed and renamed, so it is there whole or not
//! at all; its name is its digest, which is checked whenever it is read. It is
//! never removed: a log that somebody kept may name it. A variant can be made
//! again: it is kept up to a bound, the oldest go first, and whoever likes may
//! remove them all. Both are the person's alone: folders 0700, files 0600.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

use crate::attachment::AttachmentId;
use crate::error::Error;

/// Bytes of an object: what another program put there may be larger than ours.
const MAX_OBJECT: u64 = 64 << 20;

/// Bytes of the variants that are kept.
const MAX_KEPT: u64 = 256 << 20;

/// What a write that was cut off leaves, by the beginning of its name.
const UNFINISHED: &str = ".new-";

/// How old one is when nobody can be writing it any more.
const STALE: Duration = Duration::from_hours(24);

/// Of how variants are made: those of another version are not taken.
const RECIPE: &str = "v1";

fn io<'a>(doing: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> Error + use<'a> {
    move |source| Error::Io {
        doing,
        path: path.to_owned(),
        source,
    }
}

/// The attachments.
pub(crate) struct Store {
    root: PathBuf,
    swept: Once,
}

impl Store {
    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            swept: Once::new(),
        }
    }

    fn path(&self, id: &AttachmentId) -> PathBuf {
        let hex = id.hex();
        self.root.join("objects").join(&hex[..2]).join(hex)
    }

    pub(crate) fn put(&self, bytes: &[u8]) -> Result<AttachmentId, Error> {
        let id = AttachmentId::of_digest(&Sha256::digest(bytes));
        // One that is there and sound stays; a damaged one is mended.
        if self.read(&id).is_ok() {
            return Ok(id);
        }
        self.swept.call_once(|| remove_unfinished(&self.root));
        write_whole(&self.root, &self.path(&id), bytes, true)?;
        Ok(id)
    }

    pub(crate) fn read(&self, id: &AttachmentId) -> Result<Vec<u8>, Error> {
        let path = self.path(id);
        let bytes = match read_bounded(&path, MAX_OBJECT) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Err(Error::Damaged { path }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Error::Missing {
                    id: id.to_string(),
                    path,
                });
            }
            Err(source) => {
                return Err(Error::Io {
                    doing: "read",
                    path,
                    source,
                });
            }
        };
        if AttachmentId::of_digest(&Sha256::digest(&bytes)) == *id {
            Ok(bytes)
        } else {
            Err(Error::Damaged { path })
        }
    }
}

/// Variants, each behind the digest of its name and its bytes.
pub(crate) struct Cache {
    root: PathBuf,
    swept: Once,
}

/// Bytes of a digest.
const DIGEST: usize = 32;

impl Cache {
    pub(crate) fn at(root: &Path) -> Self {
        Self {
            root: root.to_owned(),
            swept: Once::new(),
        }
    }

    fn folder(&self) -> PathBuf {
        self.root.join("request-images")
    }

    fn path(&self, name: &str) -> PathBuf {
        let name = name.rsplit(':').next().unwrap_or(name);
        let start = name.get(..2).unwrap_or("00");
        self.folder().join(start).join(format!("{name}.{RECIPE}"))
    }

    fn digest(name: &str, bytes: &[u8]) -> [u8; DIGEST] {
        let mut hash = Sha256::new();
        hash.update(name.as_bytes());
        hash.update([0]);
        hash.update(bytes);
        hash.finalize().into()
    }

    /// The bytes of a variant; none where there are none that are sound.
    pub(crate) fn get(&self, name: &str) -> Option<Vec<u8>> {
        let mut bytes = read_bounded(&self.path(name), MAX_OBJECT).ok()??;
        let sound = bytes.len() > DIGEST && bytes[..DIGEST] == Self::digest(name, &bytes[DIGEST..]);
        sound.then(|| bytes.split_off(DIGEST))
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8]) {
        self.swept.call_once(|| sweep(&self.folder(), MAX_KEPT));
        let mut whole = Self::digest(name, bytes).to_vec();
        whole.extend_from_slice(bytes);
        // Its digest tells whether it came to be whole, so nothing is flushed.
        let _ = write_whole(&self.root, &self.path(name), &whole, false);
    }
}

/// The content of a regular file; none of one that is larger than that.
fn read_bounded(path: &Path, max: u64) -> io::Result<Option<Vec<u8>>> {
    // A pipe in the place of a file would be waited for while it is opened.
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is not a file"));
    }
    let file = File::open(path)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len().min(max)).unwrap_or(0));
    file.take(max + 1).read_to_end(&mut bytes)?;
    Ok((bytes.len() as u64 <= max).then_some(bytes))
}

/// Writes beside and renames.
fn write_whole(root: &Path, path: &Path, bytes: &[u8], durable: bool) -> Result<(), Error> {
    let folder = path.parent().unwrap_or(root);
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)
        .map_err(io("make", folder))?;
    let mut file = tempfile::Builder::new()
        .prefix(UNFINISHED)
        .tempfile_in(root)
        .map_err(io("write in", root))?;
    file.write_all(bytes).map_err(io("write", path))?;
    if durable {
        file.as_file().sync_all().map_err(io("flush", path))?;
    }
    file.persist(path)
        .map_err(|error| io("write", path)(error.error))?;
    if durable {
        let flush = |folder: &Path| File::open(folder).and_then(|folder| folder.sync_all());
        for folder in folder.ancestors().take(3) {
            flush(folder).map_err(io("flush", folder))?;
        }
    }
    Ok(())
}

/// Removes what writes left that were cut off.
fn remove_unfinished(root: &Path) {
    for entry in fs::read_dir(root).into_iter().flatten().flatten() {
        let unfinished = entry.file_name().to_string_lossy().starts_with(UNFINISHED);
        if unfinished && age(&entry).is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn age(entry: &fs::DirEntry) -> Option<Duration> {
    let modified = entry.metadata().ok()?.modified().ok()?;
    SystemTime::now().duration_since(modified).ok()
}

/// Removes the oldest files until what is left takes three quarters of `max`,
/// where it takes more than `max` now.
fn sweep(folder: &Path, max: u64) {
    let mut files = Vec::new();
    for shard in fs::read_dir(folder).into_iter().flatten().flatten() {
        for entry in fs::read_dir(shard.path()).into_iter().flatten().flatten() {
            let Ok(metadata) = entry.metadata() else {
                continue;
            };
            if metadata.is_file() {
                let modified = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                files.push((modified, metadata.len(), entry.path()));
            }
        }
    }
    let mut total: u64 = files.iter().map(|(_, size, _)| size).sum();
    if total <= max {
        return;
    }
    files.sort();
    for (_, size, path) in files {
        if total <= max / 4 * 3 {
            break;
        }
        if fs::remove_file(&path).is_ok() {
            total -= size;
        }
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
