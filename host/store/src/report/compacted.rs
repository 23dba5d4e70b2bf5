//! Where a log says that the model was given something shorter, and what: the half of a transcript that is no appended
//! message. A person who cannot see it cannot see what the model goes by.
//!
//! A summary is told where its message took the place of others, not where it was written: one that was written and
//! never put in place (a process died between) changed nothing.

use std::io;

use dsh_session::{Event, Kind, SurfaceOp, Value};

use super::line;

/// What happened to what the model sees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Mark {
    /// A text took the place of messages.
    Summary {
        /// Seq of the message that stands for them now.
        seq: u64,
        /// When, in milliseconds since 1970.
        time: i64,
        /// How many nodes of the surface it replaced, where the log says.
        nodes: Option<usize>,
        /// The text without the host's words around it; the message whole where the log has no summary for it.
        text: String,
    },
    /// So many tool results in a row became shorter.
    Pruned(u64),
    /// A compaction changed nothing, for this reason.
    Failed(String),
}

impl Mark {
    /// What a transcript says of it in a line.
    pub fn line(&self) -> String {
        match self {
            Self::Summary { nodes, .. } => {
                let count = nodes.map_or_else(String::new, |nodes| format!(" ({nodes})"));
                format!(
                    "compaction: from here on the model sees this summary in place of older messages{count}"
                )
            }
            Self::Pruned(1) => {
                "compaction: from here on the model sees one tool result above without its middle"
                    .to_owned()
            }
            Self::Pruned(count) => {
                format!(
                    "compaction: from here on the model sees {count} tool results above without their middle"
                )
            }
            Self::Failed(why) => format!("compaction failed: {}", line(why, 1000)),
        }
    }
}

/// Finds the marks of a log. It remembers one summary, so a log of any length goes through.
#[derive(Debug, Default)]
pub struct Compactions {
    written: Option<Written>,
    pruned: u64,
}

/// A summary that has been written and not put in place yet.
#[derive(Debug)]
struct Written {
    id: String,
    text: String,
    nodes: usize,
}

impl Compactions {
    /// The next event of the log; `tell` gets what is known by then, which belongs in front of it.
    ///
    /// # Errors
    /// Of `tell`.
    pub fn event(
        &mut self,
        event: &Event,
        mut tell: impl FnMut(Mark) -> io::Result<()>,
    ) -> io::Result<()> {
        let data = event.data.value();
        let replaces = matches!(event.surface_op, Some(SurfaceOp::Replace { .. }));
        match event.kind {
            Kind::CompactionPrune => return Ok(()),
            Kind::ToolResult if replaces => {
                self.pruned += 1;
                return Ok(());
            }
            _ => self.end(&mut tell)?,
        }
        match event.kind {
            Kind::CompactionSummary => {
                self.written = Some(Written {
                    id: text(data.get("compactionId")),
                    text: blocks(data.get("summary")),
                    nodes: data
                        .get("shadowedSeqs")
                        .into_iter()
                        .flat_map(Value::items)
                        .count(),
                });
                Ok(())
            }
            Kind::UserMessage if replaces => {
                let id = text(data.path(&["source", "compactionId"]));
                let written = self.written.take().filter(|written| written.id == id);
                let nodes = written.as_ref().map(|written| written.nodes);
                tell(Mark::Summary {
                    seq: event.seq.0,
                    time: event.time,
                    nodes,
                    text: written
                        .map_or_else(|| blocks(data.get("content")), |written| written.text),
                })
            }
            Kind::CompactionEnd => match data.get("error").and_then(Value::text) {
                Some(why) => tell(Mark::Failed(why.into_owned())),
                None => Ok(()),
            },
            _ => Ok(()),
        }
    }

    /// What is still to be told where the log ends.
    ///
    /// # Errors
    /// Of `tell`.
    pub fn end(&mut self, mut tell: impl FnMut(Mark) -> io::Result<()>) -> io::Result<()> {
        match std::mem::take(&mut self.pruned) {
            0 => Ok(()),
            count => tell(Mark::Pruned(count)),
        }
    }
}

fn text(value: Option<Value<'_>>) -> String {
    value.and_then(Value::text).unwrap_or_default().into_owned()
}

/// The texts of content blocks, a line each at least.
fn blocks(content: Option<Value<'_>>) -> String {
    let texts = content.into_iter().flat_map(Value::items);
    let texts: Vec<String> = texts.map(|block| text(block.get("text"))).collect();
    texts.join("\n")
}

#[cfg(test)]
#[path = "compacted_tests.rs"]
mod tests;
