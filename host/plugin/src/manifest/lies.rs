//! A manifest that says what its component is not.
//!
//! Imports and exports are the truth: nothing that is not among them can be
//! called. A manifest that wants what the component could not use would make a
//! person grant what is not needed, and one that names the host's own kinds and
//! sources would be believed by who reads it; both are refused, with what it says
//! and what is.

use serde_json::Value;

use super::{Manifest, bad, kebab};
use crate::component::{Description, Interface};
use crate::error::Error;
use crate::grants;

/// Kinds of message sources that are the host's, the person's, the model's and
/// the tools', and those of the host's own plugins.
const SOURCES: [&str; 20] = [
    "user",
    "model",
    "tool",
    "approval",
    "plugin",
    "system",
    "host",
    "person",
    "assistant",
    "agent",
    "goal",
    "skill-catalog",
    "skill-invocation",
    "agent-instructions",
    "session-reference",
    "subagent-report",
    "subagent-settled",
    "team-message",
    "compaction",
    "provider",
];

/// What of a component a grant is for: one of these is needed.
fn used_by(grant: &str) -> &'static [Use] {
    use Use::{Export, Import, Wasi};
    match grant {
        "clock" => &[Import("clock"), Wasi("clocks/")],
        "random" => &[Import("random"), Wasi("random/")],
        "session" => &[Import("session")],
        "journal" => &[Import("journal")],
        "inbox" => &[Import("inbox")],
        "people" => &[Import("people")],
        "agents" => &[Import("agents")],
        "jobs" => &[Import("jobs")],
        "llm" => &[Import("llm")],
        "workspace" => &[Import("workspace")],
        "process" => &[Import("process")],
        "http" => &[Import("http"), Wasi("http/outgoing-handler")],
        // The host writes it into the headers of a request.
        "secret" => &[Import("http"), Export("llm-adapter")],
        "spill" => &[Import("spill")],
        "attachments" => &[Import("attachments")],
        "pictures" => &[Import("pictures")],
        "kv" => &[Import("kv")],
        "route" => &[Export("llm-adapter")],
        "observe" | "decide" | "approval" => &[Export("dispatch")],
        "prompt.complete" => &[Export("prompt")],
        "tool-names" => &[Export("tool")],
        "dir" => &[Wasi("filesystem/")],
        "env" => &[Wasi("cli/environment")],
        _ => &[],
    }
}

/// What a grant may be for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Use {
    /// An import of the contract, by its short name.
    Import(&'static str),
    /// An export of it.
    Export(&'static str),
    /// Imports of WASI that begin so.
    Wasi(&'static str),
}

impl Use {
    fn holds(self, component: &Description) -> bool {
        let short = |interface: &Interface, name: &str| {
            interface.of_contract().is_some_and(|(own, _)| own == name)
        };
        match self {
            Self::Import(name) => component.imports.iter().any(|import| short(import, name)),
            Self::Export(name) => component.exports_interface(name),
            Self::Wasi(name) => component.imports.iter().any(|import| {
                import
                    .name()
                    .strip_prefix("wasi:")
                    .is_some_and(|rest| rest.starts_with(name))
            }),
        }
    }

    fn in_words(self) -> String {
        match self {
            Self::Import(name) => format!("the import dsh:plugin/{name}"),
            Self::Export(name) => format!("the export dsh:plugin/{name}"),
            Self::Wasi(name) => format!("an import wasi:{name}"),
        }
    }
}

/// The export that a grant is for, where it is for one.
pub(crate) fn export_for(grant: &str) -> Option<&'static str> {
    used_by(grant).iter().find_map(|needed| match needed {
        Use::Export(name) => Some(*name),
        Use::Import(_) | Use::Wasi(_) => None,
    })
}

/// Compares a component's manifest with what it is.
pub(crate) fn check(component: &Description) -> Result<(), Error> {
    let Some(manifest) = &component.manifest else {
        return Ok(());
    };
    contract(manifest, component)?;
    wants(manifest, component)?;
    appends(manifest, component)?;
    sources(manifest)
}

fn contract(manifest: &Manifest, component: &Description) -> Result<(), Error> {
    let (Some(said), Some(is)) = (&manifest.plugin.contract, &component.contract) else {
        return Ok(());
    };
    if said == is {
        return Ok(());
    }
    Err(bad(format!(
        "plugin.contract says {said:?}, and its imports and exports are of dsh:plugin@{is}: leave it out, or build the component for what it says"
    )))
}

fn wants(manifest: &Manifest, component: &Description) -> Result<(), Error> {
    for (grant, parameters) in &manifest.wants {
        let nothing = matches!(parameters, Value::Bool(false) | Value::Null);
        if let Some(lacks) = lacks(component, grant).filter(|_| !nothing) {
            return Err(bad(format!(
                "it wants `{grant}`, which is for {lacks}, and the component has none: take it out of [wants]"
            )));
        }
    }
    Ok(())
}

/// What a component would need for this grant to mean anything; none where it
/// has that.
pub(crate) fn lacks(component: &Description, grant: &str) -> Option<String> {
    let uses = used_by(grant);
    if uses.iter().any(|needed| needed.holds(component)) {
        return None;
    }
    let needed: Vec<String> = uses.iter().map(|needed| needed.in_words()).collect();
    Some(needed.join(" or ")).filter(|needed| !needed.is_empty())
}

fn appends(manifest: &Manifest, component: &Description) -> Result<(), Error> {
    let appends = &manifest.events.appends;
    let namespace = manifest.plugin.namespace();
    for kind in appends {
        if !grants::may_append(kind, &[], appends, namespace) {
            return Err(bad(format!(
                "events.appends has {kind:?}, which is not of its own namespace: name kinds like `{namespace}/seen`, and common ones in wants.journal"
            )));
        }
    }
    if !appends.is_empty() && !Use::Import("journal").holds(component) {
        return Err(bad(format!(
            "events.appends has {:?}, and the component has no import dsh:plugin/journal to append it with",
            appends[0]
        )));
    }
    Ok(())
}

fn sources(manifest: &Manifest) -> Result<(), Error> {
    let namespace = manifest.plugin.namespace();
    for source in &manifest.events.sources {
        if !own_source(source, namespace) {
            return Err(bad(format!(
                "events.sources has {source:?}, which is not its own: name sources like `{namespace}-seen`"
            )));
        }
    }
    Ok(())
}

/// Sources of the log's vocabulary that official components write, whose
/// namespace no installed plugin can have.
const OFFICIAL: [&str; 3] = ["agent-instructions", "skill-catalog", "skill-invocation"];

/// Whether messages of a plugin of this namespace may say that they come from
/// `source`: `acme` or `acme-…` for `acme`, and nothing that is the host's or
/// an official component's.
pub(crate) fn own_source(source: &str, namespace: &str) -> bool {
    if namespace == "dsh" && OFFICIAL.contains(&source) {
        return true;
    }
    let own = source
        .strip_prefix(namespace)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'));
    kebab(source) && own && !SOURCES.contains(&source)
}
