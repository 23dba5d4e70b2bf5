//! A stretch of whole lines, read by itself: what several threads do at once when a long log is opened.
//!
//! Lines are judged here as [`crate::scan`] and [`crate::interpret`] together would judge them, but only as far as that
//! needs no other line, and only sound lines of today's shape pass. For anything else the answer is `None`, and whoever
//! asked reads the log again line by line, which is slower and knows what to say.
//!
//! Chunks are nine events of ten and nobody looks at most of them, so they are counted and not made. A chunk line mostly
//! differs from the one before in seq, time and one plain string. Where all else is equal byte for byte, and the string
//! has no quote, backslash or control byte, the line is as sound as that one was and needs no parsing.

use std::sync::Arc;

use crate::interpret::is_current;
use crate::rows::Row;
use crate::{Event, Kind, MAX_SAFE_INTEGER, Seq, Value, json};

/// What a stretch holds.
#[derive(Debug, PartialEq)]
pub struct Stretch {
    /// The seq of its first event.
    pub first: Seq,
    /// How many events it has; they follow each other.
    pub count: u64,
    /// Those that are no chunks.
    pub events: Vec<Arc<Event>>,
    /// The last chunk, when it was asked for.
    pub last_chunk: Option<Arc<Event>>,
}

/// Reads stretches; keeps what one line has in common with the next.
#[derive(Debug)]
pub struct StretchScanner {
    /// The session's id, which legacy shapes are judged with.
    session: Arc<str>,
    like: Like,
}

/// The last chunk line that was parsed, without its seq, time and text.
#[derive(Debug, Default)]
struct Like {
    before: Vec<u8>,
    after: Vec<u8>,
}

const CHUNK: &[u8] = b"{\"type\":\"assistant/chunk\",\"seq\":";
const TIME: &[u8] = b",\"time\":";
const DATA: &[u8] = b",\"data\":";

/// Where the last chunk of a stretch stands: as a line, or as the last of a row.
enum Last<'a> {
    None,
    Line(&'a str),
    Event(Event),
}

impl StretchScanner {
    /// A scanner of logs of this session.
    pub fn new(session: impl Into<Arc<str>>) -> StretchScanner {
        StretchScanner {
            session: session.into(),
            like: Like::default(),
        }
    }

    /// Reads lines, each with its newline. `None` when there is anything that is not for this reader to judge, and for
    /// no lines at all. `make_last` makes the last chunk, which is not worth it for each of many stretches.
    pub fn read(&mut self, lines: &[u8], make_last: bool) -> Option<Stretch> {
        let lines = std::str::from_utf8(lines).ok()?;
        let mut span: Option<(u64, u64)> = None;
        let mut events = Vec::new();
        let mut last = Last::None;
        let mut rest = lines;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest.as_bytes())?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            let (seq, count) = match self.like.seq(line.as_bytes()) {
                Some(seq) => {
                    last = Last::Line(line);
                    (seq, 1)
                }
                None => self.line(line, &mut events, &mut last)?,
            };
            let (first, next) = span.unwrap_or((seq, seq));
            if seq != next {
                return None;
            }
            span = Some((first, next + count));
        }
        let (first, next) = span?;
        let last_chunk = match last {
            _ if !make_last => None,
            Last::None => None,
            Last::Line(line) => Some(Event::parse(line).ok()?),
            Last::Event(event) => Some(event),
        };
        Some(Stretch {
            first: Seq(first),
            count: next - first,
            events,
            last_chunk: last_chunk.map(Arc::new),
        })
    }

    /// Reads one line with all checks; gives its first seq and the number of its events.
    fn line<'a>(
        &mut self,
        line: &'a str,
        events: &mut Vec<Arc<Event>>,
        last: &mut Last<'a>,
    ) -> Option<(u64, u64)> {
        let text = json::restored(line).ok()?;
        let value = Value::trusted(&text);
        if let Some(row) = Row::of(value) {
            let row = row.ok()?;
            *last = Last::Event(row.last()?);
            let (seq, count) = row.span();
            return (seq + count <= MAX_SAFE_INTEGER).then_some((seq, count));
        }
        let event = Event::read(value).ok()?;
        let seq = event.seq.0;
        if event.kind == Kind::AssistantChunk {
            self.like = Like::of(&event, line).unwrap_or_default();
            *last = Last::Event(event);
        } else {
            if !is_current(&event, &self.session) {
                return None;
            }
            events.push(Arc::new(event));
        }
        Some((seq, 1))
    }
}

impl Like {
    /// What a parsed chunk line has that the next one may have too: everything but seq, time and the string that its
    /// chunk ends with. `None` for lines that do not end so, or are not written as logs write them.
    fn of(event: &Event, line: &str) -> Option<Like> {
        let data = event.data.as_str();
        let (_, tail) = head(line.as_bytes())?;
        // The data stands in the line as it stands in the event: the line is in normal form.
        let tail = tail
            .strip_suffix(b"}")
            .filter(|tail| *tail == data.as_bytes())?;
        let chunk = event.data.get("chunk")?;
        let (_, text) = chunk.entries().last()?;
        text.string()?;
        let range = text.range_in(event.data.value());
        Some(Like {
            before: tail[..=range.start].to_vec(),
            after: [&tail[range.end - 1..], b"}"].concat(),
        })
    }

    /// The seq of a line that differs from that one in seq, time and a plain string alone.
    fn seq(&self, line: &[u8]) -> Option<u64> {
        if self.before.is_empty() {
            return None;
        }
        let (seq, tail) = head(line)?;
        let text = tail
            .strip_prefix(self.before.as_slice())?
            .strip_suffix(self.after.as_slice())?;
        let plain = text.iter().fold(true, |plain, byte| {
            plain & (*byte >= 0x20) & (*byte != b'"') & (*byte != b'\\')
        });
        plain.then_some(seq)
    }
}

/// The seq of a chunk line, and what follows `"data":`. Only for lines written as logs write them.
fn head(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.strip_prefix(CHUNK)?;
    let (seq, rest) = digits(rest)?;
    let rest = rest.strip_prefix(TIME)?;
    let (_, rest) = digits(
        rest.strip_prefix(b"-")
            .filter(|rest| !rest.starts_with(b"0"))
            .unwrap_or(rest),
    )?;
    Some((seq, rest.strip_prefix(DATA)?))
}

/// A number of up to 15 digits in its shortest form, which is a safe integer.
fn digits(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut number = 0;
    let mut length = 0;
    while let Some(digit @ b'0'..=b'9') = bytes.get(length) {
        number = number * 10 + u64::from(digit - b'0');
        length += 1;
        if length > 15 {
            return None;
        }
    }
    let shortest = length == 1 || (length > 1 && bytes[0] != b'0');
    shortest.then(|| (number, &bytes[length..]))
}

#[cfg(test)]
#[path = "stretch_tests.rs"]
mod tests;
