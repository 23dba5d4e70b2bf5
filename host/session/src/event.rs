//! Events and drafts: the envelope. `spec/session.md` §1.1.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::json::{self, text};
use crate::legacy;
use crate::{Error, Json, Kind, SurfaceFault, Value};

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

/// The members of an envelope in the order that [`Event::write_line`] uses.
const MEMBERS: [&str; 7] = [
    "type",
    "seq",
    "time",
    "data",
    "sourceEventSeqs",
    "surfaceOp",
    "ignorable",
];

impl Event {
    /// Appends the event's line, without the newline, to `out`; byte for byte what upstream writes.
    pub fn write_line(&self, out: &mut String) {
        if let Some(line) = &self.verbatim {
            out.push_str(line);
            return;
        }
        self.write_head(out);
        if let Some(seqs) = &self.source_event_seqs {
            write_sources(seqs, out);
        }
        if let Some(op) = self.surface_op {
            write_op(op, out);
        }
        if self.ignorable {
            out.push_str(",\"ignorable\":true");
        }
        out.push('}');
    }

    /// `{"type":…,"seq":…,"time":…,"data":…`, without what may follow.
    fn write_head(&self, out: &mut String) {
        out.reserve(self.data.as_str().len() + 96);
        out.push_str("{\"type\":\"");
        text::escape(self.kind.as_str(), out);
        let _ = write!(
            out,
            "\",\"seq\":{},\"time\":{},\"data\":",
            self.seq, self.time
        );
        out.push_str(self.data.as_str());
    }

    /// The event's line without the newline.
    pub fn line(&self) -> String {
        let mut out = String::new();
        self.write_line(&mut out);
        out
    }

    /// Fixes the order of members that repair uses: `surfaceOp` before `sourceEventSeqs` (§1.1).
    pub(crate) fn with_repair_order(mut self) -> Event {
        if let (Some(seqs), Some(op)) = (&self.source_event_seqs, self.surface_op) {
            let mut out = String::new();
            self.write_head(&mut out);
            write_op(op, &mut out);
            write_sources(seqs, &mut out);
            out.push('}');
            self.verbatim = Some(out.into());
        }
        self
    }

    /// An event of a log that holds nothing but kind, seq, time and data.
    pub(crate) fn plain(kind: Kind, seq: Seq, time: i64, data: Json) -> Event {
        Event {
            kind,
            seq,
            time,
            data,
            source_event_seqs: None,
            surface_op: None,
            ignorable: false,
            verbatim: None,
        }
    }

    /// The same event with another kind and other data; how a legacy shape is upgraded.
    pub(crate) fn upgraded(&self, kind: Kind, data: Json) -> Event {
        Event {
            kind,
            data,
            verbatim: None,
            ..self.clone()
        }
    }

    /// Reads one event from a JSON text, checking the whole envelope.
    ///
    /// # Errors
    /// [`Error::Json`] or [`Error::Envelope`].
    pub fn parse(line: &str) -> Result<Event, Error> {
        let subject = || "event".to_owned();
        let text = json::restored(line).map_err(|source| Error::Json {
            subject: subject(),
            source,
        })?;
        Event::read(Value::trusted(&text)).map_err(|fault| fault.into_error(subject()))
    }

    /// Reads an event from a value; the fault is the first that upstream would report.
    pub(crate) fn read(value: Value<'_>) -> Result<Event, Fault> {
        let mut found: [Option<Value<'_>>; 7] = [None; 7];
        let mut in_order = true;
        let mut previous = 0;
        for (key, member) in value.entries() {
            let Some(index) = MEMBERS.iter().position(|name| key.raw() == *name) else {
                return Err(Fault::Envelope("it has a member that no event has"));
            };
            in_order &= index >= previous;
            previous = index;
            found[index] = Some(member);
        }
        let [kind, seq, time, data, sources, op, ignorable] = found;
        let kind = kind
            .and_then(Value::text)
            .ok_or(Fault::Envelope("type must be a string"))?;
        let seq = seq
            .and_then(Value::u64)
            .ok_or(Fault::Envelope("seq must be a seq"))?;
        let time = time.and_then(Value::safe_int);
        let time = time.ok_or(Fault::Envelope("time must be an integer"))?;
        let data = data.ok_or(Fault::Envelope("data is missing"))?;
        if ignorable.is_some_and(|mark| mark.bool() != Some(true)) {
            return Err(Fault::Envelope("ignorable must be absent or true"));
        }
        let mut event = Event::plain(Kind::from_name(&kind), Seq(seq), time, data.to_json());
        event.ignorable = ignorable.is_some();
        event.read_surface(op, sources, &mut in_order)?;
        if !in_order {
            event.verbatim = Some(value.as_str().into());
        }
        Ok(event)
    }

    /// The surface members, in the order of checks of §3; what cannot be read is the fault that the surface would find.
    fn read_surface(
        &mut self,
        op: Option<Value<'_>>,
        sources: Option<Value<'_>>,
        in_order: &mut bool,
    ) -> Result<(), Fault> {
        let fault = |fault| Fault::Surface(self.kind.clone(), self.seq, fault);
        let surface = self.kind.is_surface() || self.kind.as_str() == legacy::STEERING;
        if !surface && (op.is_some() || sources.is_some()) {
            return Err(fault(match op {
                Some(_) => SurfaceFault::OpOnLogOnly,
                None => SurfaceFault::SourcesOnLogOnly,
            }));
        }
        let parsed = op.map(|op| read_op(op).ok_or_else(|| fault(SurfaceFault::InvalidOp)));
        let parsed_op = parsed.transpose()?;
        let parsed = sources.map(|sources| read_sources(sources).map_err(fault));
        self.source_event_seqs = parsed.transpose()?;
        if let (Some(SurfaceOp::Replace { .. }), Some(op)) = (parsed_op, op) {
            *in_order &= op
                .entries()
                .map(|(key, _)| key.raw())
                .eq(["op", "start", "end"]);
        }
        self.surface_op = parsed_op;
        Ok(())
    }
}

/// Why a value is no sound event.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Fault {
    /// A member is wrong.
    Envelope(&'static str),
    /// The surface members cannot even be read.
    Surface(Kind, Seq, SurfaceFault),
}

impl Fault {
    pub(crate) fn into_error(self, subject: String) -> Error {
        match self {
            Fault::Envelope(what) => Error::Envelope { subject, what },
            Fault::Surface(kind, seq, fault) => Error::Surface { kind, seq, fault },
        }
    }
}

fn read_op(op: Value<'_>) -> Option<SurfaceOp> {
    if op.is("append") {
        return Some(SurfaceOp::Append);
    }
    let (start, end) = (op.get("start")?.u64()?, op.get("end")?.u64()?);
    let sound = op.get("op")?.is("replace") && op.entries().count() == 3;
    sound.then_some(SurfaceOp::Replace {
        start: Seq(start),
        end: Seq(end),
    })
}

fn read_sources(sources: Value<'_>) -> Result<Arc<[Seq]>, SurfaceFault> {
    if !sources.is_array() {
        return Err(SurfaceFault::SourcesNotList);
    }
    if let Some(seqs) = plain_seqs(sources.as_str().as_bytes()) {
        return Ok(seqs.into());
    }
    // A list of an assistant's chunks is long: at two bytes an item there is room for all.
    let mut seqs = Vec::with_capacity(sources.as_str().len() / 2);
    for item in sources.items() {
        seqs.push(Seq(item.u64().ok_or(SurfaceFault::SourcesItem)?));
    }
    Ok(seqs.into())
}

/// A list of numbers of up to 15 digits, which are seqs; anything else is left to the reader of values.
fn plain_seqs(list: &[u8]) -> Option<Vec<Seq>> {
    let inner = list.strip_prefix(b"[")?.strip_suffix(b"]")?;
    let mut seqs = Vec::with_capacity(inner.len().div_ceil(2));
    for item in inner.split(|byte| *byte == b',') {
        let digits = item.iter().all(u8::is_ascii_digit);
        if !digits || item.is_empty() || item.len() > 15 {
            return None;
        }
        let number = item
            .iter()
            .fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
        seqs.push(Seq(number));
    }
    Some(seqs)
}

fn write_sources(seqs: &[Seq], out: &mut String) {
    out.push_str(",\"sourceEventSeqs\":[");
    for (index, seq) in seqs.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{seq}");
    }
    out.push(']');
}

fn write_op(op: SurfaceOp, out: &mut String) {
    match op {
        SurfaceOp::Append => out.push_str(",\"surfaceOp\":\"append\""),
        SurfaceOp::Replace { start, end } => {
            let op = format_args!(
                ",\"surfaceOp\":{{\"op\":\"replace\",\"start\":{start},\"end\":{end}}}"
            );
            let _ = out.write_fmt(op);
        }
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

#[cfg(test)]
#[path = "event_tests.rs"]
mod tests;
