//! The shape that every stored message has. `spec/session.md` §3 "Message shape checks".
//!
//! Seeds and loads are checked, appends are not: what the host appends has the shape by construction. Block contents are
//! free and unknown fields are kept.

use crate::{Event, Kind, Value};

/// The message inside a surface event's data.
pub(crate) fn of<'a>(kind: &Kind, data: Value<'a>) -> Option<Value<'a>> {
    match kind {
        Kind::UserMessage => Some(data),
        Kind::AssistantMessage | Kind::ToolResult => data.get("message"),
        _ => None,
    }
}

fn filled(value: Option<Value<'_>>) -> bool {
    value
        .and_then(Value::string)
        .is_some_and(|text| !text.is_empty())
}

/// What the message of a surface event lacks; nothing for other kinds.
pub(crate) fn fault(event: &Event) -> Option<&'static str> {
    if !event.kind.is_surface() {
        return None;
    }
    let message = of(&event.kind, event.data.value());
    let Some(message) = message.filter(|message| message.is_object() && filled(message.get("id")))
    else {
        return Some("lacks an identified message");
    };
    let role = if event.kind == Kind::AssistantMessage {
        "assistant"
    } else {
        "user"
    };
    if !message.get("role").is_some_and(|found| found.is(role)) {
        return Some("has a message of another role");
    }
    let source = message.get("source").filter(|source| source.is_object());
    let Some(source) = source.filter(|source| filled(source.get("kind"))) else {
        return Some("has a message without a source");
    };
    let Some(content) = message.get("content").filter(|content| content.is_array()) else {
        return Some("has a message without a content list");
    };
    let source_is = |kind| source.get("kind").is_some_and(|found| found.is(kind));
    match event.kind {
        Kind::AssistantMessage => {
            let sound =
                source_is("model") && filled(source.get("provider")) && filled(source.get("model"));
            (!sound).then_some("has a message without a model source")
        }
        Kind::ToolResult => {
            let call = source.get("callId").filter(|_| source_is("tool"));
            if !filled(call) {
                return Some("has a message without a tool source");
            }
            let mut blocks = content.items();
            let sound = match (blocks.next(), blocks.next()) {
                (Some(block), None) => {
                    block.get("type").is_some_and(|kind| kind.is("tool-result"))
                        && block.get("content").is_some_and(Value::is_array)
                        && block.get("toolCallId") == call
                }
                _ => false,
            };
            (!sound).then_some("needs exactly one tool-result block that answers its own call")
        }
        _ => None,
    }
}
