//! A change of a profile's lock: read, altered in memory, replaced whole.
//!
//! From [`Profile::change`] until it is committed or dropped the change holds two
//! locks of the system, which no crash leaves behind: the profile's, so that two
//! changes of it follow each other, and a shared one of the packages, so that no
//! sweep takes one away before a lock names it.
//!
//! The order is what makes it safe to stop anywhere: packages first, each whole
//! and durable; then the new lock as a draft, durable; then one rename. Before the
//! rename the old state stands with all its packages, after it the new one.
//! What is left lying about, the next change removes.

use crate::disk::{self, Disk, Real};
use crate::lock::{FILE, Lock};
use crate::packages::{Packages, open_lock, wait};
use crate::{Error, Profile, file};
use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How long a change waits for another one. A change is short: nothing is
/// fetched, compiled or asked in one.
const PATIENCE: Duration = Duration::from_secs(10);

/// A change that is under way. Dropped, it changes nothing.
#[derive(Debug)]
pub struct Change {
    dir: PathBuf,
    disk: Arc<dyn Disk>,
    packages: Packages,
    /// The file as it was read; none where there was none.
    text: Option<String>,
    before: Lock,
    lock: Lock,
    /// Before the store's, as fields drop in order.
    _profile: File,
    store: File,
}

impl Profile {
    /// Where its lock is.
    #[must_use]
    pub fn lock_path(&self) -> PathBuf {
        self.dir().join(FILE)
    }

    /// What it has installed; nothing where there is no lock yet.
    ///
    /// # Errors
    /// As [`Lock::parse`], and [`Error::Io`].
    pub fn lock(&self) -> Result<Lock, Error> {
        let path = self.lock_path();
        match file::read_optional(&path)? {
            Some(text) => Lock::parse(&path, &text),
            None => Ok(Lock::default()),
        }
    }

    /// Starts a change. Another one of this profile is waited for, ten seconds.
    ///
    /// # Errors
    /// [`Error::Busy`] names who is changing it all that time; else as
    /// [`Profile::lock`].
    pub fn change(&self) -> Result<Change, Error> {
        self.change_on(Arc::new(Real), PATIENCE)
    }

    pub(crate) fn change_on(
        &self,
        disk: Arc<dyn Disk>,
        patience: Duration,
    ) -> Result<Change, Error> {
        let held = self.dir().join(".lock");
        let mut profile = open_lock(&held)?;
        wait(&held, patience, || profile.try_lock())?;
        // For whoever waits; nothing depends on it.
        let _ = profile
            .set_len(0)
            .and_then(|()| write!(profile, "process {}", std::process::id()));
        let packages = Packages::on(self.home(), Arc::clone(&disk));
        let store = packages.hold(patience)?;
        let path = self.lock_path();
        let text = file::read_optional(&path)?;
        let lock = match &text {
            Some(text) => Lock::parse(&path, text)?,
            None => Lock::default(),
        };
        let change = Change {
            dir: self.dir().to_owned(),
            disk,
            packages,
            text,
            before: lock.clone(),
            lock,
            _profile: profile,
            store,
        };
        change.remove_drafts();
        Ok(change)
    }
}

impl Change {
    /// The lock, to look at and to alter.
    pub fn lock(&mut self) -> &mut Lock {
        &mut self.lock
    }

    /// The lock as it was when the change began.
    #[must_use]
    pub fn before(&self) -> &Lock {
        &self.before
    }

    /// Where to put what the lock will name.
    #[must_use]
    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// Puts the altered lock in place of the old one; then removes packages that
    /// no lock names any more.
    ///
    /// # Errors
    /// The lock cannot hold what it should, names a package that is not there, or
    /// cannot be written. The old lock stands then, unless all that failed was to
    /// make the new one durable.
    pub fn commit(self) -> Result<(), Error> {
        let path = self.dir.join(FILE);
        for plugin in &self.lock.plugins {
            let known = self
                .before
                .find(&plugin.name)
                .is_some_and(|old| old.digest == plugin.digest);
            let package = self.packages.path(&plugin.digest);
            if !known && !package.is_file() {
                return Err(Error::PackageMissing { path: package });
            }
        }
        let nothing = self.text.is_none() && self.lock == Lock::default();
        let text = self.lock.to_text()?;
        if !nothing && self.text.as_ref() != Some(&text) {
            disk::replace(&*self.disk, &self.dir, FILE, text.as_bytes())
                .map_err(|e| Error::io("write", path, e))?;
        }
        // One lock of ours would keep the other from being had.
        drop(self.store);
        // Who comes next sweeps what is not swept now.
        let _ = self.packages.sweep();
        Ok(())
    }

    /// Drafts of the lock are dead: who would make one holds the profile.
    fn remove_drafts(&self) {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        for entry in entries {
            let name = entry.file_name();
            let ours = name
                .to_str()
                .is_some_and(|name| disk::is_draft(name) && name.starts_with(&format!(".{FILE}.")));
            if ours {
                let _ = self.disk.remove(&entry.path());
            }
        }
    }
}

#[cfg(test)]
#[path = "change_tests.rs"]
mod tests;
