//! JSON as the log has it. `spec/session.md` §0.
//!
//! Data is kept as text, always valid and in one normal form: no spaces, numbers in ECMAScript's shortest form,
//! integer-like keys first, no key twice, only the escapes that are needed. Equal values are therefore (up to key
//! order) equal texts, a part of a value is a slice of its text, and reading a member needs no tree. The reader is our
//! own because strings may hold lone surrogates, which stay escaped, and because nesting has no limit: it never recurses.

mod view;
mod write;

pub use view::{Entries, Items, JStr, Kind, Value};
pub use write::{ArrayWriter, ObjectWriter};

use std::sync::Arc;

/// Why a text is not usable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JsonError {
    /// Not JSON.
    #[error("not JSON at byte {at}")]
    Syntax {
        /// Offset of the first byte that does not fit.
        at: usize,
    },
    /// A number that does not survive a round trip: negative zero or beyond the range of doubles.
    #[error("a number is negative zero or too large for a double")]
    NotLossless,
}

/// One JSON text in normal form. Cloning shares the text.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(Arc<str>);

impl Json {
    /// Takes a text through the lossless boundary: refuses what does not survive a round trip, returns the normal form.
    ///
    /// # Errors
    /// [`JsonError::Syntax`], [`JsonError::NotLossless`].
    pub fn normalise(text: &str) -> Result<Json, JsonError> {
        let _ = text;
        todo!()
    }

    /// The normal form of a stored text: negative zero becomes `0`, an infinite number `null`, as upstream prints them.
    ///
    /// # Errors
    /// [`JsonError::Syntax`].
    pub fn restore(text: &str) -> Result<Json, JsonError> {
        let _ = text;
        todo!()
    }

    /// `null`.
    pub fn null() -> Json {
        Json("null".into())
    }

    /// `{}`.
    pub fn empty_object() -> Json {
        Json("{}".into())
    }

    /// A string value.
    pub fn string(text: &str) -> Json {
        let _ = text;
        todo!()
    }

    /// Builds an object, members in the order of the calls.
    pub fn object(build: impl FnOnce(&mut ObjectWriter<'_>)) -> Json {
        let _ = build;
        todo!()
    }

    /// Builds an array.
    pub fn array(build: impl FnOnce(&mut ArrayWriter<'_>)) -> Json {
        let _ = build;
        todo!()
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The shared text.
    pub fn as_arc(&self) -> &Arc<str> {
        &self.0
    }

    /// A view of the value.
    pub fn value(&self) -> Value<'_> {
        Value::trusted(&self.0)
    }

    /// The member `key` of an object.
    pub fn get(&self, key: &str) -> Option<Value<'_>> {
        self.value().get(key)
    }
}

impl std::fmt::Debug for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::fmt::Display for Json {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}
