//! `wasi:cli`: an environment without variables but those of the grant `env`, an
//! `exit` that traps, and output that goes to `log` line by line, bounded as
//! `log` is.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use tokio::io::AsyncWrite;
use wasmtime_wasi::async_trait;
use wasmtime_wasi::cli::{IsTerminal, StdoutStream};
use wasmtime_wasi::p2::bindings::cli::{environment, exit};
use wasmtime_wasi::p2::{OutputStream, Pollable, StreamResult};

use crate::call::CallContext;
use crate::capability::Phase;
use crate::instance::State;
use crate::port::{Level, Log};

/// Bytes kept of a line.
const LINE: usize = 4 << 10;

/// What may be written at once.
const PERMIT: usize = 64 << 10;

/// What a call writes to stdout and stderr.
pub(super) struct Console {
    row: String,
    log: Option<Arc<dyn Log>>,
    left: u64,
    dropped: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
    /// The last lines of stderr: an exception of Python's, and the panic that it
    /// becomes in two more.
    last: [String; 3],
}

impl Console {
    pub(super) fn new(row: &str, ctx: &CallContext, lines: u64) -> Self {
        Self {
            row: row.to_owned(),
            log: ctx.ports.log.clone(),
            left: lines,
            dropped: 0,
            stdout: vec![],
            stderr: vec![],
            last: Default::default(),
        }
    }

    pub(super) fn begin(&mut self, ctx: &CallContext, lines: u64) {
        self.log.clone_from(&ctx.ports.log);
        self.left = lines;
    }

    /// Writes what is left of lines, and says how many were dropped.
    pub(super) fn close(&mut self) -> u64 {
        for level in [Level::Info, Level::Warn] {
            self.end_line(level);
        }
        self.last = Default::default();
        std::mem::take(&mut self.dropped)
    }

    /// What was last written to stderr, on one line: what a program says before it
    /// gives up.
    pub(super) fn last_words(&mut self) -> Option<String> {
        self.end_line(Level::Warn);
        let words = self.last.join(" ");
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let end = words.floor_char_boundary(256);
        (!words.is_empty()).then(|| words[..end].to_owned())
    }

    fn write(&mut self, level: Level, bytes: &[u8]) {
        let mut lines = bytes.split(|&byte| byte == b'\n');
        self.add(level, lines.next().unwrap_or_default());
        for line in lines {
            self.end_line(level);
            self.add(level, line);
        }
    }

    fn pending(&mut self, level: Level) -> &mut Vec<u8> {
        match level {
            Level::Info => &mut self.stdout,
            _ => &mut self.stderr,
        }
    }

    fn add(&mut self, level: Level, bytes: &[u8]) {
        let line = self.pending(level);
        let room = LINE.saturating_sub(line.len());
        line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self, level: Level) {
        let line = std::mem::take(self.pending(level));
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            return;
        }
        // A panic of Rust's ends in advice that nobody can follow here.
        if level == Level::Warn && !line.starts_with("note: ") {
            self.last.rotate_left(1);
            line.clone_into(&mut self.last[2]);
        }
        if self.left == 0 {
            self.dropped += 1;
            return;
        }
        self.left -= 1;
        if let Some(log) = &self.log {
            log.write(&self.row, level, line);
        }
    }
}

/// stdout or stderr.
pub(super) struct Pipe {
    console: Arc<Mutex<Console>>,
    level: Level,
}

impl Pipe {
    pub(super) fn stdout(console: &Arc<Mutex<Console>>) -> Self {
        Self {
            console: Arc::clone(console),
            level: Level::Info,
        }
    }

    pub(super) fn stderr(console: &Arc<Mutex<Console>>) -> Self {
        Self {
            console: Arc::clone(console),
            level: Level::Warn,
        }
    }
}

impl IsTerminal for Pipe {
    fn is_terminal(&self) -> bool {
        false
    }
}

impl StdoutStream for Pipe {
    fn async_stream(&self) -> Box<dyn AsyncWrite + Send + Sync> {
        // Of a later preview, which is not linked.
        Box::new(tokio::io::sink())
    }

    fn p2_stream(&self) -> Box<dyn OutputStream> {
        Box::new(Self {
            console: Arc::clone(&self.console),
            level: self.level,
        })
    }
}

#[async_trait]
impl Pollable for Pipe {
    async fn ready(&mut self) {}
}

impl OutputStream for Pipe {
    fn write(&mut self, bytes: Bytes) -> StreamResult<()> {
        let mut console = self.console.lock().unwrap_or_else(PoisonError::into_inner);
        console.write(self.level, &bytes);
        Ok(())
    }

    fn flush(&mut self) -> StreamResult<()> {
        Ok(())
    }

    fn check_write(&mut self) -> StreamResult<usize> {
        Ok(PERMIT)
    }
}

impl environment::Host for State {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        self.standing();
        if self.phase < Phase::Work {
            return Ok(vec![]);
        }
        let granted = self.row.grants.env().iter();
        Ok(granted
            .filter_map(|name| Some((name.clone(), std::env::var(name).ok()?)))
            .collect())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        self.standing();
        Ok(vec![])
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        self.standing();
        Ok(None)
    }
}

/// The component ended itself.
#[derive(Debug, thiserror::Error)]
#[error("it exited with status {0}")]
struct Exited(u8);

impl exit::Host for State {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        Err(Exited(u8::from(status.is_err())).into())
    }

    fn exit_with_code(&mut self, status: u8) -> wasmtime::Result<()> {
        Err(Exited(status).into())
    }
}
