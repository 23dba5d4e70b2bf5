//! The bytes of installed plugins, by their digest, for all profiles.
//!
//! `$DSH_HOME/plugins/sha256/HEX.wasm` holds what has the SHA-256 `HEX`, so a
//! name is a promise that reading checks; a `HEX.minisig` beside it is the
//! signature that came with it. Files appear whole and durable or not at all, and
//! are never changed, so profiles share them and an update cannot hurt a run
//! that has the old ones open.
//!
//! Nobody counts who uses a file. [`Packages::sweep`] removes what no profile's
//! lock names, and stands back while any profile is being changed: a package is
//! there before the lock that names it. Hence put packages through the
//! [`crate::Change`] that will name them.

use crate::disk::{self, Disk, Real};
use crate::lock::{FILE, is_digest};
use crate::{Error, Home};
use sha2::{Digest, Sha256};
use std::collections::HashSet;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// As large as a component may be; more of a file is not read.
const MAX_BYTES: u64 = 64 << 20;

/// Of a signature's text.
const MAX_SIGNATURE: u64 = 64 << 10;

/// SHA-256 in lower-case hex.
#[must_use]
pub fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut hex, byte| {
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}

/// The packages of a home.
#[derive(Debug, Clone)]
pub struct Packages {
    home: PathBuf,
    disk: Arc<dyn Disk>,
}

/// What a sweep removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// Packages that no lock named.
    pub packages: usize,
    /// Drafts and signatures that belonged to nothing.
    pub remains: usize,
}

impl Packages {
    /// Those below `$DSH_HOME`; nothing is made before something is put.
    #[must_use]
    pub fn at(home: &Home) -> Self {
        Self::on(home.path(), Arc::new(Real))
    }

    pub(crate) fn on(home: &Path, disk: Arc<dyn Disk>) -> Self {
        Self {
            home: home.to_owned(),
            disk,
        }
    }

    fn dir(&self) -> PathBuf {
        self.home.join("plugins/sha256")
    }

    /// Where the package of a digest is, or would be.
    #[must_use]
    pub fn path(&self, digest: &str) -> PathBuf {
        self.dir().join(format!("{digest}.wasm"))
    }

    fn signature_path(&self, digest: &str) -> PathBuf {
        self.dir().join(format!("{digest}.minisig"))
    }

    /// Stores bytes and gives their digest. They are durable when it returns; one
    /// that is there and damaged is replaced.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put(&self, bytes: &[u8]) -> Result<String, Error> {
        let digest = digest(bytes);
        let path = self.path(&digest);
        self.make_dirs()?;
        if self.read(&digest).is_err() {
            self.place(&format!("{digest}.wasm"), bytes)?;
        } else {
            // Who put it there may have died before the name was durable.
            let dir = self.dir();
            self.disk
                .sync(&dir)
                .map_err(|e| Error::io("write", &path, e))?;
        }
        Ok(digest)
    }

    /// Stores the signature that came with bytes of this digest.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn put_signature(&self, digest: &str, minisig: &str) -> Result<(), Error> {
        self.make_dirs()?;
        self.place(&format!("{digest}.minisig"), minisig.as_bytes())
    }

    fn place(&self, name: &str, bytes: &[u8]) -> Result<(), Error> {
        let dir = self.dir();
        disk::replace(&*self.disk, &dir, name, bytes)
            .map_err(|e| Error::io("write", dir.join(name), e))
    }

    pub(crate) fn make_dirs(&self) -> Result<(), Error> {
        for dir in [self.home.join("plugins"), self.dir()] {
            if dir.symlink_metadata().is_ok_and(|meta| meta.is_dir()) {
                continue;
            }
            let parent = dir.parent().unwrap_or(&self.home);
            self.disk
                .make_dir(&dir)
                .and_then(|()| self.disk.sync(parent))
                .map_err(|e| Error::io("make", &dir, e))?;
        }
        Ok(())
    }

    /// The bytes of a digest, checked against it.
    ///
    /// # Errors
    /// [`Error::PackageMissing`], [`Error::PackageDamaged`], [`Error::Io`].
    pub fn read(&self, digest: &str) -> Result<Vec<u8>, Error> {
        let path = self.path(digest);
        let bytes = read_no_link(&path, MAX_BYTES)
            .map_err(|e| Error::io("read", &path, e))?
            .ok_or_else(|| Error::PackageMissing { path: path.clone() })?;
        let found = self::digest(&bytes);
        if found == digest {
            Ok(bytes)
        } else {
            Err(Error::PackageDamaged {
                path,
                expected: digest.to_owned(),
                found,
            })
        }
    }

    /// The signature that came with bytes of this digest; none where none did.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn signature(&self, digest: &str) -> Result<Option<String>, Error> {
        let path = self.signature_path(digest);
        read_no_link(&path, MAX_SIGNATURE)
            .and_then(|bytes| {
                bytes
                    .map(|bytes| {
                        String::from_utf8(bytes).map_err(|_| {
                            io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text")
                        })
                    })
                    .transpose()
            })
            .map_err(|e| Error::io("read", path, e))
    }

    /// Removes what no profile's lock names, and what dead processes left. None
    /// where another process is changing a profile: then nothing is done.
    ///
    /// A lock counts as naming every digest that stands in its text, so that one
    /// that cannot be read keeps what it had.
    ///
    /// # Errors
    /// [`Error::Io`]: what was not to be read or removed; the rest is left.
    pub fn sweep(&self) -> Result<Option<Swept>, Error> {
        let dir = self.dir();
        if !dir.is_dir() {
            return Ok(Some(Swept::default()));
        }
        let lock = self.open_lock()?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", self.lock_path(), e)),
        }
        let named = self.named()?;
        let mut swept = Swept::default();
        let entries = fs::read_dir(&dir).map_err(|e| Error::io("read", &dir, e))?;
        for entry in entries {
            let entry = entry.map_err(|e| Error::io("read", &dir, e))?;
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let (stem, extension) = name.rsplit_once('.').unwrap_or((name, ""));
            let package = matches!(extension, "wasm" | "minisig") && is_digest(stem);
            if !(disk::is_draft(name) || package && !named.contains(stem)) {
                continue;
            }
            let path = entry.path();
            self.disk
                .remove(&path)
                .map_err(|e| Error::io("remove", &path, e))?;
            if extension == "wasm" {
                swept.packages += 1;
            } else {
                swept.remains += 1;
            }
        }
        Ok(Some(swept))
    }

    /// Every digest that stands in any profile's lock.
    fn named(&self) -> Result<HashSet<String>, Error> {
        let profiles = self.home.join("profiles");
        let mut named = HashSet::new();
        let entries = match fs::read_dir(&profiles) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(named),
            other => other.map_err(|e| Error::io("read", &profiles, e))?,
        };
        for entry in entries {
            let path = entry
                .map_err(|e| Error::io("read", &profiles, e))?
                .path()
                .join(FILE);
            let bytes = match fs::read(&path) {
                Ok(bytes) => bytes,
                Err(e)
                    if matches!(
                        e.kind(),
                        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
                    ) =>
                {
                    continue;
                }
                Err(e) => return Err(Error::io("read", path, e)),
            };
            let text = String::from_utf8_lossy(&bytes).to_ascii_lowercase();
            let words = text.split(|c: char| !c.is_ascii_hexdigit());
            named.extend(words.filter(|word| is_digest(word)).map(str::to_owned));
        }
        Ok(named)
    }

    fn lock_path(&self) -> PathBuf {
        self.home.join("plugins/.lock")
    }

    fn open_lock(&self) -> Result<File, Error> {
        open_lock(&self.lock_path())
    }

    /// Holds off sweeps for as long as the file is open.
    pub(crate) fn hold(&self, patience: Duration) -> Result<File, Error> {
        self.make_dirs()?;
        let lock = self.open_lock()?;
        wait(&self.lock_path(), patience, || lock.try_lock_shared())?;
        Ok(lock)
    }
}

/// Opens a file to lock, and makes it where there is none.
pub(crate) fn open_lock(path: &Path) -> Result<File, Error> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(no_follow())
        .open(path)
        .map_err(|e| Error::io("lock", path, e))
}

/// Tries for a lock until `patience` is over.
pub(crate) fn wait(
    path: &Path,
    patience: Duration,
    try_lock: impl Fn() -> Result<(), TryLockError>,
) -> Result<(), Error> {
    const EVERY: Duration = Duration::from_millis(20);
    let until = Instant::now() + patience;
    loop {
        match try_lock() {
            Ok(()) => return Ok(()),
            Err(TryLockError::Error(e)) => return Err(Error::io("lock", path, e)),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(EVERY),
            Err(TryLockError::WouldBlock) => {
                // Who holds it wrote so into it; there is no promise of it.
                let holder = fs::read_to_string(path).unwrap_or_default();
                let holder = holder.trim();
                let holder = if holder.is_empty() {
                    "another dsh".to_owned()
                } else {
                    holder.chars().filter(|c| !c.is_control()).collect()
                };
                return Err(Error::Busy {
                    path: path.to_owned(),
                    holder,
                });
            }
        }
    }
}

/// A regular file's bytes, none where there is no file. A link is an error.
fn read_no_link(path: &Path, most: u64) -> io::Result<Option<Vec<u8>>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(no_follow())
        .open(path);
    let file = match file {
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        other => other?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    file.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let message = format!("larger than {} KiB", most >> 10);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    Ok(Some(bytes))
}

/// Links are not followed, and a pipe is not waited for.
fn no_follow() -> i32 {
    use rustix::fs::OFlags;
    (OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC)
        .bits()
        .cast_signed()
}

#[cfg(test)]
#[path = "packages_tests.rs"]
mod tests;
