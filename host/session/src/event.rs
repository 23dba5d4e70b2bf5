//! Events and drafts: the envelope. `spec/session.md` §1.1.

use std::sync::Arc;

use crate::{Error, Json, Kind};

/// The position of an event in its log, from 0 without gaps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Seq(pub u64);

impl std::fmt::Debug for Seq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "#{}", self.0)
    }
}

impl std::fmt::Display for Seq {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}

/// What a surface event does to the list of nodes (§3).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SurfaceOp {
    /// Becomes the last node.
    Append,
    /// Takes the place of the nodes from `start` to `end`, both included; position on the surface decides, not number.
    Replace {
        /// First node replaced.
        start: Seq,
        /// Last node replaced.
        end: Seq,
    },
}

/// One committed event. Cheap to share: the log, the writer and followers hold the same `Arc<Event>`.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// What happened.
    pub kind: Kind,
    /// Index in the log.
    pub seq: Seq,
    /// Milliseconds since the epoch; may be negative and need not be monotonic.
    pub time: i64,
    /// The payload, shaped by `kind`.
    pub data: Json,
    /// The earlier events that this one was made of, if it says so.
    pub source_event_seqs: Option<Arc<[Seq]>>,
    /// Present exactly on surface events.
    pub surface_op: Option<SurfaceOp>,
    /// A reader that does not know the kind may skip the event.
    pub ignorable: bool,
    /// The line as it was read, kept only when the members stand in another order than [`Event::write_line`] uses.
    pub(crate) verbatim: Option<Arc<str>>,
}

impl Event {
    /// Appends the event's line, without the newline, to `out`; byte for byte what upstream writes.
    pub fn write_line(&self, out: &mut String) {
        let _ = out;
        todo!()
    }

    /// The event's line without the newline.
    pub fn line(&self) -> String {
        let mut out = String::new();
        self.write_line(&mut out);
        out
    }

    /// Reads one event from a JSON text, checking the whole envelope.
    ///
    /// # Errors
    /// [`Error::Json`] or [`Error::Envelope`].
    pub fn parse(line: &str) -> Result<Event, Error> {
        let _ = line;
        todo!()
    }
}

/// What a scan yields for one event: a sound envelope, or the text of something that only [`crate::interpret`] refuses.
/// Keeping the two apart lets a reader show everything that was decodable before the session layer judges it.
#[derive(Clone, Debug)]
pub enum Stored {
    /// The envelope is sound.
    Sound(Arc<Event>),
    /// A JSON object with a fitting `seq` and an unsound envelope, in normal form.
    Odd {
        /// Its seq.
        seq: Seq,
        /// The whole object.
        line: Json,
    },
}

/// An event to be: what [`crate::Session::append`] takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Draft {
    /// What happened.
    pub kind: Kind,
    /// The payload.
    pub data: Json,
    /// Needed exactly for surface kinds.
    pub surface_op: Option<SurfaceOp>,
    /// Earlier events that this one is made of; surface kinds only.
    pub source_event_seqs: Option<Vec<Seq>>,
    /// Marks the event as skippable for readers that do not know its kind; set by [`Draft::new`] for foreign kinds.
    pub ignorable: bool,
}

impl Draft {
    /// A draft without surface metadata. Foreign kinds come out ignorable, so that upstream can open the log.
    pub fn new(kind: Kind, data: Json) -> Draft {
        let ignorable = !kind.is_known();
        Draft {
            kind,
            data,
            surface_op: None,
            source_event_seqs: None,
            ignorable,
        }
    }

    /// Adds it to the end of the surface.
    #[must_use]
    pub fn append(mut self) -> Draft {
        self.surface_op = Some(SurfaceOp::Append);
        self
    }

    /// Lets it replace the surface nodes from `start` to `end`.
    #[must_use]
    pub fn replace(mut self, start: Seq, end: Seq) -> Draft {
        self.surface_op = Some(SurfaceOp::Replace { start, end });
        self
    }

    /// Names the events that it is made of.
    #[must_use]
    pub fn sources(mut self, seqs: Vec<Seq>) -> Draft {
        self.source_event_seqs = Some(seqs);
        self
    }

    /// Sets or clears the ignorable mark.
    #[must_use]
    pub fn ignorable(mut self, ignorable: bool) -> Draft {
        self.ignorable = ignorable;
        self
    }
}
