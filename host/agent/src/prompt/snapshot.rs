//! The runtime-context snapshot: facts that change, told in a message instead of
//! in the system prompt, so that the provider's cache of that holds
//! (spec/loop.md §9.4).
//!
//! What was told is read from the log, never remembered beside it: a candidate
//! that no step took in does not count as told, and a resumed session knows
//! what the one before it said.

use dsh_session::{Event, Json, Session, Value};

use crate::message::{Message, text_block};

/// The source that marks snapshots; upstream's, so that both read each other's logs.
const PLUGIN: &str = "@deepseek-ai/dsh-system-prompt";

const LEAD: &str =
    "Current runtime context. It replaces any runtime context given earlier in this conversation.";
const CLEARED: &str = "No runtime context applies any more. Disregard any runtime context given earlier in this conversation.";

/// The message that tells these facts, if it has to be told at this point of the log.
pub(crate) fn candidate<'a>(
    session: &Session,
    facts: impl Iterator<Item = (&'a str, &'a str)>,
) -> Option<Message> {
    let facts: Vec<_> = facts.collect();
    let last = session
        .last_from(PLUGIN)
        .and_then(|event| Some((event.seq, told(event)?)));
    let standing = last
        .as_ref()
        .filter(|(seq, _)| session.surface().contains(*seq));
    if facts.is_empty() {
        // Nothing was ever told: nothing to take back.
        last.as_ref()?;
        return standing
            .is_none_or(|(_, text)| text != CLEARED)
            .then(cleared);
    }
    let text = rendered(&facts);
    standing
        .is_none_or(|(_, told)| *told != text)
        .then(|| snapshot(&facts, &text))
}

/// The text of a snapshot message.
fn told(event: &Event) -> Option<String> {
    let first = event.data.get("content")?.items().next()?;
    Some(first.get("text").and_then(Value::text)?.into_owned())
}

fn rendered(facts: &[(&str, &str)]) -> String {
    let mut text = LEAD.to_owned();
    for (_, fact) in facts {
        text.push_str("\n\n");
        text.push_str(fact);
    }
    text
}

fn snapshot(facts: &[(&str, &str)], text: &str) -> Message {
    let source = Json::object(|source| {
        source
            .str("kind", "plugin")
            .str("plugin", PLUGIN)
            .str("form", "snapshot");
        source.array("sections", |sections| {
            for (name, text) in facts {
                sections.object(|section| {
                    section.str("name", name).str("text", text);
                });
            }
        });
    });
    Message::mint(&[text_block(text)], &source)
}

fn cleared() -> Message {
    let source = Json::object(|source| {
        source.str("kind", "plugin").str("plugin", PLUGIN);
    });
    Message::mint(&[text_block(CLEARED)], &source)
}

#[cfg(test)]
#[path = "snapshot_tests.rs"]
mod tests;
