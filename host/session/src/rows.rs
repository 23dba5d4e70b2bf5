//! Chunk rows: runs of streamed chunks written as one line. `spec/session.md` §7.
//!
//! Storage only: a reader unpacks rows and nobody else sees them. What is packed is decided per written batch, runs are
//! not joined across batches.

use std::fmt::Write as _;
use std::sync::Arc;

use crate::event::Fault;
use crate::{Error, Event, Json, Kind, MAX_SAFE_INTEGER, Seq, Stored, Value, json};

/// Shorter runs are written as events.
const SHORTEST_RUN: usize = 3;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Delta {
    Text,
    Reasoning,
    ToolCall,
}

impl Delta {
    const ALL: [Delta; 3] = [Delta::Text, Delta::Reasoning, Delta::ToolCall];

    fn row(self) -> &'static str {
        match self {
            Delta::Text => "text-chunks",
            Delta::Reasoning => "reasoning-chunks",
            Delta::ToolCall => "tool-call-chunks",
        }
    }

    fn chunk(self) -> &'static str {
        match self {
            Delta::Text => "text-delta",
            Delta::Reasoning => "reasoning-delta",
            Delta::ToolCall => "tool-call-delta",
        }
    }

    /// The member that holds the payload, in a row and in a chunk.
    fn payload(self) -> (&'static str, &'static str) {
        match self {
            Delta::ToolCall => ("args", "argumentsDelta"),
            _ => ("texts", "text"),
        }
    }
}

/// A chunk that may be packed: what a run shares, and its payload.
#[derive(Clone, Copy)]
struct Chunk<'a> {
    delta: Delta,
    turn: Value<'a>,
    step: Value<'a>,
    index: Value<'a>,
    id: Option<Value<'a>>,
    name: Option<Value<'a>>,
    payload: Value<'a>,
}

/// The members of an object, when they are exactly `N` of these names; optional ones come as `None`.
fn members<'a, const N: usize>(
    value: Value<'a>,
    names: [&str; N],
) -> Option<[Option<Value<'a>>; N]> {
    let mut found = [None; N];
    for (key, member) in value.entries() {
        let index = names.iter().position(|name| key.raw() == *name)?;
        found[index] = Some(member);
    }
    value.is_object().then_some(found)
}

fn number(value: Option<Value<'_>>) -> Option<Value<'_>> {
    value.filter(|value| value.is_number())
}

fn string(value: Option<Value<'_>>) -> Option<Value<'_>> {
    value.filter(|value| value.string().is_some())
}

/// Whether an event has the envelope of a chunk that may be packed.
fn is_bare(event: &Event) -> bool {
    event.kind == Kind::AssistantChunk
        && event.surface_op.is_none()
        && event.source_event_seqs.is_none()
        && !event.ignorable
        && event.time.unsigned_abs() <= MAX_SAFE_INTEGER
        && event.seq.0 <= MAX_SAFE_INTEGER
}

impl<'a> Chunk<'a> {
    fn of(event: &'a Event) -> Option<Chunk<'a>> {
        if !is_bare(event) {
            return None;
        }
        let [turn, step, chunk] = members(event.data.value(), ["turn", "step", "chunk"])?;
        let names = ["type", "index", "id", "name", "text", "argumentsDelta"];
        let [tag, index, id, name, text, arguments] = members(chunk?, names)?;
        let delta = Delta::ALL
            .into_iter()
            .find(|delta| tag.is_some_and(|tag| tag.is(delta.chunk())))?;
        let payload = match delta {
            Delta::ToolCall if text.is_none() => {
                string(id)?;
                if name.is_some() {
                    string(name)?;
                }
                arguments
            }
            Delta::Text | Delta::Reasoning if (id, name, arguments) == (None, None, None) => text,
            _ => return None,
        };
        Some(Chunk {
            delta,
            turn: number(turn)?,
            step: number(step)?,
            index: number(index)?,
            id,
            name,
            payload: string(payload)?,
        })
    }

    /// The chunk of an event whose data is that of `first`, this chunk's, byte for byte but for a payload without a quote
    /// or a backslash. Data is in normal form, so such a one needs no reading; of a stream nearly all are.
    fn again<'b>(&self, first: &'a Event, event: &'b Event) -> Option<Chunk<'b>>
    where
        'a: 'b,
    {
        if !is_bare(event) {
            return None;
        }
        let (pattern, data) = (first.data.as_str(), event.data.as_str());
        let payload = self.payload.range_in(first.data.value());
        let (start, tail) = (payload.start, pattern.len() - payload.end);
        let text = data
            .strip_prefix(&pattern[..=start])?
            .strip_suffix(&pattern[payload.end - 1..])?;
        if memchr::memchr2(b'"', b'\\', text.as_bytes()).is_some() {
            return None;
        }
        let payload = Value::trusted(&data[start..data.len() - tail]);
        Some(Chunk { payload, ..*self })
    }

    /// Whether both belong to one run, their events aside.
    fn continues(&self, before: &Chunk<'_>) -> bool {
        self.delta == before.delta
            && self.turn == before.turn
            && self.step == before.step
            && self.index == before.index
            && self.id == before.id
            && self.name == before.name
    }
}

fn follows(event: &Event, before: &Event) -> bool {
    let gap = event.time.checked_sub(before.time);
    event.seq.0 == before.seq.0 + 1 && gap.is_some_and(|gap| gap.unsigned_abs() <= MAX_SAFE_INTEGER)
}

/// Appends the lines of one batch to `out`, each with its newline, runs of three and more chunks as rows when `pack`.
/// Returns the number of lines.
pub fn write_batch(events: &[Arc<Event>], pack: bool, out: &mut String) -> usize {
    let mut lines = 0;
    let mut rest = events;
    while let Some(first) = rest.first() {
        let chunk = if pack { Chunk::of(first) } else { None };
        let run = chunk.map(|chunk| run(chunk, rest)).unwrap_or_default();
        if run.len() >= SHORTEST_RUN {
            write_row(&rest[..run.len()], &run, out);
            rest = &rest[run.len()..];
        } else {
            first.write_line(out);
            rest = &rest[1..];
        }
        out.push('\n');
        lines += 1;
    }
    lines
}

/// The longest run that begins with the first event.
fn run<'a>(first: Chunk<'a>, events: &'a [Arc<Event>]) -> Vec<Chunk<'a>> {
    let mut run = vec![first];
    for pair in events.windows(2) {
        if !follows(&pair[1], &pair[0]) {
            break;
        }
        let next = first.again(&events[0], &pair[1]).or_else(|| {
            let chunk = Chunk::of(&pair[1])?;
            chunk.continues(&first).then_some(chunk)
        });
        match next {
            Some(chunk) => run.push(chunk),
            None => break,
        }
    }
    run
}

fn write_row(events: &[Arc<Event>], run: &[Chunk<'_>], out: &mut String) {
    let (head, first) = (&run[0], &events[0]);
    let _ = write!(
        out,
        "{{\"type\":\"{}\",\"seq0\":{},\"time0\":{},\"data\":{{\"turn\":{},\"step\":{},\"index\":{},\"dt\":[",
        head.delta.row(),
        first.seq,
        first.time,
        head.turn.as_str(),
        head.step.as_str(),
        head.index.as_str(),
    );
    for (index, pair) in events.windows(2).enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(out, "{comma}{}", pair[1].time - pair[0].time);
    }
    out.push(']');
    for (key, value) in [("id", head.id), ("name", head.name)] {
        if let Some(value) = value {
            let _ = write!(out, ",\"{key}\":{}", value.as_str());
        }
    }
    let _ = write!(out, ",\"{}\":[", head.delta.payload().0);
    for (index, chunk) in run.iter().enumerate() {
        if index > 0 {
            out.push(',');
        }
        out.push_str(chunk.payload.as_str());
    }
    out.push_str("]}}");
}

/// Decodes one line after the header: a row gives its events, any other value gives itself, unchecked.
///
/// # Errors
/// [`Error::Json`]; [`Error::Envelope`] for a malformed row.
pub fn decode_line(line: &str) -> Result<Vec<Stored>, Error> {
    let subject = || "stored line".to_owned();
    let text = json::restored(line).map_err(|source| Error::Json {
        subject: subject(),
        source,
    })?;
    let mut out = Vec::new();
    decode(Value::trusted(&text), &mut out).map_err(|fault| fault.into_error(subject()))?;
    Ok(out)
}

/// Decodes one stored value: a row gives its events, anything else gives itself.
///
/// `Err` names what a malformed row lacks; nothing is put out then.
pub(crate) fn decode(value: Value<'_>, out: &mut Vec<Stored>) -> Result<(), Fault> {
    let tag = value.get("type");
    let row = Delta::ALL
        .into_iter()
        .find(|delta| tag.is_some_and(|tag| tag.is(delta.row())));
    match row {
        Some(delta) => {
            let row = Row::read(delta, value).map_err(Fault::Envelope)?;
            row.unpack(out);
            Ok(())
        }
        None => {
            out.push(match Event::read(value) {
                Ok(event) => Stored::Sound(Arc::new(event)),
                Err(_) => Stored::Odd {
                    seq: Seq(value.get("seq").and_then(Value::u64).unwrap_or(u64::MAX)),
                    line: value.to_json(),
                },
            });
            Ok(())
        }
    }
}

/// A chunk row that holds: each of its events is sound, and nothing has been made of them yet.
pub(crate) struct Row<'a> {
    delta: Delta,
    seq0: u64,
    time0: i64,
    shared: [Value<'a>; 3],
    id: Option<Value<'a>>,
    name: Option<Value<'a>>,
    dt: Value<'a>,
    payload: Value<'a>,
    members: u64,
}

impl<'a> Row<'a> {
    /// The row of a stored value, if it is one.
    pub(crate) fn of(value: Value<'a>) -> Option<Result<Row<'a>, &'static str>> {
        let tag = value.get("type");
        let delta = Delta::ALL
            .into_iter()
            .find(|delta| tag.is_some_and(|tag| tag.is(delta.row())))?;
        Some(Row::read(delta, value))
    }

    /// Checks everything in the order of §7.
    fn read(delta: Delta, value: Value<'a>) -> Result<Row<'a>, &'static str> {
        let envelope = members(value, ["type", "seq0", "time0", "data"]);
        let [_, Some(seq0), Some(time0), Some(data)] =
            envelope.ok_or("the row has another member")?
        else {
            return Err("the row lacks a member");
        };
        let seq0 = seq0.u64().ok_or("seq0 must be a seq")?;
        let time0 = time0.safe_int().ok_or("time0 must be an integer")?;
        let names = [
            "turn",
            "step",
            "index",
            "dt",
            "id",
            "name",
            delta.payload().0,
        ];
        let found = members(data, names).ok_or("the row's data has another member")?;
        let [
            Some(turn),
            Some(step),
            Some(index),
            Some(dt),
            id,
            name,
            Some(payload),
        ] = found
        else {
            return Err("the row's data lacks a member");
        };
        let identified = match delta {
            Delta::ToolCall => {
                string(id).is_some() && name.is_none_or(|name| name.string().is_some())
            }
            _ => id.is_none() && name.is_none(),
        };
        if !identified {
            return Err("only tool call rows have an id, and it must be a string");
        }
        if ![turn, step, index].into_iter().all(Value::is_number) {
            return Err("turn, step and index must be numbers");
        }
        let mut members = 0u64;
        for item in payload.items() {
            members += 1;
            if !item.is_string() {
                return Err("the payload must be a list of strings");
            }
        }
        if members == 0 {
            return Err("the payload must be a list of strings");
        }
        let mut gaps = 0;
        for gap in dt.items() {
            gaps += 1;
            gap.safe_int().ok_or("dt must be a list of integers")?;
        }
        if !dt.is_array() {
            return Err("dt must be a list of integers");
        }
        if gaps + 1 != members {
            return Err("dt must be one shorter than the payload");
        }
        // In doubles, as upstream does: of the last few seqs one too many slips through.
        if seq0 as f64 + members as f64 - 1.0 > MAX_SAFE_INTEGER as f64 {
            return Err("the last seq is too large");
        }
        let mut time = time0;
        for gap in dt.items().filter_map(Value::safe_int) {
            time += gap;
            if time.unsigned_abs() > MAX_SAFE_INTEGER {
                return Err("a time is too large");
            }
        }
        Ok(Row {
            delta,
            seq0,
            time0,
            shared: [turn, step, index],
            id,
            name,
            dt,
            payload,
            members,
        })
    }

    /// The seq of its first event, and how many it has.
    pub(crate) fn span(&self) -> (u64, u64) {
        (self.seq0, self.members)
    }

    /// Puts out its events.
    pub(crate) fn unpack(&self, out: &mut Vec<Stored>) {
        let [turn, step, index] = self.shared;
        let mut head = String::new();
        let _ = write!(
            head,
            "{{\"turn\":{},\"step\":{},\"chunk\":{{\"type\":\"{}\",\"index\":{}",
            turn.as_str(),
            step.as_str(),
            self.delta.chunk(),
            index.as_str(),
        );
        for (key, value) in [("id", self.id), ("name", self.name)] {
            if let Some(value) = value {
                let _ = write!(head, ",\"{key}\":{}", value.as_str());
            }
        }
        let _ = write!(head, ",\"{}\":", self.delta.payload().1);
        let length = head.len();
        out.reserve(usize::try_from(self.members).unwrap_or(0));
        let mut time = self.time0;
        let mut gaps = self.dt.items().filter_map(Value::safe_int);
        for (offset, item) in (0..).zip(self.payload.items()) {
            head.truncate(length);
            head.push_str(item.as_str());
            head.push_str("}}");
            let data = Json::trusted(head.as_str());
            let event = Event::plain(Kind::AssistantChunk, Seq(self.seq0 + offset), time, data);
            out.push(Stored::Sound(Arc::new(event)));
            time += gaps.next().unwrap_or(0);
        }
    }
}

#[cfg(test)]
#[path = "rows_tests.rs"]
mod tests;
