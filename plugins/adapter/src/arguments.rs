//! JSON that a model wrote. Arguments of a tool call are parsed, completed where
//! they break off, and written compactly with their keys in order, so that a tool
//! always gets JSON (spec/llm.md §7.5); what cannot be used is `{}`.
//!
//! Nothing recurses: nesting is as deep as the text says.

use std::borrow::Cow;

use guest_support::json::{Json, unescape};

const EMPTY: &str = "{}";

/// Levels that arguments may nest: some parsers take 128 of a whole request, which
/// has a few of its own around them.
const MAX_DEPTH: usize = 100;

/// [`compact`] of a text that is escaped, as streams bring it.
pub fn compact_escaped(escaped: &str) -> String {
    compact(&unescape(escaped))
}

/// `text` as one compact JSON value: broken strings, a cut end and trailing
/// noise are repaired; `{}` where there is no value at all.
pub fn compact(text: &str) -> String {
    let mut writer = Writer {
        rest: text,
        out: String::with_capacity(text.len()),
        open: Vec::new(),
    };
    writer.run();
    if writer.out.is_empty() {
        return EMPTY.to_owned();
    }
    writer.out
}

/// Arguments of a call of the history (escaped), as an object: what is no JSON or
/// no object is `{}` (§7.3), and so is what nests too deep, as a provider would
/// refuse the request, and each later one of the session; `warn` is told of that.
pub fn object_escaped(escaped: &str, warn: impl FnOnce(&str)) -> String {
    let text = unescape(escaped);
    let Some(json) = Json::parse(&text).filter(|json| json.is_object()) else {
        return EMPTY.to_owned();
    };
    let depth = depth(json);
    if depth > MAX_DEPTH {
        warn(&format!(
            "its arguments nest {depth} levels deep, and go out as {{}}: more than {MAX_DEPTH} are refused by some providers"
        ));
        return EMPTY.to_owned();
    }
    compact(json.raw())
}

/// How many arrays and objects are inside each other.
fn depth(json: Json<'_>) -> usize {
    let (mut depth, mut most) = (0_usize, 0);
    let (mut quoted, mut escaped) = (false, false);
    for byte in json.raw().bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b'{' | b'[' => {
                depth += 1;
                most = most.max(depth);
            }
            b'}' | b']' => depth -= 1,
            _ => {}
        }
    }
    most
}

/// Repairs raw control characters and unknown escapes inside of the strings of a
/// JSON text (§7.8); all else stays as it is.
pub fn mend_strings(text: &str) -> Cow<'_, str> {
    if Json::parse(text).is_some() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut rest = text;
    while let Some(quote) = rest.find('"') {
        out.push_str(&rest[..quote]);
        let (length, closed) = string(&rest[quote..], &mut out);
        if !closed {
            // The text ends in a string: it is cut, which is not ours to hide.
            out.pop();
        }
        rest = &rest[quote + length..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

struct Level {
    close: char,
    /// Length of the output before the member or element under way.
    start: usize,
    empty: bool,
}

enum Expect {
    Value,
    /// A name or an element, or the end of the container.
    Next,
    /// A comma or the end of the container.
    After,
}

struct Writer<'a> {
    rest: &'a str,
    out: String,
    open: Vec<Level>,
}

impl Writer<'_> {
    fn run(&mut self) {
        let mut expect = Expect::Value;
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
            let next = self.rest.chars().next();
            let step = match expect {
                Expect::Value => self.value(next),
                Expect::Next => self.next(next),
                Expect::After => self.after(next),
            };
            match step {
                Some(next) => expect = next,
                None => break,
            }
            if self.open.is_empty() {
                return;
            }
        }
        while let Some(level) = self.open.pop() {
            self.out.push(level.close);
        }
    }

    fn value(&mut self, next: Option<char>) -> Option<Expect> {
        let whole = match next {
            Some('"') => self.string(),
            Some(open @ ('{' | '[')) => {
                self.skip(1);
                self.out.push(open);
                self.open.push(Level {
                    close: if open == '{' { '}' } else { ']' },
                    start: self.out.len(),
                    empty: true,
                });
                return Some(Expect::Next);
            }
            Some('t') => self.word("true"),
            Some('f') => self.word("false"),
            Some('n') => self.word("null"),
            Some('-' | '0'..='9') => self.number(),
            _ => false,
        };
        if whole {
            return Some(Expect::After);
        }
        if let Some(level) = self.open.last() {
            self.out.truncate(level.start);
        }
        None
    }

    fn next(&mut self, next: Option<char>) -> Option<Expect> {
        let level = self.open.last_mut()?;
        if next == Some(level.close) {
            return self.close();
        }
        level.start = self.out.len();
        if !level.empty {
            self.out.push(',');
        }
        level.empty = false;
        if level.close == ']' {
            return self.value(next);
        }
        let start = level.start;
        let named = next == Some('"') && self.string() && {
            self.rest = self.rest.trim_start_matches([' ', '\n', '\r', '\t']);
            self.rest.starts_with(':')
        };
        if !named {
            self.out.truncate(start);
            return None;
        }
        self.skip(1);
        self.out.push(':');
        Some(Expect::Value)
    }

    fn after(&mut self, next: Option<char>) -> Option<Expect> {
        let close = self.open.last()?.close;
        match next {
            Some(',') => {
                self.skip(1);
                Some(Expect::Next)
            }
            Some(c) if c == close => self.close(),
            _ => None,
        }
    }

    fn close(&mut self) -> Option<Expect> {
        self.skip(1);
        self.out.push(self.open.pop()?.close);
        Some(Expect::After)
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    /// A string; one that the end cuts is closed. False where it was a name's and
    /// is cut, which the caller sees from what follows.
    fn string(&mut self) -> bool {
        let (length, _) = string(self.rest, &mut self.out);
        self.skip(length);
        true
    }

    fn word(&mut self, word: &str) -> bool {
        let cut = word.starts_with(self.rest);
        if !cut && !self.rest.starts_with(word) {
            return false;
        }
        self.skip(if cut { self.rest.len() } else { word.len() });
        self.out.push_str(word);
        true
    }

    fn number(&mut self) -> bool {
        let end = self
            .rest
            .find(|c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9'))
            .unwrap_or(self.rest.len());
        let (number, rest) = self.rest.split_at(end);
        let whole = (1..=number.len())
            .rev()
            .map(|end| &number[..end])
            .find(|number| Json::parse(number).is_some());
        self.rest = rest;
        self.out.push_str(whole.unwrap_or_default());
        whole.is_some()
    }
}

/// Copies the string that `text` starts with, mended and closed; returns the
/// bytes read and whether it was closed.
fn string(text: &str, out: &mut String) -> (usize, bool) {
    let bytes = text.as_bytes();
    out.push('"');
    let (mut at, mut from) = (1, 1);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'"' => {
                out.push_str(&text[from..=at]);
                return (at + 1, true);
            }
            b'\\' => match bytes.get(at + 1) {
                // A cut escape is dropped.
                None => {
                    out.push_str(&text[from..at]);
                    out.push('"');
                    return (text.len(), false);
                }
                Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => at += 2,
                Some(b'u') => {
                    let hex = &bytes[at + 2..bytes.len().min(at + 6)];
                    if !hex.iter().all(u8::is_ascii_hexdigit) {
                        out.push_str(&text[from..at]);
                        out.push('\\');
                        from = at;
                        at += 1;
                    } else if hex.len() < 4 {
                        out.push_str(&text[from..at]);
                        out.push('"');
                        return (text.len(), false);
                    } else {
                        at += 6;
                    }
                }
                Some(_) => {
                    out.push_str(&text[from..at]);
                    out.push('\\');
                    from = at;
                    at += 1;
                }
            },
            0..0x20 => {
                out.push_str(&text[from..at]);
                guest_support::json::escape(&text[at..=at], out);
                at += 1;
                from = at;
            }
            _ => at += 1,
        }
    }
    out.push_str(&text[from..]);
    out.push('"');
    (text.len(), false)
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
