//! The history as messages (spec/llm.md §7.8). It is written once, as one text: a
//! long conversation is copied from its messages into the body and nowhere else.

use adapter_support::history::{Assistant, Block, Entry, Piece};
use adapter_support::{Error, body};
use guest_support::json::{escape, unescape};

use crate::request::Images;

/// What stands before pictures of a tool that says nothing.
const SEE_PICTURE: &str = "(see attached image)";

/// How the history is written.
pub(crate) struct Style<'a> {
    /// The marker of what the provider is to keep, a JSON value.
    pub(crate) cache: Option<&'a str>,
    /// Thoughts without a signature are sent as thoughts.
    pub(crate) empty_signature: bool,
}

/// Appends the array `messages`.
pub(crate) fn write(
    history: &[Entry<'_>],
    style: &Style<'_>,
    images: &mut Images<'_>,
    out: &mut String,
) -> Result<(), Error> {
    // The marker goes to the end of the last message that is a user's.
    let marked = style
        .cache
        .and_then(|cache| Some((history.iter().rposition(is_said)?, cache)));
    let mark = |at: usize| {
        marked
            .filter(|(last, _)| *last == at)
            .map(|(_, cache)| cache)
    };
    out.push('[');
    let mut at = 0;
    while let Some(entry) = history.get(at) {
        match entry {
            Entry::User { parts } if is_said(entry) => {
                open("user", out);
                user(parts, mark(at), images, out)?;
                out.push('}');
            }
            Entry::User { .. } => {}
            Entry::Assistant(assistant) => self::assistant(assistant, style, out),
            Entry::Result { .. } => {
                // Consecutive results are one message.
                open("user", out);
                out.push('[');
                while let Some(Entry::Result {
                    call_id,
                    parts,
                    is_error,
                    ..
                }) = history.get(at)
                {
                    comma(out);
                    out.push_str(r#"{"type":"tool_result","tool_use_id":""#);
                    out.push_str(call_id);
                    out.push_str(r#"","content":"#);
                    result(parts, images, out)?;
                    out.push_str(r#","is_error":"#);
                    out.push_str(if *is_error { "true" } else { "false" });
                    close(mark(at), out);
                    at += 1;
                }
                out.push_str("]}");
                continue;
            }
        }
        at += 1;
    }
    out.push(']');
    Ok(())
}

/// Whether it makes a message of a user's.
fn is_said(entry: &Entry<'_>) -> bool {
    match entry {
        Entry::User { parts } => parts.iter().any(|part| match part {
            Piece::Text(text) => !is_blank(text),
            Piece::Image(_) => true,
        }),
        Entry::Result { .. } => true,
        Entry::Assistant(_) => false,
    }
}

fn user(
    parts: &[Piece<'_>],
    mark: Option<&str>,
    images: &mut Images<'_>,
    out: &mut String,
) -> Result<(), Error> {
    if mark.is_none() && !has_images(parts) {
        out.push('"');
        texts(parts, "", out);
        out.push('"');
        return Ok(());
    }
    out.push('[');
    if has_images(parts) {
        let shown = |part: &&Piece<'_>| !matches!(part, Piece::Text(text) if is_blank(text));
        let last = parts.iter().rposition(|part| shown(&part));
        for (at, part) in parts.iter().enumerate().filter(|(_, part)| shown(part)) {
            let mark = mark.filter(|_| Some(at) == last);
            piece(part, mark, images, out)?;
        }
    } else {
        open_text(out);
        texts(parts, "", out);
        out.push('"');
        close(mark, out);
    }
    out.push(']');
    Ok(())
}

fn result(parts: &[Piece<'_>], images: &mut Images<'_>, out: &mut String) -> Result<(), Error> {
    if !has_images(parts) {
        out.push('"');
        texts(parts, "\\n", out);
        out.push('"');
        return Ok(());
    }
    out.push('[');
    // A text block that is blank is refused.
    let shown = |part: &&Piece<'_>| !matches!(part, Piece::Text(text) if is_blank(text));
    if !parts
        .iter()
        .any(|part| matches!(part, Piece::Text(_)) && shown(&part))
    {
        open_text(out);
        out.push_str(SEE_PICTURE);
        out.push('"');
        close(None, out);
    }
    for part in parts.iter().filter(shown) {
        piece(part, None, images, out)?;
    }
    out.push(']');
    Ok(())
}

fn assistant(assistant: &Assistant<'_>, style: &Style<'_>, out: &mut String) {
    let before = out.len();
    open("assistant", out);
    out.push('[');
    let empty = out.len();
    for block in &assistant.blocks {
        match block {
            Block::Text { text, .. } => text_block(text, out),
            Block::Thinking {
                signature,
                redacted: true,
                ..
            } => {
                // Without its data it says nothing to anybody.
                if let Some(data) = signature.as_deref().filter(|data| !data.is_empty()) {
                    comma(out);
                    out.push_str(r#"{"type":"redacted_thinking","data":""#);
                    out.push_str(data);
                    out.push_str("\"}");
                }
            }
            Block::Thinking {
                text, signature, ..
            } => {
                let signature = signature.as_deref().filter(|text| !is_blank(text));
                match signature {
                    None if is_blank(text) => {}
                    None if !style.empty_signature => text_block(text, out),
                    signature => {
                        comma(out);
                        out.push_str(r#"{"type":"thinking","thinking":""#);
                        out.push_str(text);
                        out.push_str(r#"","signature":""#);
                        out.push_str(signature.unwrap_or_default());
                        out.push_str("\"}");
                    }
                }
            }
            Block::Call {
                id,
                name,
                arguments,
                ..
            } => {
                comma(out);
                out.push_str(r#"{"type":"tool_use","id":""#);
                out.push_str(id);
                out.push_str(r#"","name":""#);
                out.push_str(name);
                out.push_str(r#"","input":"#);
                out.push_str(arguments);
                out.push('}');
            }
        }
    }
    if out.len() == empty {
        // A message that says nothing is refused.
        out.truncate(before);
    } else {
        out.push_str("]}");
    }
}

/// One block of what a user says or a tool answers.
fn piece(
    piece: &Piece<'_>,
    mark: Option<&str>,
    images: &mut Images<'_>,
    out: &mut String,
) -> Result<(), Error> {
    match piece {
        Piece::Text(text) => {
            open_text(out);
            out.push_str(text);
            out.push('"');
        }
        Piece::Image(image) => {
            let picture = images.render(&image.attachment)?;
            comma(out);
            out.push_str(r#"{"type":"image","source":{"type":"base64","media_type":""#);
            escape(&picture.media_type, out);
            out.push_str(r#"","data":""#);
            out.push_str(&body::picture(&picture.id));
            out.push_str("\"}");
        }
    }
    close(mark, out);
    Ok(())
}

fn text_block(text: &str, out: &mut String) {
    if !is_blank(text) {
        open_text(out);
        out.push_str(text);
        out.push('"');
        close(None, out);
    }
}

/// All texts, in one.
fn texts(parts: &[Piece<'_>], between: &str, out: &mut String) {
    let texts = parts.iter().filter_map(|part| match part {
        Piece::Text(text) => Some(text),
        Piece::Image(_) => None,
    });
    for (at, text) in texts.enumerate() {
        if at > 0 {
            out.push_str(between);
        }
        out.push_str(text);
    }
}

fn has_images(parts: &[Piece<'_>]) -> bool {
    parts.iter().any(|part| matches!(part, Piece::Image(_)))
}

/// Begins a message, up to its content.
fn open(role: &str, out: &mut String) {
    comma(out);
    out.push_str(r#"{"role":""#);
    out.push_str(role);
    out.push_str(r#"","content":"#);
}

/// Begins a text block, up to its text.
fn open_text(out: &mut String) {
    comma(out);
    out.push_str(r#"{"type":"text","text":""#);
}

/// Ends an object, with the marker where it is to be marked.
pub(crate) fn close(mark: Option<&str>, out: &mut String) {
    if let Some(mark) = mark {
        out.push_str(r#","cache_control":"#);
        out.push_str(mark);
    }
    out.push('}');
}

/// A comma, unless the container was just opened.
pub(crate) fn comma(out: &mut String) {
    if !out.ends_with(['[', '{']) {
        out.push(',');
    }
}

/// Whether an escaped text is nothing but white space. Looks no further than it
/// has to.
pub(crate) fn is_blank(escaped: &str) -> bool {
    let mut rest = escaped;
    loop {
        let Some(first) = rest.chars().next() else {
            return true;
        };
        let length = match first {
            '\\' if rest[1..].starts_with('u') => 6,
            '\\' => 2,
            _ => first.len_utf8(),
        };
        let (here, after) = rest.split_at(length.min(rest.len()));
        if !unescape(here).chars().all(is_space) {
            return false;
        }
        rest = after;
    }
}

/// As `String.prototype.trim` has it.
fn is_space(c: char) -> bool {
    c.is_whitespace() || c == '\u{FEFF}'
}
