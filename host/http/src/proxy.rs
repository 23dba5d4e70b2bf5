//! Which requests go through a proxy, as a pure function of the environment.
//!
//! `HTTP_PROXY` serves `http://` origins, `HTTPS_PROXY` serves `https://` ones, and `ALL_PROXY`
//! whichever of the two has none of its own; `NO_PROXY` lists what is asked directly. The
//! large spelling comes before the small one, and an empty value counts as absent.
//!
//! - **This machine is never asked through a proxy**: `localhost` and loopback addresses mean
//!   another machine there.
//! - **A value that cannot be used stops the requests that it is for**, by an error that names
//!   the variable. To go around a proxy that a person wants may be what a network forbids, so
//!   nothing is sent directly instead.
//! - **Nothing shows a proxy's user or password.** `Debug`, errors and `Display` have scheme,
//!   host and port.
//!
//! A proxy resolves names itself, so [`crate::Reach`] is held for addresses that are written as
//! such and for nothing else: what a name leads to is then the proxy's matter.

use std::fmt;
use std::net::IpAddr;

use reqwest::Url;

use crate::address::{Scope, scope};
use crate::error::HttpError;
use crate::origin::{Origin, parse_url};

/// The proxies of an environment. The default is none.
#[derive(Clone, Default)]
pub struct Proxies {
    http: Setting,
    https: Setting,
    except: Vec<Exception>,
    /// Of `NO_PROXY`, what is nothing that could be asked.
    unread: Vec<String>,
}

/// What is set for a scheme.
#[derive(Clone, Default)]
enum Setting {
    #[default]
    Absent,
    Proxy(Box<Proxy>),
    /// What is wrong, with the variable's name and without its value.
    Broken(String),
}

/// One proxy.
#[derive(Clone)]
pub(crate) struct Proxy {
    /// With its user and password.
    pub(crate) url: Url,
    shown: Origin,
    variable: &'static str,
}

impl Proxies {
    /// Reads the variables, each once.
    #[must_use]
    pub fn from_env(get: impl Fn(&str) -> Option<String>) -> Self {
        let first = |names: [&'static str; 2]| {
            names
                .into_iter()
                .find_map(|name| Some((name, get(name).filter(|value| !value.trim().is_empty())?)))
        };
        let all = first(["ALL_PROXY", "all_proxy"]);
        // A web server hands a request's header `Proxy` to its programs as HTTP_PROXY.
        let http = if get("REQUEST_METHOD").is_some() {
            first(["http_proxy", "http_proxy"])
        } else {
            first(["HTTP_PROXY", "http_proxy"])
        };
        let https = first(["HTTPS_PROXY", "https_proxy"]);
        let except = first(["NO_PROXY", "no_proxy"]).map_or_else(String::new, |(_, list)| list);
        let entries = || {
            let entries = except.split(',').map(str::trim);
            entries.filter(|entry| !entry.is_empty())
        };
        Self {
            http: Setting::read(http.or_else(|| all.clone())),
            https: Setting::read(https.or(all)),
            except: entries().filter_map(Exception::read).collect(),
            unread: entries()
                .filter(|entry| Exception::read(entry).is_none())
                .map(str::to_owned)
                .collect(),
        }
    }

    /// The proxy that a request to this origin goes through; none if it goes directly.
    ///
    /// # Errors
    /// [`HttpError::Invalid`] where its variable has no address of a proxy.
    pub(crate) fn of(&self, origin: &Origin) -> Result<Option<&Proxy>, HttpError> {
        let setting = if origin.is_secure() {
            &self.https
        } else {
            &self.http
        };
        match setting {
            Setting::Absent => Ok(None),
            _ if self.passes_by(origin) => Ok(None),
            Setting::Proxy(proxy) => Ok(Some(proxy)),
            Setting::Broken(why) => Err(HttpError::Invalid(why.clone())),
        }
    }

    fn passes_by(&self, origin: &Origin) -> bool {
        origin.host() == "localhost"
            || origin
                .address()
                .is_some_and(|address| scope(address) == Scope::Loopback)
            || self.except.iter().any(|except| except.covers(origin))
    }

    /// What there is to say of them: a line for each that is set, and whether it can be used.
    pub(crate) fn told(&self) -> Vec<Result<String, String>> {
        let mut told = Vec::new();
        for (scheme, setting) in [("https", &self.https), ("http", &self.http)] {
            match setting {
                Setting::Absent => {}
                _ if self.all_pass_by() => told.push(Ok(format!(
                    "{scheme}:// is asked directly, past its proxy: NO_PROXY has *"
                ))),
                Setting::Proxy(proxy) => told.push(Ok(format!(
                    "{scheme}:// is asked through the proxy {proxy}"
                ))),
                Setting::Broken(why) => told.push(Err(why.clone())),
            }
        }
        told.dedup();
        told
    }

    /// Whether `NO_PROXY` is for everything.
    fn all_pass_by(&self) -> bool {
        let all = |except: &Exception| except.what == What::Everything;
        self.except.iter().any(all)
    }

    /// What `NO_PROXY` comes to, where there are proxies to go past; and what of it is for
    /// nothing.
    pub(crate) fn past(&self) -> (Option<String>, &[String]) {
        let set = |setting: &Setting| !matches!(setting, Setting::Absent);
        if !set(&self.http) && !set(&self.https) {
            return (None, &[]);
        }
        let names: Vec<String> = self.except.iter().map(ToString::to_string).collect();
        let told = (!names.is_empty() && !self.all_pass_by()).then(|| names.join(", "));
        (told, &self.unread)
    }
}

impl fmt::Debug for Proxies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.told()).finish()
    }
}

impl Setting {
    fn read(found: Option<(&'static str, String)>) -> Self {
        let Some((variable, value)) = found else {
            return Self::Absent;
        };
        let broken = |why: &str| {
            Self::Broken(format!(
                "{variable} {why}; give it http://HOST:PORT, or unset it"
            ))
        };
        let value = value.trim();
        let text = if value.contains("://") {
            value.to_owned()
        } else {
            format!("http://{value}")
        };
        // Not what the URL standard would repair, which may not be what was meant.
        let Some(url) = Url::parse(&text).ok().filter(|_| !text.contains('\\')) else {
            return broken("is no address of a proxy");
        };
        if url.scheme().starts_with("socks") {
            return broken("names a SOCKS proxy, which dsh does not speak to");
        }
        let mut bare = url.clone();
        let stripped = bare.set_username("").and_then(|()| bare.set_password(None));
        match (stripped, parse_url(bare.as_str())) {
            (Ok(()), Ok((_, shown))) => Self::Proxy(Box::new(Proxy {
                url,
                shown,
                variable,
            })),
            _ => broken("is no address of a proxy"),
        }
    }
}

impl Proxy {
    /// Whether it is spoken to over TLS.
    pub(crate) fn is_secure(&self) -> bool {
        self.shown.is_secure()
    }

    /// Its name or address.
    pub(crate) fn host(&self) -> &str {
        self.shown.host()
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.shown, self.variable)
    }
}

/// An entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exception {
    what: What,
    port: Option<u16>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum What {
    Everything,
    /// The first so many bits of an address.
    Net(IpAddr, u8),
    /// A domain's subdomains, and itself unless a dot stands before it.
    Domain(String, bool),
}

impl Exception {
    /// `*`, an address, `ADDRESS/BITS`, `name`, `.name` or `*.name`, each but the first two
    /// lists with `:PORT` behind it if it is for that port alone. None for what is nothing of it.
    fn read(text: &str) -> Option<Self> {
        let text = text.trim().to_ascii_lowercase();
        if text == "*" {
            return Some(Self {
                what: What::Everything,
                port: None,
            });
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address: IpAddr = address.parse().ok()?;
            let bits: u8 = bits.parse().ok()?;
            let most = if address.is_ipv4() { 32 } else { 128 };
            return (bits <= most).then_some(Self {
                what: What::Net(address, bits),
                port: None,
            });
        }
        let whole = |text: &str| -> Option<IpAddr> {
            text.trim_start_matches('[')
                .trim_end_matches(']')
                .parse()
                .ok()
        };
        let (host, port) = match text.rsplit_once(':') {
            _ if whole(&text).is_some() => (&*text, None),
            Some((host, port)) => (host, Some(port.parse().ok()?)),
            None => (&*text, None),
        };
        let what = match whole(host) {
            Some(address) => What::Net(address, if address.is_ipv4() { 32 } else { 128 }),
            None => {
                let name = host.strip_prefix('*').unwrap_or(host);
                let (name, itself) = match name.strip_prefix('.') {
                    Some(name) => (name, false),
                    None => (name, true),
                };
                if name.is_empty() {
                    return None;
                }
                What::Domain(name.trim_end_matches('.').to_owned(), itself)
            }
        };
        Some(Self { what, port })
    }

    fn covers(&self, origin: &Origin) -> bool {
        if self.port.is_some_and(|port| port != origin.port()) {
            return false;
        }
        match (&self.what, origin.address()) {
            (What::Everything, _) => true,
            (What::Net(net, bits), Some(address)) => within(address, *net, *bits),
            (What::Domain(name, itself), None) => {
                let host = origin.host();
                (*itself && host == name)
                    || host
                        .strip_suffix(name.as_str())
                        .is_some_and(|rest| rest.ends_with('.'))
            }
            _ => false,
        }
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.what {
            What::Everything => f.write_str("*"),
            What::Net(address, 32) if address.is_ipv4() => write!(f, "{address}"),
            What::Net(address, 128) => write!(f, "{address}"),
            What::Net(address, bits) => write!(f, "{address}/{bits}"),
            What::Domain(name, true) => f.write_str(name),
            What::Domain(name, false) => write!(f, ".{name}"),
        }?;
        self.port.map_or(Ok(()), |port| write!(f, ":{port}"))
    }
}

/// Whether an address has the first `bits` of `net`; IPv4 in IPv6 counts as IPv4.
fn within(address: IpAddr, net: IpAddr, bits: u8) -> bool {
    let shift = |width: u32| width.saturating_sub(u32::from(bits));
    match (address.to_canonical(), net) {
        (IpAddr::V4(a), IpAddr::V4(n)) => {
            let differ = a.to_bits() ^ n.to_bits();
            differ.checked_shr(shift(32)).unwrap_or(0) == 0
        }
        (IpAddr::V6(a), IpAddr::V6(n)) => {
            let differ = a.to_bits() ^ n.to_bits();
            differ.checked_shr(shift(128)).unwrap_or(0) == 0
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
