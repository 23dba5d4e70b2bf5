//! From what an adapter asks to send to what is sent.
//!
//! A component names a destination and leaves blanks in its headers; the host
//! decides whether the destination was granted to the route, and only then fills
//! the blanks in. Blanks are exact texts in header values. A URL, a body or a
//! header's name is never looked at, so text of a conversation can not pull a
//! credential into itself.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine;
use base64::engine::general_purpose::STANDARD as BASE64;
use bytes::Bytes;
use dsh_http::{Allowed, Client, Header, HttpError, Policy};
use dsh_plugin::api::{HttpRequest, Part};
use sha2::{Digest, Sha256};

use crate::credential::{Credentials, Secret, check_key};
use crate::failure::{LlmFailure, code};

/// Decoded bytes of one response.
const MAX_BODY: u64 = 64 << 20;

/// Bytes of one request's body, with its pictures; what a component makes of text
/// alone is bounded by its own limits.
const MAX_REQUEST: usize = 128 << 20;

/// Where the exchanges of one route may go, and with what. Only a person's
/// decision makes one: the profile's lock, or an origin written in settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteGrant {
    /// The route.
    pub provider: String,
    /// Nowhere else.
    pub origins: Vec<Allowed>,
    /// The reference of the one credential that may be used.
    pub credential: Option<String>,
}

/// What all exchanges share: the client, credentials, and how dsh calls itself.
pub struct Gateway {
    /// Sends.
    pub client: Client,
    /// Asked for each request.
    pub credentials: Box<dyn Credentials>,
    /// What a body's pictures are made of.
    pub pictures: Arc<dyn Pictures>,
    /// `{user-agent}`: `<product>/<version> (+<url>)`.
    pub user_agent: String,
    /// `{anonymous-user-id}`: asked only where a request wants it.
    pub anonymous_user_id: Box<dyn Fn() -> String + Send + Sync>,
}

/// The variants that `pictures.render` made, by their ids.
#[async_trait]
pub trait Pictures: Send + Sync {
    /// The bytes of one.
    ///
    /// # Errors
    /// There is none of this id, or it cannot be read.
    async fn bytes(&self, variant: &str) -> Result<Bytes, LlmFailure>;
}

/// For whoever sends no pictures.
pub struct NoPictures;

#[async_trait]
impl Pictures for NoPictures {
    async fn bytes(&self, variant: &str) -> Result<Bytes, LlmFailure> {
        let message = format!("there is no place for pictures here, and so none that is {variant}");
        Err(LlmFailure::new("UNSUPPORTED_CONTENT", message))
    }
}

/// A request that may be sent.
#[derive(Debug)]
pub(crate) struct Outgoing {
    pub(crate) request: dsh_http::Request,
    pub(crate) policy: Policy,
    /// The credential that it carries and the keys that stand in its headers, to keep them out
    /// of what comes back.
    pub(crate) secrets: Vec<Secret>,
}

impl Gateway {
    /// Checks the destination, then fills in the pictures and the headers.
    pub(crate) async fn outgoing(
        &self,
        route: &str,
        grant: Option<&RouteGrant>,
        request: HttpRequest,
    ) -> Result<Outgoing, LlmFailure> {
        let Some(grant) = grant else {
            return Err(LlmFailure::new(
                code::DENIED,
                format!(
                    "the provider {route} has no `route` grant, so nothing is sent for it; grant its origin first"
                ),
            ));
        };
        let mut policy = Policy::new(grant.origins.clone());
        policy.max_body = MAX_BODY;
        policy.timeout = request
            .timeout_ms
            .map(|ms| Duration::from_millis(u64::from(ms)));
        policy
            .permits(&request.url)
            .map_err(|error| refusal(route, &error))?;
        let body = body(request.body, &*self.pictures).await?;
        let mut secret = None;
        let mut secrets = Vec::new();
        let mut headers = Vec::with_capacity(request.headers.len());
        for (name, value) in request.headers {
            let mut carries = false;
            let value = fill(&value, |blank| match blank {
                Blank::UserAgent => Ok(self.user_agent.clone()),
                Blank::AnonymousUserId => Ok((self.anonymous_user_id)()),
                Blank::Credential => {
                    carries = true;
                    if secret.is_none() {
                        secret = Some(self.key(route, grant)?);
                    }
                    Ok(secret
                        .as_ref()
                        .map(|key| key.expose().to_owned())
                        .unwrap_or_default())
                }
            })?;
            if !carries {
                secrets.extend(written_key(&name, &value));
            }
            headers.push(Header {
                name,
                value,
                secret: carries,
            });
        }
        let request = dsh_http::Request {
            method: request.method,
            url: request.url,
            headers,
            body,
        };
        secrets.extend(secret);
        Ok(Outgoing {
            request,
            policy,
            secrets,
        })
    }

    fn key(&self, route: &str, grant: &RouteGrant) -> Result<Secret, LlmFailure> {
        let missing = |message: String| LlmFailure::new(code::MISSING_CREDENTIAL, message);
        let Some(reference) = &grant.credential else {
            return Err(missing(format!(
                "the grant of the provider {route} names no credential, and its adapter wants one"
            )));
        };
        let value = self.credentials.resolve(reference)?.ok_or_else(|| {
            missing(format!(
                "the provider {route} needs the credential {reference}, which has no value in the environment, \
                 in $DSH_HOME/.credentials.yaml or in a .env file; run: dsh credentials set {reference}"
            ))
        })?;
        check_key(reference, &value)
    }

    /// `{credentialTag}`: changes when the credential does, and cannot be turned back into it.
    pub(crate) fn credential_tag(&self, grant: Option<&RouteGrant>) -> Option<String> {
        let reference = grant?.credential.as_ref()?;
        let key = check_key(reference, &self.credentials.resolve(reference).ok()??).ok()?;
        let mut hash = Sha256::new();
        hash.update(b"dsh credential tag\0");
        hash.update(key.expose().as_bytes());
        let tag: String = hash
            .finalize()
            .iter()
            .take(8)
            .map(|byte| format!("{byte:02x}"))
            .collect();
        Some(format!(r#"{{"credentialTag":"{tag}"}}"#))
    }
}

/// The key that somebody wrote into a header as it is, instead of a blank. It is in the
/// configuration then, which is theirs to know; a provider that quotes it does not get it into
/// the log as well.
fn written_key(name: &str, value: &str) -> Option<Secret> {
    /// Headers whose value lets somebody in.
    const KEYS: [&str; 7] = [
        "authorization",
        "proxy-authorization",
        "x-api-key",
        "api-key",
        "x-goog-api-key",
        "x-auth-token",
        "cookie",
    ];
    let carries = KEYS.iter().any(|known| name.eq_ignore_ascii_case(known));
    // Behind `Bearer`, or another word that says what it is.
    let key = value.split_whitespace().next_back().filter(|_| carries)?;
    Some(Secret::new(key))
}

/// A refusal of the client before anything was sent.
pub(crate) fn refusal(route: &str, error: &HttpError) -> LlmFailure {
    let code = if error.code() == "DENIED" {
        code::DENIED
    } else {
        code::INVALID_REQUEST
    };
    LlmFailure::new(
        code,
        format!("the provider {route} cannot be asked: {error}"),
    )
}

/// One buffer of the body's exact size, with the pictures in their places. A
/// picture that stands in it twice is read once.
async fn body(mut parts: Vec<Part>, pictures: &dyn Pictures) -> Result<Bytes, LlmFailure> {
    if let [Part::Bytes(only)] = &mut *parts {
        return Ok(std::mem::take(only).into());
    }
    let mut read: HashMap<&str, Bytes> = HashMap::new();
    let mut size = 0usize;
    for part in &parts {
        let bytes = match part {
            Part::Bytes(bytes) => bytes.len(),
            Part::Picture(id) | Part::PictureBase64(id) => {
                if !read.contains_key(id.as_str()) {
                    read.insert(id, pictures.bytes(id).await?);
                }
                let raw = read.get(id.as_str()).map_or(0, Bytes::len);
                if matches!(part, Part::Picture(_)) {
                    raw
                } else {
                    base64::encoded_len(raw, true).unwrap_or(usize::MAX)
                }
            }
        };
        size = size.saturating_add(bytes);
        if size > MAX_REQUEST {
            let message = format!(
                "the request has more than {MAX_REQUEST} bytes with its pictures; \
                 lower maxInlineRequestImageBytes or maxRequestImageBytes of the provider"
            );
            return Err(LlmFailure::new(code::INVALID_REQUEST, message));
        }
    }
    let mut whole = Vec::with_capacity(size);
    for part in &parts {
        match part {
            Part::Bytes(bytes) => whole.extend_from_slice(bytes),
            Part::Picture(id) => whole.extend_from_slice(&read[id.as_str()]),
            Part::PictureBase64(id) => {
                let at = whole.len();
                let raw = &read[id.as_str()];
                whole.resize(size.min(at + raw.len().div_ceil(3) * 4), 0);
                // It has exactly the room that was counted for it.
                let _ = BASE64.encode_slice(raw, &mut whole[at..]);
            }
        }
    }
    Ok(whole.into())
}

#[derive(Clone, Copy)]
enum Blank {
    Credential,
    UserAgent,
    AnonymousUserId,
}

const BLANKS: [(&str, Blank); 3] = [
    ("{credential}", Blank::Credential),
    ("{user-agent}", Blank::UserAgent),
    ("{anonymous-user-id}", Blank::AnonymousUserId),
];

/// Fills the blanks of a header's value; what is filled in is not looked at again.
fn fill(
    value: &str,
    mut with: impl FnMut(Blank) -> Result<String, LlmFailure>,
) -> Result<String, LlmFailure> {
    let mut filled = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        if let Some((text, blank)) = BLANKS.iter().find(|(text, _)| from.starts_with(text)) {
            filled.push_str(&with(*blank)?);
            rest = &from[text.len()..];
        } else {
            filled.push('{');
            rest = &from[1..];
        }
    }
    filled.push_str(rest);
    Ok(filled)
}

#[cfg(test)]
#[path = "outgoing_tests.rs"]
mod tests;
