//! What a message is estimated to cost (spec/session.md §10.6): UTF-16 length over four, rounded up, and four a block.

use guest_support::fold::{Event, Tail, utf16_units, utf16_units_of_text};

/// What every message and every block cost besides their text.
const OVERHEAD: usize = 4;

/// Tool results nested deeper than any program writes are measured as text, so that no text costs more than its length.
const DEEPEST: usize = 16;

/// Tokens of what an event puts on the surface: those of its message; 0 for an assistant message without content,
/// which the model is not shown.
pub(crate) fn event(event: Event<'_>) -> f64 {
    let message = match event.kind {
        "user/message" => Some(event.data),
        "assistant/message" | "tool/result" => event.data.member("message"),
        _ => None,
    };
    let Some(message) = message else {
        return 0.0;
    };
    let empty = |blocks: Tail<'_>| blocks.items().next().is_none();
    let tokens = match message.member("content") {
        Some(blocks) if event.kind != "assistant/message" || !empty(blocks) => {
            content(blocks) + OVERHEAD
        }
        None if event.kind != "assistant/message" => OVERHEAD,
        _ => 0,
    };
    tokens as f64
}

fn tokens(units: usize) -> usize {
    units.div_ceil(4)
}

fn string(value: Option<Tail<'_>>) -> usize {
    value
        .and_then(Tail::escaped)
        .map_or(0, |text| tokens(utf16_units(text)))
}

/// Tokens of a list of content blocks. Tool results may nest; an explicit stack walks them.
fn content(blocks: Tail<'_>) -> usize {
    let mut sum = 0;
    let mut lists = vec![blocks.items()];
    while let Some(list) = lists.last_mut() {
        let Some(block) = list.next() else {
            lists.pop();
            continue;
        };
        sum += OVERHEAD;
        match block.member("type").and_then(Tail::escaped) {
            Some("text" | "reasoning") => sum += string(block.member("text")),
            Some("tool-call") => {
                sum += string(block.member("name")) + string(block.member("arguments"))
            }
            Some("tool-result") if lists.len() < DEEPEST => {
                lists.extend(block.member("content").map(Tail::items));
            }
            _ => sum += tokens(utf16_units_of_text(block.raw())),
        }
    }
    sum
}
