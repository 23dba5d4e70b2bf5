//! What is sent, under which policy, and what comes back.

use std::fmt;
use std::time::Duration;

use bytes::Bytes;

use crate::address::Reach;
use crate::error::HttpError;
use crate::header::Header;
use crate::origin::Origin;
use crate::played::Rest;
use crate::resolve::denial;

/// One request, sent once.
#[derive(Clone)]
pub struct Request {
    /// `GET`, `POST`, ...
    pub method: String,
    /// Absolute.
    pub url: String,
    /// In this order.
    pub headers: Vec<Header>,
    /// Empty for none.
    pub body: Bytes,
}

impl fmt::Debug for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Request")
            .field("method", &self.method)
            .field("origin", &Origin::parse(&self.url).ok())
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// An origin that may be sent to, and how far its name may lead.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowed {
    /// Compared exactly.
    pub origin: Origin,
    /// Of the address behind it.
    pub reach: Reach,
}

/// What holds for a request.
#[derive(Debug, Clone)]
pub struct Policy {
    /// A request to another origin is [`HttpError::Denied`].
    pub allowed: Vec<Allowed>,
    /// How many redirects are followed; with 0 the redirect is the answer.
    pub redirects: u8,
    /// Decoded bytes of the body; one more is [`HttpError::Limit`].
    pub max_body: u64,
    /// From connecting to the last byte.
    pub timeout: Option<Duration>,
}

impl Policy {
    /// No redirects, 64 MiB, no time limit.
    #[must_use]
    pub fn new(allowed: Vec<Allowed>) -> Self {
        Self {
            allowed,
            redirects: 0,
            max_body: 64 << 20,
            timeout: None,
        }
    }

    /// Whether a request to this URL may be sent, as far as its text tells. What a
    /// name leads to is seen when connecting.
    ///
    /// # Errors
    /// [`HttpError::Invalid`], [`HttpError::Denied`].
    pub fn permits(&self, url: &str) -> Result<(), HttpError> {
        self.admit(&Origin::parse(url)?).map(|_| ())
    }

    /// The reach of the origin's grant.
    pub(crate) fn admit(&self, origin: &Origin) -> Result<Reach, HttpError> {
        let reach = self.find(origin)?.reach;
        // The connector asks the resolver for names only.
        match origin
            .address()
            .filter(|address| !reach.permits(*address, true))
        {
            Some(address) => Err(HttpError::Denied(denial(origin.host(), address))),
            None => Ok(reach),
        }
    }

    fn find(&self, origin: &Origin) -> Result<&Allowed, HttpError> {
        self.allowed
            .iter()
            .find(|allowed| allowed.origin == *origin)
            .ok_or_else(|| {
                let granted: Vec<String> = self
                    .allowed
                    .iter()
                    .map(|allowed| allowed.origin.to_string())
                    .collect();
                let granted = if granted.is_empty() {
                    String::from("none")
                } else {
                    granted.join(", ")
                };
                HttpError::Denied(format!("{origin} was not granted (granted: {granted})"))
            })
    }
}

/// Status and headers, with the body still to come.
pub struct Response {
    /// 100..=999.
    pub status: u16,
    /// In order of arrival, names in lower case, values as UTF-8 with what is
    /// not replaced.
    pub headers: Vec<(String, String)>,
    /// Where a redirect that was not followed leads, to be shown: without user, query
    /// and fragment.
    pub redirect: Option<String>,
    /// Read as it is consumed.
    pub body: Body,
}

impl fmt::Debug for Response {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Response")
            .field("status", &self.status)
            .finish_non_exhaustive()
    }
}

/// The decoded body. Bytes are taken from the socket when they are asked for, so
/// a slow consumer slows the sender. Dropping it closes the connection (of HTTP/2
/// the stream); [`Body::release`] keeps it where that costs little.
pub struct Body {
    pub(crate) inner: Source,
    pub(crate) origin: Origin,
    pub(crate) left: u64,
    pub(crate) cap: u64,
}

/// Where a body comes from.
pub(crate) enum Source {
    Live(Box<reqwest::Response>),
    Played(Rest),
}

impl Source {
    async fn chunk(&mut self, origin: &Origin) -> Result<Option<Bytes>, HttpError> {
        match self {
            Self::Live(response) => response
                .chunk()
                .await
                .map_err(|error| HttpError::from_reqwest(&error, origin, None)),
            Self::Played(rest) => rest.next(origin),
        }
    }
}

impl Body {
    /// The next bytes as they arrived, never empty; none at the end. Cancelling
    /// it loses nothing.
    ///
    /// # Errors
    /// [`HttpError::Transport`], [`HttpError::Timeout`], [`HttpError::Limit`].
    pub async fn next(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            match self.inner.chunk(&self.origin).await? {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) if bytes.len() as u64 > self.left => {
                    self.left = 0;
                    return Err(HttpError::Limit {
                        origin: self.origin.to_string(),
                        cap: self.cap,
                    });
                }
                Some(bytes) => {
                    self.left -= bytes.len() as u64;
                    return Ok(Some(bytes));
                }
                None => return Ok(None),
            }
        }
    }

    /// The whole of it.
    ///
    /// # Errors
    /// As [`Body::next`].
    pub async fn collect(mut self) -> Result<Bytes, HttpError> {
        let mut whole = Vec::new();
        while let Some(bytes) = self.next().await? {
            whole.extend_from_slice(&bytes);
        }
        Ok(whole.into())
    }
}

/// What is read of a body that nobody wants, so that its connection can be used
/// again. A new one costs some 100 ms; a protocol's end mark is followed by nothing
/// or by a line.
const REST: u64 = 64 << 10;
const REST_WITHIN: Duration = Duration::from_secs(2);

impl Body {
    /// Gives up on the rest in a way that keeps the connection: what is left is
    /// read by a task of its own, up to 64 KiB and two seconds; else it is closed.
    pub fn release(mut self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        self.left = self.left.min(REST);
        runtime.spawn(async move {
            let rest = async { while let Ok(Some(_)) = self.next().await {} };
            let _ = tokio::time::timeout(REST_WITHIN, rest).await;
        });
    }
}

impl fmt::Debug for Body {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Body")
            .field("origin", &self.origin)
            .finish_non_exhaustive()
    }
}
