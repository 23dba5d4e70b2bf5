//! `log`: diagnostics, to the host's log and to nobody else. Always granted.
//!
//! A call keeps as many messages as its limit `log-lines` says, 4 KiB of each; how many were dropped is said once,
//! when it ends. The last error is remembered: a guest's panic hook writes its
//! message here before it traps, and the trap itself says nothing.

use crate::contract::v0_1::log::{self, Level};
use crate::instance::State;
use crate::port;

super::capability!(log, "log");

/// Bytes kept of a message.
const MESSAGE: usize = 4 << 10;

/// The lines of one call.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    written: u64,
    dropped: u64,
    /// The last error, on one line.
    last_error: Option<String>,
}

impl Lines {
    /// What the component last said had gone wrong.
    pub(crate) fn last_error(&self) -> Option<&str> {
        self.last_error.as_deref()
    }
}

impl log::Host for State {
    fn write(&mut self, level: Level, message: String) -> wasmtime::Result<()> {
        self.called()?;
        self.takes(message.len())?;
        if self.lines.written >= self.row.limits.log_lines {
            self.lines.dropped = self.lines.dropped.saturating_add(1);
            return Ok(());
        }
        self.lines.written += 1;
        let level = match level {
            Level::Trace => port::Level::Trace,
            Level::Debug => port::Level::Debug,
            Level::Info => port::Level::Info,
            Level::Warn => port::Level::Warn,
            Level::Error => port::Level::Error,
        };
        let message = cut(&message, MESSAGE);
        if level == port::Level::Error {
            let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
            self.lines.last_error = Some(cut(&line, 256).to_owned());
        }
        self.log(level, message);
        Ok(())
    }
}

impl State {
    /// Writes a line of this row's to the host's log.
    pub(crate) fn log(&self, level: port::Level, message: &str) {
        if let Some(log) = &self.ctx.ports.log {
            log.write(&self.row.id, level, cut(message, MESSAGE));
        }
    }

    /// What the component last said had gone wrong.
    pub(crate) fn said(&self) -> Option<String> {
        let logged = self.lines.last_error().map(str::to_owned);
        logged.or_else(|| self.wasi.as_ref()?.last_words())
    }

    /// Says how many messages the call that ends here had dropped.
    pub(crate) fn close_log(&mut self) {
        let written = self.wasi.as_ref().map_or(0, |wasi| wasi.close());
        let dropped = std::mem::take(&mut self.lines).dropped + written;
        if dropped > 0 {
            self.log(
                port::Level::Warn,
                &format!("{dropped} more messages of this call were dropped"),
            );
        }
    }
}

/// The longest start of a text that has at most `max` bytes.
fn cut(text: &str, max: usize) -> &str {
    &text[..text.floor_char_boundary(max)]
}

#[cfg(test)]
mod tests {
    use super::cut;

    #[test]
    fn a_message_is_cut_between_characters() {
        assert_eq!(cut("abc", 4), "abc");
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }
}
