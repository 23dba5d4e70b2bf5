//! A log as its readers hold it: what is old may stay where it is stored, what is new is in memory.
//!
//! Nine events of ten are chunks that nobody looks at again, so a long log is not kept as objects. Its cold part is an
//! [`Archive`], read piece by piece when somebody asks; that can fail, so reading an event can fail. Behind it stands
//! the tail: what was appended since the log was opened. A log without an archive is a tail and nothing else.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::{Error, Event, Seq};

/// The stored part of a log, from seq 0 on. It never changes while it is open.
pub trait Archive: Send + Sync {
    /// How many events it has, which is the seq of the first one behind it.
    fn end(&self) -> Seq;

    /// The piece that holds `seq`, decoded: as many neighbours as come along for free.
    ///
    /// # Errors
    /// [`Error::Archive`] when it cannot be read, or is not any more what it was when it was opened.
    fn piece(&self, seq: Seq) -> Result<Piece, Error>;
}

/// Events that follow each other, the first at `first`.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The seq of the first event.
    pub first: Seq,
    /// At least the event that was asked for.
    pub events: Arc<[Arc<Event>]>,
}

impl Piece {
    fn get(&self, seq: Seq) -> Option<&Arc<Event>> {
        let index = usize::try_from(seq.0.checked_sub(self.first.0)?).ok()?;
        self.events.get(index)
    }

    fn end(&self) -> Seq {
        Seq(self.first.0 + self.events.len() as u64)
    }
}

/// A log: events from seq 0 without gaps. Cloning shares the events.
#[derive(Clone, Default)]
pub struct Log {
    archive: Option<Arc<dyn Archive>>,
    /// The archive's events that are in memory all the same.
    kept: Arc<HashMap<Seq, Arc<Event>>>,
    /// The seq of the first event of the tail.
    base: u64,
    tail: Vec<Arc<Event>>,
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Log({} events, {} stored)", self.len(), self.base)
    }
}

impl From<Vec<Arc<Event>>> for Log {
    /// A log that is in memory as a whole. The events must have the seqs from 0 on.
    fn from(events: Vec<Arc<Event>>) -> Log {
        Log {
            tail: events,
            ..Log::default()
        }
    }
}

impl Log {
    /// A log that is an archive, and nothing behind it yet. `kept` are events of the archive that are to stay in memory.
    pub fn stored(archive: Arc<dyn Archive>, kept: HashMap<Seq, Arc<Event>>) -> Log {
        Log {
            base: archive.end().0,
            archive: Some(archive),
            kept: Arc::new(kept),
            tail: Vec::new(),
        }
    }

    /// How many events it has, which is the next event's seq.
    pub fn len(&self) -> u64 {
        self.base + self.tail.len() as u64
    }

    /// Whether it has no events.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The event at `seq`; `None` past the end.
    ///
    /// # Errors
    /// [`Error::Archive`].
    pub fn event(&self, seq: Seq) -> Result<Option<Arc<Event>>, Error> {
        match self.here(seq) {
            Some(event) => Ok(Some(event.clone())),
            None if seq.0 < self.base => self.cold(seq).map(|piece| piece.get(seq).cloned()),
            None => Ok(None),
        }
    }

    /// The event at `seq` when it is in memory.
    fn here(&self, seq: Seq) -> Option<&Arc<Event>> {
        match seq.0.checked_sub(self.base) {
            Some(index) => self.tail.get(usize::try_from(index).ok()?),
            None => self.kept.get(&seq),
        }
    }

    fn cold(&self, seq: Seq) -> Result<Piece, Error> {
        let fault = |reason: &str| Error::Archive {
            seq,
            reason: reason.to_owned(),
        };
        let archive = self.archive.as_ref().ok_or(fault("nothing is stored"))?;
        let piece = archive.piece(seq)?;
        match piece.get(seq) {
            Some(event) if event.seq == seq => Ok(piece),
            _ => Err(fault("the stored piece does not hold it")),
        }
    }

    /// The events from `seq` on, read piece by piece; none past the end. Ends after an error.
    pub fn events_from(&self, seq: Seq) -> Events<'_> {
        Events {
            log: self,
            next: seq,
            piece: None,
            failed: false,
        }
    }

    /// The events before `seq`, the newest first, read piece by piece. Ends after an error.
    pub fn events_before(&self, seq: Seq) -> EventsBefore<'_> {
        EventsBefore {
            log: self,
            end: Seq(seq.0.min(self.len())),
            piece: None,
            failed: false,
        }
    }

    /// All events as objects: for small logs and for tests.
    ///
    /// # Errors
    /// [`Error::Archive`].
    pub fn to_vec(&self) -> Result<Vec<Arc<Event>>, Error> {
        self.events_from(Seq(0)).collect()
    }

    /// The events of the tail from `seq` on.
    pub(crate) fn tail_from(&self, seq: Seq) -> &[Arc<Event>] {
        let start = usize::try_from(seq.0.saturating_sub(self.base)).unwrap_or(usize::MAX);
        &self.tail[start.min(self.tail.len())..]
    }

    pub(crate) fn push(&mut self, event: Arc<Event>) {
        self.tail.push(event);
    }

    /// Forgets the copies in memory of stored events.
    pub(crate) fn drop_kept(&mut self, seqs: &[Seq]) {
        if !self.kept.is_empty() {
            let kept = Arc::make_mut(&mut self.kept);
            for seq in seqs {
                kept.remove(seq);
            }
        }
    }

    /// How many stored events are in memory all the same.
    pub fn kept(&self) -> usize {
        self.kept.len()
    }
}

/// What [`Log::events_from`] gives.
#[derive(Debug)]
pub struct Events<'a> {
    log: &'a Log,
    next: Seq,
    piece: Option<Piece>,
    failed: bool,
}

impl Iterator for Events<'_> {
    type Item = Result<Arc<Event>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let seq = self.next;
        if seq.0 >= self.log.base {
            self.piece = None;
            let event = self.log.here(seq)?.clone();
            self.next.0 += 1;
            return Some(Ok(event));
        }
        if self.piece.as_ref().is_none_or(|piece| seq >= piece.end()) {
            match self.log.cold(seq) {
                Ok(piece) => self.piece = Some(piece),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        self.next.0 += 1;
        self.piece.as_ref()?.get(seq).cloned().map(Ok)
    }
}

/// What [`Log::events_before`] gives.
#[derive(Debug)]
pub struct EventsBefore<'a> {
    log: &'a Log,
    end: Seq,
    piece: Option<Piece>,
    failed: bool,
}

impl Iterator for EventsBefore<'_> {
    type Item = Result<Arc<Event>, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let seq = Seq(self.end.0.checked_sub(1)?);
        self.end = seq;
        if seq.0 >= self.log.base {
            return self.log.here(seq).cloned().map(Ok);
        }
        if self.piece.as_ref().is_none_or(|piece| seq < piece.first) {
            match self.log.cold(seq) {
                Ok(piece) => self.piece = Some(piece),
                Err(error) => {
                    self.failed = true;
                    return Some(Err(error));
                }
            }
        }
        self.piece.as_ref()?.get(seq).cloned().map(Ok)
    }
}

#[cfg(test)]
#[path = "log_tests.rs"]
mod tests;
