//! JSON as the log has it. `spec/session.md` §0.
//!
//! Data is kept as text, always valid and in one normal form: no spaces, numbers in ECMAScript's shortest form,
//! integer-like keys first, no key twice, only the escapes that are needed. Equal values are therefore (up to key
//! order) equal texts, a part of a value is a slice of its text, and reading a member needs no tree. The reader is our
//! own because strings may hold lone surrogates, which stay escaped, and because nesting has no limit: it never recurses.

mod normal;
pub(crate) mod number;
mod scan;
pub(crate) mod text;
mod view;
mod write;

#[cfg(test)]
#[path = "json/json_tests.rs"]
mod tests;

pub use view::{Entries, Items, JStr, Kind, Value};
pub use write::{ArrayWriter, ObjectWriter};

use std::borrow::Cow;
use std::sync::Arc;

use normal::Numbers;
use write::Sink;

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
        Ok(Json(normal_form(text, Numbers::Refuse)?.into()))
    }

    /// The normal form of a stored text: negative zero becomes `0`, an infinite number `null`, as upstream prints them.
    ///
    /// # Errors
    /// [`JsonError::Syntax`].
    pub fn restore(text: &str) -> Result<Json, JsonError> {
        Ok(Json(normal_form(text, Numbers::Print)?.into()))
    }

    /// A text that is known to be in normal form.
    pub(crate) fn trusted(text: impl Into<Arc<str>>) -> Json {
        Json(text.into())
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
        let mut out = String::with_capacity(text.len() + 2);
        out.push('"');
        text::escape(text, &mut out);
        out.push('"');
        Json(out.into())
    }

    /// Builds an object, members in the order of the calls.
    pub fn object(build: impl FnOnce(&mut ObjectWriter<'_>)) -> Json {
        Json::build(|sink| sink.object(build))
    }

    /// Builds an array.
    pub fn array(build: impl FnOnce(&mut ArrayWriter<'_>)) -> Json {
        Json::build(|sink| sink.array(build))
    }

    fn build(build: impl FnOnce(&mut Sink)) -> Json {
        let mut sink = Sink {
            out: String::with_capacity(128),
            loose: false,
        };
        build(&mut sink);
        if sink.loose {
            return Json::restore(&sink.out).unwrap_or_else(|_| Json::null());
        }
        debug_assert_eq!(
            scan::scan(&sink.out),
            Ok(scan::Form::Normal),
            "{}",
            sink.out
        );
        Json(sink.out.into())
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

/// The normal form of a text, borrowed when it is in it already.
fn normal_form(text: &str, numbers: Numbers) -> Result<Cow<'_, str>, JsonError> {
    Ok(match scan::scan(text)? {
        scan::Form::Normal => Cow::Borrowed(text),
        scan::Form::Loose => Cow::Owned(normal::normal(text, numbers)?),
    })
}

/// Whether a text is called its own normal form, and what rewriting it gives, whether or not that is needed: for fuzzing,
/// which compares the two.
///
/// # Errors
/// [`JsonError::Syntax`].
#[doc(hidden)]
pub fn json_judged(text: &str) -> Result<(bool, String), JsonError> {
    let form = scan::scan(text)?;
    let rewritten = normal::normal(text, Numbers::Print)?;
    Ok((form == scan::Form::Normal, rewritten))
}

/// The normal form of a stored text, as [`Json::restore`], without a copy when it is in it already.
pub(crate) fn restored(text: &str) -> Result<Cow<'_, str>, JsonError> {
    normal_form(text, Numbers::Print)
}

/// The normal form of a text with numbers that do not survive left recognisable: `-0`, and `1e400` for infinity.
pub(crate) fn kept(text: &str) -> Result<Cow<'_, str>, JsonError> {
    normal_form(text, Numbers::Keep)
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
