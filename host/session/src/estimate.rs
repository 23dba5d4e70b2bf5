//! The heuristic token measure. `spec/session.md` §10.6: UTF-16 length over four, rounded up, and four a block.

use crate::{RequestHeader, Value};

/// Tokens of a text of that many UTF-16 units.
pub fn units(utf16_len: usize) -> u64 {
    utf16_len.div_ceil(4) as u64
}

/// Tokens of one message.
pub fn message(message: Value<'_>) -> u64 {
    let _ = message;
    todo!()
}

/// Tokens of a list of content blocks.
pub fn content(blocks: Value<'_>) -> u64 {
    let _ = blocks;
    todo!()
}

/// Tokens of a request header: system and tools.
pub fn header(header: &RequestHeader) -> u64 {
    let _ = header;
    todo!()
}
