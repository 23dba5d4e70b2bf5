use crate::{Environment, Error, Home, Source};
use std::fmt;

/// A credential's value. Neither `Debug` nor any error shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The value, to be put into a request and nowhere else.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// Resolves credential references (spec/llm.md §8).
pub struct CredentialStore {}

impl CredentialStore {
    /// Reads `.credentials.yaml` once, so that a broken one is loud at boot.
    pub fn open(_home: &Home, _env: Environment) -> Result<Self, Error> {
        todo!()
    }
    /// The first that is not empty: inherited environment, `.credentials.yaml`,
    /// project `.env`, user `.env`. The document is read again when it changed;
    /// when it became invalid the last good one holds.
    pub fn resolve(&self, _name: &str) -> Result<Option<(Secret, Source)>, Error> {
        todo!()
    }
}
