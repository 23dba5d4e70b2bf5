//! What plugins keep: a small durable map for each row and scope, below
//! `$DSH_HOME/plugins/data/`.
//!
//! A map is one file, read whole and replaced whole: it is small by its quota,
//! and a crash leaves the old map or the new one. Writers of several processes
//! follow each other by a lock of the system beside it; readers need none. Where
//! a map is follows from whose it is and nothing that a plugin says: two rows,
//! or two plugins, never share one.
//!
//! A map of a session lies apart, so that it can go when the session does.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::disk::{self, Disk, Real};
use crate::packages::{open_lock, wait};
use crate::{Error, Home};

/// The first bytes of a map's file: what it is, and of which shape.
const MAGIC: &[u8] = b"dsh-kv 1\n";

/// Of the digest that follows them, over all that comes after.
const DIGEST: usize = 32;

/// How long a writer waits for another one, which takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(10);

/// How far a map reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach<'a> {
    /// All sessions of the profile.
    Profile,
    /// Its sessions of this working directory.
    Project(&'a Path),
    /// The session of this id.
    Session(&'a str),
}

/// All maps of a home.
#[derive(Debug, Clone)]
pub struct PluginData {
    home: PathBuf,
    disk: Arc<dyn Disk>,
}

/// One map.
#[derive(Debug, Clone)]
pub struct PluginMap {
    home: PathBuf,
    /// Below the home, a directory each.
    dirs: Vec<String>,
    name: String,
    disk: Arc<dyn Disk>,
}

type Entries = BTreeMap<String, Vec<u8>>;

impl PluginData {
    /// Of this home. Touches nothing.
    #[must_use]
    pub fn at(home: &Home) -> Self {
        Self {
            home: home.path().to_owned(),
            disk: Arc::new(Real),
        }
    }

    /// The map of a plugin's row in a profile.
    #[must_use]
    pub fn map(&self, profile: &str, plugin: &str, row: &str, reach: Reach<'_>) -> PluginMap {
        let whose = [profile, plugin, row].map(|name| encode(name.as_bytes()));
        let [profile, plugin, row] = whose;
        let mut dirs = vec!["plugins".to_owned(), "data".to_owned()];
        let name = match reach {
            Reach::Session(id) => {
                dirs.extend(["sessions".to_owned(), encode(id.as_bytes())]);
                "session.kv".to_owned()
            }
            Reach::Profile => {
                dirs.push("profiles".to_owned());
                "profile.kv".to_owned()
            }
            Reach::Project(cwd) => {
                dirs.push("profiles".to_owned());
                format!("project-{}.kv", &hex(cwd.as_os_str().as_bytes())[..32])
            }
        };
        dirs.extend([profile, plugin, row]);
        PluginMap {
            home: self.home.clone(),
            dirs,
            name,
            disk: Arc::clone(&self.disk),
        }
    }

    /// Removes what plugins kept for a session that goes.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn forget_session(&self, id: &str) -> Result<(), Error> {
        let dir = self
            .home
            .join("plugins/data/sessions")
            .join(encode(id.as_bytes()));
        match fs::remove_dir_all(&dir) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(Error::io("remove", dir, error))
            }
            _ => Ok(()),
        }
    }
}

impl PluginMap {
    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.dir().join(&self.name)
    }

    /// The value of a key.
    ///
    /// # Errors
    /// [`Error::DataDamaged`], [`Error::Io`]; so for all of these.
    pub fn get(&self, key: &str) -> Result<Option<Vec<u8>>, Error> {
        Ok(self.read()?.remove(key))
    }

    /// The keys that begin so, sorted.
    ///
    /// # Errors
    /// As [`PluginMap::get`].
    pub fn keys(&self, prefix: &str) -> Result<Vec<String>, Error> {
        let entries = self.read()?;
        let keys = entries.into_keys().filter(|key| key.starts_with(prefix));
        Ok(keys.collect())
    }

    /// Sets a key; durable when it returns.
    ///
    /// # Errors
    /// As [`PluginMap::get`]; [`Error::DataFull`] beyond `quota` bytes of keys and
    /// values together.
    pub fn set(&self, key: &str, value: Vec<u8>, quota: u64) -> Result<(), Error> {
        self.change(quota, |entries| {
            entries.insert(key.to_owned(), value);
            true
        })
        .map(drop)
    }

    /// Sets a key if its value is still `old` (none: it has none); whether it did.
    ///
    /// # Errors
    /// As [`PluginMap::set`].
    pub fn swap(
        &self,
        key: &str,
        old: Option<&[u8]>,
        value: Vec<u8>,
        quota: u64,
    ) -> Result<bool, Error> {
        self.change(quota, |entries| {
            let same = entries.get(key).map(Vec::as_slice) == old;
            if same {
                entries.insert(key.to_owned(), value);
            }
            same
        })
    }

    /// Removes a key, whether it is there or not.
    ///
    /// # Errors
    /// As [`PluginMap::get`].
    pub fn remove(&self, key: &str) -> Result<(), Error> {
        self.change(u64::MAX, |entries| entries.remove(key).is_some())
            .map(drop)
    }

    fn dir(&self) -> PathBuf {
        self.dirs
            .iter()
            .fold(self.home.clone(), |at, dir| at.join(dir))
    }

    fn change(&self, quota: u64, alter: impl FnOnce(&mut Entries) -> bool) -> Result<bool, Error> {
        let mut dir = self.home.clone();
        for name in &self.dirs {
            dir.push(name);
            self.disk
                .make_dir(&dir)
                .map_err(|error| Error::io("make", &dir, error))?;
        }
        let held = dir.join(format!("{}.lock", self.name));
        let lock = open_lock(&held)?;
        wait(&held, PATIENCE, || lock.try_lock())?;
        let mut entries = self.read()?;
        let before = size(&entries);
        if !alter(&mut entries) {
            return Ok(false);
        }
        let after = size(&entries);
        // One that was let grow when there was more may still be made smaller.
        if after > quota && after > before {
            return Err(Error::DataFull {
                path: self.path(),
                needed: after,
                quota,
            });
        }
        disk::replace(&*self.disk, &dir, &self.name, &write(&entries))
            .map_err(|error| Error::io("write", self.path(), error))?;
        Ok(true)
    }

    fn read(&self) -> Result<Entries, Error> {
        let path = self.path();
        let bytes = match fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Entries::new()),
            read => read.map_err(|error| Error::io("read", &path, error))?,
        };
        parse(&bytes).ok_or(Error::DataDamaged { path })
    }
}

fn size(entries: &Entries) -> u64 {
    let bytes = |(key, value): (&String, &Vec<u8>)| (key.len() + value.len()) as u64;
    entries.iter().map(bytes).sum()
}

fn write(entries: &Entries) -> Vec<u8> {
    let mut body = Vec::new();
    for (key, value) in entries {
        for part in [key.as_bytes(), value] {
            // No value comes near 4 GiB: a hand-over ends far below.
            body.extend_from_slice(&u32::try_from(part.len()).unwrap_or(u32::MAX).to_le_bytes());
            body.extend_from_slice(part);
        }
    }
    [MAGIC, Sha256::digest(&body).as_slice(), &body].concat()
}

fn parse(bytes: &[u8]) -> Option<Entries> {
    let rest = bytes.strip_prefix(MAGIC)?;
    let (digest, mut body) = rest.split_at_checked(DIGEST)?;
    if Sha256::digest(body).as_slice() != digest {
        return None;
    }
    let mut part = || {
        let (length, rest) = body.split_first_chunk::<4>()?;
        let (part, rest) =
            rest.split_at_checked(usize::try_from(u32::from_le_bytes(*length)).ok()?)?;
        body = rest;
        Some(part)
    };
    let mut entries = Entries::new();
    while let Some(key) = part() {
        entries.insert(String::from_utf8(key.to_vec()).ok()?, part()?.to_vec());
    }
    Some(entries)
}

/// A name as one part of a path: what is no letter, digit, `-` or `_` becomes
/// `%XX`, and one that would be too long its digest.
fn encode(name: &[u8]) -> String {
    let mut encoded = String::with_capacity(name.len());
    for &byte in name {
        if byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_' {
            encoded.push(char::from(byte));
        } else {
            let _ = write!(encoded, "%{byte:02X}");
        }
    }
    if encoded.is_empty() || encoded.len() > 200 {
        return format!("%{}", hex(name));
    }
    encoded
}

fn hex(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
#[path = "data_tests.rs"]
mod tests;
