//! The public front: what a process sets up once and an agent holds.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use dsh_plugin::api::PluginError;
use dsh_plugin::port::{Command, Output};
use rustix::fs::FileType;
use tokio::sync::watch;

use crate::environment::{self, environment};
use crate::error::Error;
use crate::fence::Fence;
use crate::files::Files;
use crate::job::{self, Job};
use crate::mode::Mode;
use crate::observe::WritePolicy;
use crate::resolve::pin;
use crate::runner::{Need, Runner, find, pipe, unconfined, which};
use crate::spill::SpillRoot;

/// What confines commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunnerKind {
    /// Bubblewrap: namespaces of its own.
    Bwrap,
    /// Landlock, applied by a re-exec of this program.
    Landlock,
}

impl RunnerKind {
    /// As `DSH_SANDBOX` names it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            RunnerKind::Bwrap => "bwrap",
            RunnerKind::Landlock => "landlock",
        }
    }

    /// What `DSH_SANDBOX` says; none for another word.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [RunnerKind::Bwrap, RunnerKind::Landlock]
            .into_iter()
            .find(|kind| kind.as_str() == name)
    }
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
    /// A program whose `main` calls [`crate::landlock_exec_main`]: `dsh` itself.
    pub helper: PathBuf,
    /// `DSH_SANDBOX`: this runner or none.
    pub force: Option<RunnerKind>,
    /// Under full access too, commands do not write to `dsh_home`. Without it
    /// they run as the user would run them.
    pub guard_home: bool,
    /// The environment that commands inherit, before it is scrubbed.
    pub inherited_env: Vec<(OsString, OsString)>,
}

/// The sandbox of a process. Cheap to clone.
#[derive(Clone)]
pub struct Sandbox(Arc<Machine>);

pub(crate) struct Machine {
    pub(crate) config: SandboxConfig,
    runner: OnceLock<Result<Runner, String>>,
    pub(crate) spill: SpillRoot,
}

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

/// The ports `workspace`, `process` and `spill` of an agent. Cheap to clone.
#[derive(Clone)]
pub struct SessionSandbox(pub(crate) Arc<Agent>, Option<Arc<Files>>);

pub(crate) struct Agent {
    pub(crate) machine: Arc<Machine>,
    pub(crate) config: SessionConfig,
    files: Files,
    /// How many commands have a thread.
    running: watch::Sender<usize>,
}

/// Counts a command for as long as it has a thread.
struct Running(Arc<Agent>);

impl Running {
    fn new(agent: Arc<Agent>) -> Self {
        agent.running.send_modify(|count| *count += 1);
        Running(agent)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.send_modify(|count| *count -= 1);
    }
}

impl Sandbox {
    /// Touches nothing yet.
    #[must_use]
    pub fn new(config: SandboxConfig) -> Self {
        let spill = SpillRoot::new(config.temp_dir.clone());
        Sandbox(Arc::new(Machine {
            config,
            runner: OnceLock::new(),
            spill,
        }))
    }

    pub(crate) fn config(&self) -> &SandboxConfig {
        &self.0.config
    }

    /// Which runner confines commands here; found out once, by trying (5 s a
    /// candidate). Blocks. The error says what was wrong with each.
    pub fn runner(&self) -> Result<(RunnerKind, Enforcement), Error> {
        self.0
            .runner()
            .map(|runner| (runner.kind, runner.enforcement))
    }

    /// An agent's sandbox. Resolves the places of its fence.
    #[must_use]
    pub fn session(&self, config: SessionConfig) -> SessionSandbox {
        let machine = self.0.clone();
        let fence = Fence::new(
            &config.root,
            &machine.config.dsh_home,
            &machine.config.temp_dir,
        );
        let files = Files {
            fence,
            mode: config.mode.clone(),
            policy: config.policy.clone(),
            observed: true,
        };
        let agent = Agent {
            machine,
            config,
            files,
            running: watch::Sender::new(0),
        };
        SessionSandbox(Arc::new(agent), None)
    }
}

impl Machine {
    fn runner(&self) -> Result<&Runner, Error> {
        let found = self.runner.get_or_init(|| {
            let env = environment(&self.config.inherited_env, []);
            find(&self.config, &env).map_err(|error| match error {
                Error::SandboxUnavailable(reason) => reason,
                other => other.to_string(),
            })
        });
        found
            .as_ref()
            .map_err(|reason| Error::SandboxUnavailable(reason.clone()))
    }
}

impl SessionSandbox {
    /// The fence of the session.
    #[must_use]
    pub fn fence(&self) -> &Fence {
        &self.0.files.fence
    }

    /// Runs a command to its end in this mode. Dropping the future ends the
    /// command's tree: SIGTERM, 3 s, SIGKILL.
    pub async fn run_in(&self, mode: Mode, command: Command) -> Result<Output, Error> {
        let program = command.program.clone();
        let failed = move |reason: String| Error::Start {
            program: program.clone(),
            reason,
        };
        let (control, held) = pipe().map_err(|error| failed(error.to_string()))?;
        let (tell, told) = tokio::sync::oneshot::channel();
        let running = Running::new(self.0.clone());
        let started = std::thread::Builder::new()
            .name("dsh-command".to_owned())
            .spawn(move || {
                let outcome = running.0.run(mode, command, &control);
                drop(running);
                drop(tell.send(outcome));
            });
        started.map_err(|error| failed(error.to_string()))?;
        let outcome = told.await;
        drop(held);
        outcome.map_err(|_| failed("the command's thread ended early".to_owned()))?
    }

    /// Returns when none of this session's commands runs any more, those
    /// included that nobody waits for and that are on their way out. A process
    /// that ends before takes them with it, without their time to tidy up.
    pub async fn idle(&self) {
        let mut running = self.0.running.subscribe();
        // Its sender is in `self`.
        let _ = running.wait_for(|count| *count == 0).await;
    }

    /// The same sandbox with files below these directories alone, or without
    /// anybody's having read what is read; commands are as they were.
    pub(crate) fn narrowed(&self, directories: Option<&[String]>, observed: bool) -> Self {
        let current = self.1.as_deref().unwrap_or(&self.0.files);
        let files = Files {
            fence: match directories {
                Some(directories) => current.fence.within(directories),
                None => current.fence.clone(),
            },
            mode: self.0.files.mode.clone(),
            policy: self.0.files.policy.clone(),
            observed: observed && current.observed,
        };
        SessionSandbox(self.0.clone(), Some(Arc::new(files)))
    }

    pub(crate) fn policy(&self) -> &dyn WritePolicy {
        &*self.0.config.policy
    }

    /// Runs file work where it may wait.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Files) -> Result<T, Error> + Send + 'static,
    ) -> Result<T, PluginError> {
        let (agent, narrowed) = (self.0.clone(), self.1.clone());
        let done =
            tokio::task::spawn_blocking(move || work(narrowed.as_deref().unwrap_or(&agent.files)))
                .await;
        done.unwrap_or(Err(Error::Aborted))
            .map_err(PluginError::from)
    }
}

impl Agent {
    fn run(&self, mode: Mode, command: Command, control: &OwnedFd) -> Result<Output, Error> {
        let fence = &self.files.fence;
        let pinned = pin(
            fence,
            &self.files.absolute(command.cwd.as_deref().unwrap_or("."))?,
        )?;
        if pinned.file_type() != FileType::Directory {
            return Err(Error::NotDirectory(pinned.path));
        }
        let cwd = pinned.path;
        let env = environment(
            &self.machine.config.inherited_env,
            self.config.env.iter().chain(&command.env),
        );
        if which(OsStr::new(&command.program), &env, &cwd).is_none() {
            return Err(Error::NoProgram(command.program));
        }
        let mut argv: Vec<OsString> = vec![command.program.clone().into()];
        argv.extend(command.arguments.into_iter().map(OsString::from));

        let helper = &self.machine.config.helper;
        let spill = self.machine.spill.existing(&self.config.session_id);
        let session_log = env.get(OsStr::new("DSH_SESSION_JSONL")).map(PathBuf::from);
        let (env, of_command) = environment::split(&env);
        let full = mode == Mode::DangerFullAccess;
        let wrapped = match self.machine.runner() {
            _ if full && !self.machine.config.guard_home => unconfined(helper, &of_command, argv),
            Ok(runner) => {
                let need = Need {
                    fence,
                    mode,
                    cwd: &cwd,
                    env: &of_command,
                    spill: spill.as_deref(),
                    session_log: session_log.as_deref(),
                };
                runner.wrap(helper, &need, argv)?
            }
            // Whoever chose full access chose to run without a sandbox where there is none.
            Err(_) if full => unconfined(helper, &of_command, argv),
            Err(error) => return Err(error),
        };
        let make = |stream: Stream| {
            let name = match stream {
                Stream::Stdout => "stdout.txt",
                Stream::Stderr => "stderr.txt",
            };
            self.machine.spill.create(&self.config.session_id, name)
        };
        let job = Job {
            argv: wrapped.argv.clone(),
            root: wrapped.root,
            cwd: &cwd,
            env: &env,
            stdin: command.stdin,
            timeout: command
                .timeout_ms
                .map(|ms| Duration::from_millis(ms.into())),
            max_output: command.max_output,
            sink: self.config.output.as_deref(),
            spill: &make,
        };
        let ended = job::run(job, control)?;
        if let Some(error) = wrapped.failure(&command.program, &ended) {
            return Err(error);
        }
        let denied = wrapped.denied(&ended);
        let shown = |path: Option<PathBuf>| path.map(|path| path.to_string_lossy().into_owned());
        Ok(Output {
            exit_code: ended.code,
            signal: ended.signal,
            timed_out: ended.timed_out,
            stdout: ended.stdout.0,
            stderr: ended.stderr.0,
            stdout_spill: shown(ended.stdout.1),
            stderr_spill: shown(ended.stderr.1),
            denied,
        })
    }
}
