use crate::{Pin, Unserved};
use serde_json::Value;
use std::fmt;

/// What a row is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Implementation {
    /// A component: `dsh:NAME` for an embedded one, `namespace:name` for an
    /// installed plugin ([`Row::plugin`]), otherwise an absolute path.
    Component(String),
    /// A part of the host, by its own name.
    Host(String),
}

/// An address that was written into a configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The provider that it is for; none for each that the row serves.
    pub provider: Option<String>,
    /// `baseURL`, as it stands.
    pub url: String,
}

/// A row, evaluated and ready to mount.
#[derive(Clone, PartialEq)]
pub struct Row {
    /// Unique in its composition.
    pub id: String,
    /// What it mounts.
    pub implementation: Implementation,
    /// An object, `{}` where the row has none: `defaults` < `config` < settings.
    pub config: Value,
    /// Grant's name -> `true` or its parameters, `{}` where there is none
    /// (docs/profiles.md, design/plugins.md).
    pub grants: Value,
    /// As written: `{memory: 64MiB, call: 20s, cpu: 5s}`, `{}` where there is none.
    pub limits: Value,
    /// Not to be mounted. `config` and `grants` of a disabled row are not evaluated.
    pub disabled: bool,
    /// The installed plugin whose bytes it mounts, whoever brought the row.
    pub plugin: Option<Pin>,
    /// Whether its `grants` are what the profile's lock says, and no other layer.
    pub locked_grants: bool,
    /// Whether its `limits` are.
    pub locked_limits: bool,
    /// Nothing was configured for it to serve: it is on, and not to be mounted.
    pub dormant: bool,
    /// Where a person or a bundle wrote that requests go. What stands in a plugin's
    /// own row is a stranger's word, and not here.
    pub endpoints: Vec<Endpoint>,
    /// The label of the layer that brought it.
    pub origin: String,
    /// The labels of the layers that changed it, in order.
    pub patched_by: Vec<String>,
}

impl fmt::Debug for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A person may put a secret into a config by an expression, so it is not shown.
        f.debug_struct("Row")
            .field("id", &self.id)
            .field("implementation", &self.implementation)
            .field("disabled", &self.disabled)
            .field("origin", &self.origin)
            .field("patched_by", &self.patched_by)
            .finish_non_exhaustive()
    }
}

impl Row {
    /// Whether an installed plugin brought it and it still mounts that.
    #[must_use]
    pub fn is_plugins_own(&self) -> bool {
        self.plugin
            .as_ref()
            .is_some_and(|plugin| plugin.to_string() == self.origin)
    }

    /// The providers that its grant `route` lists.
    #[must_use]
    pub fn providers(&self) -> Vec<String> {
        crate::providers::listed_names(self)
    }
}

/// A row or bundle that was left out, and why. `--strict` makes it fatal; the
/// message is a full line without the `dsh: ` in front.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The row's id; none when it is not about a row.
    pub row: Option<String>,
    /// `row X: no native or Wasm implementation of <pkg>; left out`
    pub message: String,
}

/// What the host mounts.
#[derive(Debug, Clone)]
pub struct Composition {
    /// In composed order, groups flattened, disabled rows included.
    pub rows: Vec<Row>,
    /// What was left out.
    pub problems: Vec<Problem>,
    /// Providers that somebody wrote and no row serves.
    pub unserved: Vec<Unserved>,
}

impl Composition {
    /// The enabled row that mounts this part of the host.
    pub fn host(&self, name: &str) -> Option<&Row> {
        self.rows.iter().find(|r| {
            !r.disabled && matches!(&r.implementation, Implementation::Host(h) if h == name)
        })
    }
    /// The rows that mount components, in composed order: those that are neither
    /// disabled nor dormant.
    pub fn components(&self) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(|row| {
            !row.disabled
                && !row.dormant
                && matches!(row.implementation, Implementation::Component(_))
        })
    }
}
