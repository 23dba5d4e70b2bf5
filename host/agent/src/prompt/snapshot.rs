//! The runtime-context snapshot: facts that change, told in a message instead of
//! in the system prompt, so that the provider's cache of that holds
//! (spec/loop.md §9.4).
//!
//! What was told is read from the log, never remembered beside it: a candidate
//! that no step took in does not count as told, and a resumed session knows
//! what the one before it said.

use dsh_session::{Event, Json, Kind, Seq, Session, Value};

use crate::message::{Message, text_block};

/// The source that marks snapshots; upstream's, so that both read each other's logs.
const PLUGIN: &str = "@deepseek-ai/dsh-system-prompt";

const LEAD: &str =
    "Current runtime context. It replaces any runtime context given earlier in this conversation.";
const CLEARED: &str = "No runtime context applies any more. Disregard any runtime context given earlier in this conversation.";

/// What was told last, folded as far as the log was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct Snapshot {
    read: u64,
    last: Option<Told>,
}

#[derive(Clone, Debug)]
struct Told {
    seq: Seq,
    text: String,
}

impl Snapshot {
    /// The message that tells these facts, if it has to be told at this point of the log.
    pub(crate) fn candidate<'a>(
        &mut self,
        session: &Session,
        facts: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Option<Message> {
        self.fold(session);
        let facts: Vec<_> = facts.collect();
        let standing = self
            .last
            .as_ref()
            .filter(|told| session.surface().nodes().contains(&told.seq));
        if facts.is_empty() {
            // Nothing was ever told: nothing to take back.
            self.last.as_ref()?;
            return standing
                .is_none_or(|told| told.text != CLEARED)
                .then(cleared);
        }
        let text = rendered(&facts);
        standing
            .is_none_or(|told| told.text != text)
            .then(|| snapshot(&facts, &text))
    }

    fn fold(&mut self, session: &Session) {
        for event in session.events_from(Seq(self.read)) {
            if let Some(text) = told(event) {
                self.last = Some(Told {
                    seq: event.seq,
                    text,
                });
            }
        }
        self.read = session.next_seq().0;
    }
}

/// The text of a snapshot message, for an event that is one.
fn told(event: &Event) -> Option<String> {
    if event.kind != Kind::UserMessage {
        return None;
    }
    let plugin = event
        .data
        .value()
        .path(&["source", "plugin"])
        .and_then(Value::string)?;
    if !plugin.is(PLUGIN) {
        return None;
    }
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
