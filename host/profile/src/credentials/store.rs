//! Changes of `.credentials.yaml`: one at a time among all processes, whole or not at all.
//!
//! The lock is upstream's: a file that is made exclusively and removed behind the change. It is never taken from
//! whoever holds it, so one that a crash left stops every change until a person removes it, which the error says. The
//! document goes in as a draft, made durable, and renamed.

use super::edit::{self, Edited, Refused};
use super::{FILE, Secret, document, load};
use crate::disk::{self, Real};
use crate::{Environment, Error, Home, Source, file};
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a change waits for another one.
const PATIENCE: Duration = Duration::from_secs(2);

/// The document, to be changed.
#[derive(Debug)]
pub struct CredentialFile {
    home: PathBuf,
    env: Environment,
    patience: Duration,
}

/// What a change did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Changed {
    /// The name had a value in the document before.
    pub had: bool,
    /// The document was of an early layout, and is of the present one now.
    pub moved: bool,
}

impl CredentialFile {
    /// The document of a home, which need not be there yet.
    #[must_use]
    pub fn at(home: &Home, env: Environment) -> Self {
        Self {
            home: home.path().to_owned(),
            env,
            patience: PATIENCE,
        }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> PathBuf {
        self.home.join(FILE)
    }

    /// Whether a name can be written: not one that is no reference, nor one that the inherited environment gives,
    /// which would go on winning.
    ///
    /// # Errors
    /// [`Error::CredentialName`], [`Error::CredentialInherited`].
    pub fn writable(&self, name: &str) -> Result<(), Error> {
        if !document::is_reference(name) {
            return Err(Error::CredentialName(name.to_owned()));
        }
        match self.env.get_in(Source::Process, name) {
            Some(value) if !value.is_empty() => Err(Error::CredentialInherited(name.to_owned())),
            _ => Ok(()),
        }
    }

    /// Keeps a value, and leaves everything else of the document as it is.
    ///
    /// # Errors
    /// As [`CredentialFile::writable`]; another writer, a link, a shape or layout that is not to be touched, or the
    /// system's refusal. The document then is as it was.
    pub fn set(&self, name: &str, value: &Secret) -> Result<Changed, Error> {
        self.writable(name)?;
        fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.home)
            .map_err(|e| Error::io("make", &self.home, e))?;
        self.change(name, Some(value.expose()))
    }

    /// Takes a value out; [`Changed::had`] tells whether there was one.
    ///
    /// # Errors
    /// As [`CredentialFile::set`], but that a name of the inherited environment can be taken out.
    pub fn unset(&self, name: &str) -> Result<Changed, Error> {
        if !document::is_reference(name) {
            return Err(Error::CredentialName(name.to_owned()));
        }
        if !self.home.is_dir() {
            return Ok(Changed {
                had: false,
                moved: false,
            });
        }
        self.change(name, None)
    }

    fn change(&self, name: &str, value: Option<&str>) -> Result<Changed, Error> {
        let path = self.path();
        let _lock = Lock::take(&self.home.join(format!("{FILE}.lock")), self.patience)?;
        if path.is_symlink() {
            return Err(Error::CredentialsLink(path));
        }
        // Refuses what others may read, and what is no file, as a start does.
        let text = match load::open(&path)? {
            Some((file, _)) => file::read_open(file).map_err(|e| Error::io("read", &path, e))?,
            None => String::new(),
        };
        let Edited {
            text: edited,
            had,
            moved,
        } = edit::edit(&text, name, value).map_err(|refused| match refused {
            Refused::Shape { line, message } => Error::Document {
                path: path.clone(),
                line,
                message,
            },
            Refused::Layout => Error::CredentialsLayout {
                path: path.clone(),
                name: name.to_owned(),
            },
        })?;
        if edited != text {
            disk::replace(&Real, &self.home, FILE, edited.as_bytes())
                .map_err(|e| Error::io("write", &path, e))?;
        }
        Ok(Changed { had, moved })
    }

    #[cfg(test)]
    pub(super) fn hasty(mut self) -> Self {
        self.patience = Duration::from_millis(50);
        self
    }
}

/// Held by being there.
struct Lock(PathBuf);

impl Lock {
    fn take(path: &Path, patience: Duration) -> Result<Self, Error> {
        let until = Instant::now() + patience;
        let mut pause = Duration::from_millis(5);
        loop {
            match OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(path)
            {
                Ok(_) => return Ok(Self(path.to_owned())),
                Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(Error::io("make", path, e));
                }
                Err(_) if Instant::now() >= until => {
                    return Err(Error::CredentialsBusy(path.to_owned()));
                }
                Err(_) => {
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(Duration::from_millis(100));
                }
            }
        }
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
