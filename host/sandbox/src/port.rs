//! Stand-in for the plugin crate ports until that branch is merged.
use async_trait::async_trait;
pub type JsonText = String;
/// How a port reports failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginError {
    /// code
    pub code: String,
    /// message
    pub message: String,
    /// details
    pub details: Option<JsonText>,
}
impl PluginError {
    /// new
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            details: None,
        }
    }
}
/// What a path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A device, a socket, a pipe.
    Other,
}

/// A file's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metadata {
    /// What it is.
    pub kind: FileKind,
    /// In bytes.
    pub size: u64,
    /// Changes when the content does.
    pub version: String,
}

/// Part of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The bytes.
    pub content: Vec<u8>,
    /// Of the file that they were read from.
    pub metadata: Metadata,
}

/// A directory's entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirEntry {
    /// Without a path.
    pub name: String,
    /// What it is.
    pub kind: FileKind,
}

/// What must hold for a write; otherwise `FS_STALE_VERSION`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// What the session's policy says of a file that is overwritten.
    Overwrite,
    /// What it says of one that is changed: it was read before.
    Edit,
    /// It is not there.
    Absent,
    /// It is this version.
    Version(String),
}

/// Paths that a glob found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Paths {
    /// At most as many as asked for.
    pub paths: Vec<String>,
    /// How many there are in all.
    pub total: u32,
}

/// A line that a search found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// The file.
    pub path: String,
    /// From 1.
    pub line: u32,
    /// The line, lossily as UTF-8, without its end.
    pub text: String,
}

/// Lines that a search found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Matches {
    /// At most as many as asked for.
    pub matches: Vec<Found>,
    /// How many there are in all.
    pub total: u32,
}

/// `workspace`: files behind the session's write fence.
#[async_trait]
pub trait Workspace: Send + Sync {
    /// The session's working directory, absolute.
    fn root(&self) -> String;
    /// What is at a path.
    async fn stat(&self, path: &str) -> Result<Metadata, PluginError>;
    /// At most `limit` bytes from `offset` on.
    async fn read(&self, path: &str, offset: u64, limit: u32) -> Result<Slice, PluginError>;
    /// A directory's entries.
    async fn list_dir(&self, path: &str) -> Result<Vec<DirEntry>, PluginError>;
    /// Replaces the file in one atomic step, and makes the directories above it.
    async fn write(
        &self,
        path: &str,
        content: Vec<u8>,
        guard: Guard,
    ) -> Result<Metadata, PluginError>;
    /// Removes a file or an empty directory.
    async fn remove(&self, path: &str) -> Result<(), PluginError>;
    /// Renames within the fence.
    async fn rename(&self, path: &str, to: &str) -> Result<(), PluginError>;
    /// Paths that match, oldest change first.
    async fn glob(
        &self,
        pattern: &str,
        path: Option<&str>,
        limit: u32,
    ) -> Result<Paths, PluginError>;
    /// Lines that match, in files whose path matches `files`.
    async fn grep(
        &self,
        pattern: &str,
        path: Option<&str>,
        files: Option<&str>,
        limit: u32,
    ) -> Result<Matches, PluginError>;
}

/// `spill`: where text too long for the model is kept.
#[async_trait]
pub trait Spill: Send + Sync {
    /// Returns the path by which the model's own tools can read it.
    async fn store(&self, name: &str, content: Vec<u8>) -> Result<String, PluginError>;
}

/// A command to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// Name or path; already checked against the row's grant.
    pub program: String,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Absolute, or relative to the session's working directory.
    pub cwd: Option<String>,
    /// Laid over the scrubbed environment.
    pub env: Vec<(String, String)>,
    /// Its whole standard input.
    pub stdin: Option<Vec<u8>>,
    /// When it is ended.
    pub timeout_ms: Option<u32>,
    /// Bytes kept of each stream, from its end.
    pub max_output: u32,
    /// `{sandbox, justification}`.
    pub more: Option<JsonText>,
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Output {
    /// None when a signal or the time limit ended it.
    pub exit_code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The time limit ended it.
    pub timed_out: bool,
    /// The end of it.
    pub stdout: Vec<u8>,
    /// The end of it.
    pub stderr: Vec<u8>,
    /// Where a stream that was cut is kept whole.
    pub stdout_spill: Option<String>,
    /// The same for stderr.
    pub stderr_spill: Option<String>,
    /// The sandbox refused a file access.
    pub denied: bool,
}

/// `process`: commands, always under the session's sandbox mode.
#[async_trait]
pub trait Process: Send + Sync {
    /// Runs it to its end. Dropping the future ends the command and all that it
    /// started.
    async fn run(&self, command: Command) -> Result<Output, PluginError>;
}
