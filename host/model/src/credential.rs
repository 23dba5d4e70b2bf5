//! Credentials, by reference. `spec/llm.md` §4.3, §8.

use std::fmt;

use crate::failure::{LlmFailure, code};

/// A credential's value; it has no `Display`, and its `Debug` is empty.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Keeps it.
    #[must_use]
    pub fn new(value: impl Into<String>) -> Self {
        Self(value.into())
    }

    /// To be put into a request and nowhere else.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// Where credentials come from.
pub trait Credentials: Send + Sync {
    /// The value behind a reference now; none where nothing has one. Asked for
    /// each request, so a new value counts at once.
    ///
    /// # Errors
    /// The source cannot be read. The text must not hold any part of a value.
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure>;
}

/// The key that a credential's value is: trimmed, of visible ASCII.
///
/// # Errors
/// `INVALID_CREDENTIAL`, which names the reference and shows nothing of the value.
pub fn check_key(reference: &str, value: &Secret) -> Result<Secret, LlmFailure> {
    // The white space of ECMAScript's `trim`: the byte order mark counts.
    let key = value
        .expose()
        .trim_matches(|c: char| c.is_whitespace() || c == '\u{feff}');
    let why = if key.is_empty() {
        "is blank"
    } else if !key.bytes().all(|byte| (0x21..=0x7e).contains(&byte)) {
        "has characters that no API key has (spaces, control characters or non-ASCII)"
    } else {
        return Ok(Secret::new(key));
    };
    Err(LlmFailure::new(
        code::INVALID_CREDENTIAL,
        format!("the credential {reference} {why}; set it again"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_trimmed_and_visible_ascii() {
        let key = |value: &str| check_key("X_KEY", &Secret::new(value));
        assert_eq!(key(" sk-1\n").unwrap().expose(), "sk-1");
        assert_eq!(key("\u{feff}sk-1").unwrap().expose(), "sk-1");
        for value in ["", " \t\n", "sk 1", "sk\u{0}1", "sk-é", "sk\u{7f}"] {
            let failure = key(value).unwrap_err();
            assert_eq!(failure.code, "INVALID_CREDENTIAL", "{value:?}");
            assert!(failure.message.contains("X_KEY") && !failure.message.contains("sk"));
        }
    }

    #[test]
    fn debug_shows_nothing_of_a_secret() {
        assert_eq!(format!("{:?}", Secret::new("sk-1")), "Secret(..)");
    }
}
