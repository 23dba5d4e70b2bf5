//! A window on a text file: some of its lines, and how many there are in all.
//! Bytes come in slices of any size, so a file is never held whole; a line is
//! kept only as far as it is shown (spec/loop.md §15.2).

use guest_support::json::{Object, array};
use guest_support::{Error, error};

/// Lines of one answer.
pub(crate) const LINES: u64 = 2000;

/// UTF-16 units of one line.
const LINE: usize = 2000;

/// Bytes of one answer's lines, with the line ends between them.
const BYTES: usize = 50 * 1024;

/// Bytes that no line of `LINE` units exceeds, and one more.
const LINE_BYTES: usize = 3 * LINE + 1;

/// Bytes from a file's start that tell whether it is text.
const PROBE: usize = 8 * 1024;

const BOM: &[u8] = "\u{FEFF}".as_bytes();

pub(crate) struct Window {
    offset: u64,
    limit: u64,
    lines: Vec<(u64, String)>,
    bytes: usize,
    /// `BYTES` is reached: what follows is only counted.
    capped: bool,
    /// Whole lines so far.
    total: u64,
    /// The start of the line that is being read.
    line: Vec<u8>,
    /// It has a byte at least.
    begun: bool,
    seen: usize,
    /// A NUL near the start.
    binary: bool,
}

impl Window {
    /// `offset` counts from 1.
    pub(crate) fn new(offset: u64, limit: u64) -> Self {
        Self {
            offset,
            limit: limit.min(LINES),
            lines: Vec::new(),
            bytes: 0,
            capped: false,
            total: 0,
            line: Vec::new(),
            begun: false,
            seen: 0,
            binary: false,
        }
    }

    /// Takes the next bytes; returns whether more are wanted.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> bool {
        let probe = &bytes[..bytes.len().min(PROBE.saturating_sub(self.seen))];
        self.seen += bytes.len();
        if probe.contains(&0) {
            self.binary = true;
            return false;
        }
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.extend(&rest[..end]);
            self.end_line();
            rest = &rest[end + 1..];
        }
        self.begun |= !rest.is_empty();
        self.extend(rest);
        true
    }

    /// Whether the line that is being read is to be shown.
    fn wants(&self) -> bool {
        let next = self.total + 1;
        !self.capped && next >= self.offset && next - self.offset < self.limit
    }

    fn extend(&mut self, bytes: &[u8]) {
        if self.wants() {
            let room = LINE_BYTES - self.line.len();
            self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
        }
    }

    fn end_line(&mut self) {
        self.begun = false;
        if self.wants() {
            let line = std::mem::take(&mut self.line);
            let line = line.strip_suffix(b"\r").unwrap_or(&line);
            let line = if self.total == 0 {
                line.strip_prefix(BOM).unwrap_or(line)
            } else {
                line
            };
            let text = shortened(&String::from_utf8_lossy(line));
            let cost = text.len() + usize::from(!self.lines.is_empty());
            if self.bytes + cost > BYTES {
                self.capped = true;
            } else {
                self.bytes += cost;
                self.lines.push((self.total + 1, text));
            }
        }
        self.total += 1;
    }

    /// The answer's text and its facts.
    pub(crate) fn finish(mut self, path: &str) -> Result<(String, String), Error> {
        if self.binary {
            let message = format!(
                "{path} is not text: it holds NUL bytes; look at it with a command instead"
            );
            return Err(error("FS_NOT_TEXT", message));
        }
        if self.begun {
            self.end_line();
        }
        if self.offset > self.total.max(1) {
            let message = format!(
                "{path} has {} lines; there is no line {}",
                self.total, self.offset
            );
            return Err(error("FS_NOT_FOUND", message));
        }
        let last = self.lines.last().map_or(0, |(number, _)| *number);
        let (first, next, total) = (self.offset, last + 1, self.total);
        let footer = if self.capped {
            format!("(Output capped. Showing lines {first}-{last}. Use offset={next} to continue.)")
        } else if last < total {
            format!("(Showing lines {first}-{last} of {total}. Use offset={next} to continue.)")
        } else {
            format!("(End of file - total {total} lines)")
        };
        let mut content = String::with_capacity(self.bytes + 8 * self.lines.len() + footer.len());
        for (number, text) in &self.lines {
            content.push_str(&number.to_string());
            content.push_str(": ");
            content.push_str(text);
            content.push('\n');
        }
        if !self.lines.is_empty() {
            content.push('\n');
        }
        content.push_str(&footer);
        let lines = self.lines.iter().map(|(number, text)| {
            Object::new()
                .number("number", *number)
                .string("text", text)
                .build()
        });
        let facts = Object::new()
            .string("path", path)
            .number("offset", self.offset)
            .raw("lines", &array(lines))
            .number("totalLines", total);
        Ok((crate::envelope(path, "file", &content), facts.build()))
    }
}

/// A line, cut where it has more than `LINE` UTF-16 units.
fn shortened(text: &str) -> String {
    let mut units = 0;
    for (at, c) in text.char_indices() {
        units += c.len_utf16();
        if units > LINE {
            return format!("{}... (line truncated to {LINE} chars)", &text[..at]);
        }
    }
    text.to_owned()
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
