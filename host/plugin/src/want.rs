//! What a component wants, for a person to decide.
//!
//! Three things ask: imports, which say what it can call; exports, which say what
//! it will be shown and asked; and the manifest, which says how much of each it
//! needs. The first two are the truth and the third is a wish, so an import that
//! the manifest does not mention is a want all the same, of the least that its
//! grant can be. What nobody needs a grant for (text for the prompt, a title) is
//! no want, but is said too ([`also`]): a person who decides has to see it.
//!
//! There is one want a grant, and its parameters are what to grant: wants that
//! are all accepted make a `grants` object that mounts the row. The most
//! dangerous come first. Words are the host's own; what comes from the component
//! in them is escaped and cut, so that it cannot say anything in the host's name.

use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::component::Description;
use crate::error::Error;
use crate::grants::{self, Need};
use crate::survey::Offered;

mod difference;
mod events;
mod raised;
mod words;

pub use difference::{Difference, difference};
pub use events::{Event, event};
pub use raised::raised;
pub use words::{in_words, shown};

/// What to say of a component that wants nothing.
pub const NOTHING: &str = "nothing beyond computing";

/// One grant that a component wants.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Want {
    /// The grant's name.
    pub grant: String,
    /// What it would be granted with.
    pub parameters: Value,
    /// What of the component asks for it.
    pub because: Because,
    /// What it means, a sentence without its subject each.
    pub words: Vec<String>,
}

/// What of a component asks for something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Because {
    /// It imports this.
    Import(String),
    /// It exports this.
    Export(String),
    /// Its manifest says so.
    Manifest,
}

/// All that a row of this component needs to be mounted and to work, most
/// dangerous first.
///
/// # Errors
/// A route that is not of its shape.
pub fn wants(component: &Description, offered: &Offered) -> Result<Vec<Want>, Error> {
    let mut asked: Map<String, Value> = component
        .manifest
        .as_ref()
        .map(|manifest| manifest.wants.clone())
        .unwrap_or_default();
    asked.retain(|_, parameters| !matches!(parameters, Value::Null | Value::Bool(false)));
    let mut found: Vec<Want> = Vec::new();
    let mut add = |grant: &str, parameters: Value, because: Because| {
        if found.iter().all(|want| want.grant != grant) {
            found.push(Want {
                grant: grant.to_owned(),
                words: in_words(grant, &parameters),
                parameters,
                because,
            });
        }
    };
    for import in &component.imports {
        let grant = match grants::need(import) {
            Need::Grant(grant) => grant,
            // Nothing that it is granted makes this host provide it.
            Need::Always | Need::StandIn | Need::NotYet(_) | Need::Unknown => continue,
        };
        let parameters = asked.remove(grant).unwrap_or_else(|| least(grant));
        add(grant, parameters, Because::Import(import.to_string()));
    }
    let because = |export: &str| Because::Export(export.to_owned());
    if component.exports_interface("llm-adapter") {
        let routes = routes(asked.remove("route"), offered)?;
        add("route", routes, because("llm-adapter"));
    }
    if component.exports_interface("dispatch") {
        let listens = listens(&mut asked, offered);
        for (grant, parameters) in listens {
            add(grant, parameters, because("dispatch"));
        }
    }
    if component.exports_interface("tool") && !offered.tools.is_empty() {
        let names: Vec<&str> = offered
            .tools
            .iter()
            .map(|tool| tool.name.as_str())
            .collect();
        asked.remove("tool-names");
        add("tool-names", json!(names), because("tool"));
    }
    for (grant, parameters) in asked {
        let why = crate::manifest::export_for(&grant).map_or(Because::Manifest, because);
        add(&grant, parameters, why);
    }
    found.sort_by_key(|want| words::rank(&want.grant, &want.parameters));
    Ok(found)
}

/// What a component would have to import or export for a grant of this name to
/// mean anything to it, in words; none where it has that, or where there is no
/// such grant.
#[must_use]
pub fn lacks(component: &Description, grant: &str) -> Option<String> {
    crate::manifest::lacks(component, grant)
}

/// What it does beside that needs no grant, in words.
#[must_use]
pub fn also(component: &Description, offered: &Offered) -> Vec<String> {
    let mut said = Vec::new();
    let manifest = component.manifest.as_ref();
    for kind in manifest
        .iter()
        .flat_map(|manifest| &manifest.events.appends)
    {
        said.push(format!(
            "appends {} to your sessions, beside what the model sees",
            shown(kind)
        ));
    }
    for source in manifest
        .iter()
        .flat_map(|manifest| &manifest.events.sources)
    {
        said.push(format!(
            "may write messages that are marked {}",
            shown(source)
        ));
    }
    if component.exports_interface("prompt") {
        said.push(
            "adds text of its own to the system prompt, and is told your folder and model for it"
                .to_owned(),
        );
    }
    if component.exports_interface("compaction") {
        said.push("decides which part of a long conversation becomes a summary".to_owned());
    }
    if component.exports_interface("title") {
        said.push("reads what you write and proposes titles for sessions".to_owned());
    }
    for projection in &offered.projections {
        let kinds = if projection.kinds.is_empty() {
            "everything in your sessions".to_owned()
        } else {
            format!("{} in your sessions", words::list(&projection.kinds))
        };
        said.push(format!("reads {kinds} to show {}", shown(&projection.key)));
    }
    said
}

/// What a grant is at least, for an import of which the manifest says nothing.
fn least(grant: &str) -> Value {
    match grant {
        "process" | "http" | "secret" => json!([]),
        _ => json!(true),
    }
}

/// Routes of the manifest, and those that it lists, each with the origin that it
/// would be sent to by default.
fn routes(asked: Option<Value>, offered: &Offered) -> Result<Value, Error> {
    let mut routes: Vec<Value> = match asked {
        Some(Value::Array(routes)) => routes,
        Some(route @ Value::Object(_)) => vec![route],
        _ => vec![],
    };
    for text in &offered.routes {
        let route: Value = serde_json::from_str(text).map_err(|error| {
            Error::Manifest(format!("a route that it lists is no JSON: {error}"))
        })?;
        let member = |name: &str| route.get(name).and_then(Value::as_str);
        let Some(provider) = member("provider") else {
            continue;
        };
        let origin = member("baseURL").and_then(origin);
        let known = routes
            .iter_mut()
            .find(|route| route.get("provider").and_then(Value::as_str) == Some(provider));
        let Some(known) = known else {
            let mut made = json!({"provider": provider});
            if let Some(origin) = origin {
                made["origins"] = json!([origin]);
            }
            if let Some(credential) = member("credential") {
                made["credential"] = json!(credential);
            }
            routes.push(made);
            continue;
        };
        if let Some(origin) = origin {
            match known.get_mut("origins").and_then(Value::as_array_mut) {
                Some(origins) if origins.contains(&json!(origin)) => {}
                Some(origins) => origins.push(json!(origin)),
                None => known["origins"] = json!([origin]),
            }
        }
        if known.get("credential").is_none()
            && let Some(credential) = member("credential")
        {
            known["credential"] = json!(credential);
        }
    }
    Ok(Value::Array(routes))
}

/// `scheme://host[:port]` of a URL, where it has one.
fn origin(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    (!host.is_empty()).then(|| format!("{scheme}://{host}").to_ascii_lowercase())
}

/// Which events it would watch and which decide: what its manifest says, and of
/// the events that it listens to without saying so, the least.
fn listens(asked: &mut Map<String, Value>, offered: &Offered) -> Vec<(&'static str, Value)> {
    let mut take = |grant: &str| -> Vec<String> {
        let asked = asked.remove(grant).unwrap_or_default();
        words::texts(&words::canonical(grant, &asked))
    };
    let mut decide = take("decide");
    let mut observe = take("observe");
    let approval = |event: &String| event == APPROVAL;
    let mut approves = decide.iter().any(approval);
    decide.retain(|event| !approval(event));
    for subscription in &offered.subscriptions {
        let event = &subscription.event;
        if event == APPROVAL {
            approves = true;
        } else if !decide.contains(event) && !observe.contains(event) {
            observe.push(event.clone());
        }
    }
    approves |= asked.remove("approval").is_some() || observe.iter().any(approval);
    observe.retain(|event| !approval(event) && !decide.contains(event));
    let mut found = Vec::new();
    if approves {
        found.push(("approval", json!(true)));
    }
    if !decide.is_empty() {
        found.push(("decide", json!(decide)));
    }
    if !observe.is_empty() {
        found.push(("observe", json!(observe)));
    }
    found
}

/// Answering it is a grant of its own.
const APPROVAL: &str = "approval/request";

#[cfg(test)]
#[path = "want_tests.rs"]
mod tests;
