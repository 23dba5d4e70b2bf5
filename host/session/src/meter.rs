//! How many tokens the next request will hold. `spec/session.md` §10.6, `measure`.
//!
//! The provider counts exactly, but only what it was sent; the heuristic of [`estimate`] counts anything, badly. So the
//! last answer is an *anchor*: what the provider counted for it, plus the estimate of what came to the surface since.
//! An anchor is good while the request header stays the one that it was counted with.
//!
//! The meter judges the log while it folds: a log can be sound to read and still have steps that do not fit, and then
//! no number is better than a wrong one ([`Error::TokenMeter`]).

use std::sync::Arc;

use crate::projection::chunk::{number, place};
use crate::{
    Error, Event, JStr, Json, Kind, RequestHeader, Seq, Session, SurfaceFault, SurfaceOp, Value,
    estimate,
};

/// A fold over a log, event by event.
#[derive(Default)]
pub struct TokenMeter {
    events: u64,
    nodes: Vec<(Seq, u64)>,
    surface: u64,
    header: Option<RequestHeader>,
    open: Option<OpenStep>,
    anchor: Option<Anchor>,
}

struct OpenStep {
    place: (f64, f64),
    /// The surface's estimate when it began, before the step's own messages.
    surface: u64,
    chunks: Vec<(Seq, Json)>,
}

struct Anchor {
    header: Option<RequestHeader>,
    surface: u64,
    baseline: Baseline,
}

/// What a measure starts from.
#[derive(Clone, Debug, PartialEq)]
pub enum Baseline {
    /// Neither a header nor a surface.
    None,
    /// The heuristic.
    Estimated {
        /// Tokens.
        tokens: u64,
    },
    /// What the provider counted.
    Usage {
        /// Tokens: all input and the output.
        tokens: f64,
        /// The provider's usage, as logged.
        usage: Json,
    },
}

/// What [`TokenMeter::measure`] found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// How many events the log has.
    pub log_revision: u64,
    /// Where the sum starts.
    pub baseline: Baseline,
    /// Estimated tokens that came to the surface since, or left it.
    pub surface_delta: f64,
    /// The measure.
    pub total: f64,
    /// Estimated tokens of the whole surface.
    pub surface: u64,
    /// The price of each node of the surface, in its order.
    pub nodes: Vec<(Seq, u64)>,
}

/// Measures a whole log.
///
/// # Errors
/// [`Error::TokenMeter`], [`Error::Surface`] when a replacement does not fit; the first that reading the events gives.
pub fn measure(
    events: impl IntoIterator<Item = Result<Arc<Event>, Error>>,
) -> Result<Measurement, Error> {
    let mut meter = TokenMeter::default();
    for event in events {
        meter.fold(&*event?)?;
    }
    Ok(meter.measure())
}

impl TokenMeter {
    /// The meter of a session as it stands. It reads the surface and the last answer's step, not the log: what a long
    /// session costs to take up must not grow with what was compacted away.
    ///
    /// Where more would have to be read to know the anchor (a replacement or another header came behind the last
    /// answer), it starts without one, and measures by the heuristic until the next answer. So it does where the log's
    /// steps do not fit, instead of failing.
    ///
    /// # Errors
    /// [`Error::Archive`] when an event of these cannot be read.
    pub fn take_up(session: &Session) -> Result<TokenMeter, Error> {
        let step = match session.last_of(&Kind::AssistantMessage) {
            Some(answer) => TokenMeter::step_of(session, answer)?,
            None => None,
        };
        // Without an answer there is still the step that may be open.
        let from = step.or_else(|| session.last_of(&Kind::StepStart).map(|event| event.seq));
        if let Some(from) = from
            && let Some(meter) = TokenMeter::from_step(session, from)?
        {
            return Ok(meter);
        }
        TokenMeter::bare(session, session.next_seq())
    }

    /// The meter of the surface alone, as if nothing was answered yet.
    ///
    /// # Errors
    /// As [`TokenMeter::take_up`].
    pub fn without_anchor(session: &Session) -> Result<TokenMeter, Error> {
        TokenMeter::bare(session, session.next_seq())
    }

    /// Where the step of an answer began.
    fn step_of(session: &Session, answer: &Event) -> Result<Option<Seq>, Error> {
        for event in session.log().events_before(answer.seq) {
            let event = event?;
            match event.kind {
                Kind::StepStart if place(event.data.value()) == place(answer.data.value()) => {
                    return Ok(Some(event.seq));
                }
                Kind::StepStart | Kind::StepEnd => break,
                _ => {}
            }
        }
        Ok(None)
    }

    /// As it was before `from`, then folded: possible where the surface was only appended to since.
    fn from_step(session: &Session, from: Seq) -> Result<Option<TokenMeter>, Error> {
        for &node in session.surface().nodes() {
            if node >= from
                && session
                    .event(node)?
                    .is_some_and(|event| event.surface_op != Some(SurfaceOp::Append))
            {
                return Ok(None);
            }
        }
        let answered = session.last_of(&Kind::AssistantMessage);
        let header = session.last_of(&Kind::RequestHeader);
        // Which header it was answered under is known of the newest only.
        if let (Some(answered), Some(header)) = (answered, header)
            && header.seq > answered.seq
            && answered.seq > from
        {
            return Ok(None);
        }
        let mut meter = TokenMeter::bare(session, from)?;
        for event in session.events_from(from) {
            if meter.fold(&*event?).is_err() {
                return Ok(None);
            }
        }
        Ok(Some(meter))
    }

    /// The nodes and the header that were there before `end`.
    fn bare(session: &Session, end: Seq) -> Result<TokenMeter, Error> {
        let mut meter = TokenMeter {
            events: end.0,
            ..TokenMeter::default()
        };
        for &node in session.surface().nodes().iter().filter(|node| **node < end) {
            let price = session
                .event(node)?
                .map_or(0, |event| estimate::event(&event));
            meter.nodes.push((node, price));
            meter.surface += price;
        }
        meter.header = session
            .last_of(&Kind::RequestHeader)
            .filter(|event| event.seq < end)
            .and_then(|event| RequestHeader::canonical(event.data.get("header")?).ok());
        Ok(meter)
    }

    /// Folds the next event.
    ///
    /// # Errors
    /// As [`measure`]; the meter is of no use then.
    pub fn fold(&mut self, event: &Event) -> Result<(), Error> {
        self.events += 1;
        let refuse = |what| {
            Err(Error::TokenMeter {
                seq: event.seq,
                what,
            })
        };
        match event.kind {
            Kind::AssistantChunk => {
                if let Some(open) = &mut self.open
                    && open.place == place(event.data.value())
                {
                    open.chunks.push((event.seq, event.data.clone()));
                }
            }
            Kind::StepStart => {
                if self.open.is_some() {
                    return refuse("a step starts inside another one");
                }
                self.open = Some(OpenStep {
                    place: place(event.data.value()),
                    surface: self.surface,
                    chunks: Vec::new(),
                });
            }
            Kind::StepEnd => {
                if self.open_step(event).is_none() {
                    return refuse("a step ends that is not open");
                }
                self.open = None;
            }
            Kind::RequestHeader => {
                let header = event.data.get("header");
                self.header = header.and_then(|header| RequestHeader::canonical(header).ok());
            }
            Kind::UserMessage | Kind::ToolResult => self.put(event)?,
            Kind::AssistantMessage => {
                let Some(open) = self.open_step(event) else {
                    return refuse("a model's message belongs to no open step");
                };
                self.anchor = Some(self.anchor(open, event)?);
                self.put(event)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn open_step(&self, event: &Event) -> Option<&OpenStep> {
        let open = self.open.as_ref()?;
        (open.place == place(event.data.value())).then_some(open)
    }

    /// Upstream looks at what a message was made of only where the provider's count has to be compared with it.
    fn anchor(&self, open: &OpenStep, event: &Event) -> Result<Anchor, Error> {
        let header = self.header.clone();
        let usage = event.data.get("usage").filter(|usage| usage.is_object());
        let usage = usage.filter(|_| header.is_some());
        let output = match (&event.source_event_seqs, usage) {
            (Some(cited), Some(_)) => open.output(cited).ok_or(Error::TokenMeter {
                seq: event.seq,
                what: "a model's message is made of what is no chunk of its step",
            })?,
            _ => estimate::event(event),
        };
        let fixed = header.as_ref().map_or(0, estimate::header);
        let surface = open.surface + output;
        let heuristic = fixed + surface;
        let baseline = usage.and_then(|usage| {
            let tokens: f64 = [
                "inputTokens",
                "cacheReadTokens",
                "cacheWriteTokens",
                "outputTokens",
            ]
            .iter()
            .map(|name| number(usage, name))
            .sum();
            (tokens >= heuristic as f64).then(|| Baseline::Usage {
                tokens,
                usage: usage.to_json(),
            })
        });
        Ok(Anchor {
            header,
            surface,
            baseline: baseline.unwrap_or(Baseline::Estimated { tokens: heuristic }),
        })
    }

    /// Puts an event on the surface.
    fn put(&mut self, event: &Event) -> Result<(), Error> {
        let price = estimate::event(event);
        let fault = |fault| Error::Surface {
            kind: event.kind.clone(),
            seq: event.seq,
            fault,
        };
        match event.surface_op {
            None => return Err(fault(SurfaceFault::MissingOp)),
            Some(SurfaceOp::Append) => self.nodes.push((event.seq, price)),
            Some(SurfaceOp::Replace { start, end }) => {
                let at = |seq| self.nodes.iter().rposition(|(node, _)| *node == seq);
                let first = at(start).ok_or_else(|| fault(SurfaceFault::StartNotFound(start)))?;
                let last = at(end).ok_or_else(|| fault(SurfaceFault::EndNotFound(end)))?;
                if first > last {
                    return Err(fault(SurfaceFault::Reversed(start, end)));
                }
                let gone = self.nodes.splice(first..=last, [(event.seq, price)]);
                self.surface -= gone.map(|(_, price)| price).sum::<u64>();
            }
        }
        self.surface += price;
        Ok(())
    }

    /// How many events were folded, which is the seq of the next one.
    pub fn next_seq(&self) -> Seq {
        Seq(self.events)
    }

    /// The price of each node of the surface, in its order.
    pub fn nodes(&self) -> &[(Seq, u64)] {
        &self.nodes
    }

    /// [`Measurement::total`], without the rest.
    pub fn total(&self) -> f64 {
        let (baseline, surface_delta) = self.sum();
        (baseline.tokens() + surface_delta).max(0.0)
    }

    /// The measure as of the last event folded.
    pub fn measure(&self) -> Measurement {
        let (baseline, surface_delta) = self.sum();
        Measurement {
            log_revision: self.events,
            total: (baseline.tokens() + surface_delta).max(0.0),
            baseline,
            surface_delta,
            surface: self.surface,
            nodes: self.nodes.clone(),
        }
    }

    fn sum(&self) -> (Baseline, f64) {
        let anchor = self
            .anchor
            .as_ref()
            .filter(|anchor| match (&anchor.header, &self.header) {
                (None, None) => true,
                (Some(then), Some(now)) => then.same(now),
                _ => false,
            });
        match anchor {
            Some(anchor) => {
                let delta = self.surface as f64 - anchor.surface as f64;
                (anchor.baseline.clone(), delta)
            }
            None if self.header.is_none() && self.nodes.is_empty() => (Baseline::None, 0.0),
            None => {
                let fixed = self.header.as_ref().map_or(0, estimate::header);
                let tokens = fixed + self.surface;
                (Baseline::Estimated { tokens }, 0.0)
            }
        }
    }
}

impl Baseline {
    /// Its tokens.
    pub fn tokens(&self) -> f64 {
        match self {
            Baseline::None => 0.0,
            Baseline::Estimated { tokens } => *tokens as f64,
            Baseline::Usage { tokens, .. } => *tokens,
        }
    }
}

impl Measurement {
    /// `{logRevision, baseline: {kind, tokens, usage?}, surfaceDeltaTokens, totalTokens, surfaceTokens, nodes}`.
    pub fn json(&self) -> Json {
        Json::object(|o| {
            o.u64("logRevision", self.log_revision);
            o.object("baseline", |o| {
                let kind = match &self.baseline {
                    Baseline::None => "none",
                    Baseline::Estimated { .. } => "estimated",
                    Baseline::Usage { .. } => "usage",
                };
                o.str("kind", kind).f64("tokens", self.baseline.tokens());
                if let Baseline::Usage { usage, .. } = &self.baseline {
                    o.json("usage", usage);
                }
            });
            o.f64("surfaceDeltaTokens", self.surface_delta)
                .f64("totalTokens", self.total)
                .u64("surfaceTokens", self.surface);
            o.array("nodes", |a| {
                for (seq, price) in &self.nodes {
                    a.object(|o| {
                        o.u64("seq", seq.0).u64("tokens", *price);
                    });
                }
            });
        })
    }
}

impl OpenStep {
    /// What the blocks weigh that the cited chunks make; `None` when something else is cited.
    fn output(&self, cited: &[Seq]) -> Option<u64> {
        let mut blocks = Blocks::default();
        for seq in cited {
            let at = self
                .chunks
                .binary_search_by_key(seq, |(seq, _)| *seq)
                .ok()?;
            if let Some(chunk) = self.chunks[at].1.get("chunk") {
                blocks.push(chunk);
            }
        }
        Some(blocks.tokens())
    }
}

/// The blocks that chunks make, by first appearance, as far as their weight goes (`spec/llm.md` §2).
#[derive(Default)]
struct Blocks {
    parts: Vec<(u64, Part)>,
    cut: bool,
}

#[derive(Default)]
struct Part {
    /// Whether it has deltas at all: open blocks of other types have nothing to show.
    speaks: bool,
    is_call: bool,
    /// UTF-16 units of the text or the arguments, and of the call's name.
    text: usize,
    name: usize,
    closed: Option<u64>,
}

impl Blocks {
    fn push(&mut self, chunk: Value<'_>) {
        let Some(tag) = chunk.get("type").and_then(Value::string) else {
            return;
        };
        if tag.raw() == "finish" {
            let kind = chunk.path(&["reason", "kind"]);
            self.cut = kind.is_some_and(|kind| kind.is("max-tokens"));
        }
        let Some(index) = chunk.get("index").and_then(Value::u64) else {
            return;
        };
        let units = |key| {
            chunk
                .get(key)
                .and_then(Value::string)
                .map_or(0, JStr::utf16_len)
        };
        match tag.raw() {
            "block-start" => {
                self.part(index, chunk.get("blockType"));
            }
            "text-delta" => self.part_of(index, "text").text += units("text"),
            "reasoning-delta" => self.part_of(index, "reasoning").text += units("text"),
            "tool-call-delta" => {
                let name = units("name");
                let part = self.part_of(index, "tool-call");
                part.text += units("argumentsDelta");
                if name > 0 {
                    part.name = name;
                }
            }
            "block-end" => {
                let Some(block) = chunk.get("block").filter(|block| block.is_object()) else {
                    return;
                };
                let is_call = block.get("type").is_some_and(|kind| kind.is("tool-call"));
                let part = self.part(index, block.get("type"));
                if part.closed.is_none() {
                    let list = Json::array(|a| {
                        a.value(block);
                    });
                    part.closed = Some(estimate::content(list.value()));
                    part.is_call = is_call;
                }
            }
            _ => {}
        }
    }

    fn part(&mut self, index: u64, kind: Option<Value<'_>>) -> &mut Part {
        let kind = kind.and_then(Value::text).unwrap_or_default();
        self.part_of(index, &kind)
    }

    fn part_of(&mut self, index: u64, kind: &str) -> &mut Part {
        let at = self.parts.iter().position(|(known, _)| *known == index);
        let at = at.unwrap_or_else(|| {
            let part = Part {
                speaks: matches!(kind, "text" | "reasoning" | "tool-call"),
                is_call: kind == "tool-call",
                ..Part::default()
            };
            self.parts.push((index, part));
            self.parts.len() - 1
        });
        &mut self.parts[at].1
    }

    /// As a message of these blocks, 0 when there is none.
    fn tokens(&self) -> u64 {
        let kept = self.parts.iter();
        let kept = kept.filter(|(_, part)| !(self.cut && part.is_call));
        let prices: Vec<u64> = kept.filter_map(|(_, part)| part.tokens()).collect();
        if prices.is_empty() {
            return 0;
        }
        prices.iter().sum::<u64>() + estimate::OVERHEAD
    }
}

impl Part {
    fn tokens(&self) -> Option<u64> {
        let open = || self.speaks.then(|| estimate::block(self.text, self.name));
        self.closed.or_else(open)
    }
}

#[cfg(test)]
#[path = "meter_tests.rs"]
mod tests;
