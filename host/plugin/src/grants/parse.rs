//! From what a person or a lock wrote to a grant: a shape per grant.
//!
//! What cannot be read is refused rather than left out, and with the shape that
//! it should have: a grant that somebody believes to be narrower than it is
//! would be the worst outcome.

use serde_json::{Map, Value};

use super::{
    APPROVAL, Budget, COMMON_KINDS, DirGrant, Grants, KvGrant, Programs, RouteGrant, SecretGrant,
    WorkspaceGrant,
};
use crate::error::Error;
use crate::limits;
use crate::port::KvScope;

pub(super) fn bad(grant: &str, reason: impl Into<String>) -> Error {
    Error::Grant {
        grant: grant.to_owned(),
        reason: reason.into(),
    }
}

impl Grants {
    pub(super) fn add(&mut self, name: &str, parameters: &Value) -> Result<(), Error> {
        if matches!(parameters, Value::Bool(false) | Value::Null) {
            return Ok(());
        }
        match name {
            "clock" | "random" | "session" | "people" | "pictures" | "prompt.complete"
            | "approval" => plain(name, parameters)?,
            "spill" => self.spill_quota = quota(name, parameters)?,
            "attachments" => self.attachments_quota = quota(name, parameters)?,
            "workspace" => self.workspace = workspace(parameters)?,
            "process" => self.programs = process(parameters)?,
            "journal" => self.kinds = journal(parameters)?,
            "inbox" => self.wakes = inbox(parameters)?,
            "kv" => self.kv = kv(parameters)?,
            "agents" => self.agents = budget(name, parameters)?,
            "jobs" => self.jobs = budget(name, parameters)?,
            "llm" => self.llm_tokens = llm(parameters)?,
            "http" => self.http = http(parameters)?,
            "secret" => self.secrets = secrets(parameters)?,
            "route" => self.routes = routes(parameters)?,
            "observe" | "decide" => {
                let events = events(name, parameters)?;
                if name == "observe" {
                    self.observe = events;
                } else {
                    self.decide = events;
                }
            }
            "tool-names" => self.tool_names = texts(name, parameters, "names")?,
            "dir" => self.dirs = dirs(parameters)?,
            "env" => self.env = env(parameters)?,
            _ => return Err(bad(name, "there is no such grant")),
        }
        self.names.insert(name.to_owned());
        Ok(())
    }
}

fn plain(name: &str, parameters: &Value) -> Result<(), Error> {
    match parameters {
        Value::Bool(true) => Ok(()),
        Value::Object(members) if members.is_empty() => Ok(()),
        _ => Err(bad(name, "it has no parameters: write `true`")),
    }
}

/// The members of an object, `true` being one without any; nothing that is not
/// among `known`.
fn members<'a>(
    name: &str,
    parameters: &'a Value,
    known: &[&str],
    shape: &str,
) -> Result<Option<&'a Map<String, Value>>, Error> {
    match parameters {
        Value::Bool(true) => Ok(None),
        Value::Object(members) => {
            only(name, members, known)?;
            Ok(Some(members))
        }
        _ => Err(bad(name, format!("write {shape}"))),
    }
}

fn only(name: &str, members: &Map<String, Value>, known: &[&str]) -> Result<(), Error> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        Some(key) => Err(bad(
            name,
            format!("it has no parameter `{key}`, but {}", known.join(", ")),
        )),
        None => Ok(()),
    }
}

/// A list of texts, or an object with one under `member`.
fn texts(name: &str, parameters: &Value, member: &str) -> Result<Vec<String>, Error> {
    let list = match parameters {
        Value::Object(members) => {
            only(name, members, &[member])?;
            members.get(member).unwrap_or(&Value::Null)
        }
        other => other,
    };
    let texts: Option<Vec<String>> = list.as_array().and_then(|items| {
        let texts = items.iter().map(Value::as_str);
        texts
            .map(|text| Some(text.filter(|text| !text.is_empty())?.to_owned()))
            .collect()
    });
    let texts = texts.ok_or_else(|| bad(name, format!("write a list of {member}")))?;
    if texts.len() > MOST {
        return Err(bad(name, format!("{MOST} {member} are allowed at most")));
    }
    if texts.iter().all(|text| is_plain(text)) {
        Ok(texts)
    } else {
        Err(bad(name, format!("one of the {member} {NOT_PLAIN}")))
    }
}

/// A list of objects, or one of them.
fn objects<T>(
    name: &str,
    parameters: &Value,
    shape: &str,
    known: &[&str],
    read: impl Fn(&Map<String, Value>) -> Result<T, Error>,
) -> Result<Vec<T>, Error> {
    let one = std::slice::from_ref(parameters);
    let items = match parameters {
        Value::Array(items) => items,
        _ => one,
    };
    let object = |item: &Value| {
        let members = item
            .as_object()
            .ok_or_else(|| bad(name, format!("write {shape}")))?;
        only(name, members, known)?;
        read(members)
    };
    items.iter().map(object).collect()
}

/// A text that has to be there.
fn text(name: &str, members: &Map<String, Value>, member: &str) -> Result<String, Error> {
    members
        .get(member)
        .and_then(Value::as_str)
        .filter(|text| !text.is_empty())
        .ok_or_else(|| bad(name, format!("`{member}` is missing, or no text")))
        .and_then(|text| match is_plain(text) {
            true => Ok(text.to_owned()),
            false => Err(bad(name, format!("`{member}` {NOT_PLAIN}"))),
        })
}

/// Items of a list, and bytes of a text: a person reads them before they decide.
const MOST: usize = 256;
const LONGEST: usize = 1024;

const NOT_PLAIN: &str = "is longer than 1,024 bytes, or has characters that are not shown";

/// Whether a text looks like what it is, wherever it is shown: no control
/// characters, none that turn the direction of writing, none without a width.
fn is_plain(text: &str) -> bool {
    let unseen = |c: char| {
        c.is_control()
            || matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
    };
    text.len() <= LONGEST && !text.chars().any(unseen)
}

/// A member that may be missing, of the shape that `read` takes.
fn member<T>(
    name: &str,
    members: Option<&Map<String, Value>>,
    member: &str,
    read: impl FnOnce(&Value) -> Option<T>,
    shape: &str,
) -> Result<Option<T>, Error> {
    let value = members.and_then(|members| members.get(member));
    value
        .map(|value| read(value).ok_or_else(|| bad(name, format!("`{member}` is {shape}"))))
        .transpose()
}

fn number(
    name: &str,
    members: Option<&Map<String, Value>>,
    key: &str,
) -> Result<Option<u64>, Error> {
    member(name, members, key, Value::as_u64, "a whole number")
}

fn bytes(
    name: &str,
    members: Option<&Map<String, Value>>,
    key: &str,
) -> Result<Option<u64>, Error> {
    let shape = "bytes, or a text like \"64MiB\", up to 4GiB";
    member(name, members, key, limits::bytes, shape)
}

fn quota(name: &str, parameters: &Value) -> Result<Option<u64>, Error> {
    let members = members(name, parameters, &["quota"], "`true`, or `{quota: 64MiB}`")?;
    bytes(name, members, "quota")
}

fn workspace(parameters: &Value) -> Result<WorkspaceGrant, Error> {
    let name = "workspace";
    let shape = "`true` to read, or `{read: [directories], write: true}`";
    let Some(members) = members(name, parameters, &["read", "write"], shape)? else {
        return Ok(WorkspaceGrant::default());
    };
    let roots = match members.get("read") {
        None | Some(Value::Bool(true)) => None,
        Some(Value::Array(roots)) if roots.is_empty() => {
            return Err(bad(
                name,
                "`read` is empty: name a directory, or leave it out",
            ));
        }
        Some(roots) => Some(
            texts(name, roots, "directories")
                .map_err(|_| bad(name, "`read` is a list of directories"))?,
        ),
    };
    let write = match members.get("write") {
        None => false,
        Some(write) => write
            .as_bool()
            .ok_or_else(|| bad(name, "`write` is true or false"))?,
    };
    Ok(WorkspaceGrant { roots, write })
}

fn process(parameters: &Value) -> Result<Programs, Error> {
    let name = "process";
    let hint = "write `shell`, or a list of programs";
    match parameters {
        Value::String(text) if text == "shell" => Ok(Programs::Shell),
        Value::Object(members) => {
            only(name, members, &["shell", "programs"])?;
            match members.get("shell") {
                Some(Value::Bool(true)) => Ok(Programs::Shell),
                Some(Value::Bool(false)) | None => {
                    let programs = members.get("programs").ok_or_else(|| bad(name, hint))?;
                    Ok(Programs::Named(texts(name, programs, "programs")?))
                }
                Some(_) => Err(bad(name, hint)),
            }
        }
        Value::Array(_) => Ok(Programs::Named(texts(name, parameters, "programs")?)),
        _ => Err(bad(name, hint)),
    }
}

fn journal(parameters: &Value) -> Result<Vec<String>, Error> {
    if matches!(parameters, Value::Bool(true)) {
        return Ok(Vec::new());
    }
    let kinds = texts("journal", parameters, "kinds")?;
    match kinds
        .iter()
        .find(|kind| !COMMON_KINDS.contains(&kind.as_str()))
    {
        Some(kind) => Err(bad(
            "journal",
            format!(
                "{kind} cannot be granted: a plugin appends kinds of its own namespace that its manifest names, and of the others only {}",
                COMMON_KINDS.join(", ")
            ),
        )),
        None => Ok(kinds),
    }
}

fn inbox(parameters: &Value) -> Result<u32, Error> {
    let members = members(
        "inbox",
        parameters,
        &["wake"],
        "`true`, or `{wake: 3}` to let it start an idle agent so often in a row",
    )?;
    let wakes = number("inbox", members, "wake")?.unwrap_or(0);
    u32::try_from(wakes).map_err(|_| bad("inbox", "`wake` is a whole number"))
}

fn kv(parameters: &Value) -> Result<KvGrant, Error> {
    let name = "kv";
    let shape = "`true`, or `{quota: 1MiB, scopes: [profile, project, session]}`";
    let members = members(name, parameters, &["quota", "scopes"], shape)?;
    let mut grant = KvGrant::default();
    if let Some(quota) = bytes(name, members, "quota")? {
        grant.quota = quota;
    }
    if let Some(scopes) = members.and_then(|members| members.get("scopes")) {
        let scope = |text: &String| {
            KvScope::named(text).ok_or_else(|| {
                bad(
                    name,
                    format!("there is no scope {text:?}, but profile, project, session"),
                )
            })
        };
        grant.scopes = texts(name, scopes, "scopes")?
            .iter()
            .map(scope)
            .collect::<Result<_, _>>()?;
        grant.scopes.sort_unstable();
        grant.scopes.dedup();
    }
    Ok(grant)
}

fn budget(name: &str, parameters: &Value) -> Result<Budget, Error> {
    let known = ["depth", "number", "budget"];
    let members = members(
        name,
        parameters,
        &known,
        "`true`, or `{depth, number, budget}`",
    )?;
    Ok(Budget {
        depth: number(name, members, "depth")?,
        number: number(name, members, "number")?,
        budget: number(name, members, "budget")?,
    })
}

fn llm(parameters: &Value) -> Result<Option<u64>, Error> {
    let members = members(
        "llm",
        parameters,
        &["tokens"],
        "`true`, or `{tokens: 100000}`",
    )?;
    number("llm", members, "tokens")
}

fn http(parameters: &Value) -> Result<Vec<String>, Error> {
    let name = "http";
    let places = texts(name, parameters, "origins")?;
    match places.iter().find(|place| !is_place(place)) {
        // Not repeated where a password may stand in it.
        Some(place) if place.contains('@') => {
            Err(bad(name, "an address has a user or password in it"))
        }
        Some(place) => Err(bad(
            name,
            format!("{place:?} is no address of the shape scheme://host[:port][/path]"),
        )),
        None => Ok(places),
    }
}

/// `scheme://host[:port][/path]`, and nothing that could be read in two ways.
fn is_place(text: &str) -> bool {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"));
    let Some(rest) = rest else { return false };
    let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let (host, port) = if let Some(end) = authority.find(']') {
        authority.split_at(end + 1)
    } else {
        authority.split_at(authority.find(':').unwrap_or(authority.len()))
    };
    let port_is_one = match port.strip_prefix(':') {
        None => port.is_empty(),
        Some(digits) => digits.parse::<u16>().is_ok_and(|port| port > 0),
    };
    let path_is_one = path.bytes().all(|byte| byte.is_ascii_graphic())
        && !path.contains(['?', '#', '\\', '*', '%'])
        && !path.split('/').any(|part| part == "." || part == "..");
    is_host(host) && port_is_one && path_is_one
}

fn is_host(host: &str) -> bool {
    if let Some(inner) = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
    {
        return inner.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let sound = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=253).contains(&host.len())
        && host
            .split('.')
            .all(|label| !label.is_empty() && label.bytes().all(sound))
}

fn secrets(parameters: &Value) -> Result<Vec<SecretGrant>, Error> {
    let name = "secret";
    let known = ["name", "header", "host"];
    objects(
        name,
        parameters,
        "`{name, header, host}`",
        &known,
        |members| {
            let grant = SecretGrant {
                name: text(name, members, "name")?,
                header: text(name, members, "header")?,
                host: text(name, members, "host")?,
            };
            let token = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
            if !grant.header.bytes().all(token) {
                return Err(bad(name, "`header` is a header's name"));
            }
            if !is_host(&grant.host) {
                return Err(bad(
                    name,
                    "`host` is a host's name, without scheme and port",
                ));
            }
            Ok(grant)
        },
    )
}

fn routes(parameters: &Value) -> Result<Vec<RouteGrant>, Error> {
    let name = "route";
    let shape = "`{provider, origins, credential}`";
    let known = ["provider", "origins", "credential"];
    objects(name, parameters, shape, &known, |members| {
        let credential = match members.get("credential") {
            None | Some(Value::Null) => None,
            Some(Value::String(name)) => Some(name.clone()),
            Some(_) => return Err(bad(name, "`credential` is a credential's name")),
        };
        let origins = match members.get("origins") {
            None => Vec::new(),
            Some(origins) => texts(name, origins, "origins")?,
        };
        Ok(RouteGrant {
            provider: text(name, members, "provider")?,
            origins,
            credential,
        })
    })
}

fn events(name: &str, parameters: &Value) -> Result<Vec<String>, Error> {
    let events = texts(name, parameters, "events")?;
    if let Some(event) = events.iter().find(|event| !event.contains('/')) {
        return Err(bad(
            name,
            format!("{event:?} is no event's name, like tools/pre-execute"),
        ));
    }
    if events.iter().any(|event| event == APPROVAL) {
        return Err(bad(
            name,
            format!("{APPROVAL} is a grant of its own: write `approval: true`"),
        ));
    }
    Ok(events)
}

fn dirs(parameters: &Value) -> Result<Vec<DirGrant>, Error> {
    let name = "dir";
    objects(
        name,
        parameters,
        "`{path, mode: ro}`",
        &["path", "mode"],
        |members| {
            let path = text(name, members, "path")?;
            if !path.starts_with('/') {
                return Err(bad(name, "`path` is absolute"));
            }
            let write = match members.get("mode").map(Value::as_str) {
                None | Some(Some("ro")) => false,
                Some(Some("rw")) => true,
                Some(_) => return Err(bad(name, "`mode` is ro or rw")),
            };
            Ok(DirGrant { path, write })
        },
    )
}

fn env(parameters: &Value) -> Result<Vec<String>, Error> {
    let names = texts("env", parameters, "names")?;
    let named = |name: &String| {
        name.bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
            && !name.starts_with(|first: char| first.is_ascii_digit())
    };
    if names.iter().all(named) {
        Ok(names)
    } else {
        Err(bad(
            "env",
            "write names of variables, letters, digits and `_`, without values",
        ))
    }
}
