//! One header of a request, and which ones a component may not set.
//!
//! Framing and connection headers belong to the client: with them a request
//! could be cut in two or be sent to another virtual host than the one checked.

use std::fmt;

use reqwest::header::{HeaderName, HeaderValue};

use crate::error::HttpError;

/// A header to send. Its value never shows in `Debug` or in an error.
#[derive(Clone, PartialEq, Eq)]
pub struct Header {
    /// Case does not matter.
    pub name: String,
    /// UTF-8, no line break and no other control character but tab.
    pub value: String,
    /// Not to be kept by compression tables nor sent on to another origin.
    pub secret: bool,
}

impl Header {
    /// A header without a secret.
    #[must_use]
    pub fn new(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            secret: false,
        }
    }

    /// A header that carries a credential.
    #[must_use]
    pub fn secret(name: impl Into<String>, value: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            value: value.into(),
            secret: true,
        }
    }

    /// In the client's own types.
    pub(crate) fn check(&self) -> Result<(HeaderName, HeaderValue), HttpError> {
        let name = HeaderName::from_bytes(self.name.as_bytes()).map_err(|_| {
            HttpError::Invalid(format!("{:?} is no name of a header", clip(&self.name)))
        })?;
        if forbidden(name.as_str()) {
            return Err(HttpError::Invalid(format!(
                "the header `{name}` is set by the host and by nobody else"
            )));
        }
        let mut value = HeaderValue::from_bytes(self.value.as_bytes()).map_err(|_| {
            HttpError::Invalid(format!(
                "the value of the header `{name}` has a control character"
            ))
        })?;
        value.set_sensitive(self.secret);
        Ok((name, value))
    }
}

impl fmt::Debug for Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ...", clip(&self.name))
    }
}

fn clip(name: &str) -> String {
    name.chars().take(60).collect()
}

/// Whether a header (in lower case) is the client's own.
fn forbidden(name: &str) -> bool {
    matches!(
        name,
        "host"
            | "connection"
            | "content-length"
            | "transfer-encoding"
            | "te"
            | "trailer"
            | "upgrade"
            | "expect"
            | "keep-alive"
            | "http2-settings"
            // The body arrives decoded, so the client says what it can decode.
            | "accept-encoding"
    ) || name.starts_with("proxy-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_that_frame_or_route_a_request_are_refused() {
        for name in [
            "Host",
            "connection",
            "Content-Length",
            "transfer-encoding",
            "TE",
            "trailer",
            "upgrade",
            "expect",
            "keep-alive",
            "http2-settings",
            "proxy-authorization",
            "Proxy-Connection",
            "accept-encoding",
        ] {
            assert_eq!(
                Header::new(name, "x").check().unwrap_err().code(),
                "INVALID",
                "{name}"
            );
        }
        for name in ["authorization", "X-Api-Key", "content-type", "user-agent"] {
            assert!(Header::new(name, "x").check().is_ok(), "{name}");
        }
    }

    #[test]
    fn a_line_break_in_a_header_is_refused_and_not_shown() {
        for value in ["s3cret\r\nx: y", "s3cret\ny", "s3cret\0", "s3cret\r"] {
            let error = Header::new("x-key", value).check().unwrap_err();
            assert_eq!(error.code(), "INVALID");
            assert!(!format!("{error} {error:?}").contains("s3cret"));
        }
        for name in ["x\r\ny", "x y", "", "x:"] {
            assert_eq!(
                Header::new(name, "v").check().unwrap_err().code(),
                "INVALID",
                "{name:?}"
            );
        }
    }

    #[test]
    fn debug_shows_names_only() {
        let text = format!("{:?}", Header::secret("authorization", "Bearer s3cret"));
        assert_eq!(text, "authorization: ...");
    }
}
