//! The client: lazy, shared, one connection pool for each kind of use.
//!
//! There are up to four clients of the library behind one [`Client`]: plain or
//! TLS, for either [`Reach`]. Plain ones are made without trust roots, because
//! reading those costs more than the rest of a start; separate reaches keep
//! pooled connections apart.

use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, StatusCode, Url};

use crate::address::Reach;
use crate::error::HttpError;
use crate::origin::{Origin, parse_url};
use crate::played::{self, Player, Recording};
use crate::request::{Body, Policy, Request, Response, Source};
use crate::resolve::Resolver;

/// Time for the name, the connection and the handshake together.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends requests under a policy. Cheap to clone; making one does nothing yet.
#[derive(Clone, Default)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    connect_timeout: Option<Duration>,
    /// Answers in place of the network.
    player: Option<Box<Player>>,
    /// Plain/public, plain/named, TLS/public, TLS/named.
    made: [OnceLock<reqwest::Client>; 4],
}

impl Client {
    /// A client that gives up connecting after 30 seconds.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A client with another time limit for connecting.
    #[must_use]
    pub fn with_connect_timeout(limit: Duration) -> Self {
        Self {
            inner: Arc::new(Inner {
                connect_timeout: Some(limit),
                ..Inner::default()
            }),
        }
    }

    /// A client that sends nothing: `player` is told what would have been sent,
    /// and says what came back. Redirects are not followed.
    #[must_use]
    pub fn playing(player: impl Fn(&Request) -> Recording + Send + Sync + 'static) -> Self {
        Self {
            inner: Arc::new(Inner {
                player: Some(Box::new(player)),
                ..Inner::default()
            }),
        }
    }

    /// Sends the request where the policy lets it go, and returns when the
    /// answer's head has arrived. Dropping the future closes the connection.
    ///
    /// # Errors
    /// Each variant of [`HttpError`]; nothing is sent for `Invalid` and `Denied`
    /// on the first hop.
    pub async fn send(&self, request: Request, policy: &Policy) -> Result<Response, HttpError> {
        let (mut url, mut origin) = parse_url(&request.url)?;
        let mut method = Method::from_bytes(request.method.as_bytes())
            .ok()
            .filter(|method| *method != Method::CONNECT)
            .ok_or_else(|| HttpError::Invalid(String::from("that is no method to send")))?;
        let mut headers = HeaderMap::new();
        for header in &request.headers {
            let (name, value) = header.check()?;
            headers.append(name, value);
        }
        if let Some(player) = &self.inner.player {
            policy.admit(&origin)?;
            return Ok(played::answer(player, &request, policy, origin.to_string()));
        }
        let mut body = request.body;
        let deadline = policy
            .timeout
            .map(|limit| tokio::time::Instant::now() + limit);
        let mut hops = 0;
        loop {
            let client = self.client_for(&origin, policy)?;
            let mut builder = client
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if !body.is_empty() {
                builder = builder.body(body.clone());
            }
            if let Some(deadline) = deadline {
                builder = builder.timeout(deadline - tokio::time::Instant::now());
            }
            let answer = builder
                .send()
                .await
                .map_err(|error| HttpError::from_reqwest(&error, &origin.to_string()))?;
            let target = (hops < policy.redirects)
                .then(|| redirect(&answer, &url))
                .flatten();
            let Some(target) = target else {
                return Ok(respond(answer, &origin, policy));
            };
            hops += 1;
            let (next_url, next_origin) = parse_url(&target)?;
            if next_origin != origin {
                headers = without_secrets(&headers);
            }
            if !keeps_method(answer.status()) && method != Method::HEAD {
                method = Method::GET;
                body.clear();
            }
            (url, origin) = (next_url, next_origin);
        }
    }

    fn client_for(&self, origin: &Origin, policy: &Policy) -> Result<&reqwest::Client, HttpError> {
        let reach = policy.admit(origin)?;
        let slot = usize::from(origin.is_secure()) * 2 + usize::from(reach == Reach::Named);
        if let Some(client) = self.inner.made[slot].get() {
            return Ok(client);
        }
        let limit = self.inner.connect_timeout.unwrap_or(CONNECT_TIMEOUT);
        let client = make(origin.is_secure(), reach, limit)
            .map_err(|error| HttpError::from_reqwest(&error, &origin.to_string()))?;
        Ok(self.inner.made[slot].get_or_init(|| client))
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

pub(crate) fn make(
    secure: bool,
    reach: Reach,
    connect: Duration,
) -> Result<reqwest::Client, reqwest::Error> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only where the process chose one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    let builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .retry(reqwest::retry::never())
        .connect_timeout(connect)
        .dns_resolver(Arc::new(Resolver { reach }));
    if secure {
        return builder.https_only(true).build();
    }
    let without_roots = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    builder.tls_backend_preconfigured(without_roots).build()
}

/// Where a redirect leads.
fn redirect(answer: &reqwest::Response, from: &Url) -> Option<String> {
    let follows = matches!(answer.status().as_u16(), 301 | 302 | 303 | 307 | 308);
    let target = answer
        .headers()
        .get(LOCATION)
        .filter(|_| follows)?
        .to_str()
        .ok()?;
    Some(
        from.join(target)
            .map_or_else(|_| target.to_owned(), String::from),
    )
}

fn without_secrets(headers: &HeaderMap) -> HeaderMap {
    let mut kept = HeaderMap::new();
    for (name, value) in headers.iter().filter(|(_, value)| !value.is_sensitive()) {
        kept.append(name.clone(), value.clone());
    }
    kept
}

fn keeps_method(status: StatusCode) -> bool {
    matches!(status.as_u16(), 307 | 308)
}

fn respond(answer: reqwest::Response, origin: &Origin, policy: &Policy) -> Response {
    let headers = answer
        .headers()
        .iter()
        .map(|(name, value)| {
            (
                name.as_str().to_owned(),
                String::from_utf8_lossy(value.as_bytes()).into_owned(),
            )
        })
        .collect();
    Response {
        status: answer.status().as_u16(),
        headers,
        body: Body {
            inner: Source::Live(Box::new(answer)),
            origin: origin.to_string(),
            left: policy.max_body,
            cap: policy.max_body,
        },
    }
}
