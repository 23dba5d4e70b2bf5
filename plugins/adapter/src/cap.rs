//! How long an answer may be: what was asked for or the model's own bound, but no
//! more than its window leaves after the request (spec/llm.md §7.2).

use guest_support::json::Json;
use guest_support::types::GenerateRequest;

use crate::history::{Block, Entry, Piece};
use crate::profile::Model;

/// Characters that a picture counts for.
const PICTURE: usize = 4800;

/// Tokens left free, as the estimate is rough.
const RESERVE: u64 = 4096;

/// Tokens that the request is about, at four characters each.
pub fn estimate(request: &GenerateRequest, history: &[Entry<'_>]) -> u64 {
    let quarter = |chars: usize| chars.div_ceil(4) as u64;
    let system = request.system.as_deref().map_or(0, utf16);
    let tools = if request.tools.is_empty() {
        0
    } else {
        tools_chars(&request.tools)
    };
    let entries: u64 = history.iter().map(|entry| quarter(chars(entry))).sum();
    quarter(system) + quarter(tools) + entries
}

/// Tokens that the window leaves after a request; at least 1.
pub fn room(model: &Model, estimate: u64) -> u32 {
    let room = model
        .context_window
        .saturating_sub(estimate)
        .saturating_sub(RESERVE);
    room.max(1).try_into().unwrap_or(u32::MAX)
}

fn chars(entry: &Entry<'_>) -> usize {
    let pieces = |pieces: &[Piece<'_>]| -> usize {
        pieces
            .iter()
            .map(|piece| match piece {
                Piece::Text(text) => escaped_chars(text),
                Piece::Image(_) => PICTURE,
            })
            .sum()
    };
    match entry {
        Entry::User { parts } => pieces(parts),
        Entry::Result { parts, .. } => pieces(parts),
        Entry::Assistant(assistant) => assistant
            .blocks
            .iter()
            .map(|block| match block {
                Block::Text { text, .. } | Block::Thinking { text, .. } => escaped_chars(text),
                Block::Call {
                    name, arguments, ..
                } => escaped_chars(name) + utf16(arguments),
            })
            .sum(),
    }
}

/// The list of tools as one JSON text has it.
fn tools_chars(tools: &[String]) -> usize {
    let member = |tool: Json<'_>, name: &str| {
        tool.some(name)
            .map_or(0, |value| name.len() + 4 + utf16(value.raw()))
    };
    tools
        .iter()
        .filter_map(|tool| Json::parse(tool))
        .map(|tool| {
            ["name", "description", "parameters"]
                .into_iter()
                .map(|name| member(tool, name))
                .sum::<usize>()
                + 2
        })
        .sum::<usize>()
        + 1
}

fn utf16(text: &str) -> usize {
    if text.is_ascii() {
        return text.len();
    }
    text.encode_utf16().count()
}

/// UTF-16 units of an escaped text, once decoded: an escape is one.
fn escaped_chars(escaped: &str) -> usize {
    let (mut units, mut rest) = (0, escaped);
    while let Some(at) = rest.find('\\') {
        let length = if rest.as_bytes().get(at + 1) == Some(&b'u') {
            6
        } else {
            2
        };
        units += utf16(&rest[..at]) + 1;
        rest = rest.get(at + length..).unwrap_or("");
    }
    units + utf16(rest)
}

#[cfg(test)]
#[path = "cap_tests.rs"]
mod tests;
