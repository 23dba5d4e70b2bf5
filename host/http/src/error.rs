//! What can go wrong between a request and the last byte of its answer.
//!
//! Each variant is a cause with a stable code. The texts name the origin and the
//! system's reason; a URL's path and query and every header value stay out.

use std::error::Error as StdError;
use std::io;

use crate::origin::Origin;
use crate::proxy::Proxy;
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
    /// No connection: the name is unknown, nothing answers there, or a proxy lets nobody through.
    #[error("could not connect to {origin}: {reason}")]
    Connect {
        /// Scheme, host and port.
        origin: String,
        /// What happened, and what to look at.
        reason: String,
    },
    /// The TLS handshake failed, mostly over the certificate.
    #[error("TLS with {origin} failed: {reason}")]
    Tls {
        /// Scheme, host and port.
        origin: String,
        /// What is wrong with the certificate or with the other side.
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
    pub(crate) fn from_reqwest(
        error: &reqwest::Error,
        origin: &Origin,
        proxy: Option<&Proxy>,
    ) -> Self {
        let cause = Cause::of(error);
        if let Some(refused) = cause.refused {
            return Self::Denied(refused);
        }
        let connecting = error.is_connect();
        let through = proxy.filter(|_| connecting).map(|proxy| {
            let text = format!(" through the proxy {proxy}");
            (proxy, text)
        });
        let named = match &through {
            Some((_, text)) => format!("{origin}{text}"),
            None => origin.to_string(),
        };
        if let Some(tls) = cause.tls {
            Self::Tls {
                origin: named,
                reason: tls,
            }
        } else if error.is_timeout() {
            let reason = if connecting && through.is_none() {
                "while connecting; if this network wants a proxy, set HTTPS_PROXY"
            } else if connecting {
                "while connecting; is the proxy the right one?"
            } else {
                "the time for the whole exchange"
            };
            Self::Timeout {
                origin: named,
                reason: reason.to_owned(),
            }
        } else if connecting {
            let host = match &through {
                Some((proxy, _)) => proxy.host(),
                None => origin.host(),
            };
            Self::Connect {
                origin: named,
                reason: unreachable(&cause, host),
            }
        } else if error.is_builder() {
            Self::Invalid(format!(
                "the request to {origin} cannot be sent: {}",
                cause.deepest
            ))
        } else {
            Self::Transport {
                origin: named,
                reason: broken(&cause),
            }
        }
    }

    /// The client for this origin could not be made: it reads the trust roots.
    pub(crate) fn unmade(error: &reqwest::Error, origin: &Origin) -> Self {
        Self::Tls {
            origin: origin.to_string(),
            reason: format!(
                "the trust roots cannot be read ({}); install the system's ca-certificates, or point SSL_CERT_FILE at a PEM file",
                Cause::of(error).deepest
            ),
        }
    }

    /// Whether the connection was over, as against an answer that made no sense.
    pub(crate) fn is_cut(error: &reqwest::Error) -> bool {
        Cause::of(error).cut
    }
}

/// Why nobody could be reached, and what to look at.
fn unreachable(cause: &Cause, host: &str) -> String {
    let deepest = &cause.deepest;
    if cause.name {
        return format!(
            "the name {host} leads nowhere ({deepest}); check its spelling, and that this machine is online"
        );
    }
    // A proxy that cannot be reached is no tunnel either.
    if cause.tunnel && cause.kind.is_none() {
        return match deepest.trim_start_matches("tunnel error: ") {
            "proxy authorization required" => String::from(
                "it wants a user and a password; write them into its address, http://USER:PASSWORD@HOST:PORT",
            ),
            other => format!("it does not let this origin through ({other})"),
        };
    }
    match cause.kind {
        Some(io::ErrorKind::ConnectionRefused) => {
            String::from("nothing listens there; is the server running, and is the port right?")
        }
        Some(
            io::ErrorKind::NetworkUnreachable
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkDown,
        ) => String::from("no way leads there; is this machine online?"),
        _ => deepest.clone(),
    }
}

/// How a connection broke.
fn broken(cause: &Cause) -> String {
    match cause.kind {
        Some(io::ErrorKind::ConnectionReset) => String::from("the other side reset it"),
        Some(io::ErrorKind::UnexpectedEof) => {
            String::from("the other side closed it before the answer was whole")
        }
        _ if cause.eof => String::from("the other side closed it before it answered"),
        _ => cause.deepest.clone(),
    }
}

/// What the chain of sources tells.
#[derive(Default)]
struct Cause {
    refused: Option<String>,
    /// The TLS library's, in words.
    tls: Option<String>,
    /// A name was not resolved.
    name: bool,
    /// A proxy's tunnel was not made.
    tunnel: bool,
    kind: Option<io::ErrorKind>,
    /// It was closed while something was expected.
    eof: bool,
    /// The connection was over.
    cut: bool,
    deepest: String,
}

impl Cause {
    fn of(error: &reqwest::Error) -> Self {
        let mut found = Self {
            deepest: String::from("no reason given"),
            ..Self::default()
        };
        let mut at: Option<&(dyn StdError + 'static)> = error.source();
        while let Some(error) = at {
            if let Some(refused) = error.downcast_ref::<Refused>() {
                found.refused = Some(refused.to_string());
            }
            if let Some(io) = error.downcast_ref::<io::Error>() {
                found.kind = Some(io.kind());
            }
            if let Some(tls) = tls(error) {
                found.tls = Some(untrusted(tls));
            }
            let text = error.to_string();
            // The client library keeps these types to itself.
            found.name |= text == "dns error";
            found.tunnel |= text.starts_with("tunnel error");
            found.eof |= text == "connection closed before message completed";
            found.cut |= matches!(
                &*text,
                "connection error" | "operation was canceled" | "channel closed"
            );
            found.deepest = text;
            at = error.source();
        }
        found.cut |= found.eof
            || matches!(
                found.kind,
                Some(
                    io::ErrorKind::ConnectionReset
                        | io::ErrorKind::ConnectionAborted
                        | io::ErrorKind::BrokenPipe
                        | io::ErrorKind::NotConnected
                        | io::ErrorKind::UnexpectedEof
                )
            );
        found
    }
}

/// The TLS library's error, in as many `io::Error`s as it was put into: asked for its source,
/// an `io::Error` passes over what it wraps.
fn tls<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a rustls::Error> {
    let mut at = error;
    while let Some(inner) = at.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
        at = inner;
    }
    at.downcast_ref()
}

/// What keeps a TLS connection from being made, and what to do about it.
fn untrusted(error: &rustls::Error) -> String {
    use rustls::{CertificateError as Bad, Error};
    match error {
        Error::InvalidCertificate(Bad::UnknownIssuer | Bad::BadSignature) => String::from(
            "its certificate is signed by nobody whom this machine trusts; if that is as it should be, point SSL_CERT_FILE at a PEM file with the signer's certificate",
        ),
        Error::InvalidCertificate(Bad::Expired | Bad::ExpiredContext { .. }) => {
            String::from("its certificate has expired; check this machine's clock too")
        }
        Error::InvalidCertificate(Bad::NotValidYet | Bad::NotValidYetContext { .. }) => {
            String::from("its certificate is not valid yet; check this machine's clock")
        }
        Error::InvalidCertificate(Bad::NotValidForName | Bad::NotValidForNameContext { .. }) => {
            String::from("its certificate is for another name; check the address")
        }
        Error::InvalidMessage(_) => {
            String::from("what answers there does not speak TLS; is it an http:// address?")
        }
        Error::InvalidCertificate(Bad::Other(other)) => {
            // The library that looks at certificates is behind one that does not name it.
            let why = format!("{:?}", other.0);
            if why.contains("CaUsedAsEndEntity") {
                return String::from(
                    "its certificate is an authority's (CA:TRUE), which is not taken for a server's; have that authority sign one for the server, or make one that signs itself with `openssl req -x509 -addext basicConstraints=critical,CA:FALSE …`",
                );
            }
            format!("its certificate is not taken ({why})")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn an_authoritys_certificate_in_a_servers_place_is_said_with_what_to_do() {
        #[derive(Debug, thiserror::Error)]
        #[error("{self:?}")]
        enum Webpki {
            CaUsedAsEndEntity,
            EmptyEkuExtension,
        }
        for (bad, says) in [
            (Webpki::CaUsedAsEndEntity, "openssl req -x509 -addext"),
            (Webpki::EmptyEkuExtension, "not taken (EmptyEkuExtension)"),
        ] {
            let other = rustls::CertificateError::Other(rustls::OtherError(Arc::new(bad)));
            let said = untrusted(&rustls::Error::InvalidCertificate(other));
            assert!(said.contains(says) && !said.contains("Other("), "{said}");
        }
    }
}
