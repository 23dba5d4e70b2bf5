//! The heuristic token measure. `spec/session.md` §10.6: UTF-16 length over four, rounded up, and four a block.

use crate::{Event, Kind, RequestHeader, Value, json, message as shape};

/// What every message, every block and the system text cost besides their text.
pub const OVERHEAD: u64 = 4;

/// Tokens of a text of that many UTF-16 units.
pub fn units(utf16_len: usize) -> u64 {
    utf16_len.div_ceil(4) as u64
}

/// Tokens of a block with a text of so many UTF-16 units, and a name of so many (0 for none).
pub fn block(text: usize, name: usize) -> u64 {
    units(text) + units(name) + OVERHEAD
}

/// Tokens of a string value; 0 for other kinds.
fn string(value: Option<Value<'_>>) -> u64 {
    value
        .and_then(Value::string)
        .map_or(0, |text| units(text.utf16_len()))
}

/// Tokens of a value's JSON text.
fn text(value: Value<'_>) -> u64 {
    units(json::text::utf16_len_plain(value.as_str()))
}

/// Tokens of one message.
pub fn message(message: Value<'_>) -> u64 {
    message.get("content").map_or(0, content) + OVERHEAD
}

/// Tokens of what an event puts on the surface: those of its message; 0 for an assistant message without content, which
/// the model is not shown.
pub fn event(event: &Event) -> u64 {
    let Some(message) = shape::of(&event.kind, event.data.value()) else {
        return 0;
    };
    match message.get("content") {
        Some(blocks) if event.kind != Kind::AssistantMessage || blocks.as_str() != "[]" => {
            content(blocks) + OVERHEAD
        }
        None if event.kind != Kind::AssistantMessage => OVERHEAD,
        _ => 0,
    }
}

/// Tool results nested deeper than any program writes are measured as text, so that no text costs more than its length.
const DEEPEST: usize = 16;

/// Tokens of a list of content blocks. Tool results may nest; an explicit stack walks them.
pub fn content(blocks: Value<'_>) -> u64 {
    let mut sum = 0;
    let mut lists = vec![blocks.items()];
    while let Some(list) = lists.last_mut() {
        let Some(block) = list.next() else {
            lists.pop();
            continue;
        };
        let tag = block.get("type").and_then(Value::text).unwrap_or_default();
        sum += OVERHEAD;
        match &*tag {
            "text" | "reasoning" => sum += string(block.get("text")),
            "tool-call" => sum += string(block.get("name")) + string(block.get("arguments")),
            "tool-result" if lists.len() < DEEPEST => {
                lists.extend(block.get("content").map(Value::items));
            }
            _ => sum += text(block),
        }
    }
    sum
}

/// Tokens of a request header: system and tools.
pub fn header(header: &RequestHeader) -> u64 {
    system(header) + tools(header)
}

/// Tokens of the system text, 0 without one.
pub fn system(header: &RequestHeader) -> u64 {
    header
        .system()
        .map_or(0, |system| units(system.utf16_len()) + OVERHEAD)
}

/// Tokens of the tool list, 0 without one.
pub fn tools(header: &RequestHeader) -> u64 {
    header.tools().map_or(0, |tools| text(tools) + OVERHEAD)
}
