//! Views of a text in normal form: no tree, no copy. Reading a member walks the text up to it.

use std::borrow::Cow;

use super::Json;

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

/// One value inside a text in normal form.
#[derive(Clone, Copy, PartialEq, Eq)]
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

    /// A copy that stands alone.
    pub fn to_json(self) -> Json {
        todo!()
    }

    /// What kind of value it is.
    pub fn kind(self) -> Kind {
        todo!()
    }

    /// Whether it is `null`.
    pub fn is_null(self) -> bool {
        self.text == "null"
    }

    /// Whether it is an object.
    pub fn is_object(self) -> bool {
        self.kind() == Kind::Object
    }

    /// Whether it is an array.
    pub fn is_array(self) -> bool {
        self.kind() == Kind::Array
    }

    /// The boolean.
    pub fn bool(self) -> Option<bool> {
        todo!()
    }

    /// The number.
    pub fn f64(self) -> Option<f64> {
        todo!()
    }

    /// The number, when it is an integer from -(2^53-1) to 2^53-1.
    pub fn safe_int(self) -> Option<i64> {
        todo!()
    }

    /// The number, when it is an integer from 0 to 2^53-1.
    pub fn u64(self) -> Option<u64> {
        todo!()
    }

    /// The string.
    pub fn string(self) -> Option<JStr<'a>> {
        todo!()
    }

    /// The string, decoded; lone surrogates become U+FFFD.
    pub fn text(self) -> Option<Cow<'a, str>> {
        self.string().map(JStr::decode)
    }

    /// The member `key` of an object.
    pub fn get(self, key: &str) -> Option<Value<'a>> {
        let _ = key;
        todo!()
    }

    /// Walks members: `value.path(&["message", "source", "kind"])`.
    pub fn path(self, keys: &[&str]) -> Option<Value<'a>> {
        keys.iter().try_fold(self, |value, key| value.get(key))
    }

    /// The members of an object in order; none for other kinds.
    pub fn entries(self) -> Entries<'a> {
        todo!()
    }

    /// The items of an array in order; none for other kinds.
    pub fn items(self) -> Items<'a> {
        todo!()
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
        todo!()
    }

    /// The length in UTF-16 units, lone surrogates counted.
    pub fn utf16_len(self) -> usize {
        todo!()
    }

    /// The UTF-16 units.
    pub fn utf16(self) -> Vec<u16> {
        todo!()
    }

    /// Whether the text is exactly `text`.
    pub fn is(self, text: &str) -> bool {
        let _ = text;
        todo!()
    }
}

impl std::fmt::Debug for JStr<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "\"{}\"", self.raw)
    }
}

/// The members of an object.
#[derive(Clone)]
pub struct Entries<'a> {
    rest: &'a str,
}

impl<'a> Iterator for Entries<'a> {
    type Item = (JStr<'a>, Value<'a>);

    fn next(&mut self) -> Option<Self::Item> {
        let _ = self.rest;
        todo!()
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
        let _ = self.rest;
        todo!()
    }
}
