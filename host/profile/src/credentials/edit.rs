//! One name of `.credentials.yaml` set or taken out, with every other byte left as it is. Pure: text to text.
//!
//! The text is cut where the parser says that the value stands, and what comes of it is read again: where anything but
//! that one name changed, the edit is refused. So a layout that nobody thought of costs a refusal and never a key.

use super::document::{self, Refs};
use crate::yaml::{self, Kind, Located, Node, locate};

/// A text that holds what was asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Edited {
    pub(super) text: String,
    /// The name had a value before.
    pub(super) had: bool,
    /// The document was of the early layout, and is of the present one now.
    pub(super) moved: bool,
}

/// Why a text was left as it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is not of its shape: where, and why.
    Shape { line: usize, message: String },
    /// It is laid out in a way that cannot be changed without changing more.
    Layout,
}

/// The text with `name` set to `value`, or without it where there is no value.
///
/// # Errors
/// [`Refused`]; neither has anything of a value.
pub(super) fn edit(text: &str, name: &str, value: Option<&str>) -> Result<Edited, Refused> {
    let (mark, body) = match text.strip_prefix('\u{feff}') {
        Some(body) => ("\u{feff}", body),
        None => ("", text),
    };
    let root = parse(body)?;
    let moved = root.as_ref().is_some_and(document::is_early);
    let body = if moved { &moved_in(body)? } else { body };
    let root = if moved { parse(body)? } else { root };
    let mut refs = match &root {
        Some(root) => document::refs(root).map_err(shape)?,
        None => Refs::new(),
    };
    let had = refs.contains_key(name);
    let edited = match (&root, value) {
        (None, None) => body.to_owned(),
        (None, Some(value)) => format!(
            "{}version: 1\nrefs:\n  {name}: {}\n",
            ended(body),
            scalar(value)
        ),
        (Some(_), None) if !had => body.to_owned(),
        (Some(_), None) => without(body, name).ok_or(Refused::Layout)?,
        (Some(_), Some(value)) => with(body, name, value).ok_or(Refused::Layout)?,
    };
    match value {
        Some(value) => drop(refs.insert(name.to_owned(), value.to_owned())),
        None => drop(refs.remove(name)),
    }
    let after = parse(&edited).map_err(|_| Refused::Layout)?;
    let holds = match (&after, &root) {
        (None, _) => refs.is_empty() && root.is_none(),
        (Some(after), root) => {
            document::refs(after).is_ok_and(|now| now == refs)
                && rest_is_the_same(after, root.as_ref())
        }
    };
    if !holds {
        return Err(Refused::Layout);
    }
    Ok(Edited {
        text: format!("{mark}{edited}"),
        had,
        moved,
    })
}

fn parse(text: &str) -> Result<Option<Node>, Refused> {
    yaml::parse(text).map_err(shape)
}

fn shape(fault: yaml::Fault) -> Refused {
    Refused::Shape {
        line: fault.line,
        message: fault.message,
    }
}

/// Whether all but `refs` is as it was.
fn rest_is_the_same(after: &Node, before: Option<&Node>) -> bool {
    let rest = |node: &Node| match &node.kind {
        Kind::Map(map) => {
            let others = map
                .0
                .iter()
                .filter(|(key, _)| key != "refs" && key != "version");
            others.cloned().collect::<Vec<_>>()
        }
        _ => Vec::new(),
    };
    let before = before.map(rest).unwrap_or_default();
    let after = rest(after);
    before.len() == after.len()
        && before
            .iter()
            .zip(&after)
            .all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
}

fn same(a: &Node, b: &Node) -> bool {
    match (&a.kind, &b.kind) {
        (Kind::Null, Kind::Null) => true,
        (Kind::Bool(a), Kind::Bool(b)) => a == b,
        (Kind::Number(a), Kind::Number(b)) => a == b,
        (Kind::String(a), Kind::String(b)) | (Kind::Js(a), Kind::Js(b)) => a == b,
        (Kind::Seq(a), Kind::Seq(b)) => {
            a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
        }
        (Kind::Map(a), Kind::Map(b)) => {
            a.0.len() == b.0.len()
                && a.0
                    .iter()
                    .zip(&b.0)
                    .all(|(a, b)| a.0 == b.0 && same(&a.1, &b.1))
        }
        _ => false,
    }
}

/// The early layout, names at the top, as the present one.
fn moved_in(text: &str) -> Result<String, Refused> {
    let root = locate(text, &[]).ok_or(Refused::Layout)?;
    if root.flow {
        let (before, rest) = text.split_at(root.span.start);
        return Ok(format!("{before}version: 1\nrefs: {rest}"));
    }
    let mut out = "version: 1\nrefs:\n".to_owned();
    for line in text.split_inclusive('\n') {
        if !line.trim().is_empty() {
            out.push_str("  ");
        }
        out.push_str(line);
    }
    Ok(out)
}

fn with(text: &str, name: &str, value: &str) -> Option<String> {
    let value = scalar(value);
    let Some(refs) = locate(text, &["refs"]) else {
        // No `refs` yet.
        let root = locate(text, &[])?;
        if root.flow {
            let at = root.members.last()?.value.end;
            return Some(spliced(
                text,
                at,
                at,
                &format!(", refs: {{{name}: {value}}}"),
            ));
        }
        let indent = indent_of(text, root.members.first()?.key.start)?;
        return Some(format!(
            "{}{indent}refs:\n{indent}  {name}: {value}\n",
            ended(text)
        ));
    };
    if let Some(at) = refs.find(name) {
        let place = &refs.members[at].value;
        return Some(spliced(text, place.start, place.end, &value));
    }
    match refs.members.last() {
        Some(last) if refs.flow => {
            let at = last.value.end;
            Some(spliced(text, at, at, &format!(", {name}: {value}")))
        }
        None => {
            let inside = refs.span.start + 1;
            Some(spliced(text, inside, inside, &format!("{name}: {value}")))
        }
        Some(last) => {
            let indent = indent_of(text, refs.members.first()?.key.start)?;
            let at = line_end(text, last.value.end);
            let break_first = if text[..at].ends_with('\n') { "" } else { "\n" };
            Some(spliced(
                text,
                at,
                at,
                &format!("{break_first}{indent}{name}: {value}\n"),
            ))
        }
    }
}

fn without(text: &str, name: &str) -> Option<String> {
    let refs = locate(text, &["refs"])?;
    let at = refs.find(name)?;
    let Located { flow, members, .. } = &refs;
    let own = &members[at];
    if *flow {
        let (from, to) = match (
            at.checked_sub(1).map(|before| &members[before]),
            members.get(at + 1),
        ) {
            (_, Some(next)) => (own.key.start, next.key.start),
            (Some(before), None) => (before.value.end, own.value.end),
            (None, None) => (own.key.start, own.value.end),
        };
        return Some(spliced(text, from, to, ""));
    }
    let from = own.key.start - indent_of(text, own.key.start)?.len();
    let cut = spliced(text, from, line_end(text, own.value.end), "");
    if members.len() > 1 {
        return Some(cut);
    }
    // An empty mapping has to say so.
    let root = locate(text, &[])?;
    let refs = &root.members[root.find("refs")?];
    let colon = refs.key.end + text[refs.key.end..].find(':')? + 1;
    Some(spliced(&cut, colon, colon, " {}"))
}

/// Where the line ends that this place is in, behind its break; the place itself where it is at a line's start.
fn line_end(text: &str, at: usize) -> usize {
    if text[..at].ends_with('\n') {
        return at;
    }
    text[at..]
        .find('\n')
        .map_or(text.len(), |found| at + found + 1)
}

/// What stands before this place in its line, where that is spaces alone.
fn indent_of(text: &str, at: usize) -> Option<&str> {
    let start = text[..at].rfind('\n').map_or(0, |found| found + 1);
    let indent = &text[start..at];
    indent.bytes().all(|byte| byte == b' ').then_some(indent)
}

fn spliced(text: &str, from: usize, to: usize, with: &str) -> String {
    format!("{}{with}{}", &text[..from], &text[to..])
}

/// With a line break at its end, unless it is empty.
fn ended(text: &str) -> String {
    let end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    format!("{text}{end}")
}

/// A value as YAML: plain where no reader can take it for anything but a text.
fn scalar(value: &str) -> String {
    let plain = value.len() >= 8
        && value.starts_with(|c: char| c.is_ascii_alphabetic())
        && value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    if plain {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', "''"))
    }
}

#[cfg(test)]
#[path = "edit_tests.rs"]
mod tests;
