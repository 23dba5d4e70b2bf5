//! Credentials by reference (spec/llm.md §8, spec/cli.md §3).
//!
//! Configuration names a credential and never holds one. A name is looked up at
//! every request: what the shell exported wins, then `.credentials.yaml`, then
//! the `.env` files. The document is read again when it changed, so that a key
//! stored while `dsh` runs works at once; one that became invalid is reported and
//! the last good one holds. At the start an invalid one is an error, and so is
//! one that others may read.

mod document;

use crate::{Environment, Error, Home, Source, file};
use document::Refs;
use std::fmt;
use std::fs::Metadata;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// A credential's value. Neither `Debug` nor any error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value, to be put into a request and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Resolves credential references.
pub struct CredentialStore {
    path: PathBuf,
    env: Environment,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    stamp: Stamp,
    refs: Refs,
    problem: Option<String>,
}

/// What tells that a file changed: none where there is no file.
type Stamp = Option<Version>;

/// Time of change, length, permission bits, file number.
type Version = (Option<SystemTime>, u64, u32, u64);

impl CredentialStore {
    /// Reads `.credentials.yaml`; a missing one holds nothing.
    ///
    /// # Errors
    /// A document that others may read, or that is not of its strict shape.
    pub fn open(home: &Home, env: Environment) -> Result<Self, Error> {
        let path = home.path().join(".credentials.yaml");
        let (stamp, refs) = load(&path)?;
        Ok(Self {
            path,
            env,
            state: Mutex::new(State {
                stamp,
                refs,
                problem: None,
            }),
        })
    }

    /// The first that is not empty: inherited environment, `.credentials.yaml`,
    /// project `.env`, user `.env`.
    ///
    /// # Errors
    /// [`Error::CredentialName`] for a name that no reference may have.
    pub fn resolve(&self, name: &str) -> Result<Option<(Secret, Source)>, Error> {
        if !document::is_reference(name) {
            return Err(Error::CredentialName(name.to_owned()));
        }
        let of_env = |source: Source| {
            let value = self.env.get_in(source, name)?;
            (!value.is_empty()).then(|| (Secret(value.to_owned()), source))
        };
        let of_file = || {
            let value = self.current(|refs| refs.get(name).cloned())?;
            Some((Secret(value), Source::File))
        };
        Ok(of_env(Source::Process)
            .or_else(of_file)
            .or_else(|| of_env(Source::ProjectEnv))
            .or_else(|| of_env(Source::UserEnv)))
    }

    /// Why the document, as it is now on disk, is not used; none when it is.
    pub fn problem(&self) -> Option<String> {
        self.current(|_| ());
        self.lock().problem.clone()
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks into the document, read again where it changed.
    fn current<T>(&self, look: impl FnOnce(&Refs) -> T) -> T {
        let mut state = self.lock();
        let now = std::fs::metadata(&self.path).ok().as_ref().map(stamp_of);
        if now != state.stamp {
            match load(&self.path) {
                Ok((stamp, refs)) => {
                    *state = State {
                        stamp,
                        refs,
                        problem: None,
                    };
                }
                Err(error) => {
                    state.stamp = now;
                    state.problem = Some(format!("{error}; the last good credentials are used"));
                }
            }
        }
        look(&state.refs)
    }
}

impl fmt::Debug for CredentialStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialStore")
            .field("path", &self.path)
            .field("names", &self.lock().refs.keys())
            .finish_non_exhaustive()
    }
}

fn load(path: &Path) -> Result<(Stamp, Refs), Error> {
    let file = match file::open_regular(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok((None, Refs::new())),
        Err(e) => return Err(Error::io("read", path, e)),
    };
    // Of the open file, so that what is checked is what is read.
    let metadata = file.metadata().map_err(|e| Error::io("read", path, e))?;
    let mode = mode_of(&metadata);
    if mode & 0o077 != 0 {
        return Err(Error::CredentialsMode {
            path: path.to_owned(),
            mode,
        });
    }
    let text = file::read_open(file).map_err(|e| Error::io("read", path, e))?;
    let refs = match file::document(path, &text)? {
        Some(root) => document::refs(&root).map_err(|fault| file::at(path, fault))?,
        None => Refs::new(),
    };
    Ok((Some(stamp_of(&metadata)), refs))
}

fn stamp_of(metadata: &Metadata) -> Version {
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let number = 0;
    (
        metadata.modified().ok(),
        metadata.len(),
        mode_of(metadata),
        number,
    )
}

/// Permission bits; none where the system has no such thing.
fn mode_of(metadata: &Metadata) -> u32 {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
