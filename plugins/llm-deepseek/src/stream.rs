//! Payloads of a completion stream in, chunks of the log out (spec/llm.md §6.5).
//! Blocks are opened as they appear and closed together at `[DONE]`; texts stay
//! escaped, so that a pair of surrogates that two deltas share is whole again in
//! the block.

use adapter_support::classify;
use adapter_support::emit::{MAX_NAME, too_long_a_name};
use adapter_support::failure::{Failure, finish_error};
use adapter_support::opening::{error_words, shown};
use guest_support::json::{Json, Object, text};

/// Bytes of a reason that becomes a code.
const MAX_REASON: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Translator {
    blocks: Vec<Block>,
    usage: Option<String>,
    finish: Option<String>,
    over: bool,
}

#[derive(Debug)]
struct Block {
    kind: Kind,
    /// Escaped: its text, or a call's arguments.
    text: String,
}

#[derive(Debug)]
enum Kind {
    Text,
    Reasoning,
    /// `index` is the provider's, as it wrote it; the others are escaped.
    Call {
        index: String,
        id: String,
        name: String,
    },
}

impl Translator {
    /// Whether its `finish` is out.
    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// Takes one event's payload; returns whether more may follow.
    pub(crate) fn push(&mut self, payload: &str, out: &mut Vec<String>) -> bool {
        if payload == "[DONE]" {
            self.finish(out);
            return false;
        }
        match Json::parse(payload) {
            Some(json) if json.raw() != "null" => match json.some("error") {
                Some(error) => self.fail(&of_error(error), out),
                None => self.take(json, out),
            },
            Some(_) => {
                let message = "the stream has an event that holds nothing (null)";
                self.fail(&Failure::new("TRANSPORT", message), out);
            }
            None => {
                let start: String = payload.chars().take(120).collect();
                let message = format!("the stream has an event that is not JSON: {start}");
                self.fail(&Failure::new("MALFORMED_RESPONSE", message), out);
            }
        }
        !self.over
    }

    fn take(&mut self, payload: Json<'_>, out: &mut Vec<String>) {
        for choice in payload.get("choices").into_iter().flat_map(Json::items) {
            if let Some(delta) = choice.some("delta") {
                self.prose(&Kind::Reasoning, delta.get("reasoning_content"), out);
                self.prose(&Kind::Text, delta.get("content"), out);
                for call in delta.get("tool_calls").into_iter().flat_map(Json::items) {
                    self.call(call, out);
                    if self.over {
                        return;
                    }
                }
            }
            if let Some(reason) = text(choice, "finish_reason") {
                self.finish = Some(reason);
            }
        }
        if let Some(usage) = payload.get("usage").filter(|usage| usage.is_object()) {
            self.usage = Some(counts(usage));
        }
    }

    fn prose(&mut self, kind: &Kind, delta: Option<Json<'_>>, out: &mut Vec<String>) {
        let Some(text) = delta
            .and_then(Json::escaped)
            .filter(|text| !text.is_empty())
        else {
            return;
        };
        let at = self
            .blocks
            .iter()
            .position(|block| block.kind.name() == kind.name());
        let at = at.unwrap_or_else(|| self.start(kind.empty(), out));
        self.blocks[at].text.push_str(text);
        let delta = chunk(if matches!(kind, Kind::Text) {
            "text-delta"
        } else {
            "reasoning-delta"
        });
        out.push(
            delta
                .number("index", at as u64)
                .escaped("text", text)
                .build(),
        );
    }

    fn call(&mut self, delta: Json<'_>, out: &mut Vec<String>) {
        let wire = delta.get("index").map_or("", Json::raw);
        let known = self
            .blocks
            .iter()
            .position(|block| matches!(&block.kind, Kind::Call { index, .. } if index == wire));
        let at = known.unwrap_or_else(|| {
            let call = Kind::Call {
                index: wire.to_owned(),
                id: String::new(),
                name: String::new(),
            };
            self.start(call, out)
        });
        let function = delta.some("function");
        let part = |of: Option<Json<'_>>, name: &str| {
            let text = of.and_then(|of| of.get(name)).and_then(Json::escaped);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let (new_id, new_name) = (part(Some(delta), "id"), part(function, "name"));
        let long = [&new_id, &new_name].into_iter().flatten();
        if let Some(text) = long.into_iter().find(|text| text.len() > MAX_NAME) {
            return self.fail(&too_long_a_name(text.len()), out);
        }
        let fragment = part(function, "arguments").unwrap_or_default();
        let block = &mut self.blocks[at];
        block.text.push_str(&fragment);
        let Kind::Call { id, name, .. } = &mut block.kind else {
            return;
        };
        if let Some(new) = new_id {
            *id = new;
        }
        if let Some(new) = new_name {
            *name = new;
        }
        let mut delta = chunk("tool-call-delta")
            .number("index", at as u64)
            .escaped("id", id);
        if !name.is_empty() {
            delta = delta.escaped("name", name);
        }
        out.push(delta.escaped("argumentsDelta", &fragment).build());
    }

    fn start(&mut self, kind: Kind, out: &mut Vec<String>) -> usize {
        let at = self.blocks.len();
        out.push(
            chunk("block-start")
                .number("index", at as u64)
                .string("blockType", kind.name())
                .build(),
        );
        self.blocks.push(Block {
            kind,
            text: String::new(),
        });
        at
    }

    fn finish(&mut self, out: &mut Vec<String>) {
        for (at, block) in self.blocks.iter().enumerate() {
            let content = chunk(block.kind.name());
            let content = match &block.kind {
                Kind::Call { id, name, .. } => content
                    .escaped("id", id)
                    .escaped("name", name)
                    .escaped("arguments", &block.text),
                _ => content.escaped("text", &block.text),
            };
            out.push(
                chunk("block-end")
                    .number("index", at as u64)
                    .raw("block", &content.build())
                    .build(),
            );
        }
        if let Some(usage) = &self.usage {
            out.push(chunk("usage").raw("usage", usage).build());
        }
        let reason = self.finish.take().unwrap_or_else(|| "stop".to_owned());
        let kind = match reason.as_str() {
            "stop" if self.blocks.is_empty() => {
                let message = "the model ended its answer without saying anything";
                return self.fail(&Failure::new("EMPTY_RESPONSE", message), out);
            }
            "stop" => "stop",
            "tool_calls" => "tool-calls",
            "length" => "max-tokens",
            other => {
                let message = format!("DeepSeek ended the answer with the reason {}", shown(other));
                let code = code_of(other).unwrap_or_else(|| "UNKNOWN".to_owned());
                return self.fail(&Failure::new(&code, message), out);
            }
        };
        self.over = true;
        out.push(
            chunk("finish")
                .raw("reason", &Object::new().string("kind", kind).build())
                .build(),
        );
    }

    /// Ends the stream as failed.
    pub(crate) fn fail(&mut self, failure: &Failure, out: &mut Vec<String>) {
        self.over = true;
        out.push(finish_error(failure));
    }
}

/// The code of a reason that this adapter does not know: its name in upper case.
/// A reason that is a text and no name has none: what a provider echoes of a
/// request, a key above all, is for the message alone.
fn code_of(reason: &str) -> Option<String> {
    let is_name = (1..=MAX_REASON).contains(&reason.len())
        && (reason.bytes()).all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    is_name.then(|| reason.to_ascii_uppercase())
}

/// The failure that an error object inside of a stream tells of: as one of an
/// HTTP answer, where its code is a status, else by its words.
fn of_error(error: Json<'_>) -> Failure {
    let (message, detail) = error_words(error);
    let message = message.unwrap_or_else(|| shown(error.raw()));
    let status = error
        .some("code")
        .and_then(|code| match code.string() {
            Some(text) => text.parse().ok(),
            None => code.whole(),
        })
        .filter(|status| (400..600).contains(status));
    let code = match status {
        Some(status) => classify::of_status(status as u16, &detail),
        None => match classify::of_text(&detail) {
            "PI_AI_ERROR" => "UNKNOWN".to_owned(),
            code => code.to_owned(),
        },
    };
    Failure::new(&code, message)
}

impl Kind {
    fn name(&self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Reasoning => "reasoning",
            Kind::Call { .. } => "tool-call",
        }
    }

    fn empty(&self) -> Kind {
        if matches!(self, Kind::Text) {
            Kind::Text
        } else {
            Kind::Reasoning
        }
    }
}

/// The provider's counts, made disjoint.
fn counts(usage: Json<'_>) -> String {
    let count = |of: Option<Json<'_>>, name: &str| of?.some(name)?.whole();
    let details = |name: &str| usage.some(name);
    let cached = count(details("prompt_tokens_details"), "cached_tokens")
        .or_else(|| count(Some(usage), "prompt_cache_hit_tokens"));
    let prompt = count(Some(usage), "prompt_tokens").unwrap_or(0);
    let reasoning = count(details("completion_tokens_details"), "reasoning_tokens");
    let text = |count: Option<u64>| count.map(|count| count.to_string());
    Object::new()
        .number("inputTokens", prompt.saturating_sub(cached.unwrap_or(0)))
        .number(
            "outputTokens",
            count(Some(usage), "completion_tokens").unwrap_or(0),
        )
        .maybe("cacheReadTokens", text(cached).as_deref())
        .maybe("reasoningTokens", text(reasoning).as_deref())
        .build()
}

fn chunk(kind: &str) -> Object {
    Object::new().string("type", kind)
}
