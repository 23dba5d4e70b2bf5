//! JSON as text. What a guest gets and gives is the log's own text, whose
//! strings may hold half of a surrogate pair and whose nesting has no bound, so
//! a value here is a checked slice of its text, read on demand: strings pass
//! from input to output escaped as they stand, and nothing recurses.

use std::borrow::Cow;

/// One JSON value: a slice of a text that [`Json::parse`] has checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// Checks that `text` is one JSON value, whitespace around it allowed.
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(SPACE);
        (check(text.as_bytes()) == Some(text.len())).then_some(Self(text))
    }

    /// The text as it stands.
    pub fn raw(self) -> &'a str {
        self.0
    }

    /// The member of this name; of several, the last, as `JSON.parse` has it.
    pub fn get(self, name: &str) -> Option<Self> {
        self.members()
            .filter(|(key, _)| unescape(key) == name)
            .last()
            .map(|(_, value)| value)
    }

    /// As [`Json::get`], where a `null` counts as absent.
    pub fn some(self, name: &str) -> Option<Self> {
        self.get(name).filter(|value| value.0 != "null")
    }

    /// Members of an object, names escaped as they stand; none of anything else.
    pub fn members(self) -> impl Iterator<Item = (&'a str, Self)> {
        let mut rest = Cursor::inside(self.0, '{');
        std::iter::from_fn(move || {
            let name = rest.next_value()?;
            Some((inner(name), Self(rest.next_value()?)))
        })
    }

    /// Elements of an array; none of anything else.
    pub fn items(self) -> impl Iterator<Item = Self> {
        let mut rest = Cursor::inside(self.0, '[');
        std::iter::from_fn(move || rest.next_value().map(Self))
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.0.starts_with('[')
    }

    /// A string's text, still escaped, without its quotes.
    pub fn escaped(self) -> Option<&'a str> {
        self.0.starts_with('"').then(|| inner(self.0))
    }

    /// A string's text; half of a surrogate pair becomes U+FFFD.
    pub fn string(self) -> Option<Cow<'a, str>> {
        self.escaped().map(unescape)
    }

    /// A number, as JavaScript would have it.
    pub fn number(self) -> Option<f64> {
        if !self.0.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
            return None;
        }
        self.0.parse().ok()
    }

    /// A whole number that is not negative.
    pub fn whole(self) -> Option<u64> {
        let number = self.number()?;
        ((0.0..=9_007_199_254_740_991.0).contains(&number) && number as u64 as f64 == number)
            .then_some(number as u64)
    }

    /// A boolean.
    pub fn bool(self) -> Option<bool> {
        match self.0 {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }
}

/// Text of a member, decoded: `get`, `string`, owned.
pub fn text(of: Json<'_>, name: &str) -> Option<String> {
    of.get(name)?.string().map(Cow::into_owned)
}

/// `text` as a JSON string.
pub fn quote(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    escape(text, &mut out);
    out.push('"');
    out
}

/// Appends `text` to `out`, escaped.
pub fn escape(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c < ' ' => {
                out.push_str("\\u00");
                out.push(char::from(b'0' + (c as u8 >> 4)));
                out.push(char::from(b"0123456789abcdef"[usize::from(c as u8 & 15)]));
            }
            c => out.push(c),
        }
    }
}

/// Writes one object, members in the order in which they are given.
#[derive(Clone, Debug)]
pub struct Object(String);

impl Object {
    /// An object without members.
    pub fn new() -> Self {
        Self("{".to_owned())
    }

    /// A member whose value is the JSON text `value`.
    #[must_use]
    pub fn raw(mut self, name: &str, value: &str) -> Self {
        if self.0.len() > 1 {
            self.0.push(',');
        }
        self.0.push('"');
        self.0.push_str(name);
        self.0.push_str("\":");
        self.0.push_str(value);
        self
    }

    /// A member whose value is a string.
    #[must_use]
    pub fn string(self, name: &str, value: &str) -> Self {
        self.raw(name, &quote(value))
    }

    /// A member whose value is a string that is already escaped.
    #[must_use]
    pub fn escaped(self, name: &str, value: &str) -> Self {
        let mut text = String::with_capacity(value.len() + 2);
        text.push('"');
        text.push_str(value);
        text.push('"');
        self.raw(name, &text)
    }

    /// A member whose value is a whole number.
    #[must_use]
    pub fn number(self, name: &str, value: u64) -> Self {
        self.raw(name, &value.to_string())
    }

    /// A member, where there is a value for it.
    #[must_use]
    pub fn maybe(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.raw(name, value),
            None => self,
        }
    }

    /// The text.
    #[must_use]
    pub fn build(mut self) -> String {
        self.0.push('}');
        self.0
    }
}

impl Default for Object {
    fn default() -> Self {
        Self::new()
    }
}

/// `items`, each a JSON text, as an array.
pub fn array<T: AsRef<str>>(items: impl IntoIterator<Item = T>) -> String {
    let mut out = "[".to_owned();
    for item in items {
        if out.len() > 1 {
            out.push(',');
        }
        out.push_str(item.as_ref());
    }
    out.push(']');
    out
}

const SPACE: [char; 4] = [' ', '\n', '\r', '\t'];

fn inner(string: &str) -> &str {
    &string[1..string.len() - 1]
}

/// Decodes the text between a string's quotes.
pub fn unescape(escaped: &str) -> Cow<'_, str> {
    if !escaped.contains('\\') {
        return Cow::Borrowed(escaped);
    }
    let mut out = String::with_capacity(escaped.len());
    let mut rest = escaped;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let code = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        let plain = match code {
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'u' => {
                let (c, after) = unescape_unit(rest);
                rest = after;
                c
            }
            other => char::from(other),
        };
        out.push(plain);
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// Decodes what follows a `\u`, a second escape with it where that makes a pair.
fn unescape_unit(rest: &str) -> (char, &str) {
    let unit = |text: &str| {
        text.get(..4)
            .and_then(|hex| u32::from_str_radix(hex, 16).ok())
    };
    let first = unit(rest).unwrap_or(0xFFFD);
    let after = &rest[4..];
    if (0xD800..0xDC00).contains(&first)
        && let Some(second) = after.strip_prefix("\\u").and_then(unit)
        && (0xDC00..0xE000).contains(&second)
    {
        let code = 0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00);
        return (char::from_u32(code).unwrap_or('\u{FFFD}'), &after[6..]);
    }
    (char::from_u32(first).unwrap_or('\u{FFFD}'), after)
}

/// Walks the values of a container that was checked.
struct Cursor<'a>(&'a str);

impl<'a> Cursor<'a> {
    fn inside(text: &'a str, open: char) -> Self {
        Self(text.strip_prefix(open).unwrap_or(""))
    }

    fn next_value(&mut self) -> Option<&'a str> {
        let start = self.0.trim_start_matches([' ', '\n', '\r', '\t', ',', ':']);
        if start.is_empty() || start.starts_with(['}', ']']) {
            return None;
        }
        let (value, rest) = start.split_at(length(start.as_bytes()));
        self.0 = rest;
        Some(value)
    }
}

/// Bytes of the value that a checked text starts with.
fn length(text: &[u8]) -> usize {
    let mut depth = 0usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'"' => at = string_end(text, at),
            b'{' | b'[' => {
                depth += 1;
                at += 1;
            }
            b'}' | b']' => {
                depth -= 1;
                at += 1;
            }
            b',' | b':' | b' ' | b'\n' | b'\r' | b'\t' => at += 1,
            _ => {
                while at < text.len() && !b",:{}[] \n\r\t\"".contains(&text[at]) {
                    at += 1;
                }
            }
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(text: &[u8], open: usize) -> usize {
    let mut at = plain(text, open + 1);
    while text[at] != b'"' {
        at = plain(text, at + if text[at] == b'\\' { 2 } else { 1 });
    }
    at + 1
}

/// Where a quote, a backslash or a control character comes, from `at` on. Strings
/// are most of what is read, so this takes eight bytes at a time.
fn plain(text: &[u8], mut at: usize) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    // Sets the high bit of the lowest byte that is below `bound`, and maybe of
    // some above it.
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & HIGH;
    let is = |word: u64, byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    while let Some(Ok(word)) = text.get(at..at + 8).map(<[u8; 8]>::try_from) {
        let word = u64::from_le_bytes(word);
        let found = below(word, 0x20) | is(word, b'"') | is(word, b'\\');
        if found != 0 {
            return at + found.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    while text
        .get(at)
        .is_some_and(|byte| *byte >= 0x20 && !matches!(byte, b'"' | b'\\'))
    {
        at += 1;
    }
    at
}

/// Checks one value against the grammar; returns where it ends.
fn check(text: &[u8]) -> Option<usize> {
    let space = |mut at: usize| {
        while matches!(text.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
            at += 1;
        }
        at
    };
    let name = |at: usize| {
        let at = space(check_string(text, at)?);
        (text.get(at) == Some(&b':')).then(|| space(at + 1))
    };
    let mut open: Vec<u8> = Vec::new();
    let mut at = 0;
    'value: loop {
        match *text.get(at)? {
            b'"' => at = check_string(text, at)?,
            bracket @ (b'{' | b'[') => {
                let close = bracket + 2;
                at = space(at + 1);
                if text.get(at) == Some(&close) {
                    at += 1;
                } else {
                    open.push(close);
                    if close == b'}' {
                        at = name(at)?;
                    }
                    continue 'value;
                }
            }
            b't' => at = word(text, at, b"true")?,
            b'f' => at = word(text, at, b"false")?,
            b'n' => at = word(text, at, b"null")?,
            _ => at = check_number(text, at)?,
        }
        while let Some(&close) = open.last() {
            at = space(at);
            match *text.get(at)? {
                b',' => {
                    at = space(at + 1);
                    if close == b'}' {
                        at = name(at)?;
                    }
                    continue 'value;
                }
                byte if byte == close => {
                    open.pop();
                    at += 1;
                }
                _ => return None,
            }
        }
        return Some(at);
    }
}

fn word(text: &[u8], at: usize, word: &[u8]) -> Option<usize> {
    text[at..].starts_with(word).then_some(at + word.len())
}

fn check_string(text: &[u8], open: usize) -> Option<usize> {
    if text.get(open) != Some(&b'"') {
        return None;
    }
    let mut at = open + 1;
    loop {
        match *text.get(at)? {
            b'"' => return Some(at + 1),
            b'\\' => match *text.get(at + 1)? {
                b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => at += 2,
                b'u' => {
                    let hex = text.get(at + 2..at + 6)?;
                    hex.iter().all(u8::is_ascii_hexdigit).then_some(())?;
                    at += 6;
                }
                _ => return None,
            },
            0..0x20 => return None,
            _ => at = plain(text, at + 1),
        }
    }
}

fn check_number(text: &[u8], mut at: usize) -> Option<usize> {
    let digits = |from: usize| {
        let count = text[from.min(text.len())..]
            .iter()
            .take_while(|byte| byte.is_ascii_digit())
            .count();
        (count > 0).then_some(from + count)
    };
    if text.get(at) == Some(&b'-') {
        at += 1;
    }
    at = if text.get(at) == Some(&b'0') {
        at + 1
    } else {
        digits(at)?
    };
    if text.get(at) == Some(&b'.') {
        at = digits(at + 1)?;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(text.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        at = digits(at)?;
    }
    Some(at)
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
