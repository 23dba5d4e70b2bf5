//! Reading a plain log: bytes to decoded events. `spec/session.md` §5.2.
//!
//! The scanner keeps the longest contiguous prefix and says where it ends. Damage followed by a finished turn is an
//! error, since work is missing; damage at the end is a torn tail, which is what a crash leaves. Judging events is not
//! its business: whatever is an object with a fitting seq is kept, see [`crate::interpret`].

use std::fmt;

use crate::{Error, Event, Header, Kind, Seq, Stored, Value, ValueKind, json, rows};

/// What a scan found.
#[derive(Debug)]
pub struct Scan {
    /// The header of the first line.
    pub header: Header,
    /// The events of all accepted lines.
    pub events: Vec<Stored>,
    /// Where the last accepted line ends, in bytes from the file's start; less than the file's size when it is torn.
    pub committed_bytes: usize,
    /// What ended the prefix, when a complete line did.
    pub issue: Option<Issue>,
}

/// Why an accepted prefix ended before the last complete line. Lines count from 1, the header is line 1.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Issue {
    /// A line that is not JSON.
    NotJson {
        /// Which line.
        line: u64,
    },
    /// A chunk row that cannot be unpacked.
    MalformedRow {
        /// Which line.
        line: u64,
    },
    /// A line whose events do not continue the log.
    Gap {
        /// Which line.
        line: u64,
        /// The seq that was due.
        expected: u64,
    },
}

impl fmt::Display for Issue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Issue::NotJson { line } => write!(f, "line {line} is not JSON"),
            Issue::MalformedRow { line } => write!(f, "line {line} is a malformed chunk row"),
            Issue::Gap { line, expected } => {
                write!(f, "line {line} does not continue the log at seq {expected}")
            }
        }
    }
}

/// Scans a whole plain file. Bytes after the last newline are not read.
///
/// # Errors
/// The header's errors; [`Error::Scan`] for a file without a line and for damage followed by a finished turn.
pub fn plain(bytes: &[u8]) -> Result<Scan, Error> {
    let end = memchr(bytes).ok_or(Error::Scan {
        what: "there is no complete header line",
        line: 1,
    })?;
    let header = Header::parse_line(&String::from_utf8_lossy(&bytes[..end]))?;
    let mut scanner = LineScanner::new(0);
    let mut start = end + 1;
    let mut committed_bytes = start;
    while let Some(length) = memchr(&bytes[start..]) {
        let accepted = scanner.line(&bytes[start..start + length])?;
        start += length + 1;
        if accepted {
            committed_bytes = start;
        }
    }
    Ok(Scan {
        header,
        issue: scanner.issue,
        events: scanner.events,
        committed_bytes,
    })
}

fn memchr(bytes: &[u8]) -> Option<usize> {
    memchr::memchr(b'\n', bytes)
}

/// The scanner of the lines after the header, for readers that get them piecewise (frames, tails).
#[derive(Debug)]
pub struct LineScanner {
    events: Vec<Stored>,
    issue: Option<Issue>,
    next_seq: u64,
    line: u64,
}

impl LineScanner {
    /// A scanner that expects `next_seq` first, after a header line.
    pub fn new(next_seq: u64) -> LineScanner {
        LineScanner {
            events: Vec::new(),
            issue: None,
            next_seq,
            line: 1,
        }
    }

    /// Feeds one complete line without its newline; `true` when it was accepted. After the first line that was not, no
    /// other is, but lines must still be fed: they decide whether the damage is a torn tail.
    ///
    /// # Errors
    /// [`Error::Scan`] when a finished turn follows damage, or a line is `null`. What was accepted stays accepted.
    pub fn line(&mut self, line: &[u8]) -> Result<bool, Error> {
        self.line += 1;
        let text = String::from_utf8_lossy(line);
        let Ok(text) = json::restored(&text) else {
            return Ok(self.damaged(Issue::NotJson { line: self.line }));
        };
        let value = Value::trusted(&text);
        match value.kind() {
            ValueKind::Null => return Err(self.fault("the log holds a null line")),
            ValueKind::Object => {}
            _ => return Ok(self.damaged(self.gap())),
        }
        let accepted = self.events.len();
        if rows::decode(value, &mut self.events).is_err() {
            self.events.truncate(accepted);
            return Ok(self.damaged(Issue::MalformedRow { line: self.line }));
        }
        let decoded = &self.events[accepted..];
        let ends_turn = decoded.iter().any(is_turn_end);
        let first = decoded.first().map(seq);
        if self.issue.is_none() && first == Some(Seq(self.next_seq)) {
            self.next_seq += decoded.len() as u64;
            return Ok(true);
        }
        self.events.truncate(accepted);
        self.damaged(self.gap());
        if ends_turn {
            return Err(self.fault("a finished turn follows damage"));
        }
        Ok(false)
    }

    fn gap(&self) -> Issue {
        Issue::Gap {
            line: self.line,
            expected: self.next_seq,
        }
    }

    fn fault(&self, what: &'static str) -> Error {
        Error::Scan {
            what,
            line: self.line,
        }
    }

    /// Remembers the first issue; always `false`, the line is not accepted.
    fn damaged(&mut self, issue: Issue) -> bool {
        self.issue.get_or_insert(issue);
        false
    }

    /// What ended the accepted prefix.
    pub fn issue(&self) -> Option<Issue> {
        self.issue
    }

    /// The seq that is due next.
    pub fn next_seq(&self) -> u64 {
        self.next_seq
    }

    /// The accepted events so far.
    pub fn events(&self) -> &[Stored] {
        &self.events
    }

    /// The accepted events.
    pub fn into_events(self) -> Vec<Stored> {
        self.events
    }
}

fn seq(item: &Stored) -> Seq {
    match item {
        Stored::Sound(event) => event.seq,
        Stored::Odd { seq, .. } => *seq,
    }
}

fn is_turn_end(item: &Stored) -> bool {
    match item {
        Stored::Sound(event) => event.kind == Kind::TurnEnd,
        Stored::Odd { line, .. } => line.get("type").is_some_and(|kind| kind.is("turn/end")),
    }
}

impl Stored {
    /// Its seq.
    pub fn seq(&self) -> Seq {
        seq(self)
    }

    /// Appends its line, without the newline, to `out`.
    pub fn write_line(&self, out: &mut String) {
        match self {
            Stored::Sound(event) => event.write_line(out),
            Stored::Odd { line, .. } => out.push_str(line.as_str()),
        }
    }

    /// The event, when its envelope is sound.
    pub fn event(&self) -> Option<&std::sync::Arc<Event>> {
        match self {
            Stored::Sound(event) => Some(event),
            Stored::Odd { .. } => None,
        }
    }
}
