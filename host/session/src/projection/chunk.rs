//! What folds need of an `assistant/chunk`. Chunks are most of a long log, so what a chunk is has to be told by its
//! first bytes: nearly all begin with `{"turn":…,"step":…,"chunk":{"type":"…`.

use crate::{Event, Kind, Value};

/// The type of an event's chunk, escapes as they stand.
pub(crate) fn tag(event: &Event) -> Option<&str> {
    quick_tag(event.data.as_str()).or_else(|| {
        let tag = event.data.value().path(&["chunk", "type"])?;
        Some(tag.string()?.raw())
    })
}

fn quick_tag(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("{\"turn\":")?;
    let rest = after_number(rest).strip_prefix(",\"step\":")?;
    let rest = after_number(rest).strip_prefix(",\"chunk\":{\"type\":\"")?;
    rest.split('"').next()
}

fn after_number(text: &str) -> &str {
    let digit = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e');
    let length = text
        .as_bytes()
        .iter()
        .take_while(|byte| digit(byte))
        .count();
    &text[length..]
}

/// What a provider said about tokens: the usage of a usage chunk or of a finished message.
pub(crate) fn usage(event: &Event) -> Option<Value<'_>> {
    let usage = match event.kind {
        Kind::AssistantChunk if tag(event) == Some("usage") => {
            event.data.value().path(&["chunk", "usage"])
        }
        Kind::AssistantMessage => event.data.get("usage"),
        _ => None,
    };
    usage.filter(|usage| usage.is_object())
}

/// A member that is a number; anything else counts as 0.
pub(crate) fn number(value: Value<'_>, key: &str) -> f64 {
    value.get(key).and_then(Value::f64).unwrap_or(0.0)
}

/// The turn and the step that an event belongs to.
pub(crate) fn place(data: Value<'_>) -> (f64, f64) {
    (number(data, "turn"), number(data, "step"))
}

/// Whether a chunk brings the model's first token: text that is not empty, or the name or arguments of a call
/// (`spec/session.md` §10.5).
pub fn is_token(chunk: Value<'_>) -> bool {
    let filled = |key| {
        let text = chunk.get(key).and_then(Value::string);
        text.is_some_and(|text| !text.is_empty())
    };
    let Some(tag) = chunk.get("type").and_then(Value::string) else {
        return false;
    };
    match tag.raw() {
        "text-delta" | "reasoning-delta" => filled("text"),
        "tool-call-delta" => filled("argumentsDelta") || chunk.get("name").is_some(),
        _ => false,
    }
}
