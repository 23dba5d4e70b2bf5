//! Rewriting a valid text into its normal form: the slow path, for texts that [`super::scan`] calls loose.
//!
//! Two passes over a flat list of nodes, since an object's members have to be sorted before they can be written and
//! nesting must not use the stack.

use std::collections::HashMap;

use super::{JsonError, number, scan::index_key, text};

/// What to do with numbers that do not survive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Numbers {
    /// Refuse them.
    Refuse,
    /// Write them as upstream prints them.
    Print,
    /// Write `-0`, `1e400` and `-1e400`.
    Keep,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Scalar,
    Array,
    Object,
}

struct Node {
    shape: Shape,
    start: usize,
    end: usize,
    first: Option<usize>,
    next: Option<usize>,
}

enum Open {
    Array(Option<usize>),
    Object(std::vec::IntoIter<(String, usize)>),
}

/// The normal form of a text that [`super::scan::scan`] accepted.
pub(crate) fn normal(text: &str, numbers: Numbers) -> Result<String, JsonError> {
    rewrite(text, numbers, |list| {
        list.sort_by_key(|(key, _)| index_key(key.as_bytes()).map_or(u64::MAX, u64::from));
    })
}

/// The text with all members sorted by key: equal for values that differ in the order of members alone.
pub(crate) fn sorted(text: &str) -> String {
    rewrite(text, Numbers::Print, |list| list.sort()).unwrap_or_default()
}

fn rewrite(
    text: &str,
    numbers: Numbers,
    order: impl Fn(&mut Vec<(String, usize)>),
) -> Result<String, JsonError> {
    let nodes = nodes(text);
    let mut out = String::with_capacity(text.len());
    let mut open: Vec<Open> = Vec::new();
    let mut current = Some(0);
    loop {
        if let Some(index) = current.take() {
            let node = &nodes[index];
            match node.shape {
                Shape::Scalar => scalar(&text[node.start..node.end], numbers, &mut out)?,
                Shape::Array => {
                    out.push('[');
                    open.push(Open::Array(node.first));
                }
                Shape::Object => {
                    out.push('{');
                    let mut list = members(text, &nodes, node);
                    order(&mut list);
                    open.push(Open::Object(list.into_iter()));
                }
            }
        }
        let fresh = out.ends_with(['[', '{']);
        match open.last_mut() {
            None => return Ok(out),
            Some(Open::Array(next)) => match *next {
                Some(index) => {
                    if !fresh {
                        out.push(',');
                    }
                    *next = nodes[index].next;
                    current = Some(index);
                }
                None => {
                    out.push(']');
                    open.pop();
                }
            },
            Some(Open::Object(members)) => match members.next() {
                Some((key, index)) => {
                    if !fresh {
                        out.push(',');
                    }
                    out.push('"');
                    out.push_str(&key);
                    out.push_str("\":");
                    current = Some(index);
                }
                None => {
                    out.push('}');
                    open.pop();
                }
            },
        }
    }
}

fn scalar(raw: &str, numbers: Numbers, out: &mut String) -> Result<(), JsonError> {
    match raw.as_bytes()[0] {
        b'"' => {
            out.push('"');
            text::normalise(&raw[1..raw.len() - 1], out);
            out.push('"');
        }
        b'-' | b'0'..=b'9' => {
            let value = number::parse(raw);
            if numbers == Numbers::Refuse && !number::is_lossless(value) {
                return Err(JsonError::NotLossless);
            }
            match (numbers, value) {
                (Numbers::Keep, value) if !number::is_lossless(value) => {
                    out.push_str(if value.is_sign_negative() { "-" } else { "" });
                    out.push_str(if value == 0.0 { "0" } else { "1e400" });
                }
                _ => number::write(value, out),
            }
        }
        _ => out.push_str(raw),
    }
    Ok(())
}

/// An object's members where they first stood; of a repeated key the last value.
fn members(text: &str, nodes: &[Node], object: &Node) -> Vec<(String, usize)> {
    let mut list: Vec<(String, usize)> = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    let mut next = object.first;
    while let Some(key_index) = next {
        let node = &nodes[key_index];
        let Some(value) = node.next else { break };
        next = nodes[value].next;
        let mut key = String::new();
        text::normalise(&text[node.start + 1..node.end - 1], &mut key);
        match seen.get(&key) {
            Some(&at) => list[at].1 = value,
            None => {
                seen.insert(key.clone(), list.len());
                list.push((key, value));
            }
        }
    }
    list
}

/// A flat list of all values; an object's children are its keys and values in turn.
fn nodes(text: &str) -> Vec<Node> {
    let bytes = text.as_bytes();
    let mut nodes: Vec<Node> = Vec::new();
    // Open containers with their newest child.
    let mut open: Vec<(usize, Option<usize>)> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let start = at;
        let shape = match bytes[at] {
            b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' => {
                at += 1;
                continue;
            }
            b']' | b'}' => {
                at += 1;
                if let Some((index, _)) = open.pop() {
                    nodes[index].end = at;
                }
                continue;
            }
            b'[' => Shape::Array,
            b'{' => Shape::Object,
            _ => Shape::Scalar,
        };
        at = match (shape, bytes[at]) {
            (Shape::Scalar, b'"') => text::end(bytes, at),
            (Shape::Scalar, _) => {
                let rest = &bytes[at..];
                let length = rest.iter().position(|b| {
                    matches!(b, b' ' | b'\t' | b'\n' | b'\r' | b',' | b':' | b']' | b'}')
                });
                at + length.unwrap_or(rest.len())
            }
            _ => at + 1,
        };
        let index = nodes.len();
        nodes.push(Node {
            shape,
            start,
            end: at,
            first: None,
            next: None,
        });
        if let Some((parent, newest)) = open.last_mut() {
            match newest.replace(index) {
                None => nodes[*parent].first = Some(index),
                Some(previous) => nodes[previous].next = Some(index),
            }
        }
        if shape != Shape::Scalar {
            open.push((index, None));
        }
    }
    nodes
}
