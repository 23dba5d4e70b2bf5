//! Removing a session for good.
//!
//! The log goes first and durably, so that whatever happens then no half of a session is listed; what lay beside it
//! follows, the lock last. The lock is held all the while: a writer that lives refuses the removal, and one that comes
//! meanwhile is refused. A link is removed and never followed.

use std::io;
use std::path::{Path, PathBuf};

use crate::lock::LOCK_FILE;
use crate::log_file::take_lock;
use crate::storage::Storage;
use crate::{Store, StoreError};

/// What was removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Removed {
    /// The session's directory.
    pub dir: PathBuf,
    /// The size of its log.
    pub bytes: u64,
}

impl Store {
    /// Removes a session, damaged or not: its log and everything beside it, and the project's directory when that is
    /// empty then.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Locked`]; [`StoreError::Layout`] also when its directory is a link;
    /// [`StoreError::Io`].
    pub fn remove(&self, id: &str) -> Result<Removed, StoreError> {
        let storage = &*self.storage;
        let log = self.find(id)?;
        let dir = log.parent().unwrap_or(self.root());
        let project = dir.parent().unwrap_or(self.root());
        for path in [project, dir] {
            if storage
                .is_symlink(path)
                .map_err(StoreError::io("look at", path))?
            {
                return Err(StoreError::Layout {
                    id: id.to_owned(),
                    reason: format!(
                        "{} is a symbolic link, which is not followed; remove it by hand",
                        path.display()
                    ),
                });
            }
        }
        let held = take_lock(storage, dir, id)?;
        let bytes = storage.metadata(&log).map_or(0, |meta| meta.len);
        let unlink = |path: &Path| gone(storage.remove_file(path), path);
        unlink(&log)?;
        storage.sync_dir(dir).map_err(StoreError::io("sync", dir))?;
        let lock = dir.join(LOCK_FILE);
        for path in names(storage, dir)? {
            if path != lock {
                remove_all(storage, &path)?;
            }
        }
        unlink(&lock)?;
        gone(storage.remove_dir(dir), dir)?;
        drop(held);
        storage
            .sync_dir(project)
            .map_err(StoreError::io("sync", project))?;
        // Another session may lie there, or be about to.
        if project != self.root() && storage.remove_dir(project).is_ok() {
            let root = self.root();
            storage
                .sync_dir(root)
                .map_err(StoreError::io("sync", root))?;
        }
        Ok(Removed {
            dir: dir.to_owned(),
            bytes,
        })
    }
}

fn names(storage: &dyn Storage, dir: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut names = storage.read_dir(dir).map_err(StoreError::io("list", dir))?;
    names.sort();
    Ok(names)
}

/// What is gone already need not be removed.
fn gone(removed: io::Result<()>, path: &Path) -> Result<(), StoreError> {
    match removed {
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other.map_err(StoreError::io("remove", path)),
    }
}

/// Removes a file, a link, or a directory with what is in it.
fn remove_all(storage: &dyn Storage, path: &Path) -> Result<(), StoreError> {
    let mut open = vec![path.to_owned()];
    while let Some(next) = open.last().cloned() {
        let is_link = storage.is_symlink(&next).unwrap_or(true);
        if is_link || !storage.metadata(&next).is_ok_and(|meta| meta.is_dir) {
            gone(storage.remove_file(&next), &next)?;
            open.pop();
            continue;
        }
        let inside = names(storage, &next)?;
        if inside.is_empty() {
            gone(storage.remove_dir(&next), &next)?;
            open.pop();
        } else {
            open.extend(inside);
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "remove_tests.rs"]
mod tests;
