//! Reading a plain log: bytes to decoded events. `spec/session.md` §5.2.
//!
//! The scanner keeps the longest contiguous prefix and says where it ends; damage followed by a finished turn is an
//! error, damage at the end is a torn tail.

use crate::{Error, Header, Stored};

/// What a scan found.
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

/// Why an accepted prefix ended before the last complete line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Issue {
    /// A line that is not JSON.
    NotJson {
        /// From 1; the header is line 1.
        line: u64,
    },
    /// A chunk row that cannot be unpacked.
    MalformedRow {
        /// From 1; the header is line 1.
        line: u64,
    },
    /// A line whose events do not continue the log.
    Gap {
        /// From 1; the header is line 1.
        line: u64,
        /// The seq that was due.
        expected: u64,
    },
}

/// Scans a whole plain file.
///
/// # Errors
/// The header's errors; [`Error::Scan`] for damage followed by a finished turn.
pub fn plain(bytes: &[u8]) -> Result<Scan, Error> {
    let _ = bytes;
    todo!()
}

/// The scanner of lines after the header, for readers that get their bytes piecewise (frames, tails).
#[derive(Default)]
pub struct LineScanner {
    events: Vec<Stored>,
    issue: Option<Issue>,
}

impl LineScanner {
    /// A scanner that expects `next_seq` first.
    pub fn new(next_seq: u64) -> LineScanner {
        let _ = next_seq;
        todo!()
    }

    /// Feeds one complete line without its newline; `true` when it was accepted.
    ///
    /// # Errors
    /// [`Error::Scan`] when the log is damaged before a finished turn.
    pub fn line(&mut self, line: &[u8]) -> Result<bool, Error> {
        let _ = line;
        todo!()
    }

    /// What ended the accepted prefix.
    pub fn issue(&self) -> Option<Issue> {
        self.issue
    }

    /// The seq that is due next.
    pub fn next_seq(&self) -> u64 {
        todo!()
    }

    /// The accepted events.
    pub fn into_events(self) -> Vec<Stored> {
        self.events
    }
}
