//! What can go wrong, with the codes that the log and the model see.

use std::io;
use std::path::{Path, PathBuf};

use crate::fence::Refusal;
use dsh_plugin::api::PluginError;

/// A refused or failed file access, search or command.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The fence refuses it.
    #[error("{}: {reason}", path.display())]
    Denied {
        /// Where it really leads.
        path: PathBuf,
        /// Why.
        reason: Refusal,
    },
    /// Nothing is there.
    #[error("{}: no such file or directory", .0.display())]
    NotFound(PathBuf),
    /// A directory, a device, a pipe, or a name that only a directory can have.
    #[error("{}: not a regular file", .0.display())]
    NotRegularFile(PathBuf),
    /// A directory was needed.
    #[error("{}: not a directory", .0.display())]
    NotDirectory(PathBuf),
    /// It has more than is handled at once.
    #[error("{}: too large: {what}", path.display())]
    TooLarge {
        /// What was accessed.
        path: PathBuf,
        /// The bound that it breaks.
        what: String,
    },
    /// The operating system refuses it.
    #[error("{}: permission denied by the operating system", .0.display())]
    PermissionDenied(PathBuf),
    /// It is not what the writer took it for.
    #[error("{}: changed since it was read; read it again, then repeat the change", .0.display())]
    StaleVersion(PathBuf),
    /// Something is there already that nobody expected.
    #[error("{}: already exists", .0.display())]
    Exists(PathBuf),
    /// The session has not read what it wants to change.
    #[error("{}: not read in this session; read it first, then repeat the change", .0.display())]
    NotObserved(PathBuf),
    /// A policy of the session refuses it.
    #[error("{}: refused by a policy of this session: {reason}", path.display())]
    Vetoed {
        /// What was to be changed.
        path: PathBuf,
        /// Why, in its words.
        reason: String,
    },
    /// The path cannot be one.
    #[error("\"{path}\" is no path: {reason}")]
    BadPath {
        /// As it was given.
        path: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// Anything else that the operating system says.
    #[error("{}: {source}", path.display())]
    Io {
        /// What was accessed.
        path: PathBuf,
        /// What it said.
        source: io::Error,
    },
    /// A glob or a regular expression does not parse.
    #[error("invalid pattern \"{pattern}\": {reason}")]
    InvalidPattern {
        /// As it was given.
        pattern: String,
        /// The parser's words.
        reason: String,
    },
    /// A search could not start or took too long.
    #[error("search failed: {0}")]
    SearchFailed(String),
    /// A search found more than it may carry.
    #[error("search found more than {} bytes; narrow the pattern or the path", .0)]
    SearchOverflow(usize),
    /// The caller gave up a search.
    #[error("search aborted")]
    SearchAborted,
    /// The caller gave up a file access.
    #[error("file access aborted")]
    Aborted,
    /// No runner can confine the command, which was not run.
    #[error("no sandbox can confine the command, so it was not run: {0}")]
    SandboxUnavailable(String),
    /// The program is not on `PATH`, or not executable.
    #[error("{0}: no such program")]
    NoProgram(String),
    /// The command could not be started.
    #[error("cannot run {program}: {reason}")]
    Start {
        /// What was to run.
        program: String,
        /// Why it does not.
        reason: String,
    },
    /// A wider mode was asked for and not given.
    #[error("a wider sandbox mode was not granted: {0}")]
    NotGranted(String),
}

impl Error {
    /// The stable code (spec/loop.md §15.2).
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Error::Denied { .. } => "FS_SANDBOX_DENIED",
            Error::NotFound(_) | Error::BadPath { .. } => "FS_NOT_FOUND",
            Error::NotRegularFile(_) => "FS_NOT_REGULAR_FILE",
            Error::NotDirectory(_) => "FS_NOT_DIRECTORY",
            Error::TooLarge { .. } => "FS_TOO_LARGE",
            Error::PermissionDenied(_) | Error::Vetoed { .. } => "FS_PERMISSION_DENIED",
            Error::StaleVersion(_) | Error::Exists(_) => "FS_STALE_VERSION",
            Error::NotObserved(_) => "FS_NOT_OBSERVED",
            Error::Io { .. } => "FS_IO_ERROR",
            Error::Aborted => "FS_ABORTED",
            Error::InvalidPattern { .. } => "SEARCH_INVALID_PATTERN",
            Error::SearchFailed(_) => "SEARCH_FAILED",
            Error::SearchOverflow(_) => "SEARCH_RAW_OUTPUT_OVERFLOW",
            Error::SearchAborted => "SEARCH_ABORTED",
            Error::SandboxUnavailable(_) => "SANDBOX_UNAVAILABLE",
            Error::NoProgram(_) => "NOT_FOUND",
            Error::Start { .. } => "PROCESS_FAILED",
            Error::NotGranted(_) => "DENIED",
        }
    }

    /// Says in our vocabulary what the operating system said of `path`.
    pub(crate) fn io(path: &Path, source: impl Into<io::Error>) -> Self {
        let source = source.into();
        let path = path.to_path_buf();
        match source
            .raw_os_error()
            .map(rustix::io::Errno::from_raw_os_error)
        {
            Some(rustix::io::Errno::NOENT) => Error::NotFound(path),
            Some(rustix::io::Errno::NOTDIR) => Error::NotDirectory(path),
            Some(rustix::io::Errno::ISDIR) => Error::NotRegularFile(path),
            Some(rustix::io::Errno::ACCESS | rustix::io::Errno::PERM | rustix::io::Errno::ROFS) => {
                Error::PermissionDenied(path)
            }
            _ => Error::Io { path, source },
        }
    }
}

impl From<Error> for PluginError {
    fn from(error: Error) -> Self {
        PluginError::new(error.code(), error.to_string())
    }
}
