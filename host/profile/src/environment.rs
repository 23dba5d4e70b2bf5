use crate::Error;
use std::ffi::OsString;
use std::path::Path;

/// The layer that a value comes from (spec/cli.md §1.3), strongest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The inherited environment.
    Process,
    /// `.credentials.yaml` (credentials only, never the environment).
    File,
    /// `<cwd>/.env`.
    ProjectEnv,
    /// `$DSH_HOME/.env`.
    UserEnv,
}

/// A frozen snapshot of the environment in its layers.
#[derive(Clone)]
pub struct Environment {}

impl Environment {
    /// Of the inherited variables alone.
    pub fn process(_variables: impl IntoIterator<Item = (OsString, OsString)>) -> Self {
        todo!()
    }
    /// Adds `<cwd>/.env` and `$DSH_HOME/.env`. Both are parsed before either is taken.
    pub fn with_files(self, _cwd: &Path, _home: &Path) -> Result<Self, Error> {
        todo!()
    }
    /// The value that wins.
    pub fn get(&self, _name: &str) -> Option<&str> {
        todo!()
    }
    /// The value of one layer alone.
    pub fn get_in(&self, _source: Source, _name: &str) -> Option<&str> {
        todo!()
    }
    /// The layer that [`Environment::get`] takes the value from.
    pub fn source(&self, _name: &str) -> Option<Source> {
        todo!()
    }
    /// One line each: `.env` files that are there but cannot be read.
    pub fn warnings(&self) -> &[String] {
        todo!()
    }
}
