//! A plugin's bytes, from where a person said that they are, with the signature beside them.
//!
//! Over HTTPS: the certificate is checked against the system's roots (`SSL_CERT_FILE` names others); at most five
//! redirects, each to an `https://` address. The host that a person wrote may be on this machine or in a private
//! network; one that a redirect names may not, so that no server leads `dsh` to its owner's own services. A body ends
//! at the size that a component may have; silence and the whole download have time limits.

use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use dsh_http::{
    Allowed, Bytes, Client, ClientConfig, HttpError, Origin, Policy, Reach, Request, Response,
};

use super::Desk;
use super::source::Source;
use super::text::{shown, size};
use super::what;
use crate::boot::proxies;

/// The largest component that the host takes.
pub(super) const MAX_COMPONENT: u64 = 64 << 20;
/// The largest signature: a minisign signature has under 400 bytes.
const MAX_SIGNATURE: u64 = 16 << 10;
const REDIRECTS: usize = 5;
/// Without a byte of the body.
const SILENCE: Duration = Duration::from_secs(60);

/// What a source gave.
pub(super) struct Fetched {
    pub(super) bytes: Vec<u8>,
    /// The text of `SOURCE.minisig`, where there is one.
    pub(super) signature: Option<String>,
}

/// Fetches a component and its signature.
///
/// # Errors
/// One line: what could not be had, from where, and what to do.
pub(super) fn component(desk: &Desk, source: &Source, limit: Duration) -> Result<Fetched, String> {
    match source {
        Source::File(path) => file(path),
        Source::Https(url) => {
            let fetch = async {
                let bytes = get(desk, url, MAX_COMPONENT, limit).await?;
                let bytes = bytes.ok_or_else(|| {
                    format!("{}: the server has nothing there (404)", shown(url, 300))
                })?;
                let signature = match get(desk, &beside(url), MAX_SIGNATURE, limit).await? {
                    Some(bytes) => Some(signature(bytes, &beside(url))?),
                    None => None,
                };
                Ok(Fetched { bytes, signature })
            };
            let fetched = desk.wait(async { tokio::time::timeout(limit, fetch).await });
            desk.progress.clear();
            fetched.unwrap_or_else(|_| {
                Err(format!(
                    "{}: not there after {} s; --timeout gives it longer",
                    shown(url, 300),
                    limit.as_secs()
                ))
            })
        }
    }
}

/// `https://x/w.wasm?v=1` has its signature at `https://x/w.wasm.minisig?v=1`.
fn beside(url: &str) -> String {
    match url.split_once('?') {
        Some((path, query)) => format!("{path}.minisig?{query}"),
        None => format!("{url}.minisig"),
    }
}

fn file(path: &Path) -> Result<Fetched, String> {
    let meta = std::fs::metadata(path).map_err(|error| {
        let hint = if error.kind() == io::ErrorKind::NotFound {
            "; check the path"
        } else {
            ""
        };
        format!("cannot read {}: {error}{hint}", path.display())
    })?;
    if meta.is_dir() {
        return Err(format!("{}: {}", path.display(), what::directory(path)));
    }
    if !meta.is_file() {
        return Err(format!(
            "{}: it is no regular file; give a .wasm file",
            path.display()
        ));
    }
    let bytes = whole(path, MAX_COMPONENT)?.ok_or_else(|| format!("{} is gone", path.display()))?;
    let mut name = path.as_os_str().to_owned();
    name.push(".minisig");
    let beside = Path::new(&name);
    let signature = match whole(beside, MAX_SIGNATURE)? {
        Some(bytes) => Some(signature(bytes, &beside.display().to_string())?),
        None => None,
    };
    Ok(Fetched { bytes, signature })
}

/// A file's content; nothing where there is none.
fn whole(path: &Path, max: u64) -> Result<Option<Vec<u8>>, String> {
    let file = match crate::regular::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened.map_err(|error| format!("cannot read {}: {error}", path.display()))?,
    };
    let mut bytes = Vec::new();
    file.take(max + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    if bytes.len() as u64 > max {
        return Err(format!(
            "{} is larger than {}, which is what is allowed",
            path.display(),
            size(max)
        ));
    }
    Ok(Some(bytes))
}

fn signature(bytes: Vec<u8>, from: &str) -> Result<String, String> {
    String::from_utf8(bytes).map_err(|_| {
        format!(
            "{} is no minisign signature: it is not text",
            shown(from, 300)
        )
    })
}

/// The body behind an address; nothing where the server says that there is none.
async fn get(desk: &Desk, url: &str, max: u64, limit: Duration) -> Result<Option<Vec<u8>>, String> {
    let client = Client::with(ClientConfig {
        connect_timeout: limit.min(Duration::from_secs(30)),
        proxies: proxies(),
    });
    let written = origin(url)?;
    let mut at = url.to_owned();
    for _ in 0..=REDIRECTS {
        let here = origin(&at)?;
        let reach = if here == written {
            Reach::Named
        } else {
            Reach::Public
        };
        let mut policy = Policy::new(vec![Allowed {
            origin: here,
            reach,
        }]);
        policy.max_body = max;
        let request = Request {
            method: "GET".to_owned(),
            url: at.clone(),
            headers: Vec::new(),
            body: Bytes::new(),
        };
        let waited = tokio::time::timeout(SILENCE, client.send(request, &policy)).await;
        let answer = waited
            .map_err(|_| silent(&at))?
            .map_err(|error| failed(&at, &error))?;
        match answer.status {
            200 => return body(desk, answer, &at, max).await.map(Some),
            404 | 410 => return Ok(None),
            301 | 302 | 303 | 307 | 308 => at = next(&at, &answer)?,
            status => {
                return Err(format!(
                    "{}: the server answered {status}; check the address",
                    shown(&at, 300)
                ));
            }
        }
    }
    Err(format!(
        "{}: more than {REDIRECTS} redirects",
        shown(url, 300)
    ))
}

fn origin(url: &str) -> Result<Origin, String> {
    let origin = Origin::parse(url).map_err(|error| format!("{}: {error}", shown(url, 300)))?;
    if origin.is_secure() {
        Ok(origin)
    } else {
        Err(format!("{} is no https:// address", shown(url, 300)))
    }
}

/// Where a redirect leads: `https://` alone.
fn next(from: &str, answer: &Response) -> Result<String, String> {
    let location = answer.headers.iter().find(|(name, _)| name == "location");
    let (_, to) = location.ok_or_else(|| format!("{}: a redirect to nowhere", shown(from, 300)))?;
    let to = resolve(from, to);
    if to
        .get(..8)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("https://"))
    {
        Ok(to)
    } else {
        Err(format!(
            "{} redirects to {}, which is no https:// address, and is not followed",
            shown(from, 300),
            shown(&to, 300)
        ))
    }
}

/// A `Location` against the address that sent it. What is no whole address begins at the host or in the folder; the
/// HTTP client reads the result again.
fn resolve(from: &str, to: &str) -> String {
    let scheme_end = from.find("://").map_or(0, |at| at + 3);
    let path_start = from[scheme_end..]
        .find(['/', '?'])
        .map_or(from.len(), |at| scheme_end + at);
    let has_scheme = to.split_once(':').is_some_and(|(scheme, _)| {
        !scheme.is_empty()
            && scheme
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
    });
    if has_scheme {
        to.to_owned()
    } else if let Some(rest) = to.strip_prefix("//") {
        format!("{}{rest}", &from[..scheme_end])
    } else if to.starts_with('/') {
        format!("{}{to}", &from[..path_start])
    } else {
        let path = from[path_start..].split('?').next().unwrap_or_default();
        let folder = path.rfind('/').map_or("/", |at| &path[..=at]);
        format!("{}{folder}{to}", &from[..path_start])
    }
}

async fn body(desk: &Desk, mut answer: Response, url: &str, max: u64) -> Result<Vec<u8>, String> {
    let total = answer
        .headers
        .iter()
        .find(|(name, _)| name == "content-length");
    let total = total.and_then(|(_, value)| value.parse::<u64>().ok());
    if total.is_some_and(|total| total > max) {
        return Err(too_large(url, max));
    }
    let what = format!("fetching {}", shown(url, 100));
    let mut meter = desk.progress.meter(&what, total);
    let mut bytes = Vec::new();
    loop {
        let piece = tokio::time::timeout(SILENCE, answer.body.next())
            .await
            .map_err(|_| silent(url))?
            .map_err(|error| failed(url, &error))?;
        let Some(piece) = piece else {
            return Ok(bytes);
        };
        meter.add(piece.len() as u64);
        bytes.extend_from_slice(&piece);
    }
}

fn silent(url: &str) -> String {
    format!(
        "{}: the server said nothing for {} s; try again",
        shown(url, 300),
        SILENCE.as_secs()
    )
}

fn too_large(url: &str, max: u64) -> String {
    format!(
        "{} is larger than {}, which is what is allowed",
        shown(url, 300),
        size(max)
    )
}

fn failed(url: &str, error: &HttpError) -> String {
    match error {
        HttpError::Limit { cap, .. } => too_large(url, *cap),
        HttpError::Tls { .. } => format!("{}: {error}; nothing was taken from it", shown(url, 300)),
        _ => format!(
            "cannot fetch {}: {error}; check the address and the network",
            shown(url, 300)
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signature_lies_beside_its_component() {
        assert_eq!(beside("https://x/w.wasm"), "https://x/w.wasm.minisig");
        assert_eq!(
            beside("https://x/w.wasm?v=1"),
            "https://x/w.wasm.minisig?v=1"
        );
    }

    #[test]
    fn a_redirect_is_read_as_browsers_read_it() {
        for (to, leads) in [
            ("https://y.example/b", "https://y.example/b"),
            ("http://y.example/b", "http://y.example/b"),
            ("//y.example/b", "https://y.example/b"),
            ("/b?c=1", "https://x.example:1/b?c=1"),
            ("b.wasm", "https://x.example:1/f/b.wasm"),
            ("javascript:alert(1)", "javascript:alert(1)"),
        ] {
            assert_eq!(
                resolve("https://x.example:1/f/a.wasm?q=/z", to),
                leads,
                "{to}"
            );
        }
        assert_eq!(resolve("https://x.example", "b"), "https://x.example/b");
    }
}
