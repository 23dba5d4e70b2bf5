//! One command from start to end: output, limits, and the end of its tree.
//!
//! A command has a thread of its own, since Bubblewrap's `--die-with-parent`
//! means the thread that started it. The thread waits on everything at once:
//! the two streams, standard input, the process, and a pipe whose other end the
//! caller holds; when that closes, the caller has given up.
//!
//! Ending is SIGTERM to every process of the tree, 3 s, SIGKILL. The root of
//! the tree (Bubblewrap, or the supervisor of `helper`) is spared the first, as
//! it would take the tree with it; when the root is gone, so is the tree.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};

use crate::capture::{Capture, MakeSpill};
use crate::environment::Environment;
use crate::error::Error;
use crate::session::{OutputSink, Stream};
use crate::tree::{self, Member};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// Processes that SIGKILL does not end (in the kernel) are waited for no longer.
const GIVE_UP: Duration = Duration::from_secs(5);

/// Streams that somebody outside the tree holds open are waited for no longer.
const DRAIN: Duration = Duration::from_secs(1);

/// How often the tree is looked at again while it is to end.
const RESCAN: Duration = Duration::from_millis(50);

/// What stands at the root of a command's tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Root {
    /// Killing it kills the tree.
    Bwrap,
    /// It must outlive the tree, to collect it.
    Supervisor,
}

/// A command with its runner around it.
pub(crate) struct Job<'a> {
    pub(crate) argv: Vec<OsString>,
    pub(crate) root: Root,
    pub(crate) cwd: &'a Path,
    pub(crate) env: &'a Environment,
    pub(crate) stdin: Option<Vec<u8>>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) max_output: u32,
    pub(crate) sink: Option<&'a dyn OutputSink>,
    pub(crate) spill: &'a dyn Fn(Stream) -> std::io::Result<(std::fs::File, PathBuf)>,
}

/// How it ended.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) signal: Option<i32>,
    pub(crate) timed_out: bool,
    pub(crate) stdout: (Vec<u8>, Option<PathBuf>),
    pub(crate) stderr: (Vec<u8>, Option<PathBuf>),
}

enum Phase {
    Running,
    Terminating { kill_at: Instant },
    Killing { give_up_at: Instant },
    Draining { until: Instant },
}

/// Runs a job to its end. `control` is the end of a pipe.
pub(crate) fn run(job: Job<'_>, control: &OwnedFd) -> Result<Ended, Error> {
    let mut child = spawn(&job)?;
    let failed = |errno: Errno| Error::Start {
        program: job.argv[0].display().to_string(),
        reason: errno.to_string(),
    };
    let pid = Pid::from_child(&child);
    let pidfd = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(pidfd) => pidfd,
        Err(errno) => {
            let _ = child.kill();
            let _ = child.wait();
            return Err(failed(errno));
        }
    };
    let out: MakeSpill<'_> = &|| (job.spill)(Stream::Stdout);
    let err: MakeSpill<'_> = &|| (job.spill)(Stream::Stderr);
    let mut run = Run {
        root: job.root,
        pid: pid.as_raw_nonzero().get(),
        pidfd,
        phase: Phase::Running,
        timed_out: false,
        deadline: job.timeout.map(|timeout| Instant::now() + timeout),
        told: HashSet::new(),
        sink: job.sink,
        stdout: (
            child.stdout.take().map(OwnedFd::from),
            Capture::new(job.max_output, out),
        ),
        stderr: (
            child.stderr.take().map(OwnedFd::from),
            Capture::new(job.max_output, err),
        ),
        stdin: Input::new(child.stdin.take(), job.stdin),
    };
    let status = run.follow(&mut child, control);
    Ok(run.ended(status))
}

fn spawn(job: &Job<'_>) -> Result<Child, Error> {
    let mut command = Command::new(&job.argv[0]);
    command
        .args(&job.argv[1..])
        .env_clear()
        .envs(job.env)
        .current_dir(job.cwd);
    command.stdin(if job.stdin.is_some() {
        Stdio::piped()
    } else {
        Stdio::null()
    });
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    if job.root == Root::Bwrap {
        // The supervisor leaves the terminal's group by itself.
        command.process_group(0);
    }
    command.spawn().map_err(|error| Error::Start {
        program: job.argv[0].display().to_string(),
        reason: error.to_string(),
    })
}

/// Standard input on its way.
struct Input {
    pipe: Option<ChildStdin>,
    bytes: Vec<u8>,
    at: usize,
}

impl Input {
    fn new(pipe: Option<ChildStdin>, bytes: Option<Vec<u8>>) -> Self {
        if let Some(pipe) = &pipe {
            let _ = rustix::fs::fcntl_setfl(pipe, OFlags::NONBLOCK);
        }
        let mut input = Input {
            pipe,
            bytes: bytes.unwrap_or_default(),
            at: 0,
        };
        input.write();
        input
    }

    fn write(&mut self) {
        while let Some(pipe) = &mut self.pipe {
            match pipe.write(&self.bytes[self.at..]) {
                Ok(count) if self.at + count < self.bytes.len() => self.at += count,
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                // All of it, or nobody reads on.
                Ok(_) | Err(_) => self.pipe = None,
            }
        }
    }
}

struct Run<'a> {
    root: Root,
    pid: i32,
    pidfd: OwnedFd,
    phase: Phase,
    timed_out: bool,
    deadline: Option<Instant>,
    /// Who got SIGTERM.
    told: HashSet<Member>,
    sink: Option<&'a dyn OutputSink>,
    stdout: (Option<OwnedFd>, Capture<'a>),
    stderr: (Option<OwnedFd>, Capture<'a>),
    stdin: Input,
}

impl Run<'_> {
    fn follow(&mut self, child: &mut Child, control: &OwnedFd) -> Option<ExitStatus> {
        let mut status = None;
        loop {
            let streams_open = self.stdout.0.is_some() || self.stderr.0.is_some();
            if status.is_some() && !streams_open {
                return status;
            }
            let ready = self.wait(status.is_none(), control);
            if ready.stdout {
                pump(Stream::Stdout, &mut self.stdout, self.sink);
            }
            if ready.stderr {
                pump(Stream::Stderr, &mut self.stderr, self.sink);
            }
            if ready.stdin {
                self.stdin.write();
            }
            if ready.exited && status.is_none() {
                status = child.wait().ok();
                self.stdin.pipe = None;
                self.phase = Phase::Draining {
                    until: Instant::now() + DRAIN,
                };
            }
            if !self.advance(ready.abandoned) {
                return status;
            }
        }
    }

    /// Waits for something to happen.
    fn wait(&self, running: bool, control: &OwnedFd) -> Ready {
        enum Who {
            Stdout,
            Stderr,
            Stdin,
            Exit,
            Control,
        }
        let mut who = Vec::with_capacity(5);
        let mut fds = Vec::with_capacity(5);
        let mut add = |what, fd, flags| {
            who.push(what);
            fds.push(PollFd::from_borrowed_fd(fd, flags));
        };
        if let Some(fd) = &self.stdout.0 {
            add(Who::Stdout, fd.as_fd(), PollFlags::IN);
        }
        if let Some(fd) = &self.stderr.0 {
            add(Who::Stderr, fd.as_fd(), PollFlags::IN);
        }
        if let Some(pipe) = &self.stdin.pipe {
            add(Who::Stdin, pipe.as_fd(), PollFlags::OUT);
        }
        if running {
            add(Who::Exit, self.pidfd.as_fd(), PollFlags::IN);
        }
        if matches!(self.phase, Phase::Running) {
            add(Who::Control, control.as_fd(), PollFlags::IN);
        }
        let until = match self.phase {
            Phase::Running => self.deadline,
            Phase::Terminating { kill_at } => Some(kill_at.min(Instant::now() + RESCAN)),
            Phase::Killing { give_up_at } => Some(give_up_at.min(Instant::now() + RESCAN)),
            Phase::Draining { until } => Some(until),
        };
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        // Rounded up, so that a wait does not end just before its time.
        let left = left
            .map(|left| left + Duration::from_millis(1))
            .and_then(|left| Timespec::try_from(left).ok());
        let mut ready = Ready::default();
        if poll(&mut fds, left.as_ref()).is_err() {
            return ready;
        }
        for (who, fd) in who.into_iter().zip(&fds) {
            if !fd.revents().is_empty() {
                match who {
                    Who::Stdout => ready.stdout = true,
                    Who::Stderr => ready.stderr = true,
                    Who::Stdin => ready.stdin = true,
                    Who::Exit => ready.exited = true,
                    Who::Control => ready.abandoned = true,
                }
            }
        }
        ready
    }

    /// Takes the next step of ending, when it is time; false when nothing more
    /// is waited for.
    fn advance(&mut self, abandoned: bool) -> bool {
        let now = Instant::now();
        match self.phase {
            Phase::Running => {
                let late = self.deadline.is_some_and(|deadline| now >= deadline);
                if late || abandoned {
                    self.timed_out = late;
                    self.phase = Phase::Terminating {
                        kill_at: now + GRACE,
                    };
                    self.terminate();
                }
            }
            Phase::Terminating { kill_at } if now < kill_at => self.terminate(),
            Phase::Terminating { .. } => {
                self.phase = Phase::Killing {
                    give_up_at: now + GIVE_UP,
                };
                self.kill();
            }
            Phase::Killing { give_up_at } if now < give_up_at => self.kill(),
            Phase::Killing { .. } => {
                let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
                return false;
            }
            Phase::Draining { until } => return now < until,
        }
        true
    }

    fn terminate(&mut self) {
        for member in tree::descendants(self.pid) {
            if self.told.insert(member) {
                tree::signal(member, Signal::TERM);
            }
        }
    }

    fn kill(&self) {
        let below = tree::descendants(self.pid);
        // A supervisor with nothing below it has not come to its command yet.
        if self.root == Root::Bwrap || below.is_empty() {
            let _ = pidfd_send_signal(&self.pidfd, Signal::KILL);
        }
        for member in below {
            tree::signal(member, Signal::KILL);
        }
    }

    fn ended(self, status: Option<ExitStatus>) -> Ended {
        let mut code = status.and_then(|status| status.code());
        let mut signal = status.and_then(|status| status.signal());
        if !self.told.is_empty() || self.timed_out {
            // Bubblewrap reports a signal as shells do.
            signal = signal.or(code.filter(|code| *code > 128).map(|code| code - 128));
            code = None;
        }
        Ended {
            code,
            signal,
            timed_out: self.timed_out,
            stdout: self.stdout.1.finish(),
            stderr: self.stderr.1.finish(),
        }
    }
}

#[derive(Default)]
struct Ready {
    stdout: bool,
    stderr: bool,
    stdin: bool,
    exited: bool,
    abandoned: bool,
}

/// Takes what a stream has; the poll said that it does not wait.
fn pump(
    stream: Stream,
    (fd, capture): &mut (Option<OwnedFd>, Capture<'_>),
    sink: Option<&dyn OutputSink>,
) {
    let Some(open) = fd else { return };
    let mut buffer = vec![0; 64 << 10];
    match rustix::io::read(&*open, &mut buffer) {
        Ok(0) => *fd = None,
        Ok(count) => {
            capture.push(&buffer[..count]);
            if let Some(sink) = sink {
                sink.output(stream, &buffer[..count]);
            }
        }
        Err(Errno::INTR | Errno::AGAIN) => {}
        Err(_) => *fd = None,
    }
}
