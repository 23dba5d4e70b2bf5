//! Events of a message stream in, chunks out (spec/llm.md §7.8).
//!
//! Servers that speak this protocol for other models leave parts of it out, so
//! nothing that was said is lost because of its frame: a delta opens the block
//! that its kind needs where the wire's block is of another kind or never began,
//! what is still open at the end is closed, and a clean end behind a stop reason
//! is an end. What the protocol itself calls a failure stays one.

use std::borrow::Cow;
use std::collections::BTreeMap;

use adapter_support::failure::Failure;
use adapter_support::{Emitter, Kind, Stop, Usage, arguments, classify, sse};
use guest_support::json::{Json, escape};

/// What stands for reasoning that the provider keeps to itself.
const REDACTED: &str = "[Reasoning redacted]";

/// Characters of the provider's that a failure quotes, where it is no text of its own.
const QUOTED: usize = 120;

/// Bytes of an error of the provider's that its failure tells.
const TOLD: usize = 16 * 1024;

/// Pings behind the stop reason, after which the rest is not waited for: they
/// would keep the connection from ever being idle.
const LAST_PINGS: u32 = 2;

/// The stream of one attempt.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    /// Something of an answer came.
    begun: bool,
    /// The provider's id of the message, escaped.
    id: String,
    usage: Usage,
    ended: Option<Ended>,
    late_pings: u32,
    /// The blocks that are open, by the provider's index as it wrote it.
    open: BTreeMap<String, Open>,
}

/// Why the provider ended its answer.
#[derive(Debug)]
enum Ended {
    By(Stop),
    /// It will not go on; in words.
    Refused(String),
}

/// What is open under one index of the provider's.
#[derive(Debug, Default)]
struct Open {
    /// Of a kind that is not for us, or whose content is complete: deltas say nothing.
    mute: bool,
    text: Option<usize>,
    reasoning: Option<usize>,
    call: Option<usize>,
    /// Escaped; of the reasoning.
    signature: String,
    /// JSON; of the call, where it came with its start.
    input: Option<String>,
}

/// The events that count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Event {
    Start,
    BlockStart,
    Delta,
    BlockStop,
    MessageDelta,
    Stop,
    Ping,
    Error,
}

impl Event {
    fn of(name: &str) -> Option<Self> {
        Some(match name {
            "message_start" => Self::Start,
            "content_block_start" => Self::BlockStart,
            "content_block_delta" => Self::Delta,
            "content_block_stop" => Self::BlockStop,
            "message_delta" => Self::MessageDelta,
            "message_stop" => Self::Stop,
            "ping" => Self::Ping,
            "error" => Self::Error,
            _ => return None,
        })
    }
}

impl Stream {
    /// Takes in one event; false: nothing behind it counts.
    pub(crate) fn event(&mut self, event: &sse::Event<'_>, out: &mut Emitter) -> bool {
        let data = event.data.trim();
        // `message` is what an event is called that has no name.
        let named = match event.name.filter(|name| !matches!(*name, "" | "message")) {
            Some(name) => match Event::of(name) {
                Some(Event::Error) => return fail(data, out),
                Some(Event::Ping) => return self.ping(),
                Some(named) => Some(named),
                // Nothing is known of it, not even that it is JSON.
                None => return true,
            },
            None if data.is_empty() => return true,
            None if data == "[DONE]" => return false,
            None => None,
        };
        let repaired;
        let json = match Json::parse(data) {
            Some(json) => json,
            None => {
                repaired = arguments::mend_strings(data);
                match Json::parse(&repaired) {
                    Some(json) => json,
                    None => return malformed(data, out),
                }
            }
        };
        let typed = json.get("type").and_then(Json::escaped).and_then(Event::of);
        match typed.or(named) {
            Some(Event::Start) => self.start(json, out),
            Some(Event::BlockStart) => self.block_start(json, out),
            Some(Event::Delta) => self.delta(json, out),
            Some(Event::BlockStop) => self.block_stop(json, out),
            Some(Event::MessageDelta) => return self.message_delta(json, out),
            Some(Event::Stop) => {
                self.finish(out);
                return false;
            }
            Some(Event::Ping) => return self.ping(),
            Some(Event::Error) => return fail(data, out),
            // Gateways put their own errors in without a frame.
            None if json.some("error").is_some() => return fail(data, out),
            None => {}
        }
        true
    }

    /// The body ended, and nothing said that the message had.
    pub(crate) fn end(&mut self, out: &mut Emitter) {
        if self.ended.is_some() || !self.begun {
            self.finish(out);
        } else {
            let text = "the stream ended before its last event (message_stop)";
            out.fail_as(&Failure::new("TRANSPORT", text));
        }
    }

    fn start(&mut self, event: Json<'_>, out: &mut Emitter) {
        self.begun = true;
        let Some(message) = event.some("message") else {
            return;
        };
        let id = escaped(message, "id");
        if self.id.is_empty() {
            id.clone_into(&mut self.id);
        }
        out.response_id(id);
        self.count(message, out);
    }

    fn block_start(&mut self, event: Json<'_>, out: &mut Emitter) {
        self.begun = true;
        let Some(block) = event.some("content_block") else {
            return;
        };
        let key = key(event);
        // Some never say that a block is over, and some count from 0 again.
        if let Some(before) = self.open.remove(key) {
            before.close(out);
        }
        let mut open = Open::default();
        match block.get("type").and_then(Json::escaped).unwrap_or("") {
            "text" => open.begin(Kind::Text, escaped(block, "text"), out),
            "thinking" => {
                open.begin(Kind::Reasoning, escaped(block, "thinking"), out);
                open.signature.push_str(escaped(block, "signature"));
            }
            "redacted_thinking" => {
                let at = out.start(Kind::Reasoning);
                out.sign(at, escaped(block, "data"));
                out.redact(at);
                out.end_with(at, REDACTED);
                open.mute = true;
            }
            "tool_use" => {
                let id = match escaped(block, "id") {
                    "" => Cow::Owned(self.made_id(out.len())),
                    id => Cow::Borrowed(id),
                };
                open.call = Some(out.start_call(&id, escaped(block, "name")));
                let input = block.some("input").filter(|input| input.is_object());
                let input = input.filter(|input| input.members().next().is_some());
                open.input = input.map(|input| input.raw().to_owned());
            }
            _ => open.mute = true,
        }
        self.open.insert(key.to_owned(), open);
    }

    fn delta(&mut self, event: Json<'_>, out: &mut Emitter) {
        self.begun = true;
        let Some(delta) = event.some("delta") else {
            return;
        };
        let (kind, text) = match delta.get("type").and_then(Json::escaped).unwrap_or("") {
            "text_delta" => (Some(Kind::Text), escaped(delta, "text")),
            "thinking_delta" => (Some(Kind::Reasoning), escaped(delta, "thinking")),
            "input_json_delta" => (Some(Kind::Call), escaped(delta, "partial_json")),
            "signature_delta" => (None, escaped(delta, "signature")),
            _ => return,
        };
        let key = key(event);
        let open = match (self.open.get_mut(key), kind) {
            (Some(open), _) => open,
            // Text and thoughts need no more than themselves.
            (None, Some(Kind::Text | Kind::Reasoning)) if !text.is_empty() => {
                self.open.entry(key.to_owned()).or_default()
            }
            (None, _) => return,
        };
        match kind {
            _ if open.mute => {}
            Some(Kind::Call) => {
                if let Some(at) = open.call {
                    out.append(at, text);
                }
            }
            Some(kind) => open.append(kind, text, out),
            None => open.signature.push_str(text),
        }
    }

    fn block_stop(&mut self, event: Json<'_>, out: &mut Emitter) {
        if let Some(open) = self.open.remove(key(event)) {
            open.close(out);
        }
    }

    fn message_delta(&mut self, event: Json<'_>, out: &mut Emitter) -> bool {
        self.begun = true;
        if let Some(delta) = event.some("delta")
            && let Some(reason) = delta.get("stop_reason").and_then(Json::string)
            && !reason.is_empty()
        {
            self.ended = Some(match &*reason {
                "end_turn" | "pause_turn" | "stop_sequence" => Ended::By(Stop::Stop),
                "max_tokens" => Ended::By(Stop::Length),
                "tool_use" => Ended::By(Stop::ToolUse),
                "refusal" => Ended::Refused(refusal(delta)),
                "sensitive" => Ended::Refused(
                    "the provider's filter stopped the answer as sensitive".to_owned(),
                ),
                unknown => {
                    let reason = cut(unknown);
                    out.fail(&format!(
                        "the provider ended its answer with the reason {reason}"
                    ));
                    return false;
                }
            });
        }
        self.count(event, out);
        true
    }

    /// An id for a call that came without one. Ids of one history differ.
    fn made_id(&self, at: usize) -> String {
        match &*self.id {
            id if id.is_empty() || id.len() > 48 => format!("call_{at}"),
            id => format!("{id}_{at}"),
        }
    }

    /// Counts that are told replace those that were.
    fn count(&mut self, of: Json<'_>, out: &mut Emitter) {
        let Some(told) = of.some("usage") else {
            return;
        };
        let usage = &mut self.usage;
        for (name, count) in [
            ("input_tokens", &mut usage.input),
            ("output_tokens", &mut usage.output),
            ("cache_read_input_tokens", &mut usage.cache_read),
            ("cache_creation_input_tokens", &mut usage.cache_write),
        ] {
            if let Some(told) = told.get(name).and_then(Json::whole) {
                *count = told;
            }
        }
        out.usage(self.usage);
    }

    fn ping(&mut self) -> bool {
        self.late_pings += u32::from(self.ended.is_some());
        self.late_pings < LAST_PINGS
    }

    fn finish(&mut self, out: &mut Emitter) {
        for open in std::mem::take(&mut self.open).into_values() {
            open.settle(out);
        }
        out.end_all();
        match self.ended.take() {
            Some(Ended::Refused(words)) => out.fail_as(&Failure::new("PI_AI_ERROR", words)),
            // Some end with `end_turn`, or with nothing, where they want a tool.
            None | Some(Ended::By(Stop::Stop)) if out.has_calls() => out.finish(Stop::ToolUse),
            None => out.finish(Stop::Stop),
            Some(Ended::By(stop)) => out.finish(stop),
        }
    }
}

impl Open {
    /// Opens its block of text or reasoning.
    fn begin(&mut self, kind: Kind, text: &str, out: &mut Emitter) {
        let at = out.start(kind);
        *self.block(kind) = Some(at);
        if !text.is_empty() {
            out.append(at, text);
        }
    }

    /// Appends to its block of text or reasoning, which may begin with that.
    fn append(&mut self, kind: Kind, text: &str, out: &mut Emitter) {
        match *self.block(kind) {
            Some(at) => out.append(at, text),
            None if text.is_empty() => {}
            None => self.begin(kind, text, out),
        }
    }

    fn block(&mut self, kind: Kind) -> &mut Option<usize> {
        if kind == Kind::Reasoning {
            &mut self.reasoning
        } else {
            &mut self.text
        }
    }

    /// What is only known at the end.
    fn settle(&self, out: &mut Emitter) {
        if let Some(at) = self.reasoning
            && !self.signature.is_empty()
        {
            out.sign(at, &self.signature);
        }
        if let (Some(at), Some(input)) = (self.call, &self.input)
            && out.streamed(at).is_empty()
        {
            let mut text = String::with_capacity(input.len() + 16);
            escape(input, &mut text);
            out.append(at, &text);
        }
    }

    fn close(&self, out: &mut Emitter) {
        self.settle(out);
        let mut blocks = [self.text, self.reasoning, self.call];
        blocks.sort_unstable();
        for at in blocks.into_iter().flatten() {
            out.end(at);
        }
    }
}

/// An error of the provider's inside the stream: its text, and the code that its
/// type or its words give.
fn fail(data: &str, out: &mut Emitter) -> bool {
    let told = guest_support::words::start(data, TOLD);
    let failure = if told.is_empty() {
        let text = "the provider ended its stream with an error that says nothing";
        Failure::new("PI_AI_ERROR", text)
    } else {
        Failure::new(error_code(data, told), told)
    };
    out.fail_as(&failure);
    false
}

/// The code of an error object. Words go before the type where they say what can
/// be done about it, and the type before numbers that a text may hold.
fn error_code(data: &str, told: &str) -> &'static str {
    let code = classify::of_text(told);
    if matches!(code, "CONTEXT_WINDOW_EXCEEDED" | "QUOTA") {
        return code;
    }
    let kind = Json::parse(data).and_then(|json| json.some("error")?.get("type")?.string());
    match kind.as_deref() {
        Some("overloaded_error" | "api_error") => "SERVER",
        Some("rate_limit_error") => "RATE_LIMIT",
        Some("timeout_error") => "TIMEOUT",
        Some("authentication_error" | "permission_error") => "AUTH",
        Some("billing_error") => "QUOTA",
        Some("invalid_request_error" | "not_found_error" | "request_too_large") => {
            "INVALID_REQUEST"
        }
        _ => code,
    }
}

fn malformed(data: &str, out: &mut Emitter) -> bool {
    let start = cut(data);
    let text = format!("the stream has an event that is not JSON: {start}");
    out.fail_as(&Failure::new("PI_AI_ERROR", text));
    false
}

fn refusal(delta: Json<'_>) -> String {
    let details = delta.some("stop_details");
    let why = details.and_then(|details| details.get("explanation")?.string());
    match why.as_deref().map(str::trim).filter(|why| !why.is_empty()) {
        Some(why) => format!("the model refused to answer: {why}"),
        None => "the model refused to answer".to_owned(),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(QUOTED).collect()
}

/// A text member, escaped; empty where there is none.
fn escaped<'a>(of: Json<'a>, name: &str) -> &'a str {
    of.get(name).and_then(Json::escaped).unwrap_or("")
}

/// The provider's index, as it wrote it.
fn key<'a>(event: Json<'a>) -> &'a str {
    event.get("index").map_or("", Json::raw)
}

#[cfg(test)]
#[path = "accent_tests.rs"]
mod accents;
#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile;
#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
