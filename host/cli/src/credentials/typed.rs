//! A line that somebody types and nobody sees.
//!
//! While it is typed the terminal shows nothing and makes no signals of keys: `^C` and the like arrive as bytes, so that
//! the terminal is as it was before in every end that this process sees. A signal from elsewhere ends the waiting too.

use std::io::{self, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

use crate::exit::Failure;
use crate::signals::Signals;

/// Bytes of a line; more is no key.
const MOST: usize = 64 << 10;

/// What came of asking.
pub(super) enum Typed {
    Line(String),
    /// Given up, with the exit code for it.
    Given(u8),
}

/// Asks on stderr and reads a line from standard input, which is a terminal.
///
/// # Errors
/// The terminal cannot be had, or what came is no text.
pub(super) fn line(prompt: &str) -> Result<Typed, Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::of(format_args!("cannot start: {error}")))?;
    let hidden = Hidden::begin()
        .map_err(|error| Failure::of(format_args!("cannot use the terminal: {error}")))?;
    let mut stderr = io::stderr();
    let _ = write!(stderr, "{prompt}").and_then(|()| stderr.flush());
    let typed = runtime.block_on(async {
        let mut signals = Signals::catch()?;
        let reading = tokio::task::spawn_blocking(read);
        tokio::select! {
            biased;
            code = signals.next() => Ok(Typed::Given(code)),
            read = reading => match read {
                Ok(Ok(typed)) => Ok(typed),
                Ok(Err(error)) => Err(Failure::of(format_args!("cannot read what was typed: {error}"))),
                Err(_) => Err(Failure::of("cannot read what was typed")),
            },
        }
    });
    drop(hidden);
    let _ = writeln!(stderr);
    // A thread that still reads is not waited for.
    runtime.shutdown_background();
    typed
}

fn read() -> io::Result<Typed> {
    let mut stdin = io::stdin().lock();
    let mut keys = Keys::default();
    let mut byte = [0];
    loop {
        if stdin.read(&mut byte)? == 0 {
            return keys.end();
        }
        if let Some(end) = keys.take(byte[0]) {
            return end;
        }
    }
}

/// A line in the making.
#[derive(Default)]
struct Keys(Vec<u8>);

impl Keys {
    /// One key's byte; something where it ends the line.
    fn take(&mut self, byte: u8) -> Option<io::Result<Typed>> {
        match byte {
            b'\r' | b'\n' => return Some(self.end()),
            // ^C, ^\: nothing was wanted.
            0x03 | 0x1c => return Some(Ok(Typed::Given(130))),
            // ^D on an empty line is the end; elsewhere it is nothing.
            0x04 if self.0.is_empty() => return Some(self.end()),
            0x04 | 0x1a => {}
            // Backspace takes a character, ^W and ^U take all.
            0x08 | 0x7f => while self.0.pop().is_some_and(|gone| gone & 0xc0 == 0x80) {},
            0x15 | 0x17 => self.0.clear(),
            byte if self.0.len() < MOST => self.0.push(byte),
            _ => {}
        }
        None
    }

    fn end(&mut self) -> io::Result<Typed> {
        let line = String::from_utf8(std::mem::take(&mut self.0));
        line.map(Typed::Line)
            .map_err(|_| io::Error::other("it is not UTF-8"))
    }
}

/// The terminal without echo; as it was before once this is dropped.
struct Hidden(Termios);

impl Hidden {
    fn begin() -> io::Result<Self> {
        let stdin = io::stdin();
        let before = tcgetattr(&stdin)?;
        let mut quiet = before.clone();
        quiet.local_modes &= !(LocalModes::ECHO
            | LocalModes::ECHONL
            | LocalModes::ICANON
            | LocalModes::ISIG
            | LocalModes::IEXTEN);
        quiet.special_codes[SpecialCodeIndex::VMIN] = 1;
        quiet.special_codes[SpecialCodeIndex::VTIME] = 0;
        // Flushed: what was typed ahead was typed to be seen.
        tcsetattr(&stdin, OptionalActions::Flush, &quiet)?;
        Ok(Self(before))
    }
}

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = tcsetattr(io::stdin(), OptionalActions::Flush, &self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(keys: &[u8]) -> Option<Result<String, u8>> {
        let mut line = Keys::default();
        keys.iter()
            .find_map(|key| line.take(*key))
            .map(|end| match end.unwrap() {
                Typed::Line(line) => Ok(line),
                Typed::Given(code) => Err(code),
            })
    }

    #[test]
    fn keys_make_a_line_or_give_it_up() {
        for (keys, comes) in [
            (&b"sk-1\n"[..], Some(Ok("sk-1"))),
            (b"sk-1\r", Some(Ok("sk-1"))),
            (b"sk-2\x7f1\n", Some(Ok("sk-1"))),
            ("sé\x7f1\n".as_bytes(), Some(Ok("s1"))),
            (b"\x7f\x7fa\n", Some(Ok("a"))),
            (b"wrong\x15sk-1\n", Some(Ok("sk-1"))),
            (b"sk\x04-1\x1a\n", Some(Ok("sk-1"))),
            (b"\x04", Some(Ok(""))),
            (b"sk\x03", Some(Err(130))),
            (b"sk", None),
        ] {
            assert_eq!(
                typed(keys),
                comes.map(|end| end.map(str::to_owned)),
                "{keys:?}"
            );
        }
    }
}
