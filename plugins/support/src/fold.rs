//! What projections share: a reader for events that looks at no more of them than it has to.
//!
//! A fold sees every chunk of a stream, three folds see it three times, and of nearly all chunks only the first bytes
//! matter. So nothing here checks a text or finds its end first, as [`Json::parse`](crate::json::Json::parse) does:
//! the host made the text and vouches for it. One that is no JSON all the same gives a wrong answer or a panic, which
//! costs the projection and nobody else.

use crate::json::{Json, end_of_value, text};
use crate::types::Error;

/// One value, and whatever stands behind it in the same text.
#[derive(Clone, Copy, Debug)]
pub struct Tail<'a>(&'a str);

impl<'a> Tail<'a> {
    /// The value that a text starts with. The text must be JSON without space between its tokens, as the log's is.
    pub fn of(text: &'a str) -> Self {
        Self(text)
    }

    /// The value alone.
    pub fn raw(self) -> &'a str {
        &self.0[..end_of_value(self.0)]
    }

    /// The member of this name, which has no character that wants escaping. What stands before it is passed over, and
    /// it is not read itself.
    pub fn member(self, name: &str) -> Option<Self> {
        self.members()
            .find(|(key, _)| *key == name)
            .map(|(_, value)| value)
    }

    /// Members of an object, names escaped as they stand; none of anything else.
    pub fn members(self) -> Members<'a> {
        Members {
            rest: self.0,
            at: usize::from(self.0.starts_with('{')),
            value: false,
        }
    }

    /// Elements of an array; none of anything else.
    pub fn items(self) -> Items<'a> {
        Items {
            rest: self.0,
            at: usize::from(self.0.starts_with('[')),
            begun: false,
        }
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.0.starts_with("null")
    }

    /// Whether it is this string, which has no character that wants escaping.
    pub fn is(self, text: &str) -> bool {
        let bytes = self.0.as_bytes();
        let end = text.len() + 1;
        bytes.first() == Some(&b'"')
            && bytes.get(end) == Some(&b'"')
            && &bytes[1..end] == text.as_bytes()
    }

    /// A string's text, escaped as it stands: in the log one string is written in one way.
    pub fn escaped(self) -> Option<&'a str> {
        self.0.starts_with('"').then(|| {
            let raw = self.raw();
            &raw[1..raw.len() - 1]
        })
    }

    /// A number.
    pub fn number(self) -> Option<f64> {
        let bytes = self.0.as_bytes();
        // Nearly all are whole and short.
        let mut whole = 0u64;
        let mut at = 0;
        while let Some(digit @ b'0'..=b'9') = bytes.get(at) {
            if at == 15 {
                return self.any_number();
            }
            whole = whole * 10 + u64::from(digit - b'0');
            at += 1;
        }
        match bytes.get(at) {
            Some(b'.' | b'e' | b'E') => self.any_number(),
            _ if at == 0 => self.any_number(),
            _ => Some(whole as f64),
        }
    }

    fn any_number(self) -> Option<f64> {
        let number = |byte: &u8| matches!(byte, b'0'..=b'9' | b'.' | b'-' | b'+' | b'e' | b'E');
        let end = self
            .0
            .bytes()
            .position(|byte| !number(&byte))
            .unwrap_or(self.0.len());
        self.0[..end].parse().ok()
    }
}

/// A member that is a number; anything else counts as 0.
pub fn number(of: Tail<'_>, name: &str) -> f64 {
    of.member(name).and_then(Tail::number).unwrap_or(0.0)
}

/// What [`Tail::members`] gives.
#[derive(Clone, Debug)]
pub struct Members<'a> {
    rest: &'a str,
    /// Where the next name begins, or the value whose end was not looked for yet.
    at: usize,
    value: bool,
}

impl<'a> Iterator for Members<'a> {
    type Item = (&'a str, Tail<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.at == 0 {
            return None;
        }
        if self.value {
            self.at += end_of_value(&self.rest[self.at..]);
            self.value = false;
        }
        let text = &self.rest[self.at..];
        let text = text.strip_prefix(',').unwrap_or(text);
        if !text.starts_with('"') {
            self.at = 0;
            return None;
        }
        let end = end_of_value(text);
        let name = &text[1..end - 1];
        // The colon.
        let value = &text[end + 1..];
        self.at = self.rest.len() - value.len();
        self.value = true;
        Some((name, Tail(value)))
    }
}

/// What [`Tail::items`] gives.
#[derive(Clone, Debug)]
pub struct Items<'a> {
    rest: &'a str,
    at: usize,
    begun: bool,
}

impl<'a> Iterator for Items<'a> {
    type Item = Tail<'a>;

    fn next(&mut self) -> Option<Tail<'a>> {
        if self.at == 0 {
            return None;
        }
        if self.begun {
            self.at += end_of_value(&self.rest[self.at..]);
        }
        self.begun = true;
        match self.rest.as_bytes().get(self.at) {
            Some(b',') => self.at += 1,
            None | Some(b']') => {
                self.at = 0;
                return None;
            }
            Some(_) => {}
        }
        Some(Tail(&self.rest[self.at..]))
    }
}

/// One event of the log.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    line: &'a str,
    /// Escaped as it stands.
    pub kind: &'a str,
    /// Its place in the log.
    pub seq: f64,
    /// Milliseconds since 1970.
    pub time: f64,
    /// What it says.
    pub data: Tail<'a>,
}

impl<'a> Event<'a> {
    /// Reads an event's line.
    pub fn read(line: &'a str) -> Self {
        let nothing = Tail("null");
        let mut event = Self {
            line,
            kind: "",
            seq: 0.0,
            time: 0.0,
            data: nothing,
        };
        for (name, value) in Tail(line).members() {
            match name {
                "type" => event.kind = value.escaped().unwrap_or_default(),
                "seq" => event.seq = value.number().unwrap_or_default(),
                "time" => event.time = value.number().unwrap_or_default(),
                "data" => {
                    event.data = value;
                    // It stands behind those, and its end is far.
                    if !event.kind.is_empty() {
                        break;
                    }
                }
                _ => {}
            }
        }
        event
    }

    /// How it changes the surface, where it does.
    pub fn surface_op(self) -> Option<Tail<'a>> {
        // Behind the data, as it is written; what reads it has read the data too.
        Tail(self.line).member("surfaceOp")
    }

    /// The turn and the step that it belongs to.
    pub fn place(self) -> (f64, f64) {
        (number(self.data, "turn"), number(self.data, "step"))
    }

    /// Its chunk, where it is one.
    pub fn chunk(self) -> Option<Tail<'a>> {
        self.data.member("chunk")
    }

    /// What a provider said about tokens: the usage of a usage chunk or of a finished message.
    pub fn usage(self) -> Option<Tail<'a>> {
        let usage = match self.kind {
            "assistant/chunk" => {
                let chunk = self.chunk()?;
                let is_usage = chunk.member("type")?.is("usage");
                is_usage.then(|| chunk.member("usage"))?
            }
            "assistant/message" => self.data.member("usage"),
            _ => None,
        };
        usage.filter(|usage| usage.is_object())
    }
}

/// UTF-16 units of a string that is escaped as it stands.
pub fn utf16_units(escaped: &str) -> usize {
    count(escaped, true)
}

/// UTF-16 units of a JSON text itself, its escapes included.
pub fn utf16_units_of_text(text: &str) -> usize {
    count(text, false)
}

/// Texts are mostly ASCII without escapes, which eight bytes at a time tell.
fn count(text: &str, escapes: bool) -> usize {
    const ONES: u64 = u64::MAX / 255;
    const HIGH: u64 = ONES * 0x80;
    let bytes = text.as_bytes();
    let backslashes = |word: u64| {
        let odd = word ^ (ONES * u64::from(b'\\'));
        odd.wrapping_sub(ONES) & !odd & HIGH
    };
    let (mut units, mut at) = (0, 0);
    while at < bytes.len() {
        if let Some(Ok(word)) = bytes.get(at..at + 8).map(<[u8; 8]>::try_from) {
            let word = u64::from_le_bytes(word);
            if word & HIGH == 0 && !(escapes && backslashes(word) != 0) {
                units += 8;
                at += 8;
                continue;
            }
        }
        match bytes[at] {
            b'\\' if escapes => {
                units += 1;
                at += if bytes.get(at + 1) == Some(&b'u') {
                    6
                } else {
                    2
                };
                continue;
            }
            // A continuation; four bytes make a pair.
            0x80..0xC0 => {}
            0xF0.. => units += 2,
            _ => units += 1,
        }
        at += 1;
    }
    units
}

/// Appends a number as JSON has it; what JSON has no number for is `null`.
pub fn write_number(number: f64, out: &mut String) {
    use std::fmt::Write as _;
    let whole = number as u64;
    if whole as f64 == number && whole <= 1 << 53 {
        let mut digits = [0; 20];
        let (mut at, mut rest) = (digits.len(), whole);
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
    } else if number.is_finite() {
        // Without an exponent, however long; the host writes numbers in the log's way.
        let _ = write!(out, "{number}");
    } else {
        out.push_str("null");
    }
}

/// Appends members whose values are numbers, without braces.
pub fn write_numbers<'n>(members: impl IntoIterator<Item = (&'n str, f64)>, out: &mut String) {
    for (at, (name, value)) in members.into_iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        out.push('"');
        out.push_str(name);
        out.push_str("\":");
        write_number(value, out);
    }
}

/// The name that a projection's row gives to its value: `key` of the configuration,
/// where it says one.
pub fn configured_key(usual: &str) -> String {
    let config = crate::config::get();
    let named = Json::parse(&config).and_then(|config| text(config, "key"));
    named.unwrap_or_else(|| usual.to_owned())
}

/// For a state that is none of its own.
pub fn malformed_state(key: &str) -> Error {
    crate::error(
        "INVALID",
        format!("the state of {key} is malformed; fold the log from its start"),
    )
}

#[cfg(test)]
#[path = "fold_tests.rs"]
mod tests;
