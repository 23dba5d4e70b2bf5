//! What the target cannot take of the entries, changed (spec/llm.md §7.3).

use std::borrow::Cow;
use std::collections::HashMap;

use super::{Assistant, Block, Entry, Piece, Target};

/// What stands for pictures where the model takes none.
const NO_PICTURE: &str = "(image omitted: the model takes no images)";
/// The result of a call that got none, as the data has it.
const NO_RESULT: &str = "No result provided";

/// The entries, as the target takes them.
pub(super) fn transform<'a>(entries: Vec<Entry<'a>>, target: &Target<'_>) -> Vec<Entry<'a>> {
    let mut out = Out::default();
    for entry in entries {
        match entry {
            Entry::User { parts } => {
                out.answer_calls();
                out.entries.push(Entry::User {
                    parts: pictures(parts, target),
                });
            }
            Entry::Assistant(assistant) => {
                out.answer_calls();
                if !matches!(&*assistant.stop, "error" | "aborted") {
                    out.assistant(assistant, target);
                }
            }
            Entry::Result {
                call_id,
                tool_name,
                parts,
                is_error,
            } => {
                let call_id = out.renamed(call_id);
                out.open.retain(|(id, _)| *id != call_id);
                out.entries.push(Entry::Result {
                    call_id,
                    tool_name,
                    parts: pictures(parts, target),
                    is_error,
                });
            }
        }
    }
    out.answer_calls();
    out.entries
}

#[derive(Default)]
struct Out<'a> {
    entries: Vec<Entry<'a>>,
    /// Calls without a result yet: id and name.
    open: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Ids that the target does not take, and what they became.
    names: HashMap<Cow<'a, str>, String>,
}

impl<'a> Out<'a> {
    fn assistant(&mut self, mut assistant: Assistant<'a>, target: &Target<'_>) {
        let same = assistant.same;
        let mut blocks = Vec::with_capacity(assistant.blocks.len());
        for block in assistant.blocks {
            match block {
                Block::Thinking {
                    text,
                    signature,
                    redacted,
                } => {
                    let kept = if redacted {
                        same
                    } else {
                        (same && signature.is_some()) || !is_blank(&text)
                    };
                    if !kept {
                        continue;
                    }
                    blocks.push(if same {
                        Block::Thinking {
                            text,
                            signature,
                            redacted,
                        }
                    } else {
                        Block::Text {
                            text,
                            signature: None,
                        }
                    });
                }
                Block::Text { text, signature } => blocks.push(Block::Text {
                    text,
                    signature: signature.filter(|_| same),
                }),
                Block::Call {
                    id,
                    name,
                    arguments,
                    signature,
                } => {
                    let id = if same { id } else { self.rename(id, target) };
                    self.open.push((id.clone(), name.clone()));
                    blocks.push(Block::Call {
                        id,
                        name,
                        arguments,
                        signature: signature.filter(|_| same),
                    });
                }
            }
        }
        assistant.blocks = blocks;
        self.entries.push(Entry::Assistant(assistant));
    }

    /// The id that another model's call has from here on.
    fn rename(&mut self, id: Cow<'a, str>, target: &Target<'_>) -> Cow<'a, str> {
        match (target.call_id)(&id).filter(|new| *new != *id) {
            Some(new) => {
                self.names.insert(id, new.clone());
                Cow::Owned(new)
            }
            None => id,
        }
    }

    fn renamed(&self, id: Cow<'a, str>) -> Cow<'a, str> {
        match self.names.get(&id) {
            Some(new) => Cow::Owned(new.clone()),
            None => id,
        }
    }

    /// Calls that the conversation went on without: their results are made up, as
    /// providers refuse a history with calls that nothing answers.
    fn answer_calls(&mut self) {
        for (call_id, tool_name) in self.open.drain(..) {
            self.entries.push(Entry::Result {
                call_id,
                tool_name,
                parts: vec![Piece::Text(Cow::Borrowed(NO_RESULT))],
                is_error: true,
            });
        }
    }
}

/// Pictures that follow one another become one line where the model takes none.
fn pictures<'a>(parts: Vec<Piece<'a>>, target: &Target<'_>) -> Vec<Piece<'a>> {
    if target.vision || !parts.iter().any(|part| matches!(part, Piece::Image(_))) {
        return parts;
    }
    let mut out: Vec<Piece<'a>> = Vec::with_capacity(parts.len());
    let mut in_run = false;
    for part in parts {
        let is_image = matches!(part, Piece::Image(_));
        match part {
            Piece::Image(_) if in_run => {}
            Piece::Image(_) => out.push(Piece::Text(Cow::Borrowed(NO_PICTURE))),
            text => out.push(text),
        }
        in_run = is_image;
    }
    out
}

/// Whether an escaped text is white space only.
pub fn is_blank(escaped: &str) -> bool {
    let mut rest = escaped.trim_start();
    while let Some(escape) = rest.strip_prefix('\\') {
        match escape.as_bytes().first() {
            Some(b'n' | b'r' | b't' | b'f') => rest = escape[1..].trim_start(),
            // A character by its number: rare, so it is looked at whole.
            Some(b'u') => return guest_support::json::unescape(rest).trim().is_empty(),
            _ => return false,
        }
    }
    rest.is_empty()
}
