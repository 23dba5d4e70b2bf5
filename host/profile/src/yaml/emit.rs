//! A tree to block YAML that any YAML reader takes, and that comes back equal.

use super::{Kind, Map, Node, scalar};
use std::fmt::Write;

/// One list item, `- ` in front, ending with a line break. `fields` are written
/// in order; a value is a node or, for a group's rows, already written lines.
pub(crate) fn emit_item(out: &mut String, indent: usize, fields: &[(&str, Field<'_>)]) {
    if fields.is_empty() {
        let _ = writeln!(out, "{:indent$}- {{}}", "");
    }
    for (i, (key, field)) in fields.iter().enumerate() {
        let lead = if i == 0 { "- " } else { "  " };
        let _ = write!(out, "{:indent$}{lead}{}:", "", text(key));
        match field {
            Field::Node(node) => value(out, indent + 4, node),
            Field::Lines(lines) if lines.is_empty() => out.push_str(" []\n"),
            Field::Lines(lines) => {
                out.push('\n');
                out.push_str(lines);
            }
        }
    }
}

/// A member's value.
pub(crate) enum Field<'a> {
    /// A node.
    Node(&'a Node),
    /// A block list, already written at the indent of the members + 2 (item + 4).
    Lines(String),
}

/// What stands after `key:` or `-`, its line break with it.
fn value(out: &mut String, indent: usize, node: &Node) {
    match &node.kind {
        Kind::Seq(items) if items.is_empty() => out.push_str(" []\n"),
        Kind::Map(map) if map.0.is_empty() => out.push_str(" {}\n"),
        Kind::Seq(items) => {
            out.push('\n');
            for item in items {
                list_item(out, indent, item);
            }
        }
        Kind::Map(map) => {
            out.push('\n');
            members(out, indent, map);
        }
        Kind::String(s) if s.contains('\n') && block_safe(s) => block(out, indent, s),
        kind => {
            let _ = writeln!(out, " {}", inline(kind));
        }
    }
}

fn members(out: &mut String, indent: usize, map: &Map) {
    for (key, node) in &map.0 {
        let _ = write!(out, "{:indent$}{}:", "", text(key));
        value(out, indent + 2, node);
    }
}

fn list_item(out: &mut String, indent: usize, item: &Node) {
    if let Kind::Map(map) = &item.kind {
        let fields: Vec<_> = map
            .0
            .iter()
            .map(|(k, n)| (k.as_str(), Field::Node(n)))
            .collect();
        return emit_item(out, indent, &fields);
    }
    let _ = write!(out, "{:indent$}-", "");
    value(out, indent + 2, item);
}

fn inline(kind: &Kind) -> String {
    match kind {
        Kind::Null => "null".into(),
        Kind::Bool(b) => b.to_string(),
        Kind::Number(n) => n.to_string(),
        Kind::String(s) => text(s),
        Kind::Js(expression) => {
            let plain = plain_safe(expression)
                || matches!(expression.as_bytes().first(), Some(b'('))
                    && plain_safe(&expression[1..]);
            if plain {
                format!("!!js {expression}")
            } else {
                format!("!!js {}", quoted(expression))
            }
        }
        // Written by `value`.
        Kind::Seq(_) | Kind::Map(_) => String::new(),
    }
}

/// A string on one line: plain where it stays a string, quoted otherwise.
fn text(s: &str) -> String {
    if plain_safe(s) && matches!(scalar::resolve(s), Ok(Kind::String(_))) {
        s.to_owned()
    } else {
        quoted(s)
    }
}

fn plain_safe(s: &str) -> bool {
    s.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '_' | '/' | '.' | '$'))
        && !s.starts_with("...")
        && !s.ends_with([' ', ':'])
        && !s.contains(": ")
        && !s.contains(" #")
        && s.chars().all(|c| printable(c) && c != '\n')
}

fn quoted(s: &str) -> String {
    if s.chars().all(|c| printable(c) && c != '\n') {
        return format!("'{}'", s.replace('\'', "''"));
    }
    let mut out = String::from("\"");
    for c in s.chars() {
        match c {
            '"' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if printable(c) => out.push(c),
            c if u32::from(c) <= 0xffff => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => {
                let _ = write!(out, "\\U{:08x}", u32::from(c));
            }
        }
    }
    out.push('"');
    out
}

/// What YAML lets stand for itself everywhere (no tab: it is not indentation), but for
/// marks that turn or hide what stands beside them: a plugin's text is a stranger's.
fn printable(c: char) -> bool {
    matches!(c, '\n' | ' '..='~' | '\u{a0}'..='\u{200a}' | '\u{2010}'..='\u{2027}'
        | '\u{202f}'..='\u{205f}' | '\u{2070}'..='\u{d7ff}'
        | '\u{e000}'..='\u{fefe}' | '\u{ff00}'..='\u{fffd}' | '\u{10000}'..)
}

/// Whether a literal block holds it: at most one line break at its end, no line
/// of blanks alone, and a first line that does not look like indentation.
fn block_safe(s: &str) -> bool {
    let body = s.strip_suffix('\n').unwrap_or(s);
    !body.ends_with('\n')
        && !body.starts_with([' ', '\n'])
        && body.chars().all(printable)
        && body
            .lines()
            .all(|l| l.is_empty() || l.starts_with(|c| c != ' ') || !l.trim().is_empty())
}

fn block(out: &mut String, indent: usize, s: &str) {
    let (body, mark) = match s.strip_suffix('\n') {
        Some(body) => (body, "|"),
        None => (s, "|-"),
    };
    let _ = writeln!(out, " {mark}");
    for line in body.split('\n') {
        if line.is_empty() {
            out.push('\n');
        } else {
            let _ = writeln!(out, "{:indent$}{line}", "");
        }
    }
}
