//! Credentials by reference (spec/llm.md §8, spec/cli.md §3).
//!
//! Configuration names a credential and never holds one. A name is looked up at
//! every request: what the shell exported wins, then `.credentials.yaml`, then
//! the `.env` files. The document is read again when it changed, so that a key
//! stored while `dsh` runs works at once; one that became invalid is reported and
//! the last good one holds. At the start an invalid one is an error, and so is
//! one that others may read.

mod document;
mod edit;
mod load;
mod store;

use crate::{Environment, Error, Home, Source};
use document::Refs;
use std::fmt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;
pub use store::{Changed, CredentialFile};

/// A credential's value. Neither `Debug` nor any error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps it.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

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

/// The document's name.
const FILE: &str = ".credentials.yaml";

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
        let path = home.path().join(FILE);
        let (stamp, refs) = load::load(&path)?;
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

    /// The layers that have a value for this name, strongest first.
    ///
    /// # Errors
    /// [`Error::CredentialName`] for a name that no reference may have.
    pub fn layers(&self, name: &str) -> Result<Vec<Source>, Error> {
        if !document::is_reference(name) {
            return Err(Error::CredentialName(name.to_owned()));
        }
        let has = |source: Source| match source {
            Source::File => self.current(|refs| refs.contains_key(name)),
            _ => self
                .env
                .get_in(source, name)
                .is_some_and(|value| !value.is_empty()),
        };
        let all = [
            Source::Process,
            Source::File,
            Source::ProjectEnv,
            Source::UserEnv,
        ];
        Ok(all.into_iter().filter(|source| has(*source)).collect())
    }

    /// The names that the document has, in the order of the alphabet.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.current(|refs| refs.keys().cloned().collect())
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
        let now = std::fs::metadata(&self.path)
            .ok()
            .as_ref()
            .map(load::stamp_of);
        if now != state.stamp {
            match load::load(&self.path) {
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

#[cfg(test)]
#[path = "credentials_tests.rs"]
mod tests;
