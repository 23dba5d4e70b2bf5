use crate::Error;
use crate::{Scope, Tree};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// `$DSH_HOME`: where profiles, sessions, settings and credentials are.
#[derive(Debug, Clone)]
pub struct Home {
    path: PathBuf,
}

impl Home {
    /// `$DSH_HOME` (blank is unset; `~`, `~/x` and `~\x` mean the person's home;
    /// relative to `cwd`), else `~/.dsh`. `dsh_home` and `user_home` are from the
    /// inherited environment alone.
    pub fn resolve(
        _dsh_home: Option<&OsStr>,
        _user_home: Option<&OsStr>,
        _cwd: &Path,
    ) -> Result<Self, Error> {
        todo!()
    }
    /// The directory, absolute. It need not exist yet.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A profile's directory with its list of bundles.
#[derive(Debug, Clone)]
pub struct Profile {}

impl Profile {
    /// Opens a profile. `headless` makes itself on first use.
    pub fn open(_home: &Home, _name: &str) -> Result<Self, Error> {
        todo!()
    }
    /// Its directory.
    pub fn dir(&self) -> &Path {
        todo!()
    }
    /// Its name.
    pub fn name(&self) -> &str {
        todo!()
    }
    /// All layers of `scope`, applied in one pass.
    pub fn compose(&self, _scope: Scope<'_>) -> Result<Tree, Error> {
        todo!()
    }
}
