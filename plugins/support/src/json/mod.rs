//! JSON as text. What a guest gets and gives is the log's own text, whose
//! strings may hold half of a surrogate pair and whose nesting has no bound, so
//! a value here is a checked slice of its text, read on demand: strings pass
//! from input to output escaped as they stand, and nothing recurses.

mod scan;
mod write;

use std::borrow::Cow;

use scan::{check, length};
pub use write::{Object, array, escape, quote};

/// One JSON value: a slice of a text that [`Json::parse`] has checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Json<'a>(&'a str);

impl<'a> Json<'a> {
    /// Checks that `text` is one JSON value, whitespace around it allowed.
    pub fn parse(text: &'a str) -> Option<Self> {
        let text = text.trim_matches(SPACE);
        (check(text.as_bytes()) == Some(text.len())).then_some(Self(text))
    }

    /// The value that a text starts with, checked; what is behind it is not looked at.
    pub fn starting(text: &'a str) -> Option<Self> {
        let text = text.trim_start_matches(SPACE);
        Some(Self(&text[..check(text.as_bytes())?]))
    }

    /// A text that the host has normalised, such as an event's payload. It is not
    /// checked again, which would cost more than most listeners do with it; of a
    /// text that is no JSON come nonsense and panics.
    pub fn of_host(text: &'a str) -> Self {
        Self(text)
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

    /// The first member of this name: what the host has normalised has no second
    /// one, and nothing behind it is looked at.
    pub fn first(self, name: &str) -> Option<Self> {
        self.members()
            .find(|(key, _)| unescape(key) == name)
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

    /// How many bytes [`Json::string`] has, without making it.
    pub fn string_len(self) -> Option<usize> {
        self.escaped().map(unescaped_len)
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

/// Bytes of the value that a text starts with; the text was checked, or its maker vouches for it.
pub(crate) fn end_of_value(text: &str) -> usize {
    length(text.as_bytes())
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

/// The length of what [`unescape`] makes of it.
fn unescaped_len(escaped: &str) -> usize {
    let (mut length, mut rest) = (0, escaped);
    while let Some(at) = rest.find('\\') {
        length += at;
        let code = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        if code == b'u' {
            let (c, after) = unescape_unit(rest);
            length += c.len_utf8();
            rest = after;
        } else {
            length += 1;
        }
    }
    length + rest.len()
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

#[cfg(test)]
mod tests;
