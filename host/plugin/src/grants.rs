//! What a row may do.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::Error;

/// A row's grants: names, each with its parameters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Grants {
    granted: BTreeMap<String, Value>,
}

impl Grants {
    /// None at all: `log`, `config` and `work` only.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// From a row's `grants`: a list of names, or an object of names with their
    /// parameters (`true` and `{}` mean without any, `false` not granted).
    ///
    /// # Errors
    /// A name that no grant has, or parameters that are not of its shape.
    pub fn parse(_value: &Value) -> Result<Self, Error> {
        todo!()
    }

    /// Whether a grant of this name is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.granted.contains_key(name)
    }

    /// Its parameters; `{}` where it has none.
    #[must_use]
    pub fn parameters(&self, name: &str) -> Option<&Value> {
        self.granted.get(name)
    }
}
