//! The chunks of an attempt, in the log's shapes (spec/llm.md §1.6, §7.4, §7.5).
//! A protocol opens blocks, appends to them and closes them; order, indexes, the
//! usage before the end, the replay state and what an end means are made here.

mod kinds;

use guest_support::json::{Json, Object, array, escape, quote};
use guest_support::words::start;

use crate::arguments;
use crate::classify;
use crate::failure::{Failure, MAX_MESSAGE, finish_error};

pub use kinds::{Kind, Stop, Usage};

/// Bytes that a call's id or name may have: both are repeated with each delta.
pub const MAX_NAME: usize = 64 * 1024;

/// The failure of a stream with a call whose id or name has more bytes than [`MAX_NAME`].
pub fn too_long_a_name(bytes: usize) -> Failure {
    let message = format!("the stream has a tool call whose id or name has {bytes} bytes");
    Failure::new("MALFORMED_RESPONSE", message)
}

/// Takes what a protocol understands of a stream, and makes chunks of it.
#[derive(Debug)]
pub struct Emitter {
    target: Target,
    blocks: Vec<Block>,
    usage: Usage,
    response_id: Option<String>,
    response_model: Option<String>,
    over: bool,
    out: Vec<String>,
}

/// Which model answers, and what it can hold.
#[derive(Clone, Debug)]
pub struct Target {
    /// The protocol.
    pub api: &'static str,
    /// The route.
    pub provider: String,
    /// The model's id.
    pub model: String,
    /// Tokens.
    pub context_window: u64,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    /// Escaped: what was streamed.
    text: String,
    /// Escaped; of a call.
    id: String,
    name: String,
    open: bool,
    /// Escaped.
    signature: Option<String>,
    redacted: bool,
}

impl Block {
    /// Whether it is content. A text without a character is none, whatever its
    /// signature, which some providers give to each; a thought that is kept from
    /// us is.
    fn says_something(&self) -> bool {
        match self.kind {
            Kind::Text => !self.text.is_empty(),
            Kind::Reasoning => !self.text.is_empty() || self.signature.is_some() || self.redacted,
            Kind::Call => true,
        }
    }
}

impl Emitter {
    /// For one attempt.
    pub fn new(target: Target) -> Self {
        Self {
            target,
            blocks: Vec::new(),
            usage: Usage::default(),
            response_id: None,
            response_model: None,
            over: false,
            out: Vec::new(),
        }
    }

    /// Opens a block and gives its index.
    pub fn start(&mut self, kind: Kind) -> usize {
        self.open(kind, "", "")
    }

    /// Opens a tool call; id and name escaped, empty where they are not known yet.
    pub fn start_call(&mut self, id: &str, name: &str) -> usize {
        self.open(Kind::Call, id, name)
    }

    fn open(&mut self, kind: Kind, id: &str, name: &str) -> usize {
        let at = self.blocks.len();
        let (id, name) = (self.bounded(id), self.bounded(name));
        self.blocks.push(Block {
            kind,
            text: String::new(),
            id,
            name,
            open: true,
            signature: None,
            redacted: false,
        });
        let block_type = kind.name();
        if self.over {
            return at;
        }
        self.out.push(format!(
            r#"{{"type":"block-start","index":{at},"blockType":"{block_type}"}}"#
        ));
        at
    }

    /// Appends to a block of text or reasoning, or to a call's arguments; the delta
    /// is escaped. A block that is closed, or that never was, takes nothing.
    pub fn append(&mut self, at: usize, delta: &str) {
        let Some(block) = self.blocks.get_mut(at).filter(|block| block.open) else {
            return;
        };
        if self.over {
            return;
        }
        block.text.push_str(delta);
        let mut chunk = String::with_capacity(delta.len() + 96);
        chunk.push_str(match block.kind {
            Kind::Text => r#"{"type":"text-delta","index":"#,
            Kind::Reasoning => r#"{"type":"reasoning-delta","index":"#,
            Kind::Call => r#"{"type":"tool-call-delta","index":"#,
        });
        push_number(&mut chunk, at);
        if block.kind == Kind::Call {
            chunk.push_str(",\"id\":\"");
            chunk.push_str(&block.id);
            if !block.name.is_empty() {
                chunk.push_str("\",\"name\":\"");
                chunk.push_str(&block.name);
            }
            chunk.push_str("\",\"argumentsDelta\":\"");
        } else {
            chunk.push_str(",\"text\":\"");
        }
        chunk.push_str(delta);
        chunk.push_str("\"}");
        self.out.push(chunk);
    }

    /// What was streamed into a block so far, escaped.
    pub fn streamed(&self, at: usize) -> &str {
        self.blocks.get(at).map_or("", |block| &block.text)
    }

    /// A call's id and name, escaped.
    pub fn call(&self, at: usize) -> (&str, &str) {
        self.blocks
            .get(at)
            .map_or(("", ""), |block| (&block.id, &block.name))
    }

    /// Makes a call's id or name known; both escaped.
    pub fn set_call(&mut self, at: usize, id: Option<&str>, name: Option<&str>) {
        let (id, name) = (
            id.map(|id| self.bounded(id)),
            name.map(|name| self.bounded(name)),
        );
        if let Some(block) = self.blocks.get_mut(at) {
            if let Some(id) = id {
                block.id = id;
            }
            if let Some(name) = name {
                block.name = name;
            }
        }
    }

    /// A call's id or name; one that is absurdly long fails the attempt.
    fn bounded(&mut self, text: &str) -> String {
        if text.len() > MAX_NAME {
            self.fail_as(&too_long_a_name(text.len()));
            return String::new();
        }
        text.to_owned()
    }

    /// What the provider needs back of this block, escaped.
    pub fn sign(&mut self, at: usize, signature: &str) {
        if let Some(block) = self.blocks.get_mut(at) {
            block.signature = Some(signature.to_owned());
        }
    }

    /// Its signature so far, escaped.
    pub fn signature(&self, at: usize) -> Option<&str> {
        self.blocks.get(at)?.signature.as_deref()
    }

    /// Reasoning whose text the provider keeps to itself; its data is the signature.
    pub fn redact(&mut self, at: usize) {
        if let Some(block) = self.blocks.get_mut(at) {
            block.redacted = true;
        }
    }

    /// Whether a block is open.
    pub fn is_open(&self, at: usize) -> bool {
        self.blocks.get(at).is_some_and(|block| block.open)
    }

    /// How many blocks there are.
    pub fn len(&self) -> usize {
        self.blocks.len()
    }

    /// Whether there is none yet.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// Whether one is a tool call.
    pub fn has_calls(&self) -> bool {
        self.blocks.iter().any(|block| block.kind == Kind::Call)
    }

    /// Closes a block with what was streamed into it. A call's arguments are
    /// parsed, repaired where they break off, and written compactly.
    pub fn end(&mut self, at: usize) {
        let Some(block) = self.blocks.get_mut(at).filter(|block| block.open) else {
            return;
        };
        let text = std::mem::take(&mut block.text);
        self.end_with(at, &text);
    }

    /// Closes a block with this text (escaped; a call's arguments), which may
    /// differ from what was streamed.
    pub fn end_with(&mut self, at: usize, text: &str) {
        let Some(block) = self.blocks.get_mut(at).filter(|block| block.open) else {
            return;
        };
        block.open = false;
        if self.over {
            return;
        }
        text.clone_into(&mut block.text);
        let content = Object::new().string("type", block.kind.name());
        let content = if block.kind == Kind::Call {
            let mut json = String::new();
            escape(&arguments::compact_escaped(text), &mut json);
            content
                .escaped("id", &block.id)
                .escaped("name", &block.name)
                .escaped("arguments", &json)
        } else {
            content.escaped("text", text)
        };
        self.out.push(
            Object::new()
                .string("type", "block-end")
                .number("index", at as u64)
                .raw("block", &content.build())
                .build(),
        );
    }

    /// Closes all that are open, in the order in which they were opened.
    pub fn end_all(&mut self) {
        for at in 0..self.blocks.len() {
            self.end(at);
        }
    }

    /// The counts so far; the last ones are told, before the end.
    pub fn usage(&mut self, usage: Usage) {
        self.usage = usage;
    }

    /// The counts that it has.
    pub fn counts(&self) -> Usage {
        self.usage
    }

    /// The provider's id of the answer, escaped; the first one counts.
    pub fn response_id(&mut self, id: &str) {
        if self.response_id.is_none() && !id.is_empty() {
            self.response_id = Some(id.to_owned());
        }
    }

    /// Which model answered, escaped, where it is another than the one asked for.
    pub fn response_model(&mut self, model: &str) {
        if self.response_model.is_none()
            && !model.is_empty()
            && guest_support::json::unescape(model) != self.target.model
        {
            self.response_model = Some(model.to_owned());
        }
    }

    /// The provider ended its answer. An answer that did not fit, or that holds
    /// nothing, is a failure.
    pub fn finish(&mut self, stop: Stop) {
        if self.over {
            return;
        }
        self.end_all();
        self.push_usage();
        self.over = true;
        let replay = self.replay(stop);
        let window = self.target.context_window;
        let reason = if classify::is_silent_overflow(stop, &self.usage, window) {
            let model = &self.target.model;
            let message = format!(
                "the request of {} tokens does not fit {model}, whose context window is {window}",
                self.usage.input + self.usage.cache_read
            );
            reason_of(&Failure::new("CONTEXT_WINDOW_EXCEEDED", message))
        } else if stop == Stop::Stop && !self.blocks.iter().any(Block::says_something) {
            let message = format!(
                "{} ended its answer without saying anything",
                self.target.model
            );
            reason_of(&Failure::new("EMPTY_RESPONSE", message))
        } else {
            let kind = match stop {
                Stop::Stop => "stop",
                Stop::Length => "max-tokens",
                Stop::ToolUse => "tool-calls",
            };
            Object::new().string("kind", kind).build()
        };
        self.out.push(
            Object::new()
                .string("type", "finish")
                .raw("reason", &reason)
                .raw("replayState", &replay)
                .build(),
        );
    }

    /// The attempt failed, and this is what is known of it: classified by its
    /// words.
    pub fn fail(&mut self, text: &str) {
        let text = start(text, MAX_MESSAGE);
        self.fail_as(&Failure::new(classify::of_text(text), text));
    }

    /// The attempt failed in a way that the protocol knows.
    pub fn fail_as(&mut self, failure: &Failure) {
        if self.over {
            return;
        }
        self.push_usage();
        self.over = true;
        self.out.push(finish_error(failure));
    }

    /// Whether its last chunk is made.
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// The chunks since this was last asked.
    pub fn take(&mut self) -> Vec<String> {
        std::mem::take(&mut self.out)
    }

    fn push_usage(&mut self) {
        let usage = self.usage;
        let some = |count: u64| (count > 0).then(|| count.to_string());
        let counts = Object::new()
            .number("inputTokens", usage.input)
            .number("outputTokens", usage.output)
            .maybe("cacheReadTokens", some(usage.cache_read).as_deref())
            .maybe("cacheWriteTokens", some(usage.cache_write).as_deref())
            .build();
        self.out.push(
            Object::new()
                .string("type", "usage")
                .raw("usage", &counts)
                .build(),
        );
    }

    fn replay(&self, stop: Stop) -> String {
        let target = &self.target;
        let mut response = Object::new()
            .string("kind", crate::history::REPLAY_KIND)
            .number("version", crate::history::REPLAY_VERSION)
            .string("api", target.api)
            .string("provider", &target.provider)
            .string("model", &target.model);
        if let Some(model) = &self.response_model {
            response = response.escaped("responseModel", model);
        }
        if let Some(id) = &self.response_id {
            response = response.escaped("responseId", id);
        }
        let response = response.string("stopReason", stop.name()).build();
        let blocks = self.blocks.iter().map(|block| {
            let entry = Object::new().string("type", block.kind.name());
            let entry = match &block.signature {
                Some(signature) => entry.escaped(block.kind.signature(), signature),
                None => entry,
            };
            if block.redacted {
                entry.raw("redacted", "true").build()
            } else {
                entry.build()
            }
        });
        Object::new()
            .raw("response", &response)
            .raw("blocks", &array(blocks))
            .build()
    }
}

fn reason_of(failure: &Failure) -> String {
    let chunk = finish_error(failure);
    Json::of_host(&chunk)
        .get("reason")
        .map_or_else(|| quote(""), |reason| reason.raw().to_owned())
}

fn push_number(out: &mut String, number: usize) {
    use std::fmt::Write;
    let _ = write!(out, "{number}");
}

#[cfg(test)]
#[path = "emit_tests.rs"]
mod tests;
