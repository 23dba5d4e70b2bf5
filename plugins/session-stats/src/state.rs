//! The state, which is upstream's: eight sums, the step that waits for its message, the calls that wait for results.

use std::borrow::Cow;

use guest_support::fold::{Event, Tail, number, write_number, write_numbers};

/// Sums, in the order in which they are written.
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
const TURNS: usize = 0;
const STEPS: usize = 1;
const LLM_MS: usize = 2;
const TOOL_MS: usize = 3;
const TTFT_MS: usize = 4;
const TTFT_STEPS: usize = 5;
const DECODE_MS: usize = 6;
const DECODE_TOKENS: usize = 7;

#[derive(Debug, Default)]
pub(crate) struct State<'s> {
    sums: [f64; 8],
    last_turn: Option<f64>,
    open: Option<Open>,
    /// Calls that were started and not answered, escaped as they stand, and when.
    pending: Vec<(Cow<'s, str>, f64)>,
}

/// The step that waits for its message.
#[derive(Debug)]
struct Open {
    place: (f64, f64),
    start: f64,
    first_token: Option<f64>,
}

impl<'s> State<'s> {
    pub(crate) fn read(text: &'s str) -> Option<Self> {
        let state = Tail::of(text);
        let mut read = Self::default();
        for (sum, name) in read.sums.iter_mut().zip(NAMES) {
            *sum = state.member(name)?.number()?;
        }
        read.last_turn = nullable(state.member("lastTurn")?)?;
        let open = state.member("openStep")?;
        if !open.is_null() {
            read.open = Some(Open {
                place: (
                    open.member("turn")?.number()?,
                    open.member("step")?.number()?,
                ),
                start: open.member("startTime")?.number()?,
                first_token: nullable(open.member("firstTokenTime")?)?,
            });
        }
        let pending = state
            .member("pendingCalls")
            .filter(|calls| calls.is_object())?;
        for (id, time) in pending.members() {
            read.pending.push((Cow::Borrowed(id), time.number()?));
        }
        Some(read)
    }

    pub(crate) fn fold(&mut self, event: Event<'_>) {
        match event.kind {
            "assistant/chunk" => self.chunk(event),
            "step/start" => {
                self.open = Some(Open {
                    place: event.place(),
                    start: event.time,
                    first_token: None,
                });
            }
            "assistant/message" => self.message(event),
            "tool/call" => {
                let call = event
                    .data
                    .member("callId")
                    .and_then(Tail::escaped)
                    .unwrap_or_default();
                match self.pending.iter_mut().find(|(id, _)| id == call) {
                    Some((_, time)) => *time = event.time,
                    None => self.pending.push((call.to_owned().into(), event.time)),
                }
            }
            "tool/result" => self.answered(event),
            "step/end" => {
                let turn = number(event.data, "turn");
                self.sums[STEPS] += 1.0;
                if self.last_turn != Some(turn) {
                    self.sums[TURNS] += 1.0;
                    self.last_turn = Some(turn);
                }
                self.open = None;
            }
            "turn/end" => self.pending.clear(),
            _ => {}
        }
    }

    /// Of a step's chunks only those up to the first token are looked at.
    fn chunk(&mut self, event: Event<'_>) {
        let Some(open) = self.open.as_mut().filter(|open| open.first_token.is_none()) else {
            return;
        };
        if event.chunk().is_some_and(is_token) && open.place == event.place() {
            open.first_token = Some(event.time);
        }
    }

    fn message(&mut self, event: Event<'_>) {
        let Some(open) = self.open.take_if(|open| open.place == event.place()) else {
            return;
        };
        let since = |from: f64| (event.time - from).max(0.0);
        self.sums[LLM_MS] += since(open.start);
        let Some(first) = open.first_token else {
            return;
        };
        self.sums[TTFT_MS] += (first - open.start).max(0.0);
        self.sums[TTFT_STEPS] += 1.0;
        let tokens = event
            .usage()
            .and_then(|usage| usage.member("outputTokens")?.number());
        if let Some(tokens) = tokens.filter(|tokens| tokens.is_finite() && *tokens >= 0.0) {
            self.sums[DECODE_MS] += since(first);
            self.sums[DECODE_TOKENS] += tokens;
        }
    }

    fn answered(&mut self, event: Event<'_>) {
        let call = || {
            event
                .data
                .member("message")?
                .member("source")?
                .member("callId")?
                .escaped()
        };
        let Some(call) = call() else {
            return;
        };
        if let Some(at) = self.pending.iter().position(|(id, _)| id == call) {
            let (_, started) = self.pending.remove(at);
            self.sums[TOOL_MS] += (event.time - started).max(0.0);
        }
    }

    pub(crate) fn view(&self) -> String {
        let mut out = "{".to_owned();
        self.write_sums(&mut out);
        out.push('}');
        out
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::with_capacity(256);
        out.push('{');
        self.write_sums(&mut out);
        out.push_str(",\"lastTurn\":");
        write_nullable(self.last_turn, &mut out);
        out.push_str(",\"openStep\":");
        match &self.open {
            None => out.push_str("null"),
            Some(open) => {
                out.push('{');
                let numbers = [
                    ("turn", open.place.0),
                    ("step", open.place.1),
                    ("startTime", open.start),
                ];
                write_numbers(numbers, &mut out);
                out.push_str(",\"firstTokenTime\":");
                write_nullable(open.first_token, &mut out);
                out.push('}');
            }
        }
        out.push_str(",\"pendingCalls\":{");
        write_numbers(
            self.pending.iter().map(|(id, time)| (&**id, *time)),
            &mut out,
        );
        out.push_str("}}");
        out
    }

    fn write_sums(&self, out: &mut String) {
        write_numbers(NAMES.into_iter().zip(self.sums), out);
    }
}

/// Whether a chunk brings the model's first token: text that is not empty, or the name or arguments of a call.
fn is_token(chunk: Tail<'_>) -> bool {
    let filled = |name| {
        let text = chunk.member(name).and_then(Tail::escaped);
        text.is_some_and(|text| !text.is_empty())
    };
    match chunk.member("type").and_then(Tail::escaped) {
        Some("text-delta" | "reasoning-delta") => filled("text"),
        Some("tool-call-delta") => filled("argumentsDelta") || chunk.member("name").is_some(),
        _ => false,
    }
}

/// A number or null; none for anything else.
fn nullable(value: Tail<'_>) -> Option<Option<f64>> {
    if value.is_null() {
        return Some(None);
    }
    value.number().map(Some)
}

fn write_nullable(value: Option<f64>, out: &mut String) {
    match value {
        None => out.push_str("null"),
        Some(value) => write_number(value, out),
    }
}
