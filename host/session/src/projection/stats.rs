//! `sessionStats`: turns, steps and where the time went. `spec/session.md` §10.5.

use super::chunk::{is_token, number, place, tag};
use super::{Look, State, Unit};
use crate::{Error, Event, Json, Kind, ObjectWriter, Seq, Value};

/// The unit.
pub struct SessionStats;

/// Sums, in the order of [`NAMES`]; times in milliseconds.
const NAMES: [&str; 8] = [
    "turns",
    "steps",
    "llmMs",
    "toolMs",
    "ttftMs",
    "ttftSteps",
    "decodeMs",
    "decodeTokens",
];

#[derive(Clone, Default)]
struct Fold {
    turns: f64,
    steps: f64,
    llm_ms: f64,
    tool_ms: f64,
    ttft_ms: f64,
    ttft_steps: f64,
    decode_ms: f64,
    decode_tokens: f64,
    last_turn: Option<f64>,
    open: Option<Open>,
    /// Calls that were started and not answered, and when.
    pending: Vec<(String, f64)>,
}

/// The step that waits for its message.
#[derive(Clone)]
struct Open {
    place: (f64, f64),
    start: f64,
    first_token: Option<f64>,
}

impl Unit for SessionStats {
    fn key(&self) -> &str {
        "sessionStats"
    }

    fn version(&self) -> u64 {
        1
    }

    fn reads(&self) -> &[Kind] {
        &[
            Kind::StepStart,
            Kind::AssistantChunk,
            Kind::AssistantMessage,
            Kind::ToolCall,
            Kind::ToolResult,
            Kind::StepEnd,
            Kind::TurnEnd,
        ]
    }

    fn init(&self) -> Box<dyn State> {
        Box::<Fold>::default()
    }

    fn parse(&self, state: Value<'_>, _: Option<Seq>) -> Option<Box<dyn State>> {
        let mut fold = Fold::default();
        for (sum, name) in fold.sums_mut().into_iter().zip(NAMES) {
            *sum = state.get(name)?.f64()?;
        }
        fold.last_turn = nullable(state.get("lastTurn")?)?;
        let open = state.get("openStep")?;
        if !open.is_null() {
            fold.open = Some(Open {
                place: (open.get("turn")?.f64()?, open.get("step")?.f64()?),
                start: open.get("startTime")?.f64()?,
                first_token: nullable(open.get("firstTokenTime")?)?,
            });
        }
        let pending = state
            .get("pendingCalls")
            .filter(|calls| calls.is_object())?;
        for (id, time) in pending.entries() {
            fold.pending.push((id.decode().into_owned(), time.f64()?));
        }
        Some(Box::new(fold))
    }
}

/// A number or null; `None` for anything else.
fn nullable(value: Value<'_>) -> Option<Option<f64>> {
    if value.is_null() {
        return Some(None);
    }
    value.f64().map(Some)
}

impl Fold {
    fn sums_mut(&mut self) -> [&mut f64; 8] {
        [
            &mut self.turns,
            &mut self.steps,
            &mut self.llm_ms,
            &mut self.tool_ms,
            &mut self.ttft_ms,
            &mut self.ttft_steps,
            &mut self.decode_ms,
            &mut self.decode_tokens,
        ]
    }

    fn write(&self, o: &mut ObjectWriter<'_>) {
        let mut copy = self.clone();
        for (sum, name) in copy.sums_mut().into_iter().zip(NAMES) {
            o.f64(name, *sum);
        }
    }

    /// The open step, when it is the event's.
    fn open_step(&mut self, event: &Event) -> Option<&mut Open> {
        let open = self.open.as_mut()?;
        (open.place == place(event.data.value())).then_some(open)
    }

    fn message(&mut self, event: &Look<'_>) -> bool {
        let now = event.time as f64;
        let Some(open) = self.open_step(event).cloned() else {
            return false;
        };
        self.llm_ms += (now - open.start).max(0.0);
        if let Some(first) = open.first_token {
            self.ttft_ms += (first - open.start).max(0.0);
            self.ttft_steps += 1.0;
            let tokens = event.usage().and_then(|usage| usage.get("outputTokens"));
            let tokens = tokens.and_then(Value::f64);
            if let Some(tokens) = tokens.filter(|tokens| tokens.is_finite() && *tokens >= 0.0) {
                self.decode_ms += (now - first).max(0.0);
                self.decode_tokens += tokens;
            }
        }
        self.open = None;
        true
    }

    fn answered(&mut self, event: &Event) -> bool {
        let call = event.data.value().path(&["message", "source", "callId"]);
        let call = call.and_then(Value::text);
        let at = call.and_then(|call| self.pending.iter().position(|(id, _)| *id == call));
        let Some(at) = at else {
            return false;
        };
        let (_, started) = self.pending.remove(at);
        self.tool_ms += (event.time as f64 - started).max(0.0);
        true
    }
}

impl State for Fold {
    fn apply(&mut self, event: &Look<'_>) -> Result<bool, Error> {
        let data = event.data.value();
        let now = event.time as f64;
        Ok(match event.kind {
            Kind::StepStart => {
                self.open = Some(Open {
                    place: place(data),
                    start: now,
                    first_token: None,
                });
                true
            }
            Kind::AssistantChunk => {
                let waits = self
                    .open
                    .as_ref()
                    .is_some_and(|open| open.first_token.is_none());
                if !waits || !tag(event).is_some_and(|tag| tag.ends_with("-delta")) {
                    return Ok(false);
                }
                let speaks = data.get("chunk").is_some_and(is_token);
                match self.open_step(event).filter(|_| speaks) {
                    Some(open) => {
                        open.first_token = Some(now);
                        true
                    }
                    None => false,
                }
            }
            Kind::AssistantMessage => self.message(event),
            Kind::ToolCall => {
                let call = data.get("callId").and_then(Value::text).unwrap_or_default();
                match self.pending.iter_mut().find(|(id, _)| *id == call) {
                    Some((_, time)) => *time = now,
                    None => self.pending.push((call.into_owned(), now)),
                }
                true
            }
            Kind::ToolResult => self.answered(event),
            Kind::StepEnd => {
                let turn = number(data, "turn");
                self.steps += 1.0;
                if self.last_turn != Some(turn) {
                    self.turns += 1.0;
                    self.last_turn = Some(turn);
                }
                self.open = None;
                true
            }
            Kind::TurnEnd => !std::mem::take(&mut self.pending).is_empty(),
            _ => false,
        })
    }

    fn json(&self, _: Option<Seq>) -> Json {
        Json::object(|o| {
            self.write(o);
            match self.last_turn {
                None => o.null("lastTurn"),
                Some(turn) => o.f64("lastTurn", turn),
            };
            match &self.open {
                None => o.null("openStep"),
                Some(open) => o.object("openStep", |o| {
                    o.f64("turn", open.place.0)
                        .f64("step", open.place.1)
                        .f64("startTime", open.start);
                    match open.first_token {
                        None => o.null("firstTokenTime"),
                        Some(time) => o.f64("firstTokenTime", time),
                    };
                }),
            };
            o.object("pendingCalls", |o| {
                for (id, time) in &self.pending {
                    o.f64(id, *time);
                }
            });
        })
    }

    fn view(&self) -> Json {
        Json::object(|o| self.write(o))
    }
}
