//! Messages of the log into entries, as they were said: what of them the target
//! cannot take, [`super::transform`] changes.

use std::borrow::Cow;
use std::collections::HashMap;

use guest_support::json::Json;
use guest_support::{Error, error};

use super::replay::{self, Replay, Signature};
use super::{Assistant, Block, Entry, Image, Piece, Target};
use crate::arguments;

const NO_OUTPUT: &str = "(no output)";
const UNKNOWN_TOOL: &str = "unknown";

/// The entries of these messages, and whether a model's are the target's own.
pub(super) fn read<'a>(
    messages: &'a [String],
    target: &Target<'_>,
) -> Result<Vec<Entry<'a>>, Error> {
    let mut reader = Reader::default();
    for (at, message) in messages.iter().enumerate() {
        let message = Json::parse(message)
            .ok_or_else(|| error("INVALID", format!("message {at} is not JSON")))?;
        let message = Message::of(message);
        if message.role == Some("assistant") {
            reader.assistant(message, at, target);
        } else {
            reader.user(message);
        }
    }
    Ok(reader.entries)
}

/// A message's members, found in one pass, as most of it is read several times
/// otherwise. What the host wrote names none twice.
#[derive(Clone, Copy, Default)]
struct Message<'a> {
    role: Option<&'a str>,
    content: Option<Json<'a>>,
    source: Option<Json<'a>>,
    id: Option<Json<'a>>,
}

impl<'a> Message<'a> {
    fn of(json: Json<'a>) -> Self {
        let mut message = Self::default();
        for (name, value) in json.members() {
            match name {
                "role" => message.role = value.escaped(),
                "content" => message.content = Some(value),
                "source" => message.source = Some(value).filter(|source| source.is_object()),
                "id" => message.id = Some(value),
                _ => {}
            }
        }
        message
    }
}

#[derive(Default)]
struct Reader<'a> {
    entries: Vec<Entry<'a>>,
    /// Names of the calls so far, by id.
    calls: HashMap<Cow<'a, str>, Cow<'a, str>>,
}

impl<'a> Reader<'a> {
    /// What is said to the model. Texts are joined; results are entries of their
    /// own, behind them.
    fn user(&mut self, message: Message<'a>) {
        let mut parts = Vec::new();
        let mut results = Vec::new();
        for block in message.content.into_iter().flat_map(Json::items) {
            if kind(block) == Some("tool-result") {
                results.push(self.result(block));
            } else {
                piece(block, &mut parts);
            }
        }
        let says = parts
            .iter()
            .any(|part| !matches!(part, Piece::Text(text) if text.is_empty()));
        if says || results.is_empty() {
            if parts.is_empty() {
                parts.push(Piece::Text(Cow::Borrowed("")));
            }
            self.entries.push(Entry::User { parts });
        }
        self.entries.extend(results);
    }

    fn result(&self, block: Json<'a>) -> Entry<'a> {
        let call_id = member(block, "toolCallId");
        let known = self.calls.get(&call_id);
        let mut parts = Vec::new();
        for block in block.first("content").into_iter().flat_map(Json::items) {
            piece(block, &mut parts);
        }
        if parts
            .iter()
            .all(|part| matches!(part, Piece::Text(text) if text.is_empty()))
        {
            parts = vec![Piece::Text(Cow::Borrowed(NO_OUTPUT))];
        }
        Entry::Result {
            tool_name: known.map_or(Cow::Borrowed(UNKNOWN_TOOL), Cow::clone),
            call_id,
            parts,
            is_error: block.first("isError").and_then(Json::bool) == Some(true),
        }
    }

    fn assistant(&mut self, message: Message<'a>, at: usize, target: &Target<'_>) {
        let content: Vec<_> = message.content.into_iter().flat_map(Json::items).collect();
        let replay = replay_of(message, at, &content, target);
        let signature = |at: usize| -> Signature<'a> {
            let blocks = replay.as_ref().map(|replay| &replay.blocks);
            blocks
                .and_then(|blocks| blocks.get(at).copied())
                .unwrap_or_default()
        };
        let blocks: Vec<_> = content
            .iter()
            .enumerate()
            .filter_map(|(at, block)| content_block(*block, signature(at), target))
            .collect();
        let mut calls = 0;
        for block in &blocks {
            if let Block::Call { id, name, .. } = block {
                self.calls.insert(id.clone(), name.clone());
                calls += 1;
            }
        }
        let same = replay.as_ref().is_some_and(|replay| {
            let source = message.source;
            let is = |name: &str, wanted: &str| {
                source
                    .and_then(|source| source.get(name)?.string())
                    .is_some_and(|text| text == wanted)
            };
            replay.api.string().is_some_and(|api| api == target.api)
                && is("provider", target.provider)
                && is("model", target.model)
        });
        let text = |json: Json<'a>| Cow::Borrowed(json.escaped().unwrap_or(""));
        self.entries.push(Entry::Assistant(Assistant {
            same,
            api: replay.as_ref().map(|replay| text(replay.api)),
            response_id: replay
                .as_ref()
                .and_then(|replay| replay.response_id)
                .map(text),
            stop: match &replay {
                Some(replay) => text(replay.stop),
                None if calls > 0 => Cow::Borrowed("toolUse"),
                None => Cow::Borrowed("stop"),
            },
            blocks,
        }));
    }
}

/// The message's replay state, where there is one that fits.
fn replay_of<'a>(
    message: Message<'a>,
    at: usize,
    content: &[Json<'a>],
    target: &Target<'_>,
) -> Option<Replay<'a>> {
    let source = message.source?;
    let state = source.some("replayState")?;
    match replay::read(state, source, content) {
        Ok(replay) => Some(replay),
        Err(why) => {
            let id = message
                .id
                .and_then(Json::string)
                .unwrap_or(Cow::Borrowed("without an id"));
            (target.warn)(&format!(
                "the replay state of message {at} ({id}) does not fit and is left out: {why}"
            ));
            None
        }
    }
}

fn content_block<'a>(
    block: Json<'a>,
    signature: Signature<'a>,
    target: &Target<'_>,
) -> Option<Block<'a>> {
    let sign = signature.text.map(Cow::Borrowed);
    match kind(block)? {
        "text" => Some(Block::Text {
            text: member(block, "text"),
            signature: sign,
        }),
        "reasoning" => Some(Block::Thinking {
            text: member(block, "text"),
            signature: sign,
            redacted: signature.redacted,
        }),
        "tool-call" => Some(Block::Call {
            id: member(block, "id"),
            name: member(block, "name"),
            arguments: arguments::object_escaped(
                block
                    .first("arguments")
                    .and_then(Json::escaped)
                    .unwrap_or(""),
                |why| (target.warn)(&format!("the call {}: {why}", member(block, "id"))),
            ),
            signature: sign,
        }),
        _ => None,
    }
}

/// Appends a text to the text before it, or a picture.
fn piece<'a>(block: Json<'a>, parts: &mut Vec<Piece<'a>>) {
    match kind(block) {
        Some("text") => {
            let text = member(block, "text");
            match parts.last_mut() {
                Some(Piece::Text(before)) => before.to_mut().push_str(&text),
                _ => parts.push(Piece::Text(text)),
            }
        }
        Some("image") => {
            let attachment = block.first("attachment");
            parts.push(Piece::Image(Image {
                attachment: attachment
                    .and_then(|attachment| attachment.get("attachmentId")?.string())
                    .unwrap_or_default(),
            }));
        }
        _ => {}
    }
}

fn kind<'a>(block: Json<'a>) -> Option<&'a str> {
    block.first("type").and_then(Json::escaped)
}

/// A text member, escaped, without halves of surrogate pairs; empty where there
/// is none.
fn member<'a>(of: Json<'a>, name: &str) -> Cow<'a, str> {
    whole_pairs(of.first(name).and_then(Json::escaped).unwrap_or(""))
}

/// An escaped text without escapes of half a surrogate pair.
pub(super) fn whole_pairs(escaped: &str) -> Cow<'_, str> {
    let mut out: Option<String> = None;
    let (mut from, mut at) = (0, 0);
    while let Some(found) = escaped[at..].find('\\') {
        at += found;
        let Some(unit) = unit(&escaped[at..]) else {
            at += 2;
            continue;
        };
        if (0xD800..0xDC00).contains(&unit)
            && self::unit(&escaped[at + 6..]).is_some_and(|low| (0xDC00..0xE000).contains(&low))
        {
            at += 12;
        } else if (0xD800..0xE000).contains(&unit) {
            out.get_or_insert_default().push_str(&escaped[from..at]);
            at += 6;
            from = at;
        } else {
            at += 6;
        }
    }
    match out {
        Some(mut out) => {
            out.push_str(&escaped[from..]);
            Cow::Owned(out)
        }
        None => Cow::Borrowed(escaped),
    }
}

/// The code unit of the `\uXXXX` that a text starts with.
fn unit(text: &str) -> Option<u32> {
    let hex = text.strip_prefix("\\u")?.get(..4)?;
    u32::from_str_radix(hex, 16).ok()
}
