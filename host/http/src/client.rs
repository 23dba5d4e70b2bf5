//! The client: lazy, shared, one connection pool for each kind of use.
//!
//! There are up to six clients of the library behind one [`Client`]: plain or
//! TLS, for either [`Reach`], and one for each proxy. Those that need no trust
//! roots are made without them, because reading those costs more than the rest
//! of a start; separate reaches keep pooled connections apart.
//!
//! Connections are kept and used again, over HTTP/2 (which TLS negotiates) for
//! several requests at a time. What was said over one that turns out to be gone
//! is said once more, see [`crate::reuse`].

use std::sync::{Arc, Once, OnceLock};
use std::time::Duration;

use reqwest::header::{HeaderMap, LOCATION};
use reqwest::{Method, StatusCode, Url};

use crate::address::Reach;
use crate::error::HttpError;
use crate::origin::{Origin, parse_url};
use crate::played::{self, Player, Recording};
use crate::proxy::{Proxies, Proxy};
use crate::request::{Body, Policy, Request, Response, Source};
use crate::resolve::Resolver;
use crate::reuse::{Marking, watch};

/// A connection that nobody uses is closed a little before common load balancers
/// do it (60 s), so that a request seldom meets one that is just being closed.
const IDLE: Duration = Duration::from_secs(55);
/// An HTTP/2 connection with requests under way is asked whether it is alive, and
/// counts as broken when it does not say so in time: a model may think for minutes.
const PING: Duration = Duration::from_secs(30);
/// Of the system, so that routers do not forget a connection on which all wait.
const KEEPALIVE: Duration = Duration::from_secs(30);
/// Headers of an answer; providers send thirty.
const MAX_HEADERS: usize = 256;

/// How a client connects.
#[derive(Debug, Clone)]
pub struct ClientConfig {
    /// For the name, the connection, a proxy's tunnel and the handshake together.
    pub connect_timeout: Duration,
    /// What is asked through which proxy.
    pub proxies: Proxies,
}

impl Default for ClientConfig {
    /// 30 seconds, and no proxy.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(30),
            proxies: Proxies::default(),
        }
    }
}

/// Sends requests under a policy. Cheap to clone; making one does nothing yet.
#[derive(Clone, Default)]
pub struct Client {
    inner: Arc<Inner>,
}

#[derive(Default)]
struct Inner {
    config: ClientConfig,
    /// Answers in place of the network.
    player: Option<Box<Player>>,
    /// Plain/public, plain/named, TLS/public, TLS/named; by proxy plain, TLS.
    made: [OnceLock<reqwest::Client>; 6],
}

impl Client {
    /// A client that gives up connecting after 30 seconds and uses no proxy.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A client that connects in another way.
    #[must_use]
    pub fn with(config: ClientConfig) -> Self {
        Self {
            inner: Arc::new(Inner {
                config,
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
            return Ok(played::answer(player, &request, policy, (&url, origin)));
        }
        let mut body = request.body;
        let deadline = policy
            .timeout
            .map(|limit| tokio::time::Instant::now() + limit);
        let mut hops = 0;
        loop {
            let (client, proxy) = self.client_for(&origin, policy)?;
            let ask = || {
                let mut builder = client
                    .request(method.clone(), url.clone())
                    .headers(headers.clone());
                if !body.is_empty() {
                    builder = builder.body(body.clone());
                }
                if let Some(deadline) = deadline {
                    let left = deadline.saturating_duration_since(tokio::time::Instant::now());
                    builder = builder.timeout(left);
                }
                builder.send()
            };
            let (mut answer, reused) = watch(ask()).await;
            if reused && answer.as_ref().is_err_and(broke_off) {
                answer = ask().await;
            }
            let answer = answer.map_err(|error| HttpError::from_reqwest(&error, &origin, proxy))?;
            let target = (hops < policy.redirects)
                .then(|| redirect(&answer, &url))
                .flatten();
            let Some(target) = target else {
                return Ok(respond(answer, &url, &origin, policy));
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

    /// The library's client for an origin, with the proxy that it asks.
    fn client_for(
        &self,
        origin: &Origin,
        policy: &Policy,
    ) -> Result<(&reqwest::Client, Option<&Proxy>), HttpError> {
        let reach = policy.admit(origin)?;
        let proxy = self.inner.config.proxies.of(origin)?;
        let secure = usize::from(origin.is_secure());
        let slot = match proxy {
            Some(_) => 4 + secure,
            None => secure * 2 + usize::from(reach == Reach::Named),
        };
        if let Some(client) = self.inner.made[slot].get() {
            return Ok((client, proxy));
        }
        let client = make(origin.is_secure(), reach, &self.inner.config, proxy)
            .map_err(|error| HttpError::unmade(&error, origin))?;
        Ok((self.inner.made[slot].get_or_init(|| client), proxy))
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
    config: &ClientConfig,
    proxy: Option<&Proxy>,
) -> Result<reqwest::Client, reqwest::Error> {
    static PROVIDER: Once = Once::new();
    PROVIDER.call_once(|| {
        // Fails only where the process chose one before, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    });
    // A person's environment names the proxy, wherever it is.
    let reach = if proxy.is_some() { Reach::Named } else { reach };
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(config.connect_timeout)
        .connector_layer(Marking)
        .pool_idle_timeout(IDLE)
        .tcp_keepalive(KEEPALIVE)
        .http1_max_headers(MAX_HEADERS)
        .http2_keep_alive_interval(PING)
        .http2_keep_alive_timeout(PING)
        .https_only(secure)
        .dns_resolver(Arc::new(Resolver { reach }));
    if let Some(proxy) = proxy {
        builder = builder.proxy(reqwest::Proxy::all(proxy.url.clone())?);
    }
    if secure || proxy.is_some_and(Proxy::is_secure) {
        return builder.build();
    }
    let without_roots = rustls::ClientConfig::builder()
        .with_root_certificates(rustls::RootCertStore::empty())
        .with_no_client_auth();
    builder.tls_backend_preconfigured(without_roots).build()
}

/// Whether a request got no answer because its connection was over.
fn broke_off(error: &reqwest::Error) -> bool {
    error.is_request() && !error.is_connect() && !error.is_timeout() && HttpError::is_cut(error)
}

/// Where a redirect leads, for people: an address may carry keys in its user and its query.
pub(crate) fn shown_redirect(status: u16, location: &str, from: &Url) -> Option<String> {
    const LONGEST: usize = 200;
    if !matches!(status, 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    let shown = from.join(location).ok().and_then(|to| {
        let origin = Origin::parse(&format!(
            "{}://{}:{}",
            to.scheme(),
            to.host_str()?,
            to.port_or_known_default()?
        ));
        let path: String = to.path().chars().take(LONGEST).collect();
        Some(format!("{}{path}", origin.ok()?))
    });
    Some(shown.unwrap_or_else(|| String::from("what is no http or https address")))
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

fn respond(answer: reqwest::Response, url: &Url, origin: &Origin, policy: &Policy) -> Response {
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
    let location = answer.headers().get(LOCATION);
    Response {
        status: answer.status().as_u16(),
        redirect: location.and_then(|to| {
            let to = String::from_utf8_lossy(to.as_bytes());
            shown_redirect(answer.status().as_u16(), &to, url)
        }),
        headers,
        body: Body {
            inner: Source::Live(Box::new(answer)),
            origin: origin.clone(),
            left: policy.max_body,
            cap: policy.max_body,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_is_shown_without_what_an_address_may_hide() {
        let from = Url::parse("https://api.example/v1/chat?key=s3cret").unwrap();
        for (to, shown) in [
            (
                "https://b.example/x?key=s3cret#s3cret",
                "https://b.example/x",
            ),
            (
                "http://us3r:s3cret@b.example:8080",
                "http://b.example:8080/",
            ),
            ("/login?s3cret", "https://api.example/login"),
            ("other", "https://api.example/v1/other"),
            ("//b.example:443/", "https://b.example/"),
            (
                "https://b.example/\u{1b}[31m\u{202e}x",
                "https://b.example/%1B[31m%E2%80%AEx",
            ),
            ("file:///s3cret", "what is no http or https address"),
            ("https://[s3cret", "what is no http or https address"),
        ] {
            let got = shown_redirect(307, to, &from).unwrap();
            assert_eq!(got, shown, "{to}");
        }
        let long = shown_redirect(302, &format!("/{}", "x".repeat(5000)), &from).unwrap();
        assert!(long.len() < 300);
        for status in [200, 300, 304, 305, 306, 400] {
            assert_eq!(shown_redirect(status, "/x", &from), None);
        }
    }
}
