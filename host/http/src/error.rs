//! What can go wrong between a request and the last byte of its answer.
//!
//! Each variant is a cause with a stable code. The texts name the origin and the
//! system's reason; a URL's path and query and every header value stay out.

use std::error::Error as StdError;
use std::io;

use crate::resolve::Refused;

/// A request that was not sent, or whose answer did not arrive whole.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HttpError {
    /// The URL, the method or a header's name or text cannot be sent as it is.
    #[error("{0}")]
    Invalid(String),
    /// The destination is not one that was granted, or leads to an address that
    /// its grant does not reach.
    #[error("{0}")]
    Denied(String),
    /// No connection: the name is unknown, or nothing answers there.
    #[error("could not connect to {origin}: {reason}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// The system's words.
        reason: String,
    },
    /// The TLS handshake failed, mostly over the certificate.
    #[error("TLS with {origin} failed: {reason}")]
    Tls {
        /// Scheme, host and port.
        origin: String,
        /// The TLS library's words.
        reason: String,
    },
    /// The connection broke, or what came over it was not HTTP.
    #[error("the connection to {origin} broke: {reason}")]
    Transport {
        /// Scheme, host and port.
        origin: String,
        /// The system's words.
        reason: String,
    },
    /// Connecting, or the whole exchange where its policy has a limit, took too long.
    #[error("{origin} did not answer in time ({reason})")]
    Timeout {
        /// Scheme, host and port.
        origin: String,
        /// Which limit it was.
        reason: String,
    },
    /// The body is larger than the policy's cap.
    #[error("the answer of {origin} is larger than {cap} bytes")]
    Limit {
        /// Scheme, host and port.
        origin: String,
        /// In bytes.
        cap: u64,
    },
}

impl HttpError {
    /// The stable code: `INVALID`, `DENIED`, `CONNECT`, `TLS`, `TRANSPORT`,
    /// `TIMEOUT` or `LIMIT`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Invalid(_) => "INVALID",
            Self::Denied(_) => "DENIED",
            Self::Connect { .. } => "CONNECT",
            Self::Tls { .. } => "TLS",
            Self::Transport { .. } => "TRANSPORT",
            Self::Timeout { .. } => "TIMEOUT",
            Self::Limit { .. } => "LIMIT",
        }
    }

    /// Sorts the client library's error by what caused it.
    pub(crate) fn from_reqwest(error: &reqwest::Error, origin: &str) -> Self {
        let origin = origin.to_owned();
        let cause = Cause::of(error);
        if let Some(refused) = cause.refused {
            return Self::Denied(refused);
        }
        let reason = cause.deepest;
        if cause.tls {
            Self::Tls { origin, reason }
        } else if error.is_timeout() {
            let reason = if error.is_connect() {
                "while connecting"
            } else {
                "the time for the whole exchange"
            };
            Self::Timeout {
                origin,
                reason: reason.to_owned(),
            }
        } else if error.is_connect() {
            Self::Connect { origin, reason }
        } else if error.is_builder() {
            Self::Invalid(format!("the request to {origin} cannot be sent: {reason}"))
        } else {
            Self::Transport { origin, reason }
        }
    }
}

/// What the chain of sources tells.
struct Cause {
    refused: Option<String>,
    tls: bool,
    deepest: String,
}

impl Cause {
    fn of(error: &reqwest::Error) -> Self {
        let mut found = Self {
            refused: None,
            tls: false,
            deepest: String::from("no reason given"),
        };
        let mut at: Option<&(dyn StdError + 'static)> = error.source();
        while let Some(error) = at {
            if let Some(refused) = error.downcast_ref::<Refused>() {
                found.refused = Some(refused.to_string());
            }
            found.tls |= is_tls(error);
            found.deepest = error.to_string();
            at = error.source();
        }
        found
    }
}

/// Whether it is the TLS library's, in as many `io::Error`s as it was put into:
/// asked for its source, an `io::Error` passes over what it wraps.
fn is_tls(error: &(dyn StdError + 'static)) -> bool {
    let mut at = error;
    while let Some(inner) = at.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        at = inner;
    }
    at.is::<rustls::Error>()
}
