//! What a row may do, as plain data.
//!
//! A grant is a name with parameters, written in a row as an object
//! (`{"workspace": {"write": true}, "clock": true}`) or, where none has
//! parameters, as a list of names. Everything here is a pure function of such
//! values; what a grant lets through is checked in `capability/`, where the
//! import is called.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::component::Interface;
use crate::error::Error;

/// Event kinds of the common vocabulary that a row may be granted by name; all
/// others outside a plugin's own namespace are the host's.
const COMMON_KINDS: [&str; 4] = ["todo/write", "goal/change", "plan/mode", "llm/retry"];

/// First parts of event kinds that are the host's or everybody's: a plugin of
/// such a namespace has no kinds of its own.
const RESERVED: [&str; 24] = [
    "agent",
    "approval",
    "assistant",
    "command",
    "compaction",
    "dsh",
    "fs",
    "goal",
    "host",
    "llm",
    "permission",
    "plan",
    "request",
    "sandbox",
    "session",
    "step",
    "stream",
    "subagent",
    "system",
    "todo",
    "tool",
    "tools",
    "turn",
    "user",
];

/// Grants whose parameters are not looked at yet: nothing uses them.
const LATER: [&str; 13] = [
    "inbox",
    "people",
    "agents",
    "jobs",
    "llm",
    "http",
    "secret",
    "kv",
    "attachments",
    "pictures",
    "dir",
    "env",
    "tool-names",
];

/// A row's grants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    names: BTreeSet<String>,
    /// `workspace`: whether files may be changed.
    pub(crate) workspace_write: bool,
    /// `process`: which programs may be run.
    pub(crate) programs: Programs,
    /// `journal`: kinds beside the plugin's own namespace.
    pub(crate) kinds: Vec<String>,
    routes: Vec<RouteGrant>,
    observe: Vec<String>,
    decide: Vec<String>,
}

/// Where an adapter's conversations may go, and with whose credential.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RouteGrant {
    /// The route's name.
    pub provider: String,
    /// `scheme://host[:port]`; none for an adapter without a wire.
    pub origins: Vec<String>,
    /// The credential's name.
    pub credential: Option<String>,
}

/// Which programs a row may run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Programs {
    /// Any: a shell can run them all.
    Shell,
    /// These names and no path.
    Named(Vec<String>),
}

impl Default for Programs {
    fn default() -> Self {
        Self::Named(Vec::new())
    }
}

impl Programs {
    pub(crate) fn allows(&self, program: &str) -> bool {
        match self {
            Self::Shell => true,
            Self::Named(names) => names.iter().any(|name| name == program),
        }
    }
}

impl Grants {
    /// None at all: `log`, `config` and `work` only.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// From a row's `grants`: an object, a list of names, or null for none.
    ///
    /// # Errors
    /// A name that no grant has, or parameters that are not of its shape.
    pub fn parse(value: &Value) -> Result<Self, Error> {
        let mut grants = Self::default();
        match value {
            Value::Null => {}
            Value::Array(names) => {
                for name in names {
                    let name = name
                        .as_str()
                        .ok_or_else(|| bad("grants", "must be names, or an object by name"))?;
                    grants.add(name, &Value::Bool(true))?;
                }
            }
            Value::Object(members) => {
                for (name, parameters) in members {
                    grants.add(name, parameters)?;
                }
            }
            _ => {
                return Err(bad(
                    "grants",
                    "must be an object by name, or a list of names",
                ));
            }
        }
        Ok(grants)
    }

    fn add(&mut self, name: &str, parameters: &Value) -> Result<(), Error> {
        if matches!(parameters, Value::Bool(false) | Value::Null) {
            return Ok(());
        }
        match name {
            "clock" | "random" | "session" | "spill" | "prompt.complete" => {
                plain(name, parameters)?;
            }
            "workspace" => self.workspace_write = workspace(parameters)?,
            "process" => self.programs = process(parameters)?,
            "journal" => self.kinds = journal(parameters)?,
            "route" => self.routes = routes(parameters)?,
            "observe" => self.observe = names(name, parameters, "events")?,
            "decide" => self.decide = names(name, parameters, "events")?,
            _ if LATER.contains(&name) => {}
            _ => return Err(bad(name, "there is no such grant")),
        }
        self.names.insert(name.to_owned());
        Ok(())
    }

    /// Whether a grant of this name is there.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.names.contains(name)
    }

    /// Where its adapter may send.
    #[must_use]
    pub fn routes(&self) -> &[RouteGrant] {
        &self.routes
    }

    /// Whether its listener may be told of this event.
    #[must_use]
    pub fn may_listen(&self, event: &str) -> bool {
        self.observe
            .iter()
            .chain(&self.decide)
            .any(|granted| granted == event)
    }

    /// Whether its listener may decide this event.
    #[must_use]
    pub fn may_decide(&self, event: &str) -> bool {
        self.decide.iter().any(|granted| granted == event)
    }
}

/// What an import needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: every component has it.
    Always,
    /// The grant of this name.
    Grant(&'static str),
    /// The contract has it, and this host nothing behind it.
    NotYet(&'static str),
    /// It is not of the contract.
    Unknown,
}

/// Which grant an import needs.
pub(crate) fn need(import: &Interface) -> Need {
    let Some((name, _)) = import.of_contract() else {
        return if import.name().starts_with("wasi:") {
            Need::NotYet("WASI")
        } else {
            Need::Unknown
        };
    };
    match name {
        "types" | "log" | "config" | "work" => Need::Always,
        "clock" => Need::Grant("clock"),
        "random" => Need::Grant("random"),
        "session" => Need::Grant("session"),
        "journal" => Need::Grant("journal"),
        "workspace" => Need::Grant("workspace"),
        "spill" => Need::Grant("spill"),
        "process" => Need::Grant("process"),
        "http" => Need::NotYet("requests of its own"),
        "kv" => Need::NotYet("a durable map"),
        "llm" => Need::NotYet("auxiliary model calls"),
        "inbox" => Need::NotYet("input put in front of the agent"),
        "attachments" => Need::NotYet("attachments"),
        "pictures" => Need::NotYet("pictures"),
        _ => Need::Unknown,
    }
}

/// Whether a row may append this kind: one of its plugin's own namespace that
/// its manifest names, or one of the common vocabulary that it was granted.
pub(crate) fn may_append(kind: &str, granted: &[String], own: &[String], namespace: &str) -> bool {
    let mine = !namespace.is_empty()
        && !RESERVED.contains(&namespace)
        && kind
            .split_once('/')
            .is_some_and(|(prefix, rest)| prefix == namespace && !rest.is_empty())
        && own.iter().any(|named| named == kind);
    mine || granted.iter().any(|named| named == kind)
}

fn bad(grant: &str, reason: impl Into<String>) -> Error {
    Error::Grant {
        grant: grant.to_owned(),
        reason: reason.into(),
    }
}

fn plain(name: &str, parameters: &Value) -> Result<(), Error> {
    match parameters {
        Value::Bool(true) => Ok(()),
        Value::Object(members) if members.is_empty() => Ok(()),
        _ => Err(bad(name, "it has no parameters: write `true`")),
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
fn names(name: &str, parameters: &Value, member: &str) -> Result<Vec<String>, Error> {
    let list = match parameters {
        Value::Object(members) => {
            only(name, members, &[member])?;
            members.get(member).unwrap_or(&Value::Null)
        }
        other => other,
    };
    list.as_array()
        .and_then(|items| {
            items
                .iter()
                .map(|item| item.as_str().map(str::to_owned))
                .collect()
        })
        .ok_or_else(|| bad(name, format!("write a list of {member}")))
}

fn workspace(parameters: &Value) -> Result<bool, Error> {
    match parameters {
        Value::Bool(true) => Ok(false),
        Value::Object(members) => {
            only("workspace", members, &["write"])?;
            match members.get("write") {
                None => Ok(false),
                Some(write) => write
                    .as_bool()
                    .ok_or_else(|| bad("workspace", "`write` is true or false")),
            }
        }
        _ => Err(bad(
            "workspace",
            "write `true` to read, or `{write: true}` to change files as well",
        )),
    }
}

fn process(parameters: &Value) -> Result<Programs, Error> {
    let hint = "write `shell`, or a list of programs";
    match parameters {
        Value::String(text) if text == "shell" => Ok(Programs::Shell),
        Value::Object(members) => {
            only("process", members, &["shell", "programs"])?;
            match members.get("shell") {
                Some(Value::Bool(true)) => Ok(Programs::Shell),
                Some(Value::Bool(false)) | None => Ok(Programs::Named(names(
                    "process",
                    members
                        .get("programs")
                        .ok_or_else(|| bad("process", hint))?,
                    "programs",
                )?)),
                Some(_) => Err(bad("process", hint)),
            }
        }
        Value::Array(_) => Ok(Programs::Named(names("process", parameters, "programs")?)),
        _ => Err(bad("process", hint)),
    }
}

fn journal(parameters: &Value) -> Result<Vec<String>, Error> {
    if matches!(parameters, Value::Bool(true)) {
        return Ok(Vec::new());
    }
    let kinds = names("journal", parameters, "kinds")?;
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

fn routes(parameters: &Value) -> Result<Vec<RouteGrant>, Error> {
    match parameters {
        Value::Array(items) => items.iter().map(route).collect(),
        other => Ok(vec![route(other)?]),
    }
}

fn route(value: &Value) -> Result<RouteGrant, Error> {
    let members = value
        .as_object()
        .ok_or_else(|| bad("route", "write `{provider, origins, credential}`"))?;
    only("route", members, &["provider", "origins", "credential"])?;
    let provider = members.get("provider").and_then(Value::as_str);
    let credential = match members.get("credential") {
        None | Some(Value::Null) => None,
        Some(Value::String(name)) => Some(name.clone()),
        Some(_) => return Err(bad("route", "`credential` is a credential's name")),
    };
    Ok(RouteGrant {
        provider: provider
            .ok_or_else(|| bad("route", "`provider` is missing"))?
            .to_owned(),
        origins: names(
            "route",
            members.get("origins").unwrap_or(&Value::Array(vec![])),
            "origins",
        )?,
        credential,
    })
}

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
