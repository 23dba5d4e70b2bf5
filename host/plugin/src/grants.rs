//! What a row may do, as plain data.
//!
//! A grant is a name with parameters, written in a row as an object
//! (`{"workspace": {"write": true}, "clock": true}`) or, where none has
//! parameters, as a list of names. Everything here is a pure function of such
//! values; what a grant lets through is checked in `capability/`, where the
//! import is called.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::component::Interface;
use crate::error::Error;
use crate::port::KvScope;
use crate::standin;

mod parse;
mod value;

/// The event whose answer stands for a person's: a grant of its own.
const APPROVAL: &str = "approval/request";

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

/// A row's grants.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Grants {
    names: BTreeSet<String>,
    pub(crate) workspace: WorkspaceGrant,
    /// `process`: which programs may be run.
    pub(crate) programs: Programs,
    /// `journal`: kinds beside the plugin's own namespace.
    pub(crate) kinds: Vec<String>,
    /// `inbox`: how often in a row it may wake an idle agent.
    pub(crate) wakes: u32,
    pub(crate) kv: KvGrant,
    /// `spill`: bytes of all that it stores while it is mounted.
    pub(crate) spill_quota: Option<u64>,
    /// `attachments`: bytes of all that it puts while it is mounted.
    pub(crate) attachments_quota: Option<u64>,
    agents: Budget,
    jobs: Budget,
    /// `llm`: tokens of all its calls in a session.
    pub(crate) llm_tokens: Option<u64>,
    http: Vec<String>,
    secrets: Vec<SecretGrant>,
    routes: Vec<RouteGrant>,
    observe: Vec<String>,
    decide: Vec<String>,
    tool_names: Vec<String>,
    dirs: Vec<DirGrant>,
    env: Vec<String>,
}

/// `workspace`: which files, and whether they may be changed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct WorkspaceGrant {
    /// Directories that every path must lie below, as they were written:
    /// absolute, or relative to the session's working directory. None: any.
    pub(crate) roots: Option<Vec<String>>,
    pub(crate) write: bool,
}

/// `kv`: how much, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct KvGrant {
    /// Bytes of all keys and values of one scope.
    pub(crate) quota: u64,
    pub(crate) scopes: Vec<KvScope>,
}

impl Default for KvGrant {
    fn default() -> Self {
        Self {
            quota: 1 << 20,
            scopes: KvScope::ALL.to_vec(),
        }
    }
}

/// How many, how deep and at what cost: of `agents` and `jobs`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Budget {
    depth: Option<u64>,
    number: Option<u64>,
    budget: Option<u64>,
}

/// `secret`: a header that the host writes, for one host.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecretGrant {
    /// The credential's name.
    pub name: String,
    /// The header that it goes into.
    pub header: String,
    /// The host that gets it.
    pub host: String,
}

/// `dir`: a directory of this machine, for a component made of an ordinary
/// program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirGrant {
    /// Absolute.
    pub path: String,
    /// Whether it may be changed.
    pub write: bool,
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
                    let name = name.as_str().ok_or_else(|| {
                        parse::bad("grants", "must be names, or an object by name")
                    })?;
                    grants.add(name, &Value::Bool(true))?;
                }
            }
            Value::Object(members) => {
                for (name, parameters) in members {
                    grants.add(name, parameters)?;
                }
            }
            _ => {
                return Err(parse::bad(
                    "grants",
                    "must be an object by name, or a list of names",
                ));
            }
        }
        Ok(grants)
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
        self.may_decide(event) || self.observe.iter().any(|granted| granted == event)
    }

    /// Whether its listener may decide this event, which is more than being
    /// told of it.
    #[must_use]
    pub fn may_decide(&self, event: &str) -> bool {
        if event == APPROVAL {
            return self.has("approval");
        }
        self.decide.iter().any(|granted| granted == event)
    }

    /// Whether it may offer a tool of this name: any, unless names were
    /// granted.
    #[must_use]
    pub fn may_name_tool(&self, tool: &str) -> bool {
        !self.has("tool-names") || self.tool_names.iter().any(|granted| granted == tool)
    }

    /// Headers that the host writes for it.
    #[must_use]
    pub fn secrets(&self) -> &[SecretGrant] {
        &self.secrets
    }

    /// Directories of this machine that it sees.
    #[must_use]
    pub fn dirs(&self) -> &[DirGrant] {
        &self.dirs
    }

    /// Environment variables that it sees, by name.
    #[must_use]
    pub fn env(&self) -> &[String] {
        &self.env
    }
}

/// What an import needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Nothing: every component has it.
    Always,
    /// Nothing: a stand-in of WASI meets it, which grants may make real.
    StandIn,
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
        return if standin::meets(import) {
            Need::StandIn
        } else if import.name().starts_with("wasi:") {
            Need::NotYet(
                "WASI beyond the cli, clocks, filesystem, http, io, random and sockets of 0.2",
            )
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
        "kv" => Need::Grant("kv"),
        "llm" => Need::Grant("llm"),
        "inbox" => Need::Grant("inbox"),
        "attachments" => Need::Grant("attachments"),
        "pictures" => Need::Grant("pictures"),
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

#[cfg(test)]
#[path = "grants_tests.rs"]
mod tests;
