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
use crate::{Event, Kind, MAX_SAFE_INTEGER, Seq, Stored, Value, json, rows};

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
        let mut last = None;
        let mut rest = lines;
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest.as_bytes())?;
            let line = &rest[..end];
            rest = &rest[end + 1..];
            let made = events.len();
            let (seq, count) = match self.like.seq(line.as_bytes()) {
                Some(seq) => (seq, 1),
                None => match plain_row(line.as_bytes()) {
                    Some(span) => span,
                    None => self.line(line, &mut events)?,
                },
            };
            if events.len() == made {
                last = Some(line);
            }
            let (first, next) = span.unwrap_or((seq, seq));
            if seq != next {
                return None;
            }
            span = Some((first, next + count));
        }
        let (first, next) = span?;
        let last_chunk = match last.filter(|_| make_last) {
            None => None,
            Some(line) => Some(last_of(line)?),
        };
        Some(Stretch {
            first: Seq(first),
            count: next - first,
            events,
            last_chunk,
        })
    }

    /// Reads one line with all checks; gives its first seq and the number of its events.
    fn line(&mut self, line: &str, events: &mut Vec<Arc<Event>>) -> Option<(u64, u64)> {
        let text = json::restored(line).ok()?;
        let value = Value::trusted(&text);
        if let Some(row) = Row::of(value) {
            let (seq, count) = row.ok()?.span();
            // Upstream lets one seq too many through; that is not for here.
            return (seq + count <= MAX_SAFE_INTEGER).then_some((seq, count));
        }
        let event = Event::read(value).ok()?;
        let seq = event.seq.0;
        if event.kind == Kind::AssistantChunk {
            self.like = Like::of(&event, line).unwrap_or_default();
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

/// The last event of a line that holds chunks.
fn last_of(line: &str) -> Option<Arc<Event>> {
    let mut events = rows::decode_line(line).ok()?;
    match events.pop()? {
        Stored::Sound(event) => Some(event),
        Stored::Odd { .. } => None,
    }
}

const ROWS: [&[u8]; 2] = [
    b"{\"type\":\"text-chunks\",\"seq0\":",
    b"{\"type\":\"reasoning-chunks\",\"seq0\":",
];

/// The first seq and the number of events of a row of text or reasoning, written as logs write it: members in order, whole
/// numbers in their shortest form, nothing escaped. In one pass; what is written otherwise is left to [`Row`].
fn plain_row(line: &[u8]) -> Option<(u64, u64)> {
    let rest = ROWS.iter().find_map(|row| line.strip_prefix(*row))?;
    let plain = line.iter().fold(true, |plain, byte| {
        plain & (*byte >= 0x20) & (*byte != b'\\')
    });
    if !plain {
        return None;
    }
    let (seq, rest) = digits(rest)?;
    let (mut time, mut rest) = whole(rest.strip_prefix(b",\"time0\":")?)?;
    for name in [&b",\"data\":{\"turn\":"[..], b",\"step\":", b",\"index\":"] {
        rest = whole(rest.strip_prefix(name)?)?.1;
    }
    rest = rest.strip_prefix(b",\"dt\":[")?;
    let mut count = 1;
    while !rest.starts_with(b"]") {
        if count > 1 {
            rest = rest.strip_prefix(b",")?;
        }
        let gap;
        (gap, rest) = whole(rest)?;
        // Sixteen digits at most, over no more gaps than a line has bytes: far from overflow.
        time += gap;
        if time.unsigned_abs() > MAX_SAFE_INTEGER {
            return None;
        }
        count += 1;
    }
    rest = rest.strip_prefix(b"],\"texts\":[\"")?;
    // Without escapes a quote is an end.
    let mut texts = 1;
    loop {
        rest = &rest[memchr::memchr(b'"', rest)? + 1..];
        match rest.strip_prefix(b",\"") {
            Some(more) => rest = more,
            None => break,
        }
        texts += 1;
    }
    let sound = rest == b"]}}" && texts == count && seq + count <= MAX_SAFE_INTEGER;
    sound.then_some((seq, count))
}

/// The seq of a chunk line, and what follows `"data":`. Only for lines written as logs write them.
fn head(line: &[u8]) -> Option<(u64, &[u8])> {
    let rest = line.strip_prefix(CHUNK)?;
    let (seq, rest) = digits(rest)?;
    let rest = rest.strip_prefix(TIME)?;
    let (_, rest) = whole(rest)?;
    Some((seq, rest.strip_prefix(DATA)?))
}

/// A whole number, negative ones included, as [`digits`].
fn whole(bytes: &[u8]) -> Option<(i64, &[u8])> {
    match bytes.strip_prefix(b"-") {
        // Negative zero is no shortest form.
        Some(positive) if positive.starts_with(b"0") => None,
        Some(positive) => digits(positive).map(|(number, rest)| (-(number as i64), rest)),
        None => digits(bytes).map(|(number, rest)| (number as i64, rest)),
    }
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
