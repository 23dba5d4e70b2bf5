//! The one algorithm that makes a message of stream chunks. `spec/llm.md` §2.
//!
//! Texts are put together as they are escaped, not as they decode: a surrogate
//! pair that a provider split over two deltas comes out whole, and half of one
//! stays what it was. Chunks of unknown types pass without a trace.

use std::collections::HashMap;

use dsh_session::{JStr, Json, Value};

use crate::finish::FinishReason;
use crate::usage::TokenUsage;

/// Push chunks, then ask what they make.
#[derive(Debug, Clone, Default)]
pub struct BlockAssembler {
    /// Indexes by first appearance.
    order: Vec<u64>,
    partials: HashMap<u64, Partial>,
    usage: Option<Json>,
    /// The whole `finish` chunk.
    finish: Option<Json>,
}

#[derive(Debug, Clone, Default)]
struct Partial {
    block_type: String,
    /// Escaped, as between the quotes of a JSON string; so are the next three.
    text: String,
    call_id: Option<String>,
    call_name: String,
    arguments: String,
    closed: Option<Json>,
}

impl BlockAssembler {
    /// Nothing pushed yet.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next chunk.
    pub fn push(&mut self, chunk: &Json) {
        let Some(kind) = chunk.get("type").and_then(Value::text) else {
            return;
        };
        match &*kind {
            "usage" => self.usage = chunk.get("usage").map(Value::to_json),
            "finish" => self.finish = Some(chunk.clone()),
            _ => {
                if let Some(index) = chunk.get("index").and_then(Value::u64) {
                    self.push_block(&kind, index, chunk);
                }
            }
        }
    }

    fn push_block(&mut self, kind: &str, index: u64, chunk: &Json) {
        let string = |key| chunk.get(key).and_then(Value::string);
        match kind {
            "block-start" => {
                if let Some(block_type) = chunk.get("blockType").and_then(Value::text) {
                    self.ensure(index, &block_type);
                }
            }
            "text-delta" | "reasoning-delta" => {
                let partial = self.ensure(index, kind.trim_end_matches("-delta"));
                if let (None, Some(text)) = (&partial.closed, string("text")) {
                    partial.text.push_str(text.raw());
                }
            }
            "tool-call-delta" => {
                let partial = self.ensure(index, "tool-call");
                if partial.closed.is_some() {
                    return;
                }
                if let Some(id) = string("id") {
                    partial.call_id = Some(id.raw().to_owned());
                }
                if let Some(name) = string("name").filter(|name| !name.is_empty()) {
                    partial.call_name = name.raw().to_owned();
                }
                if let Some(arguments) = string("argumentsDelta") {
                    partial.arguments.push_str(arguments.raw());
                }
            }
            "block-end" => {
                let Some(block) = chunk.get("block").filter(|block| block.is_object()) else {
                    return;
                };
                let block_type = block.get("type").and_then(Value::text).unwrap_or_default();
                let partial = self.ensure(index, &block_type);
                if partial.closed.is_none() {
                    partial.closed = Some(block.to_json());
                }
            }
            _ => {}
        }
    }

    fn ensure(&mut self, index: u64, block_type: &str) -> &mut Partial {
        self.partials.entry(index).or_insert_with(|| {
            self.order.push(index);
            Partial {
                block_type: block_type.to_owned(),
                ..Partial::default()
            }
        })
    }

    /// Why the stream ended; a stream without a `finish` stopped.
    #[must_use]
    pub fn finish(&self) -> FinishReason {
        let reason = self.finish.as_ref().and_then(|chunk| chunk.get("reason"));
        reason.map_or(FinishReason::Stop, FinishReason::from_value)
    }

    /// The last `usage`, as it stands.
    #[must_use]
    pub fn usage(&self) -> Option<&Json> {
        self.usage.as_ref()
    }

    /// The last `usage`, read.
    #[must_use]
    pub fn token_usage(&self) -> Option<TokenUsage> {
        self.usage
            .as_ref()
            .and_then(|usage| TokenUsage::from_value(usage.value()))
    }

    /// The message's blocks, by first appearance; without tool calls where the
    /// output was cut, since a call that was cut cannot be run. Open blocks of a
    /// type that has no deltas have nothing to show and are left out.
    #[must_use]
    pub fn blocks(&self) -> Vec<Json> {
        let cut = self.finish() == FinishReason::MaxTokens;
        self.parts()
            .filter(|(_, part)| !(cut && part.is_call()))
            .filter_map(|(index, part)| part.block(index))
            .collect()
    }

    /// What came before the caller gave up: text and reasoning that is not blank.
    #[must_use]
    pub fn interrupted_blocks(&self) -> Vec<Json> {
        self.parts()
            .filter_map(|(index, part)| part.block(index))
            .filter(|block| {
                let kind = block.get("type").and_then(Value::string);
                let speaks = kind.is_some_and(|kind| kind.is("text") || kind.is("reasoning"));
                speaks
                    && block
                        .get("text")
                        .and_then(Value::string)
                        .is_some_and(|text| !is_blank(text))
            })
            .collect()
    }

    /// The adapter's replay envelope, its per-block half in step with
    /// [`BlockAssembler::blocks`]; none where it does not fit the blocks.
    #[must_use]
    pub fn replay_state(&self) -> Option<Json> {
        let chunk = self.finish.as_ref()?;
        let envelope = chunk.get("replayState").filter(|state| state.is_object())?;
        let Some(entries) = envelope.get("blocks").filter(|blocks| blocks.is_array()) else {
            return Some(envelope.to_json());
        };
        let entries: Vec<Value<'_>> = entries.items().collect();
        if entries.len() != self.order.len() {
            return None;
        }
        let cut = self.finish() == FinishReason::MaxTokens;
        let kept = self
            .parts()
            .zip(entries)
            .filter(|((index, part), _)| !(cut && part.is_call()) && part.block(*index).is_some())
            .map(|(_, entry)| entry)
            .collect::<Vec<_>>();
        Some(Json::object(|o| {
            for (key, value) in envelope.entries() {
                if key.is("blocks") {
                    o.array("blocks", |a| {
                        for entry in &kept {
                            a.value(*entry);
                        }
                    });
                } else {
                    o.value(&key.decode(), value);
                }
            }
        }))
    }

    fn parts(&self) -> impl Iterator<Item = (u64, &Partial)> {
        self.order
            .iter()
            .filter_map(|index| Some((*index, self.partials.get(index)?)))
    }
}

impl Partial {
    /// Of the block as it will come out: a closed one may be of another type than it was opened as.
    fn is_call(&self) -> bool {
        match &self.closed {
            Some(block) => block
                .get("type")
                .and_then(Value::string)
                .is_some_and(|kind| kind.is("tool-call")),
            None => self.block_type == "tool-call",
        }
    }

    fn block(&self, index: u64) -> Option<Json> {
        if let Some(block) = &self.closed {
            return Some(block.clone());
        }
        let text = match self.block_type.as_str() {
            kind @ ("text" | "reasoning") => {
                format!(r#"{{"type":"{kind}","text":"{}"}}"#, self.text)
            }
            "tool-call" => {
                let id = self
                    .call_id
                    .clone()
                    .unwrap_or_else(|| format!("call-{index}"));
                format!(
                    r#"{{"type":"tool-call","id":"{id}","name":"{}","arguments":"{}"}}"#,
                    self.call_name, self.arguments
                )
            }
            _ => return None,
        };
        // Normalising joins the halves of a split surrogate pair.
        Json::normalise(&text).ok()
    }
}

/// ECMAScript's `trim`: Unicode white space, line ends and the byte order mark.
fn is_blank(text: JStr<'_>) -> bool {
    text.decode()
        .chars()
        .all(|c| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}')
}

#[cfg(test)]
#[path = "assembler_tests.rs"]
mod tests;
