//! One compaction in the log (spec/loop.md §10.4): `compaction/start`, then the
//! text is written, then `compaction/summary`, the message that stands for what
//! was summarised, and `compaction/end`, with nothing of anyone's in between.
//!
//! What fails behind the start is told by a `compaction/end` with an error,
//! tried once. A start that stays without an end, as after a crash, locks the
//! session for other compactions until it is opened anew; the surface is then
//! what it was, or what it should have become, and never half of it, since one
//! event changes it.

use dsh_plugin::api::{JsonText, Situation};
use dsh_session::{Draft, Event, Json, Kind, Session, Value, estimate};

use super::error::CompactionError;
use super::rounds::Rounds;
use super::selection::Selection;
use super::{Compacted, Compactor, Written, frame};
use crate::message::{Message, fresh_id};

/// A compaction of these nodes.
pub(super) struct Transaction<'a> {
    rounds: &'a Rounds<'a>,
    row: &'a dyn Compactor,
    selection: &'a Selection,
    id: String,
}

impl<'a> Transaction<'a> {
    pub(super) fn new(
        rounds: &'a Rounds<'a>,
        row: &'a dyn Compactor,
        selection: &'a Selection,
    ) -> Self {
        Self {
            rounds,
            row,
            selection,
            id: fresh_id(),
        }
    }

    pub(super) async fn run(
        &self,
        situation: &Situation,
        nodes: (u32, u32),
    ) -> Result<Compacted, CompactionError> {
        let log = &self.rounds.agent.log;
        let start = log.record(Kind::CompactionStart, self.marker(None))?;
        let committed = match self.write(situation, nodes).await {
            Ok((text, message)) => log.append_all(|session| {
                if self.selection.stands(session, self.rounds.turn.is_some()) {
                    Ok(self.drafts(session, &start, &text, &message))
                } else {
                    Err(CompactionError::Changed)
                }
            }),
            Err(error) => Err(error),
        };
        match committed {
            Ok(events) => Ok(Compacted {
                id: self.id.clone(),
                nodes: self.selection.nodes.len(),
                before: self.selection.tokens,
                after: events.get(1).map_or(0, |event| estimate::event(event)),
            }),
            Err(error) => {
                let ended = self.marker(Some(&error));
                // If even that is refused, the start locks, and should.
                let _ = log.record(Kind::CompactionEnd, ended);
                Err(error)
            }
        }
    }

    /// The text and the message, if they are what they should be.
    async fn write(
        &self,
        situation: &Situation,
        nodes: (u32, u32),
    ) -> Result<(Text, Message), CompactionError> {
        let rounds = self.rounds;
        let row = self.row.row();
        let scope = rounds.agent.scope(rounds.signal);
        let written = self.row.summarise(situation, nodes, &scope).await;
        if rounds.signal.aborted() {
            return Err(CompactionError::Cancelled);
        }
        let written = written.map_err(|error| rounds.failed(row, error))?;
        let unusable = |what| CompactionError::Summary {
            row: row.to_owned(),
            what,
        };
        let text = Text::of(&written).map_err(unusable)?;
        let message = frame::message(&text.blocks, &self.id, rounds.command);
        let (before, after) = (
            self.selection.tokens,
            estimate::message(message.json().value()),
        );
        if after >= before {
            return Err(CompactionError::NotSmaller {
                row: row.to_owned(),
                before,
                after,
            });
        }
        Ok((text, message))
    }

    /// The data of a start or an end: `{compactionId, sourceCommandId?, turn, error?}`.
    fn marker(&self, error: Option<&CompactionError>) -> Json {
        Json::object(|data| {
            data.str("compactionId", &self.id)
                .opt_str("sourceCommandId", self.rounds.command);
            match self.rounds.turn {
                Some(turn) => data.u64("turn", turn),
                None => data.null("turn"),
            };
            if let Some(error) = error {
                data.str("error", &error.to_string());
            }
        })
    }

    fn drafts(
        &self,
        session: &Session,
        start: &Event,
        text: &Text,
        message: &Message,
    ) -> Vec<Draft> {
        let (first, last) = (self.selection.first(), self.selection.last());
        let summary = Json::object(|data| {
            data.str("compactionId", &self.id)
                .opt_str("sourceCommandId", self.rounds.command);
            data.array("summary", |blocks| {
                for block in &text.blocks {
                    blocks.json(block);
                }
            });
            data.opt_json("rawOutput", text.raw_output.as_ref());
            if text.one_call {
                data.bool("llmStreamCall", true);
            }
            data.object("shadowedRange", |range| {
                range.u64("start", first.0).u64("end", last.0);
            });
            data.array("shadowedSeqs", |seqs| {
                for node in &self.selection.nodes {
                    seqs.u64(node.0);
                }
            });
            data.u64("shadowedTokenCount", self.selection.tokens)
                .str("provider", &text.provider)
                .str("model", &text.model)
                .opt_json("maxTokens", text.max_tokens.as_ref())
                .opt_json("usage", text.usage.as_ref());
        });
        let mut sources = vec![start.seq, session.next_seq()];
        sources.extend_from_slice(&self.selection.nodes);
        let checkpoint = Draft::new(Kind::UserMessage, message.json().clone())
            .replace(first, last)
            .sources(sources);
        vec![
            Draft::new(Kind::CompactionSummary, summary),
            checkpoint,
            Draft::new(Kind::CompactionEnd, self.marker(None)),
        ]
    }
}

/// A usable text, and how it was made.
#[derive(Debug, PartialEq)]
struct Text {
    blocks: Vec<Json>,
    provider: String,
    model: String,
    max_tokens: Option<Json>,
    raw_output: Option<Json>,
    usage: Option<Json>,
    one_call: bool,
}

impl Text {
    /// Where it was made by one call of a model, of that call; else what the row
    /// says of it. The reason, where it cannot be used.
    fn of(written: &Written) -> Result<Self, String> {
        let blocks = frame::blocks(&written.summary.content)?;
        let json = |what: &str, text: &JsonText| {
            Json::normalise(text).map_err(|error| format!("has {what} that is no JSON: {error}"))
        };
        let origin = match &written.call {
            Some(call) => json("a route", &call.config)?,
            None => json("an origin", &written.summary.origin)?,
        };
        let member = |name: &str| origin.get(name);
        let name = |key: &str| {
            let text = member(key).and_then(Value::text);
            let text = text.filter(|text| !text.is_empty());
            let text = text.ok_or_else(|| format!("does not say by which {key} it was made"))?;
            Ok::<_, String>(text.into_owned())
        };
        let list = |texts: &[JsonText]| {
            let blocks = texts.iter().map(|text| json("a raw block", text));
            let blocks: Vec<Json> = blocks.collect::<Result<_, _>>()?;
            Ok::<_, String>(Json::array(|list| {
                for block in &blocks {
                    list.json(block);
                }
            }))
        };
        let (raw_output, usage) = match &written.call {
            Some(call) => (
                Some(list(&call.content)?),
                call.usage
                    .as_ref()
                    .map(|usage| json("a usage", usage))
                    .transpose()?,
            ),
            None => (
                member("rawOutput")
                    .filter(|raw| raw.is_array())
                    .map(Value::to_json),
                member("usage")
                    .filter(|usage| usage.is_object())
                    .map(Value::to_json),
            ),
        };
        Ok(Self {
            blocks,
            provider: name("provider")?,
            model: name("model")?,
            max_tokens: member("maxTokens")
                .filter(|most| most.u64().is_some())
                .map(Value::to_json),
            raw_output,
            usage,
            one_call: written.call.is_some(),
        })
    }
}
