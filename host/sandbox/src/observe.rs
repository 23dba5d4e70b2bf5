//! What a session's policy says of a write that its writer left to it.
//!
//! Every read and every change is reported here with the version that it met,
//! and a guarded write asks back. The host ships [`Observations`], upstream's
//! rule (spec/loop.md §15.2); another policy takes its place by implementing
//! [`WritePolicy`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// What a file must be for a write to take place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Anything.
    Any,
    /// Not there.
    Absent,
    /// Not there, since whoever writes has not read it; a file that is there
    /// fails with `FS_NOT_OBSERVED`, not with `FS_STALE_VERSION`.
    Unobserved,
    /// This version.
    Version(String),
    /// The write must not take place: `FS_NOT_OBSERVED`.
    Refused,
}

/// Hears of reads and changes, and decides what a write must meet. Called with
/// canonical paths, from threads that may block; it must not call back into
/// the workspace.
pub trait WritePolicy: Send + Sync {
    /// `fs/observed`: a read or a change met this version, or nothing.
    fn observed(&self, path: &Path, version: Option<&str>);
    /// For a write that replaces whatever is there.
    fn overwrite(&self, path: &Path) -> Expect;
    /// For a write that changes what is there.
    fn edit(&self, path: &Path) -> Expect;
}

/// No policy: whatever is written replaces what is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unguarded;

impl WritePolicy for Unguarded {
    fn observed(&self, _: &Path, _: Option<&str>) {}

    fn overwrite(&self, _: &Path) -> Expect {
        Expect::Any
    }

    fn edit(&self, _: &Path) -> Expect {
        Expect::Any
    }
}

/// Replace only what was read and is still so. One per agent, in memory only:
/// a resumed session starts with none.
#[derive(Debug, Default)]
pub struct Observations(Mutex<HashMap<PathBuf, Option<String>>>);

impl Observations {
    fn of(&self, path: &Path) -> Option<Option<String>> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(path)
            .cloned()
    }
}

impl WritePolicy for Observations {
    fn observed(&self, path: &Path, version: Option<&str>) {
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(path.to_path_buf(), version.map(str::to_owned));
    }

    fn overwrite(&self, path: &Path) -> Expect {
        match self.of(path) {
            Some(Some(version)) => Expect::Version(version),
            Some(None) => Expect::Absent,
            None => Expect::Unobserved,
        }
    }

    fn edit(&self, path: &Path) -> Expect {
        match self.of(path) {
            Some(Some(version)) => Expect::Version(version),
            Some(None) | None => Expect::Refused,
        }
    }
}
