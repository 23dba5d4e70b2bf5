//! What can go wrong: [`Error`] before a row is mounted, [`CallError`] after.

use std::path::PathBuf;

use crate::api::PluginError;

/// A component that could not be loaded or mounted. Shown to people as it is.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The engine cannot run here.
    #[error("the WebAssembly engine cannot start on this machine: {0}")]
    Engine(String),
    /// A file could not be read or written.
    #[error("cannot {doing} {path}: {source}")]
    Io {
        /// `read`, `write`, …
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Larger than a component may be.
    #[error("the component is {size} bytes, and {max} are allowed")]
    TooLarge {
        /// Its size in bytes.
        size: u64,
        /// The cap in bytes.
        max: u64,
    },
    /// Not WebAssembly.
    #[error("not a WebAssembly component: {0}")]
    NotWasm(String),
    /// A core module.
    #[error(
        "a core WebAssembly module without a component-type section, not a component: build it with bindings of dsh:plugin (wit-bindgen writes that section), or embed them with `wasm-tools component embed`"
    )]
    CoreModule,
    /// A core module that no component can be made of.
    #[error("no component can be made of this core module: {0}")]
    Componentise(String),
    /// Machine code, which is never taken from a file that somebody hands in.
    #[error("precompiled machine code is not taken: give the component that it was made from")]
    Precompiled,
    /// It does not validate or compile.
    #[error("the component does not compile: {0}")]
    Invalid(String),
    /// Other bytes than those that were pinned.
    #[error(
        "the component's SHA-256 is {found}, and {expected} is pinned: the file was changed since; remove the plugin and add it again from its source"
    )]
    Digest {
        /// The digest that was asked for, in lower-case hex.
        expected: String,
        /// That of the bytes.
        found: String,
    },
    /// The bytes of a pinned component could not be had.
    #[error("cannot read the component {digest}: {source}")]
    Bytes {
        /// The digest that was asked for, in lower-case hex.
        digest: String,
        /// Why.
        source: std::io::Error,
    },
    /// Its `dsh:manifest` section is not what it should be.
    #[error("the component's manifest (section `dsh:manifest`) is not valid: {0}")]
    Manifest(String),
    /// Built against a version of the contract that this host does not serve.
    #[error(
        "{interface} is of contract version {wanted}, and this host serves {served}: rebuild the component against dsh:plugin@{served}, or use a newer dsh"
    )]
    ContractVersion {
        /// The interface as the component names it.
        interface: String,
        /// The component's version.
        wanted: String,
        /// The host's.
        served: &'static str,
    },
    /// An import that a grant would give.
    #[error(
        "row {row}: the component imports {import}, which needs the grant `{grant}`: add it to the row's `grants`"
    )]
    NotGranted {
        /// The row.
        row: String,
        /// The interface as the component names it.
        import: String,
        /// The grant that would give it.
        grant: String,
    },
    /// An export that a grant allows.
    #[error("row {row}: {what}, which needs the grant `{grant}`: add it to the row's `grants`")]
    ExportNotGranted {
        /// The row.
        row: String,
        /// What the component does that needs it.
        what: String,
        /// The grant that would allow it.
        grant: String,
    },
    /// An import that this host has nothing behind.
    #[error("row {row}: the component imports {import}, and this host does not provide {what} yet")]
    NotProvided {
        /// The row.
        row: String,
        /// The interface as the component names it.
        import: String,
        /// In words.
        what: String,
    },
    /// A folder of the grant `dir` that it cannot be given.
    #[error("row {row}: the folder {path} of its grant `dir`: {reason}")]
    Folder {
        /// The row.
        row: String,
        /// As the grant has it.
        path: String,
        /// Why.
        reason: String,
    },
    /// It exports nothing that a host could use.
    #[error("row {row}: the component exports none of the contract's interfaces ({exports})")]
    NothingToMount {
        /// The row.
        row: String,
        /// What it does export.
        exports: String,
    },
    /// Imports or exports whose types are not the contract's.
    #[error("row {row}: the component does not fit the contract: {reason}")]
    Mismatch {
        /// The row.
        row: String,
        /// What differs.
        reason: String,
    },
    /// What it said of itself cannot be.
    #[error("row {row}: {function} of the component: {reason}")]
    Metadata {
        /// The row.
        row: String,
        /// The function that answered.
        function: &'static str,
        /// What is wrong with the answer.
        reason: String,
    },
    /// It could not say what it offers.
    #[error("row {row}: {function} of the component failed: {source}")]
    Asking {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// How the call ended.
        source: Box<CallError>,
    },
    /// Grants of a row that are not of their shape.
    #[error("grant `{grant}`: {reason}")]
    Grant {
        /// Its name.
        grant: String,
        /// What is wrong.
        reason: String,
    },
    /// Limits of a row that are not of their shape.
    #[error("limit `{limit}`: {reason}")]
    Limit {
        /// Its name.
        limit: String,
        /// What is wrong.
        reason: String,
    },
}

/// How a call ended that did not return. But for [`CallError::Plugin`],
/// [`CallError::OnStack`] and [`CallError::Quarantined`], the instance that it
/// ran on is gone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The component's own answer: an error.
    #[error("{0}")]
    Plugin(PluginError),
    /// The component trapped: a panic, a fault, an exit.
    #[error("{row}: the component crashed in {function}: {reason}")]
    Trap {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// What the engine says, in a line.
        reason: String,
    },
    /// It asked for more memory than it may have, and then failed.
    #[error("{row}: the component ran out of memory in {function}: {limit} bytes are allowed")]
    Memory {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The cap in bytes.
        limit: u64,
    },
    /// It computed for longer than it may.
    #[error("{row}: the component computed for more than {limit_ms} ms in {function}")]
    Cpu {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The bound.
        limit_ms: u64,
    },
    /// The whole call took longer than it may.
    #[error("{row}: {function} took longer than {limit_ms} ms")]
    Timeout {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The bound.
        limit_ms: u64,
    },
    /// It returned, or handed to an import, more than it may.
    #[error("{row}: the component handed over more than {limit} bytes in {function}")]
    Output {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The cap in bytes.
        limit: u64,
    },
    /// It handed over more in one go than it may.
    #[error("{row}: the component handed over more than {limit} bytes in one go in {function}")]
    Text {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The cap in bytes.
        limit: u64,
    },
    /// It called imports more often than it may.
    #[error("{row}: the component called its imports more than {limit} times in {function}")]
    Calls {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The cap.
        limit: u64,
    },
    /// It asked for larger tables than it may have, and then failed.
    #[error(
        "{row}: the component's tables are too large in {function}: {limit} elements are allowed"
    )]
    Tables {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The cap in elements.
        limit: u64,
    },
    /// It is made of more instances, memories or tables than it may be, or holds
    /// more handles.
    #[error("{row}: the component has too many parts in {function}: {limit} of {what} are allowed")]
    Parts {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// `instance`, `memory`, `table` or `handle`.
        what: &'static str,
        /// The cap.
        limit: u64,
    },
    /// It was granted to watch an event, and answered as if it decided it.
    #[error(
        "{row}: the component would decide {event} in {function}, which it was granted to watch only"
    )]
    Undecided {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The event.
        event: String,
    },
    /// Its answer is not what the function answers with: no JSON, another shape,
    /// a change where none is allowed.
    #[error("{row}: the component answered {event} in {function} with nonsense: {reason}")]
    Nonsense {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
        /// The event.
        event: String,
        /// What is wrong with it.
        reason: String,
    },
    /// Its instance is already in the same chain of calls.
    #[error(
        "{row}: {function} was skipped, as the component is already at work in the same chain of calls"
    )]
    OnStack {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
    },
    /// The call's token was cancelled and the component did not return in time.
    #[error("{row}: {function} was cancelled")]
    Cancelled {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
    },
    /// The instance that held this attempt is gone.
    #[error("{row}: the component's instance is gone, and with it what {function} was called for")]
    Gone {
        /// The row.
        row: String,
        /// The function that was called.
        function: &'static str,
    },
    /// The row failed too often in a row; nothing is called any more.
    #[error("{row}: out of use after {failures} failures in a row, the last: {last}")]
    Quarantined {
        /// The row.
        row: String,
        /// How many there were.
        failures: u32,
        /// The last one's text.
        last: String,
    },
    /// The component does not export the interface.
    #[error("{row}: the component has no {interface}")]
    NotExported {
        /// The row.
        row: String,
        /// The interface's short name.
        interface: &'static str,
    },
}

impl CallError {
    /// The code that users and models see.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::Plugin(error) => &error.code,
            Self::Trap { .. } => "PLUGIN_TRAP",
            Self::Memory { .. } => "PLUGIN_MEMORY",
            Self::Cpu { .. } => "PLUGIN_CPU",
            Self::Timeout { .. } => "TIMEOUT",
            Self::Output { .. } => "PLUGIN_OUTPUT",
            Self::Text { .. } => "PLUGIN_TEXT",
            Self::Calls { .. } => "PLUGIN_CALLS",
            Self::Tables { .. } => "PLUGIN_TABLES",
            Self::Parts { .. } => "PLUGIN_PARTS",
            Self::Undecided { .. } => "DENIED",
            Self::Nonsense { .. } => "INVALID",
            Self::OnStack { .. } => "PLUGIN_ON_STACK",
            Self::Cancelled { .. } => "CANCELLED",
            Self::Gone { .. } => "PLUGIN_GONE",
            Self::Quarantined { .. } => "PLUGIN_QUARANTINED",
            Self::NotExported { .. } => "NOT_FOUND",
        }
    }

    /// The same as a plain error: for who hands it on as if a component had
    /// answered so.
    #[must_use]
    pub fn into_plugin_error(self) -> PluginError {
        match self {
            Self::Plugin(error) => error,
            other => PluginError::new(other.code().to_owned(), other.to_string()),
        }
    }

    /// Whether it counts towards quarantine: the component's own doing, and
    /// not an answer.
    #[must_use]
    pub fn is_failure_of_component(&self) -> bool {
        matches!(
            self,
            Self::Trap { .. }
                | Self::Memory { .. }
                | Self::Cpu { .. }
                | Self::Timeout { .. }
                | Self::Output { .. }
                | Self::Text { .. }
                | Self::Calls { .. }
                | Self::Tables { .. }
                | Self::Parts { .. }
                | Self::Undecided { .. }
                | Self::Nonsense { .. }
        )
    }
}
