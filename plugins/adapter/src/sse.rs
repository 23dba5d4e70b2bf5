//! Server-sent events, as far as model streams need them: name and `data` of each
//! event. Bytes come as they arrived, so a line, a character or a CR LF may be cut
//! anywhere; a line is decoded when it is whole, and what is no UTF-8 in it becomes
//! U+FFFD as a streaming decoder has it (spec/llm.md §6.4).
//!
//! An event has a bound, so that a server that never ends one costs a failure and
//! not all of the component's memory: see [`Events::is_too_long`].

use std::borrow::Cow;

/// Bytes that an event may have, its name and the line under way included. A
/// picture or a long tool call in one piece is far below it.
pub const MAX_EVENT: usize = 16 * 1024 * 1024;

/// One event of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event<'a> {
    /// What its `event` field says; none where there is none or it is empty.
    pub name: Option<&'a str>,
    /// Its `data` lines, joined by LF; never empty.
    pub data: &'a str,
}

/// Bytes in, events out.
#[derive(Debug, Default)]
pub struct Events {
    /// The start of a line that is cut.
    line: Vec<u8>,
    name: String,
    data: String,
    /// A `data` line was there, though it may have been empty.
    has_data: bool,
    /// The last byte was a CR, so a LF that follows ends no line.
    after_cr: bool,
    /// A line has been read, so a byte order mark is no longer expected.
    begun: bool,
    too_long: bool,
}

impl Events {
    /// Takes in `bytes` and calls `take` with each event that they complete, until
    /// it returns false; nothing is to be pushed after that.
    pub fn push(&mut self, bytes: &[u8], mut take: impl FnMut(&Event<'_>) -> bool) {
        let mut rest = bytes;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            rest = rest.strip_prefix(b"\n").unwrap_or(rest);
        }
        while let Some(end) = line_end(rest) {
            let cr = rest[end] == b'\r';
            let (line, after) = (&rest[..end], &rest[end + 1..]);
            rest = after;
            if cr {
                self.after_cr = rest.is_empty();
                rest = rest.strip_prefix(b"\n").unwrap_or(rest);
            }
            if !self.fits(line.len()) {
                return;
            }
            let goes_on = if self.line.is_empty() {
                self.end_of_line(line, &mut take)
            } else {
                let mut whole = std::mem::take(&mut self.line);
                whole.extend_from_slice(line);
                let goes_on = self.end_of_line(&whole, &mut take);
                whole.clear();
                self.line = whole;
                goes_on
            };
            if !goes_on {
                return;
            }
        }
        if self.fits(rest.len()) {
            self.line.extend_from_slice(rest);
        }
    }

    /// The event that the end of the body cut, as if a blank line ended it: for
    /// the one protocol that counts such a tail.
    pub fn flush(&mut self, mut take: impl FnMut(&Event<'_>) -> bool) {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() || self.end_of_line(&line, &mut take) {
            self.end_of_line(b"", &mut take);
        }
    }

    /// Whether an event grew over [`MAX_EVENT`]: nothing is taken in any more.
    pub fn is_too_long(&self) -> bool {
        self.too_long
    }

    fn fits(&mut self, more: usize) -> bool {
        self.too_long |= self.line.len() + self.data.len() + self.name.len() + more > MAX_EVENT;
        !self.too_long
    }

    /// Takes in a whole line; false where `take` wants no more.
    fn end_of_line(&mut self, line: &[u8], take: &mut impl FnMut(&Event<'_>) -> bool) -> bool {
        let mut line = line;
        if !self.begun {
            self.begun = true;
            line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        }
        if line.is_empty() {
            let goes_on = self.data.is_empty()
                || take(&Event {
                    name: Some(&*self.name).filter(|name| !name.is_empty()),
                    data: &self.data,
                });
            self.name.clear();
            self.data.clear();
            self.has_data = false;
            return goes_on;
        }
        let (field, value) = match line.iter().position(|byte| *byte == b':') {
            Some(colon) => (&line[..colon], &line[colon + 1..]),
            None => (line, &b""[..]),
        };
        // A comment is a field without a name.
        let value = || {
            let value = value.strip_prefix(b" ").unwrap_or(value);
            // Nearly always whole, which is checked faster than it is replaced.
            std::str::from_utf8(value)
                .map_or_else(|_| String::from_utf8_lossy(value), Cow::Borrowed)
        };
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(&value());
            }
            b"event" => self.name = value().into_owned(),
            _ => {}
        }
        true
    }
}

/// Where the first LF or CR is.
fn line_end(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
