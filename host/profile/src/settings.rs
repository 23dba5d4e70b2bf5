use crate::{Error, Home};
use serde_json::Value;

/// `$DSH_HOME/settings.yaml` (spec/cli.md §3), read and checked once.
#[derive(Clone, Default)]
pub struct Settings {}

impl Settings {
    /// Reads the document; a missing one is empty. An invalid one is an error
    /// with its file and line.
    pub fn load(_home: &Home) -> Result<Self, Error> {
        todo!()
    }
    /// One section.
    pub fn section(&self, _name: &str) -> Option<&Value> {
        todo!()
    }
}
