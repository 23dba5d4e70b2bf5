//! Scheme, host and port: what a grant names and a request must match.
//!
//! Hosts are compared as the URL standard writes them: lower case, international
//! names in their ASCII form, every spelling of an IPv4 address as four decimal
//! numbers. So there is one form to compare, and `http://2130706433` is seen to
//! be loopback. What may mean two places is refused: credentials in front of the
//! host (`https://api.example@evil.example`) and a trailing dot.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use crate::error::HttpError;

/// An origin that can be sent to: `http` or `https`, a host, a port.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Origin {
    secure: bool,
    host: String,
    port: u16,
}

impl Origin {
    /// The origin of a URL; its path and query do not matter.
    ///
    /// # Errors
    /// [`HttpError::Invalid`] where the text is no URL or is not to be trusted.
    pub fn parse(url: &str) -> Result<Self, HttpError> {
        parse_url(url).map(|(_, origin)| origin)
    }

    /// `https`.
    #[must_use]
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    /// The host as the URL standard writes it; an IPv6 address in brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port, also where the URL leaves it to the scheme.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address that the host is, where it is no name.
    #[must_use]
    pub fn address(&self) -> Option<IpAddr> {
        self.host
            .trim_start_matches('[')
            .trim_end_matches(']')
            .parse()
            .ok()
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scheme, default) = if self.secure {
            ("https", 443)
        } else {
            ("http", 80)
        };
        write!(f, "{scheme}://{}", self.host)?;
        if self.port != default {
            write!(f, ":{}", self.port)?;
        }
        Ok(())
    }
}

impl fmt::Debug for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Reads a URL once, so that what is checked is what is sent.
pub(crate) fn parse_url(text: &str) -> Result<(Url, Origin), HttpError> {
    let invalid = |why: &str| HttpError::Invalid(format!("the URL cannot be used: {why}"));
    if text
        .bytes()
        .any(|byte| byte <= b' ' || byte == 0x7f || byte == b'\\')
    {
        // The URL standard drops line breaks and reads `\` as `/`; an author
        // who wrote them meant something else.
        return Err(invalid(
            "it has a space, a control character or a backslash",
        ));
    }
    let url = Url::parse(text).map_err(|error| invalid(&error.to_string()))?;
    let secure = match url.scheme() {
        "https" => true,
        "http" => false,
        _ => return Err(invalid("only http and https can be sent to")),
    };
    let after_scheme = text.split_once(':').map_or("", |(_, rest)| rest);
    let authority = after_scheme
        .strip_prefix("//")
        .ok_or_else(|| invalid("`//` is missing after the scheme"))?
        .split(['/', '?', '#'])
        .next()
        .unwrap_or_default();
    if authority.is_empty() {
        return Err(invalid("it has no host"));
    }
    if authority.contains('@') {
        return Err(invalid("it has credentials in front of its host"));
    }
    let host = url
        .host_str()
        .filter(|host| !host.is_empty())
        .ok_or_else(|| invalid("it has no host"))?;
    if host.ends_with('.') {
        return Err(invalid("its host ends with a dot"));
    }
    let port = url
        .port_or_known_default()
        .ok_or_else(|| invalid("it has no port"))?;
    let origin = Origin {
        secure,
        host: host.to_owned(),
        port,
    };
    Ok((url, origin))
}

#[cfg(test)]
#[path = "origin_tests.rs"]
mod tests;
