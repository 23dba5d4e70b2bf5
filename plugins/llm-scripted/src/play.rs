//! An answer as a stream of chunks, cut as a provider cuts it: words of text,
//! nine characters of arguments (spec/llm.md §1.6).

use std::collections::VecDeque;

use guest_support::json::{Object, quote};
use guest_support::types::GenerateRequest;

use crate::bindings::exports::dsh::plugin::llm_adapter::Emission;
use crate::script::{Call, Entry, Failure};

/// Characters of a delta of arguments.
const ARGUMENT_PIECE: usize = 9;

/// Deltas that arrive together.
const BATCH: usize = 8;

/// Facts of the request that an answer is made with.
pub(crate) struct Seen {
    bytes: usize,
    digest: u64,
}

impl Seen {
    pub(crate) fn of(request: &GenerateRequest) -> Self {
        let texts = || {
            request
                .system
                .iter()
                .chain(&request.tools)
                .chain(&request.messages)
        };
        Self {
            bytes: texts().map(String::len).sum(),
            digest: texts()
                .chain(&request.session_id)
                .flat_map(|text| text.bytes())
                .fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
                    (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
                }),
        }
    }
}

/// What `entry` says, in the pieces in which it arrives.
pub(crate) fn emissions(entry: &Entry, seen: &Seen) -> VecDeque<Emission> {
    let mut chunks = Chunks::default();
    if let Some(text) = &entry.reasoning {
        chunks.prose("reasoning", text);
    }
    if let Some(text) = &entry.text {
        chunks.prose("text", text);
    }
    if let Some(failure) = &entry.error {
        chunks.fail(failure);
    } else {
        for (at, call) in entry.calls.iter().enumerate() {
            // Unique in a session, as its history only grows, and the same in each run.
            let id = call
                .id
                .clone()
                .unwrap_or_else(|| format!("call_{:016x}_{at}", seen.digest));
            chunks.call(&id, call);
        }
        let kind = if entry.calls.is_empty() {
            "stop"
        } else {
            "tool-calls"
        };
        chunks.finish(
            entry.finish.as_deref().unwrap_or(kind),
            entry.usage.as_deref(),
            seen,
        );
    }
    chunks.paced(entry.delay_ms, entry.pace_ms)
}

/// A stream that holds nothing but a failure.
pub(crate) fn refusal(code: &str, message: &str) -> VecDeque<Emission> {
    let mut chunks = Chunks::default();
    chunks.fail(&Failure {
        code: code.to_owned(),
        message: message.to_owned(),
        status: None,
    });
    chunks.paced(0, 0)
}

#[derive(Default)]
struct Chunks {
    list: Vec<String>,
    blocks: u64,
    written: usize,
    /// Blocks end together, after the last delta, as where one stream carries all of them.
    ends: Vec<String>,
}

impl Chunks {
    fn start(&mut self, kind: &str) -> u64 {
        let index = self.blocks;
        self.blocks += 1;
        self.list.push(
            chunk("block-start")
                .number("index", index)
                .string("blockType", kind)
                .build(),
        );
        index
    }

    fn end(&mut self, index: u64, block: Object) {
        self.ends.push(
            chunk("block-end")
                .number("index", index)
                .raw("block", &block.build())
                .build(),
        );
    }

    fn prose(&mut self, kind: &str, text: &str) {
        let index = self.start(kind);
        for word in words(text) {
            let delta = chunk(&format!("{kind}-delta"))
                .number("index", index)
                .string("text", word);
            self.list.push(delta.build());
        }
        self.written += text.len();
        self.end(index, chunk(kind).string("text", text));
    }

    fn call(&mut self, id: &str, call: &Call) {
        let index = self.start("tool-call");
        let mut rest = call.arguments.as_str();
        loop {
            let cut = rest
                .char_indices()
                .nth(ARGUMENT_PIECE)
                .map_or(rest.len(), |(at, _)| at);
            let (piece, after) = rest.split_at(cut);
            let delta = chunk("tool-call-delta")
                .number("index", index)
                .string("id", id)
                .string("name", &call.name);
            self.list
                .push(delta.string("argumentsDelta", piece).build());
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        self.written += call.arguments.len();
        let block = chunk("tool-call")
            .string("id", id)
            .string("name", &call.name)
            .string("arguments", &call.arguments);
        self.end(index, block);
    }

    fn finish(&mut self, kind: &str, usage: Option<&str>, seen: &Seen) {
        self.list.append(&mut self.ends);
        let estimate = |bytes: usize| bytes.div_ceil(4) as u64;
        let counted = Object::new()
            .number("inputTokens", estimate(seen.bytes))
            .number("outputTokens", estimate(self.written));
        self.list.push(
            chunk("usage")
                .raw("usage", usage.unwrap_or(&counted.build()))
                .build(),
        );
        self.list.push(
            chunk("finish")
                .raw("reason", &Object::new().string("kind", kind).build())
                .build(),
        );
    }

    fn fail(&mut self, failure: &Failure) {
        let status = failure.status.map(|status| status.to_string());
        let facts = Object::new()
            .string("message", &failure.message)
            .string("code", &failure.code);
        let facts = facts.maybe("status", status.as_deref()).build();
        let reason = Object::new()
            .string("kind", "error")
            .raw("failure", &facts)
            .build();
        self.list
            .push(chunk("finish").raw("reason", &reason).build());
    }

    fn paced(self, delay_ms: u32, pace_ms: u32) -> VecDeque<Emission> {
        let size = if pace_ms > 0 { 1 } else { BATCH };
        let pieces = self.list.chunks(size).enumerate();
        let wait = |at: usize| if at == 0 { delay_ms } else { pace_ms };
        pieces
            .map(|(at, chunks)| Emission {
                after_ms: wait(at),
                chunks: chunks.to_vec(),
            })
            .collect()
    }
}

fn chunk(kind: &str) -> Object {
    Object::new().raw("type", &quote(kind))
}

/// Words, each with the space that follows it.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let word = rest.find(char::is_whitespace).unwrap_or(rest.len());
        let space = rest[word..]
            .find(|c: char| !c.is_whitespace())
            .unwrap_or(rest.len() - word);
        let (piece, after) = rest.split_at(word + space);
        rest = after;
        (!piece.is_empty()).then_some(piece)
    })
}
