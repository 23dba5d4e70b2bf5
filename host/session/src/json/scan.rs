//! The validator: one pass, no recursion, nothing allocated but a stack of open containers.
//!
//! Logs are written in normal form, so nearly every text read is in it already. One pass says whether a text is JSON and
//! whether it is in normal form; only a text that is not goes through [`super::normal`].

use super::{JsonError, number};

/// What a valid text looks like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Form {
    /// It is its own normal form, and lossless.
    Normal,
    /// It has to be rewritten.
    Loose,
}

struct Frame {
    /// Where this object's keys begin in the stack of keys; `None` for an array.
    keys: Option<usize>,
    /// The last integer-like key, and whether another key followed: those come first, ascending.
    last_index: Option<u32>,
    plain_seen: bool,
}

struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
    normal: bool,
    /// No byte of the text is a control byte, so a string goes on to its next quote or backslash whatever lies between.
    clean: bool,
}

/// Whether a text holds no control byte. One look at all bytes at once; the compiler makes wide compares of it.
fn is_clean(bytes: &[u8]) -> bool {
    bytes.chunks(256).all(|chunk| {
        chunk
            .iter()
            .fold(true, |clean, byte| clean & (*byte >= 0x20))
    })
}

/// Objects up to this size are searched for double keys by comparing all pairs.
const PAIRWISE: usize = 24;

/// Checks a whole text.
pub(crate) fn scan(text: &str) -> Result<Form, JsonError> {
    let mut s = Scanner {
        bytes: text.as_bytes(),
        at: 0,
        normal: true,
        clean: is_clean(text.as_bytes()),
    };
    let mut frames: Vec<Frame> = Vec::with_capacity(8);
    let mut keys: Vec<&[u8]> = Vec::with_capacity(32);
    s.space();
    'value: loop {
        // At the start of a value.
        match s.peek() {
            Some(b'{') => {
                s.at += 1;
                s.space();
                if s.eat(b'}') {
                } else {
                    frames.push(Frame {
                        keys: Some(keys.len()),
                        last_index: None,
                        plain_seen: false,
                    });
                    s.key(&mut frames, &mut keys)?;
                    continue 'value;
                }
            }
            Some(b'[') => {
                s.at += 1;
                s.space();
                if s.eat(b']') {
                } else {
                    frames.push(Frame {
                        keys: None,
                        last_index: None,
                        plain_seen: false,
                    });
                    continue 'value;
                }
            }
            Some(b'"') => {
                s.string()?;
            }
            Some(b'-' | b'0'..=b'9') => s.number()?,
            Some(b't') => s.word(b"true")?,
            Some(b'f') => s.word(b"false")?,
            Some(b'n') => s.word(b"null")?,
            _ => return Err(s.fault()),
        }
        // After a value: close what closes, or go on to the next one.
        loop {
            let Some(frame) = frames.last() else {
                s.space();
                if s.at != s.bytes.len() {
                    return Err(s.fault());
                }
                return Ok(if s.normal { Form::Normal } else { Form::Loose });
            };
            s.space();
            match (s.peek(), frame.keys) {
                (Some(b','), base) => {
                    s.at += 1;
                    s.space();
                    if base.is_some() {
                        s.key(&mut frames, &mut keys)?;
                    }
                    continue 'value;
                }
                (Some(b']'), None) => {
                    s.at += 1;
                    frames.pop();
                }
                (Some(b'}'), Some(base)) => {
                    s.at += 1;
                    if s.normal && has_double(&keys[base..]) {
                        s.normal = false;
                    }
                    keys.truncate(base);
                    frames.pop();
                }
                _ => return Err(s.fault()),
            }
        }
    }
}

fn has_double(keys: &[&[u8]]) -> bool {
    if keys.len() <= PAIRWISE {
        keys.iter()
            .enumerate()
            .any(|(i, key)| keys[..i].contains(key))
    } else {
        let mut seen = std::collections::HashSet::with_capacity(keys.len());
        !keys.iter().all(|key| seen.insert(*key))
    }
}

/// The value of an integer-like key: canonical decimal below 2^32 - 1. Such keys come first in an object.
pub(crate) fn index_key(key: &[u8]) -> Option<u32> {
    let fits = match key {
        [b'0'] => true,
        [b'1'..=b'9', rest @ ..] => rest.len() < 10 && rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !fits {
        return None;
    }
    let number = key
        .iter()
        .fold(0u64, |n, digit| n * 10 + u64::from(digit - b'0'));
    u32::try_from(number).ok().filter(|n| *n != u32::MAX)
}

impl<'a> Scanner<'a> {
    fn fault(&self) -> JsonError {
        JsonError::Syntax { at: self.at }
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn eat(&mut self, byte: u8) -> bool {
        let hit = self.peek() == Some(byte);
        self.at += usize::from(hit);
        hit
    }

    fn space(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
            self.normal = false;
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), JsonError> {
        if self.bytes[self.at..].starts_with(word) {
            self.at += word.len();
            Ok(())
        } else {
            Err(self.fault())
        }
    }

    /// A key and its colon, up to the start of the value.
    fn key(&mut self, frames: &mut [Frame], keys: &mut Vec<&'a [u8]>) -> Result<(), JsonError> {
        if self.peek() != Some(b'"') {
            return Err(self.fault());
        }
        let key = self.string()?;
        if let Some(frame) = frames.last_mut() {
            match index_key(key) {
                None => frame.plain_seen = true,
                Some(index) => {
                    if frame.plain_seen || frame.last_index.is_some_and(|last| last >= index) {
                        self.normal = false;
                    }
                    frame.last_index = Some(index);
                }
            }
        }
        keys.push(key);
        self.space();
        if !self.eat(b':') {
            return Err(self.fault());
        }
        self.space();
        Ok(())
    }

    /// A string, at its opening quote; gives the bytes between the quotes.
    fn string(&mut self) -> Result<&'a [u8], JsonError> {
        self.at += 1;
        let start = self.at;
        // Set while the last escape was a high surrogate that a low one would complete.
        let mut high_ends_at = usize::MAX;
        loop {
            if self.clean {
                let rest = &self.bytes[self.at..];
                self.at += memchr::memchr2(b'"', b'\\', rest).unwrap_or(rest.len());
            }
            match self.peek() {
                Some(b'"') => {
                    let raw = &self.bytes[start..self.at];
                    self.at += 1;
                    return Ok(raw);
                }
                Some(b'\\') => {
                    let escape = self.at;
                    self.at += 1;
                    match self.peek() {
                        Some(b'"' | b'\\' | b'b' | b't' | b'n' | b'f' | b'r') => self.at += 1,
                        Some(b'/') => {
                            self.at += 1;
                            self.normal = false;
                        }
                        Some(b'u') => {
                            let unit = self.unit()?;
                            let pairs = high_ends_at == escape && (0xDC00..0xE000).contains(&unit);
                            let hex = &self.bytes[escape + 2..escape + 6];
                            let needed = match unit {
                                0x08 | 0x09 | 0x0A | 0x0C | 0x0D => false,
                                0..0x20 => true,
                                0xD800..0xE000 => !pairs,
                                _ => false,
                            };
                            if !needed || hex.iter().any(u8::is_ascii_uppercase) {
                                self.normal = false;
                            }
                            if (0xD800..0xDC00).contains(&unit) {
                                high_ends_at = self.at;
                            }
                        }
                        _ => return Err(self.fault()),
                    }
                }
                Some(0..0x20) | None => return Err(self.fault()),
                Some(_) => self.at += 1,
            }
        }
    }

    /// Four hex digits, at the `u`.
    fn unit(&mut self) -> Result<u32, JsonError> {
        self.at += 1;
        let mut unit = 0;
        for _ in 0..4 {
            let digit = self.peek().and_then(|byte| char::from(byte).to_digit(16));
            unit = unit * 16 + digit.ok_or(self.fault())?;
            self.at += 1;
        }
        Ok(unit)
    }

    fn digits(&mut self) -> Result<usize, JsonError> {
        let start = self.at;
        while let Some(b'0'..=b'9') = self.peek() {
            self.at += 1;
        }
        if self.at == start {
            Err(self.fault())
        } else {
            Ok(self.at - start)
        }
    }

    fn number(&mut self) -> Result<(), JsonError> {
        let start = self.at;
        self.eat(b'-');
        let zero = self.peek() == Some(b'0');
        let whole = if zero {
            self.at += 1;
            1
        } else {
            self.digits()?
        };
        let mut integer = true;
        if self.eat(b'.') {
            integer = false;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            integer = false;
            self.at += 1;
            if !self.eat(b'+') {
                self.eat(b'-');
            }
            self.digits()?;
        }
        // Up to 15 digits an integer is its own shortest form, but for negative zero.
        let negative_zero = zero && self.bytes[start] == b'-';
        if !(integer && whole <= 15 && !negative_zero) {
            let text =
                std::str::from_utf8(&self.bytes[start..self.at]).map_err(|_| self.fault())?;
            if !number::is_shortest(text) {
                self.normal = false;
            }
        }
        Ok(())
    }
}
