//! The ports: what an import does, as traits that other crates implement.
//!
//! Each follows its interface in `wit/host.wit` method for method. A port acts
//! for one session and one agent: whoever makes a call puts the ports of that
//! call together in a [`PortSet`], so none of them is told for whom it acts. A
//! port that is not there answers `UNAVAILABLE` (or traps, where the function
//! has no error to give).
//!
//! **Cancelling is dropping.** When the call's token is cancelled the host drops
//! the future that an `async` method returned and answers the guest
//! `CANCELLED`. What the method started must end with its future; what must not
//! be left half done (a file's replacement) belongs into one step that does not
//! wait.
//!
//! Grants are checked before a port is called: a port sees only what the row
//! may do. What depends on the world (is this path below the fence?) is the
//! port's to check.

use std::sync::Arc;

use async_trait::async_trait;

use crate::api::{JsonText, PluginError};

/// How grave a log line is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// Everything.
    Trace,
    /// For who works on the plugin.
    Debug,
    /// For who runs it.
    Info,
    /// Something is not as it should be.
    Warn,
    /// Something failed.
    Error,
}

/// Where the lines of `log` go: the host's log, never the model or stdout.
pub trait Log: Send + Sync {
    /// `message` is at most 4 KiB; `row` says whose it is.
    fn write(&self, row: &str, level: Level, message: &str);
}

/// Where `work.progress` goes; some updates may be dropped.
pub trait Progress: Send + Sync {
    /// `{message?, output?, done?, total?}`.
    fn progress(&self, row: &str, update: JsonText);
}

/// A node of the surface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// The event that put it there.
    pub seq: u32,
    /// What the token measure charges for its message.
    pub tokens: u32,
    /// Tool calls that it opens, less those that it answers.
    pub calls: i32,
}

/// The surface as `session.surface` shows it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SurfaceView {
    /// In order.
    pub nodes: Vec<Node>,
    /// How often a replace has rewritten it.
    pub generation: u32,
}

/// What the next request would cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Charge {
    /// By the provider's own count where the last response told it.
    pub tokens: u32,
    /// Of the last request's model.
    pub context_window: Option<u32>,
}

/// `session`: the log of the call's session and its folds, read only. Nothing
/// here waits, but for a projection's fold.
#[async_trait]
pub trait SessionView: Send + Sync {
    /// The log's header.
    fn header(&self) -> JsonText;
    /// The next event's seq.
    fn length(&self) -> u32;
    /// Whole events from `first` on; an empty `kinds` means all. The page ends
    /// early at 1 MiB, but has one event if there is one.
    ///
    /// # Errors
    /// What is old of a log is read from the disk, here and below.
    fn events(
        &self,
        first: u32,
        limit: u32,
        kinds: &[String],
    ) -> Result<Vec<JsonText>, PluginError>;
    /// The newest of these kinds, before `before` or before the end.
    fn last(&self, kinds: &[String], before: Option<u32>) -> Result<Option<JsonText>, PluginError>;
    /// The surface's nodes.
    fn surface(&self) -> Result<SurfaceView, PluginError>;
    /// Messages of the nodes from position `first`, paged as `events`.
    fn messages(&self, first: u32, limit: u32) -> Result<Vec<JsonText>, PluginError>;
    /// What the next request would cost.
    fn measure(&self) -> Result<Charge, PluginError>;
    /// What the measure would charge for each of these messages.
    fn estimate(&self, messages: &[JsonText]) -> Vec<u32>;
    /// A projection's view, folded up to the end of the log as it is when this
    /// is called; none where nothing folds that key, or cannot fold this log.
    ///
    /// # Errors
    /// As [`SessionView::events`].
    async fn projection(&self, key: &str) -> Result<Option<JsonText>, PluginError>;
}

/// An event that a component appends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEvent {
    /// Already checked against the row's grant.
    pub kind: String,
    /// Not yet checked.
    pub data: JsonText,
}

/// `journal`: appends beside the surface.
#[async_trait]
pub trait Journal: Send + Sync {
    /// Appends all or none and returns the first one's seq. With `at`, fails
    /// with `STALE` unless that is still the log's length.
    async fn append(
        &self,
        row: &str,
        events: Vec<NewEvent>,
        at: Option<u32>,
    ) -> Result<u32, PluginError>;
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
    /// The same files, but only what lies below one of these directories
    /// (absolute, or relative to the working directory), by the path that was
    /// really reached. A port that cannot tell has none.
    fn within(&self, roots: &[String]) -> Option<Arc<dyn Workspace>> {
        let _ = roots;
        None
    }
    /// The same files for who reads of its own accord: that does not count as the
    /// session's having read one, and may follow fewer links. A port that makes no
    /// difference has none.
    fn unobserved(&self) -> Option<Arc<dyn Workspace>> {
        None
    }
    /// What is at a path.
    async fn stat(&self, path: &str) -> Result<Metadata, PluginError>;
    /// At most `limit` bytes from `offset` on.
    async fn read(&self, path: &str, offset: u64, limit: u32) -> Result<Slice, PluginError>;
    /// As `read`, for a change under this guard, which is checked first and fails
    /// as the write would. Does not count as the session's having read the file.
    async fn read_for(
        &self,
        path: &str,
        guard: Guard,
        offset: u64,
        limit: u32,
    ) -> Result<Slice, PluginError>;
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

/// Which list of an agent's inbox a message goes into.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// For the next step of whatever runs.
    NextStep,
    /// For a turn of its own.
    NextTurn,
}

/// Whose words a draft is, and how much it may start.
#[derive(Debug, Clone, Copy)]
pub struct Sender<'a> {
    /// The row.
    pub row: &'a str,
    /// Message source kinds that its manifest names, none of them the host's.
    pub sources: &'a [String],
    /// How often in a row it may start an idle agent.
    pub wakes: u32,
}

/// `inbox`: input put in front of the agent. Nothing here waits.
pub trait Inbox: Send + Sync {
    /// Puts a draft `{content, source?}` into a list and returns its id. Id, role
    /// and source are the host's to stamp.
    ///
    /// # Errors
    /// A draft that is none, or an agent that is gone.
    fn send(
        &self,
        sender: Sender<'_>,
        draft: JsonText,
        target: Target,
        wake: bool,
    ) -> Result<String, PluginError>;
    /// Messages of the row's own that wait.
    fn pending(&self, row: &str) -> Vec<JsonText>;
    /// Takes one of them back; false where it does not wait or is not its own.
    fn cancel(&self, row: &str, id: &str) -> bool;
}

/// What one auxiliary model call asks, as `llm.ask` has it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Question {
    /// What it is for: logged, and told to the adapter.
    pub purpose: String,
    /// Members of the call's configuration, an object, laid over the route of
    /// the session's last request.
    pub config: JsonText,
    /// First and last node of the session's surface that it starts with, after
    /// the session's own system prompt and tools.
    pub prefix: Option<(u32, u32)>,
    /// The system prompt; not looked at where there is a prefix.
    pub system: Option<String>,
    /// What follows, as drafts `{role, content}`.
    pub messages: Vec<JsonText>,
    /// For the whole call, retries included.
    pub timeout_ms: Option<u32>,
}

/// What a model answered.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Content blocks, a JSON text each.
    pub content: Vec<JsonText>,
    /// `{kind: stop | tool-calls | max-tokens}`.
    pub finish: JsonText,
    /// Token counts, where the provider gave them.
    pub usage: Option<JsonText>,
    /// The configuration that it ran with.
    pub config: JsonText,
}

/// `llm`: auxiliary model calls of the call's session.
#[async_trait]
pub trait Llm: Send + Sync {
    /// Runs one call to its end. A call that failed, or was cut short, is an
    /// error with the code that the model call failed with.
    async fn ask(&self, row: &str, question: Question) -> Result<Answer, PluginError>;
    /// Tokens that the row's calls have cost this session so far; what its
    /// grant's budget is compared with before each.
    fn spent(&self, row: &str) -> u64;
    /// The same calls without an event of their own, for work whose own events
    /// say what was asked. None: this one logs nothing anyway.
    fn unlogged(&self) -> Option<Arc<dyn Llm>> {
        None
    }
}

/// How far a map of `kv` reaches, and how long it lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum KvScope {
    /// All sessions of the profile.
    Profile,
    /// Its sessions of the same working directory.
    Project,
    /// One session.
    Session,
}

impl KvScope {
    /// In the order of the contract.
    pub const ALL: [Self; 3] = [Self::Profile, Self::Project, Self::Session];

    /// As grants name it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Profile => "profile",
            Self::Project => "project",
            Self::Session => "session",
        }
    }

    /// The scope of this name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|scope| scope.as_str() == name)
    }
}

/// Whose map, and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KvMap {
    /// The plugin's own name, or the row's where it has no manifest.
    pub plugin: String,
    /// The row.
    pub row: String,
    /// Already checked against the row's grant.
    pub scope: KvScope,
    /// Bytes of all keys and values together; more is `LIMIT`.
    pub quota: u64,
}

/// `kv`: a small durable map for each row and scope.
#[async_trait]
pub trait Kv: Send + Sync {
    /// The value of a key.
    async fn get(&self, map: KvMap, key: &str) -> Result<Option<Vec<u8>>, PluginError>;
    /// Sets it: durable when this returns, and whole or not at all.
    async fn set(&self, map: KvMap, key: &str, value: Vec<u8>) -> Result<(), PluginError>;
    /// Sets it if it is still `old` (none: not there), else returns false.
    async fn swap(
        &self,
        map: KvMap,
        key: &str,
        old: Option<Vec<u8>>,
        value: Vec<u8>,
    ) -> Result<bool, PluginError>;
    /// Removes it, whether it was there or not.
    async fn remove(&self, map: KvMap, key: &str) -> Result<(), PluginError>;
    /// Keys that begin so, sorted.
    async fn keys(&self, map: KvMap, prefix: &str) -> Result<Vec<String>, PluginError>;
}

/// A row that was put out of use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Quarantine {
    /// The row.
    pub row: String,
    /// The plugin's own name, or the row's where it has no manifest.
    pub plugin: String,
    /// The last failure, in a line.
    pub reason: String,
    /// How many there were in a row.
    pub failures: u32,
}

/// Is told when a row is put out of use, once, by the call that did it.
pub trait Watch: Send + Sync {
    /// Must not wait.
    fn quarantined(&self, quarantine: Quarantine);
}

/// `spill`: where text too long for the model is kept.
#[async_trait]
pub trait Spill: Send + Sync {
    /// Returns the path by which the model's own tools can read it.
    async fn store(&self, name: &str, content: Vec<u8>) -> Result<String, PluginError>;
}

/// `attachments`: what messages refer to by content. An id is the content's own
/// digest, so who knows one has seen the content, or a message that shows it.
#[async_trait]
pub trait Attachments: Send + Sync {
    /// Takes a picture in; returns the `attachment` member of an `image` block.
    ///
    /// # Errors
    /// `INVALID` for what is no picture, `LIMIT` for one that is too large.
    async fn put(
        &self,
        content: Vec<u8>,
        media_type: &str,
        name: Option<&str>,
    ) -> Result<JsonText, PluginError>;
    /// The bytes of one, as they are kept.
    ///
    /// # Errors
    /// `NOT_FOUND`, or what is wrong with the object.
    async fn read(&self, attachment: &str) -> Result<Vec<u8>, PluginError>;
}

/// A variant of an attachment, as a model takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Picture {
    /// What a part of a request's body names.
    pub id: String,
    /// Of the variant, which may differ from the attachment's.
    pub media_type: String,
    /// How many there are.
    pub bytes: u32,
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// Whether any part may be seen through.
    pub alpha: bool,
}

/// `pictures`: attachments as a model takes them.
#[async_trait]
pub trait Pictures: Send + Sync {
    /// The variant within these bounds; the same bounds give the same one.
    ///
    /// # Errors
    /// `NOT_FOUND`, or what is wrong with the object or the bounds.
    async fn render(
        &self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<Picture, PluginError>;
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

/// The ports of one call. Cheap to clone; put together by whoever makes calls.
#[derive(Clone, Default)]
pub struct PortSet {
    /// Where `log` goes; dropped without one.
    pub log: Option<Arc<dyn Log>>,
    /// Where `work.progress` goes; dropped without one.
    pub progress: Option<Arc<dyn Progress>>,
    /// Behind `session`.
    pub session: Option<Arc<dyn SessionView>>,
    /// Behind `journal`.
    pub journal: Option<Arc<dyn Journal>>,
    /// Behind `workspace`.
    pub workspace: Option<Arc<dyn Workspace>>,
    /// Behind `spill`.
    pub spill: Option<Arc<dyn Spill>>,
    /// Behind `attachments`.
    pub attachments: Option<Arc<dyn Attachments>>,
    /// Behind `pictures`.
    pub pictures: Option<Arc<dyn Pictures>>,
    /// Behind `process`.
    pub process: Option<Arc<dyn Process>>,
    /// Behind `inbox`.
    pub inbox: Option<Arc<dyn Inbox>>,
    /// Behind `kv`.
    pub kv: Option<Arc<dyn Kv>>,
    /// Behind `llm`.
    pub llm: Option<Arc<dyn Llm>>,
    /// Told of rows that are put out of use.
    pub watch: Option<Arc<dyn Watch>>,
}
