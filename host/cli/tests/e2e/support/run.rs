//! The process.

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use mock_provider::Mock;
use rustix::process::{Pid, Signal, kill_process};

use super::scratch::Scratch;

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// A `dsh` that is about to start.
pub(crate) struct Dsh {
    command: Command,
}

impl Dsh {
    pub(super) fn new(scratch: &Scratch) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_dsh"));
        command
            .current_dir(scratch.work())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", scratch.user())
            .env("DSH_HOME", scratch.home())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self { command }
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Sends to this provider, with a key.
    pub(crate) fn provider(self, mock: &Mock) -> Self {
        self.env("DEEPSEEK_BASE_URL", mock.base_url())
            .env("DEEPSEEK_API_KEY", "sk-e2e")
    }

    pub(crate) fn args<'a>(mut self, args: impl IntoIterator<Item = &'a str>) -> Self {
        self.command.args(args);
        self
    }

    pub(crate) fn arg(mut self, argument: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.arg(argument);
        self
    }

    /// `--profile headless`, before anything else.
    pub(crate) fn headless(self) -> Self {
        self.args(["--profile", "headless"])
    }

    pub(crate) fn patch(mut self, file: impl AsRef<Path>) -> Self {
        self.command.arg("--patch").arg(file.as_ref());
        self
    }

    /// What it reads from standard input.
    pub(crate) fn stdin(mut self, file: std::fs::File) -> Self {
        self.command.stdin(file);
        self
    }

    /// Where its standard output goes, in place of what [`Running::end`] gives.
    pub(crate) fn stdout(mut self, to: impl Into<Stdio>) -> Self {
        self.command.stdout(to);
        self
    }

    pub(crate) fn start(mut self) -> Running {
        Running {
            child: Some(self.command.spawn().expect("dsh starts")),
        }
    }

    /// Starts it and waits for its end.
    pub(crate) fn run(self) -> Ended {
        self.start().end()
    }
}

/// A `dsh` that runs; killed when it is dropped before its end.
pub(crate) struct Running {
    child: Option<Child>,
}

impl Running {
    pub(crate) fn pid(&self) -> Pid {
        Pid::from_child(self.child.as_ref().expect("it has not been waited for"))
    }

    pub(crate) fn signal(&self, signal: Signal) {
        // Not reaped yet, so the number is still its own.
        kill_process(self.pid(), signal).expect("the process can be signalled");
    }

    pub(crate) fn end(mut self) -> Ended {
        let pid = self.pid();
        let child = self.child.take().expect("it has not been waited for");
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || tell.send(child.wait_with_output()));
        match told.recv_timeout(LIMIT) {
            Ok(output) => Ended::of(&output.expect("its output can be read")),
            Err(_) => {
                let _ = kill_process(pid, Signal::KILL);
                panic!("dsh did not end within {} s", LIMIT.as_secs());
            }
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// How it ended and what it said.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            signal: output.status.signal(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// A completed run: 0, this answer, nothing on stderr.
    #[track_caller]
    pub(crate) fn answered(&self, answer: &str) {
        assert_eq!(
            (self.code, self.stdout.as_str(), self.stderr.as_str()),
            (Some(0), format!("{answer}\n").as_str(), ""),
            "{self:?}"
        );
    }
}

/// Looks until it is so. What another process does has no other way to be seen.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut so: impl FnMut() -> bool) {
    let end = Instant::now() + LIMIT;
    while !so() {
        assert!(
            Instant::now() < end,
            "waited {} s for: {what}",
            LIMIT.as_secs()
        );
        std::thread::sleep(Duration::from_millis(2));
    }
}
