//! Why a row cannot be used, with what to do about it.
//!
//! What `dsh-plugin` says is about a row whose `grants` and `limits` stand in a
//! patch. Those of an installed plugin stand in the lock, which nobody edits, so
//! there the fix is a command.

use std::path::Path;

use dsh_plugin::Error;
use dsh_profile::{Row, for_profile};

/// Why a row cannot be used.
pub(crate) enum Fault {
    /// As it is to be told.
    Told(String),
    /// What loading or mounting it said.
    Of(Error),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Of(error)
    }
}

impl Fault {
    /// One line, for a row of a profile with this lock, with the file that the
    /// row's last word is in.
    pub(crate) fn text(self, row: &Row, lock: &Path) -> String {
        let profile = lock.parent().and_then(Path::file_name);
        let profile = profile.unwrap_or_default().to_string_lossy();
        let text = for_profile(&profile, &self.reason(row, lock));
        match row.patched_by.last().unwrap_or(&row.origin) {
            layer if layer.contains('/') && !text.contains(layer.as_str()) => {
                format!("{text}; mend or disable the row in {layer}")
            }
            _ => text,
        }
    }

    /// A component that refuses its configuration when it is asked what it offers
    /// says which member and why; which of its functions that was helps nobody.
    fn own_words(self) -> Self {
        match self {
            Self::Of(Error::Asking { source, .. }) if source.code() == "INVALID" => {
                Self::Told(source.into_plugin_error().message)
            }
            other => other,
        }
    }

    fn reason(self, row: &Row, lock: &Path) -> String {
        match (self.own_words(), &row.plugin) {
            (Self::Told(text), None) => text,
            (Self::Told(text), Some(plugin)) => format!("{plugin}: {text}"),
            (Self::Of(error), None) => error.to_string(),
            (Self::Of(error), Some(plugin)) => {
                let (name, lock) = (&plugin.name, lock.display());
                let again = format!("run `dsh plugin add {}`", plugin.source);
                let text = match error {
                    Error::NotGranted { import, grant, .. } if row.locked_grants => format!(
                        "it imports {import}, and {lock} does not grant `{grant}`; run `dsh plugin grant {name} {grant}`"
                    ),
                    Error::ExportNotGranted { what, grant, .. } if row.locked_grants => format!(
                        "{what}, and {lock} does not grant `{grant}`; run `dsh plugin grant {name} {grant}`"
                    ),
                    Error::Grant { grant, reason } if row.locked_grants => format!(
                        "grant `{grant}` in {lock}: {reason}; run `dsh plugin grant {name} {grant}=…`, or `dsh plugin revoke {name} {grant}`"
                    ),
                    Error::Limit { limit, reason } if row.locked_limits => format!(
                        "limit `{limit}` in {lock}: {reason}; put `limits` for row {} into cordis.patch.yml, or {again}",
                        row.id
                    ),
                    // The package's own words, which name the file.
                    Error::Bytes { source, .. } => format!("{source}; {again}"),
                    error => error.to_string(),
                };
                format!("{plugin}: {text}")
            }
        }
    }
}
