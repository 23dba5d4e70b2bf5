//! What an adapter is shown of a message: a transient copy. `spec/llm.md` §3.6, steps 2 and 3.
//!
//! Nearly all messages pass as they are, found by a search of their text; only
//! one that holds an image or a replay state is read.

use dsh_session::{ArrayWriter, Json, ObjectWriter, Value};

/// What the model of a call may see of the history.
pub(crate) struct View {
    /// Routes of the same adapter: their replay states are its own.
    pub(crate) own_routes: Vec<String>,
    /// Whether images may be sent.
    pub(crate) images: bool,
}

impl View {
    /// The message as the adapter gets it.
    pub(crate) fn of(&self, message: &str) -> String {
        let may_hold_image = !self.images && message.contains(r#""image""#);
        if !may_hold_image && !message.contains(r#""replayState""#) {
            return message.to_owned();
        }
        let Ok(message) = Json::restore(message) else {
            return message.to_owned();
        };
        let shown = Json::object(|o| {
            for (key, value) in message.value().entries() {
                if key.is("content") && !self.images {
                    o.array("content", |a| blocks(a, value));
                } else if key.is("source") && !self.keeps_replay_state(value) {
                    o.object("source", |o| without(o, value, "replayState"));
                } else {
                    o.value(&key.decode(), value);
                }
            }
        });
        shown.as_str().to_owned()
    }

    fn keeps_replay_state(&self, source: Value<'_>) -> bool {
        let provider = source.get("provider").and_then(Value::text);
        source.get("replayState").is_none()
            || provider.is_some_and(|provider| self.own_routes.iter().any(|own| *own == *provider))
    }
}

fn without(o: &mut ObjectWriter<'_>, value: Value<'_>, member: &str) {
    for (key, value) in value.entries() {
        if !key.is(member) {
            o.value(&key.decode(), value);
        }
    }
}

/// Content blocks with a text in the place of each image; tool results hold blocks
/// of their own, which hold no further results, so two levels are looked at.
fn blocks(a: &mut ArrayWriter<'_>, content: Value<'_>) {
    for block in content.items() {
        if is(block, "tool-result") {
            a.object(|o| {
                for (key, value) in block.entries() {
                    if key.is("content") && value.is_array() {
                        o.array("content", |a| {
                            value.items().for_each(|inner| leaf(a, inner));
                        });
                    } else {
                        o.value(&key.decode(), value);
                    }
                }
            });
        } else {
            leaf(a, block);
        }
    }
}

fn leaf(a: &mut ArrayWriter<'_>, block: Value<'_>) {
    if !is(block, "image") {
        a.value(block);
        return;
    }
    let id = block
        .path(&["attachment", "attachmentId"])
        .and_then(Value::text)
        .unwrap_or_default();
    let text = placeholder(&id);
    a.object(|o| {
        o.str("type", "text").str("text", &text);
    });
}

/// What a model that takes no images reads in the place of one.
fn placeholder(attachment: &str) -> String {
    let short: String = match attachment.split_once(':') {
        Some((algorithm, hex)) => {
            format!("{algorithm}:{}", hex.chars().take(8).collect::<String>())
        }
        None => attachment.chars().take(16).collect(),
    };
    format!("[Image {short}: not shown, because this model takes text only]")
}

fn is(block: Value<'_>, kind: &str) -> bool {
    block
        .get("type")
        .and_then(Value::string)
        .is_some_and(|text| text.is(kind))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
