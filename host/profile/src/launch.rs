//! The launcher's argument grammar (spec/cli.md §1.1), as a pure function.
use std::path::PathBuf;

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// Print the launcher's help on stdout, exit 0.
    Help,
    /// Print the bare version on stdout, exit 0.
    Version,
    /// Boot a profile; `args` go to the booted app as they stand.
    Boot(Boot),
    /// Print the composed tree (`--dump-config`).
    DumpConfig {
        /// The profile's name.
        profile: String,
        /// `--patch` files in order.
        patches: Vec<PathBuf>,
        /// Bundles alone.
        safe: bool,
        /// Problems and warnings are fatal.
        strict: bool,
    },
    /// Print the bundle layers only (`--dump-default-config`).
    DumpDefault {
        /// The profile's name.
        profile: String,
    },
}

/// A boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The profile's name, not empty.
    pub profile: String,
    /// `--patch` files in order.
    pub patches: Vec<PathBuf>,
    /// `--safe`: bundles alone. Never together with `--patch`.
    pub safe: bool,
    /// `--strict`: whatever would be left out is fatal.
    pub strict: bool,
    /// The app's arguments.
    pub args: Vec<String>,
}

/// A command line that means nothing. Displays as one line that starts with
/// `error: `; it goes to stderr, exit 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error: {0}")]
pub struct UsageError(pub String);

/// Reads the arguments after the program's name.
pub fn parse(_args: impl IntoIterator<Item = String>) -> Result<Launch, UsageError> {
    todo!()
}
