//! Views of a text in normal form: no tree, no copy. Reading a member walks the text up to it, so read each member once
//! and keep the view.

use std::borrow::Cow;

use super::{Json, normal, number, text};

/// The kinds of JSON values.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(missing_docs)]
pub enum Kind {
    Null,
    Bool,
    Number,
    String,
    Array,
    Object,
}

/// One value inside a text in normal form. Equality is equality of texts: the order of members counts, see
/// [`Value::same`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Value<'a> {
    text: &'a str,
}

impl<'a> Value<'a> {
    /// A view of a text that is known to be in normal form.
    pub(crate) fn trusted(text: &'a str) -> Value<'a> {
        Value { text }
    }

    /// The value's text.
    pub fn as_str(self) -> &'a str {
        self.text
    }

    /// Where this value stands in the text of `outer`, which it was read from.
    pub(crate) fn range_in(self, outer: Value<'a>) -> std::ops::Range<usize> {
        let start = (self.text.as_ptr() as usize).saturating_sub(outer.text.as_ptr() as usize);
        start..start + self.text.len()
    }

    /// A copy that stands alone.
    pub fn to_json(self) -> Json {
        Json(self.text.into())
    }

    /// What kind of value it is.
    pub fn kind(self) -> Kind {
        match self.text.as_bytes().first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b't' | b'f') => Kind::Bool,
            Some(b'n') | None => Kind::Null,
            Some(_) => Kind::Number,
        }
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Whether it is a string.
    pub fn is_string(self) -> bool {
        self.kind() == Kind::String
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// Whether it is a number.
    pub fn is_number(self) -> bool {
        self.kind() == Kind::Number
    }

    /// The boolean.
    pub fn bool(self) -> Option<bool> {
        match self.text {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        }
    }

    /// The number.
    pub fn f64(self) -> Option<f64> {
        self.is_number().then(|| number::parse(self.text))
    }

    /// The number, when it is an integer from -(2^53-1) to 2^53-1.
    pub fn safe_int(self) -> Option<i64> {
        // In normal form an integer of that size is plain decimal.
        let number: i64 = self.text.parse().ok()?;
        (number.unsigned_abs() <= crate::MAX_SAFE_INTEGER).then_some(number)
    }

    /// The number, when it is an integer from 0 to 2^53-1.
    pub fn u64(self) -> Option<u64> {
        self.safe_int()
            .and_then(|number| u64::try_from(number).ok())
    }

    /// The string.
    pub fn string(self) -> Option<JStr<'a>> {
        let raw = self.text.strip_prefix('"')?;
        Some(JStr {
            raw: &raw[..raw.len() - 1],
        })
    }

    /// The string, decoded; lone surrogates become U+FFFD.
    pub fn text(self) -> Option<Cow<'a, str>> {
        self.string().map(JStr::decode)
    }

    /// Whether it is the string `text`.
    pub fn is(self, text: &str) -> bool {
        self.string().is_some_and(|string| string.is(text))
    }

    /// The member `key` of an object.
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        self.entries()
            .find(|(name, _)| name.is(key))
            .map(|(_, value)| value)
    }

    /// Walks members: `value.path(&["message", "source", "kind"])`.
    pub fn path(self, keys: &[&str]) -> Option<Value<'a>> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The members of an object in order; none for other kinds.
    pub fn entries(self) -> Entries<'a> {
        Entries {
            rest: if self.is_object() { self.inner() } else { "" },
        }
    }

    /// The items of an array in order; none for other kinds.
    pub fn items(self) -> Items<'a> {
        Items {
            rest: if self.is_array() { self.inner() } else { "" },
        }
    }

    fn inner(self) -> &'a str {
        &self.text[1..self.text.len() - 1]
    }

    /// Deep equality, whatever the order of members.
    pub fn same(self, other: Value<'_>) -> bool {
        self.text == other.text || normal::sorted(self.text) == normal::sorted(other.text)
    }
}

impl std::fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.text)
    }
}

/// A string inside a text: UTF-16 in principle, so it may hold lone surrogates.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct JStr<'a> {
    raw: &'a str,
}

impl<'a> JStr<'a> {
    /// The text between the quotes, escapes as they stand.
    pub fn raw(self) -> &'a str {
        self.raw
    }

    /// Whether it has no units.
    pub fn is_empty(self) -> bool {
        self.raw.is_empty()
    }

    /// The text; lone surrogates become U+FFFD. Borrowed when nothing is escaped.
    pub fn decode(self) -> Cow<'a, str> {
        text::decode(self.raw)
    }

    /// The length in UTF-16 units, lone surrogates counted.
    pub fn utf16_len(self) -> usize {
        text::utf16_len(self.raw)
    }

    /// The UTF-16 units.
    pub fn utf16(self) -> Vec<u16> {
        text::utf16(self.raw)
    }

    /// Whether the text is exactly `text`.
    pub fn is(self, text: &str) -> bool {
        if self.raw == text {
            return text::is_plain(text);
        }
        // A longer raw text may be an escaped one; nothing is escaped without a backslash.
        self.raw.len() > text.len() && self.raw.contains('\\') && self.decode_is(text)
    }

    fn decode_is(self, text: &str) -> bool {
        let mut escaped = String::with_capacity(self.raw.len());
        text::escape(text, &mut escaped);
        escaped == self.raw
    }
}

impl std::fmt::Debug for JStr<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.raw)
    }
}

/// The index after the value that starts at `at`, in a text in normal form.
fn value_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0usize;
    loop {
        match bytes.get(at) {
            None => return bytes.len(),
            Some(b'"') => at = text::end(bytes, at),
            Some(b'{' | b'[') => {
                depth += 1;
                at += 1;
                continue;
            }
            Some(b'}' | b']') => {
                depth = depth.saturating_sub(1);
                at += 1;
            }
            Some(b',' | b':') => {
                at += 1;
                continue;
            }
            Some(_) => {
                while bytes
                    .get(at)
                    .is_some_and(|b| !matches!(b, b',' | b']' | b'}'))
                {
                    at += 1;
                }
            }
        }
        if depth == 0 {
            return at;
        }
    }
}

/// Cuts the first value off a list of them.
fn take_value<'a>(rest: &mut &'a str) -> Value<'a> {
    let end = value_end(rest.as_bytes(), 0);
    let (text, tail) = rest.split_at(end);
    *rest = tail.strip_prefix(',').unwrap_or(tail);
    Value { text }
}

/// The members of an object.
#[derive(Clone)]
pub struct Entries<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (JStr<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let end = text::end(self.rest.as_bytes(), 0);
        let key = JStr {
            raw: &self.rest[1..end - 1],
        };
        self.rest = &self.rest[end + 1..];
        Some((key, take_value(&mut self.rest)))
    }
}

/// The items of an array.
#[derive(Clone)]
pub struct Items<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Items<'a> {
    type Item = Value<'a>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        Some(take_value(&mut self.rest))
    }
}
