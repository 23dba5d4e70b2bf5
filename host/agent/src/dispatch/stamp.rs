//! Whose words a message is. A result of a listener may hold messages; what the
//! host handed to it unchanged passes as it was, everything else is the
//! listener's own and says so. Nothing a component makes can pass for a person,
//! the model or a tool (architecture.md).

use dsh_session::{Json, Value};

use super::events::EventSpec;
use super::listener::{Listener, ListenerError, Standing};
use crate::message::Message;

/// Kinds that say who somebody else is: no row speaks for them, whatever its
/// manifest names.
const OTHERS: [&str; 5] = ["user", "model", "tool", "approval", "plugin"];

/// Gives the drafts in `result` their id, role and source. `known` are the
/// texts that the listener was shown.
pub(super) fn stamp(
    spec: &EventSpec,
    listener: &dyn Listener,
    known: &[&Json],
    result: Json,
) -> Result<Json, ListenerError> {
    let Some(member) = spec.messages else {
        return Ok(result);
    };
    let Some(messages) = result.get(member) else {
        return Ok(result);
    };
    if !messages.is_array() {
        return Err(ListenerError::new(
            "INVALID",
            format!("{member} of its result is no list"),
        ));
    }
    let standing = listener.standing();
    let shown: Vec<Value<'_>> = known
        .iter()
        .filter_map(|json| json.get(member))
        .flat_map(Value::items)
        .collect();
    let mut stamped = Vec::new();
    for message in messages.items() {
        if shown.contains(&message) {
            stamped.push(message.to_json());
        } else {
            stamped.push(own_message(&standing, message)?);
        }
    }
    Ok(with_messages(&result, member, &stamped))
}

/// A message of the listener's own.
pub(crate) fn own_message(standing: &Standing, message: Value<'_>) -> Result<Json, ListenerError> {
    if !message.get("content").is_some_and(Value::is_array) {
        return Err(ListenerError::new(
            "INVALID",
            "a message in its result has no list of content blocks",
        ));
    }
    let content: Vec<Json> = message
        .get("content")
        .into_iter()
        .flat_map(Value::items)
        .map(Value::to_json)
        .collect();
    let source = message.get("source").filter(|source| source.is_object());
    match standing {
        Standing::Host => {
            let whole = message.to_json();
            if Message::complete(whole.clone()).is_ok() {
                return Ok(whole);
            }
            let source = source.map_or_else(|| plugin_source("host", None), Value::to_json);
            Ok(Message::mint(&content, &source).json().clone())
        }
        Standing::Row { row, sources } => {
            let spoken = |block: &Json| {
                let kind = block.get("type").and_then(Value::text);
                matches!(kind.as_deref(), Some("text" | "image"))
            };
            if !content.iter().all(spoken) {
                return Err(ListenerError::new(
                    "INVALID",
                    "a message in its result has a block that is neither text nor image",
                ));
            }
            let kind = source
                .and_then(|source| source.get("kind"))
                .and_then(Value::text);
            let source = match (source, kind) {
                (Some(source), Some(kind))
                    if sources.iter().any(|own| *own == *kind) && !OTHERS.contains(&&*kind) =>
                {
                    source.to_json()
                }
                (source, _) => plugin_source(row, source),
            };
            Ok(Message::mint(&content, &source).json().clone())
        }
    }
}

/// `{kind: "plugin", plugin, …}` with the other members that a draft gave.
fn plugin_source(plugin: &str, draft: Option<Value<'_>>) -> Json {
    Json::object(|source| {
        source.str("kind", "plugin").str("plugin", plugin);
        for (key, value) in draft.into_iter().flat_map(Value::entries) {
            let key = key.decode();
            if key != "kind" && key != "plugin" {
                source.value(&key, value);
            }
        }
    })
}

fn with_messages(result: &Json, member: &str, messages: &[Json]) -> Json {
    Json::object(|object| {
        for (key, value) in result.value().entries() {
            if key.is(member) {
                object.array(member, |items| {
                    for message in messages {
                        items.json(message);
                    }
                });
            } else {
                object.value(&key.decode(), value);
            }
        }
    })
}
