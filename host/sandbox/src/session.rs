//! The public front: what a process sets up once and an agent holds.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;

use crate::error::Error;
use crate::mode::Mode;
use crate::observe::WritePolicy;
use crate::port::{
    Command, DirEntry, Guard, Matches, Metadata, Output, Paths, PluginError, Process, Slice, Spill,
    Workspace,
};

/// The first argument that makes this program a sandbox helper.
pub const HELPER_ARGUMENT: &str = "__sandbox";

/// Runs a helper: `args` are the process's arguments after [`HELPER_ARGUMENT`].
/// Call it before anything else, while the process has one thread.
pub fn landlock_exec_main(args: Vec<OsString>) -> ! {
    drop(args);
    todo!()
}

/// What confines commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunnerKind {
    /// Bubblewrap: namespaces of its own.
    Bwrap,
    /// Landlock, applied by a re-exec of this program.
    Landlock,
}

/// How much of what a mode denies a runner can deny.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Enforcement {
    /// All of it.
    Full,
    /// Less, on an older kernel.
    Partial,
}

/// A command's output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
}

/// Is shown a command's output while it runs. Called from the command's own
/// thread; must not block for long.
pub trait OutputSink: Send + Sync {
    /// What arrived.
    fn output(&self, stream: Stream, bytes: &[u8]);
}

/// Decides on a wider mode for one command.
#[async_trait]
pub trait Escalation: Send + Sync {
    /// `more` is the command's `{sandbox, justification}`. The mode to run it
    /// in, or why not (the approval seam's outcome).
    async fn decide(&self, current: Mode, more: &str) -> Result<Mode, PluginError>;
}

/// What a process tells its sandbox. Nothing is read from the environment.
#[derive(Debug, Clone)]
pub struct SandboxConfig {
    /// `$DSH_HOME`.
    pub dsh_home: PathBuf,
    /// The operating system's directory for temporary files.
    pub temp_dir: PathBuf,
    /// A program whose `main` calls [`landlock_exec_main`]: `dsh` itself.
    pub helper: PathBuf,
    /// `DSH_SANDBOX`: this runner or none.
    pub force: Option<RunnerKind>,
    /// The environment that commands inherit, before it is scrubbed.
    pub inherited_env: Vec<(OsString, OsString)>,
}

/// The sandbox of a process. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox(Arc<SandboxConfig>);

/// What an agent tells its sandbox.
pub struct SessionConfig {
    /// The session's id.
    pub session_id: String,
    /// The session's working directory, which is the workspace.
    pub root: PathBuf,
    /// The mode in force when a call begins.
    pub mode: Arc<dyn Fn() -> Mode + Send + Sync>,
    /// Laid over the scrubbed environment, under a command's own.
    pub env: Vec<(String, String)>,
    /// Hears of reads and decides on writes.
    pub policy: Arc<dyn WritePolicy>,
    /// Decides on a wider mode; without one, none is given.
    pub escalation: Option<Arc<dyn Escalation>>,
    /// Is shown output while a command runs.
    pub output: Option<Arc<dyn OutputSink>>,
}

/// The ports of an agent: [`Workspace`], [`Process`] and [`Spill`]. Cheap to clone.
#[derive(Clone)]
pub struct SessionSandbox(Arc<SessionConfig>, Sandbox);

impl Sandbox {
    /// Touches nothing yet.
    #[must_use]
    pub fn new(config: SandboxConfig) -> Self {
        Sandbox(Arc::new(config))
    }

    /// Which runner confines commands here; found out once, by trying (5 s a
    /// candidate). Blocks. The error says what was wrong with each.
    pub fn runner(&self) -> Result<(RunnerKind, Enforcement), Error> {
        todo!()
    }

    /// An agent's sandbox.
    #[must_use]
    pub fn session(&self, config: SessionConfig) -> SessionSandbox {
        SessionSandbox(Arc::new(config), self.clone())
    }
}

#[async_trait]
impl Workspace for SessionSandbox {
    fn root(&self) -> String {
        self.0.root.to_string_lossy().into_owned()
    }

    async fn stat(&self, _path: &str) -> Result<Metadata, PluginError> {
        todo!()
    }

    async fn read(&self, _path: &str, _offset: u64, _limit: u32) -> Result<Slice, PluginError> {
        todo!()
    }

    async fn list_dir(&self, _path: &str) -> Result<Vec<DirEntry>, PluginError> {
        todo!()
    }

    async fn write(
        &self,
        _path: &str,
        _content: Vec<u8>,
        _guard: Guard,
    ) -> Result<Metadata, PluginError> {
        todo!()
    }

    async fn remove(&self, _path: &str) -> Result<(), PluginError> {
        todo!()
    }

    async fn rename(&self, _path: &str, _to: &str) -> Result<(), PluginError> {
        todo!()
    }

    async fn glob(
        &self,
        _pattern: &str,
        _path: Option<&str>,
        _limit: u32,
    ) -> Result<Paths, PluginError> {
        todo!()
    }

    async fn grep(
        &self,
        _pattern: &str,
        _path: Option<&str>,
        _files: Option<&str>,
        _limit: u32,
    ) -> Result<Matches, PluginError> {
        todo!()
    }
}

#[async_trait]
impl Process for SessionSandbox {
    async fn run(&self, _command: Command) -> Result<Output, PluginError> {
        todo!()
    }
}

#[async_trait]
impl Spill for SessionSandbox {
    async fn store(&self, _name: &str, _content: Vec<u8>) -> Result<String, PluginError> {
        todo!()
    }
}
