//! Strings: escaping, unescaping, UTF-16 lengths. `spec/session.md` §0.
//!
//! A string is a sequence of UTF-16 units. In normal form whatever UTF-8 can hold stands raw, and a lone surrogate
//! stands as its escape, so the raw text of a string says everything about it and equal strings have equal raw texts.

use std::borrow::Cow;
use std::fmt::Write as _;

/// The index after the closing quote of the string whose opening quote stands at `at`.
pub(crate) fn end(bytes: &[u8], at: usize) -> usize {
    let mut at = at + 1;
    while let Some(rest) = bytes.get(at..) {
        match memchr::memchr2(b'"', b'\\', rest) {
            Some(offset) if rest[offset] == b'"' => return at + offset + 1,
            Some(offset) => at += offset + 2,
            None => break,
        }
    }
    bytes.len()
}

/// One piece of a raw string.
enum Piece<'a> {
    /// Text without escapes.
    Plain(&'a str),
    /// A character that was escaped.
    Char(char),
    /// Half of a surrogate pair.
    Lone(u16),
}

/// Splits a valid raw string into pieces; escaped pairs are joined.
struct Pieces<'a> {
    rest: &'a str,
}

fn unit(escape: &str) -> Option<u16> {
    let hex = escape.strip_prefix("\\u")?.get(..4)?;
    u16::from_str_radix(hex, 16).ok()
}

impl<'a> Iterator for Pieces<'a> {
    type Item = Piece<'a>;

    fn next(&mut self) -> Option<Piece<'a>> {
        let length = self.rest.find('\\').unwrap_or(self.rest.len());
        if length > 0 {
            let (plain, rest) = self.rest.split_at(length);
            self.rest = rest;
            return Some(Piece::Plain(plain));
        }
        let letter = *self.rest.as_bytes().get(1)?;
        if letter != b'u' {
            self.rest = &self.rest[2..];
            return Some(Piece::Char(match letter {
                b'b' => '\u{8}',
                b't' => '\t',
                b'n' => '\n',
                b'f' => '\u{c}',
                b'r' => '\r',
                other => char::from(other),
            }));
        }
        let first = unit(self.rest)?;
        self.rest = &self.rest[6..];
        if let Some(character) = char::from_u32(u32::from(first)) {
            return Some(Piece::Char(character));
        }
        if let Some(second) = unit(self.rest)
            && let Some(Ok(character)) = char::decode_utf16([first, second]).next()
        {
            self.rest = &self.rest[6..];
            return Some(Piece::Char(character));
        }
        Some(Piece::Lone(first))
    }
}

/// Appends the normal form of a valid raw string.
pub(crate) fn normalise(raw: &str, out: &mut String) {
    for piece in (Pieces { rest: raw }) {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Char(character) => escape(character.encode_utf8(&mut [0; 4]), out),
            Piece::Lone(unit) => {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
}

/// Whether a text stands raw in a string.
pub(crate) fn is_plain(text: &str) -> bool {
    !text
        .bytes()
        .any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20))
}

/// Appends a text as it stands between quotes.
pub(crate) fn escape(text: &str, out: &mut String) {
    let mut done = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            0x08 => "\\b",
            b'\t' => "\\t",
            b'\n' => "\\n",
            0x0C => "\\f",
            b'\r' => "\\r",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(&text[done..at]);
        done = at + 1;
        if short.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(short);
        }
    }
    out.push_str(&text[done..]);
}

/// The text of a raw string; lone surrogates become U+FFFD.
pub(crate) fn decode(raw: &str) -> Cow<'_, str> {
    if !raw.contains('\\') {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    for piece in (Pieces { rest: raw }) {
        match piece {
            Piece::Plain(plain) => out.push_str(plain),
            Piece::Char(character) => out.push(character),
            Piece::Lone(_) => out.push(char::REPLACEMENT_CHARACTER),
        }
    }
    Cow::Owned(out)
}

/// The length of a plain text in UTF-16 units: one a character, two beyond the basic plane.
pub(crate) fn utf16_len_plain(text: &str) -> usize {
    text.bytes()
        .map(|b| usize::from(b & 0xC0 != 0x80) + usize::from(b >= 0xF0))
        .sum()
}

/// The length of a raw string in UTF-16 units.
pub(crate) fn utf16_len(raw: &str) -> usize {
    let pieces = Pieces { rest: raw };
    pieces
        .map(|piece| match piece {
            Piece::Plain(plain) => utf16_len_plain(plain),
            Piece::Char(character) => character.len_utf16(),
            Piece::Lone(_) => 1,
        })
        .sum()
}

/// The UTF-16 units of a raw string.
pub(crate) fn utf16(raw: &str) -> Vec<u16> {
    let mut out = Vec::with_capacity(raw.len());
    for piece in (Pieces { rest: raw }) {
        match piece {
            Piece::Plain(plain) => out.extend(plain.encode_utf16()),
            Piece::Char(character) => out.extend(character.encode_utf16(&mut [0; 2]).iter()),
            Piece::Lone(unit) => out.push(unit),
        }
    }
    out
}
