//! Providers that a person wrote, and the rows that serve them.
//!
//! Upstream has one row `llm-pi-ai` for all providers but DeepSeek, and people's
//! patches and settings speak to it. Here a row is an adapter of one protocol, so
//! what stands in `llm-pi-ai` is *dealt out*: a profile with `api` goes to the row
//! of that protocol, one without to the row that ships a provider of its name,
//! which is the row that `profiles/base.yml` grants it.
//!
//! What follows:
//!
//! - A row's grant is what was dealt to it. Of the providers that the bundle lists
//!   only those count that somebody configured; the origin of a written `baseURL`
//!   takes the place of the listed ones, so that a key of one server never goes to
//!   another, and `apiKeyEnv` that of the listed credential.
//! - A row that was dealt nothing is *dormant*: it is not loaded, and no start
//!   takes longer for it.
//! - A profile that cannot work costs its provider and nothing else: it is
//!   [`Unserved`], with the reason in words.

mod profile;
mod shown;

use crate::yaml::Node;
use crate::{Composition, Row};
use dsh_check::did_you_mean;
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::fmt;

use profile::APIS;
pub(crate) use profile::{RETRY, SECTION, check_section};
pub(crate) use shown::{dealt, granted, without_headers};

/// Each protocol and the row that speaks it.
const ROWS: [(&str, &str); 3] = [
    ("openai-completions", "llm-openai-completions"),
    ("openai-responses", "llm-openai-responses"),
    ("anthropic-messages", "llm-anthropic"),
];

/// A provider that is written somewhere and cannot be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unserved {
    /// As a call names it.
    pub provider: String,
    /// For people.
    pub name: String,
    /// What is wrong, and what to do: one line without the provider's name.
    pub problem: String,
    /// The row that has the name, which it keeps: calls of this provider are its.
    pub taken_by: Option<String>,
}

impl Unserved {
    fn new(provider: &str, written: &Value, problem: String) -> Self {
        Self {
            name: profile::display_name(provider, written),
            provider: provider.to_owned(),
            problem,
            taken_by: None,
        }
    }

    fn taken(provider: &str, written: &Value, row: String) -> Self {
        let problem = format!(
            "row {row} serves a provider of this name, so this profile is not used; give it another name"
        );
        Self {
            taken_by: Some(row),
            ..Self::new(provider, written, problem)
        }
    }
}

/// As a line for people.
impl fmt::Display for Unserved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.taken_by {
            Some(_) => "a profile of the name",
            None => "provider",
        };
        let Self {
            provider, problem, ..
        } = self;
        write!(f, "{what} {provider} cannot be called: {problem}")
    }
}

/// Deals out what `llm-pi-ai` has, and puts the rows to sleep that get nothing.
pub(crate) fn deal_out(composition: &mut Composition) -> Result<(), String> {
    let from = composition.host(SECTION).map(|row| row.config.clone());
    let written = from.as_ref().and_then(|config| config.get("providers"));
    let empty = Map::new();
    let (written, outcome) = match written {
        None | Some(Value::Null) => (&empty, Ok(())),
        Some(Value::Object(providers)) => (providers, Ok(())),
        Some(other) => (&empty, Err(profile::not_a_mapping(&Node::of(other)))),
    };
    for (provider, written) in written {
        let dealt = profile::read(provider, written)
            .and_then(|profile| Ok((row_of(composition, provider, &profile)?, profile)));
        match dealt {
            Ok((at, profile)) => {
                let providers = providers_of(&mut composition.rows[at]);
                providers.insert(provider.clone(), Value::Object(profile));
            }
            Err(problem) => {
                let one = Unserved::new(provider, written, problem);
                composition.unserved.push(one);
            }
        }
    }
    let mut taken = served_elsewhere(composition);
    for row in &mut composition.rows {
        if is_ours(row) && !row.disabled {
            grant(row, &mut taken, &mut composition.unserved);
        }
    }
    outcome
}

fn is_ours(row: &Row) -> bool {
    ROWS.iter().any(|(_, id)| *id == row.id)
}

/// The providers of rows beside ours, and the row of each. Of two that register one
/// name the second would be lost with all that it serves, so a profile, which can be
/// renamed by a word, gives way to the bundles' rows and to those that people mount;
/// an installed plugin gives way to it.
fn served_elsewhere(composition: &Composition) -> HashMap<String, String> {
    let rows = composition.components();
    let rows = rows.filter(|row| !is_ours(row) && row.plugin.is_none());
    let names = |row: &Row| {
        let names = listed_names(row).into_iter();
        names.map(|name| (name, row.id.clone())).collect::<Vec<_>>()
    };
    rows.flat_map(names).collect()
}

/// Where in the composition the row is that serves a profile.
fn row_of(
    composition: &Composition,
    provider: &str,
    profile: &Map<String, Value>,
) -> Result<usize, String> {
    let find = |id: &str| composition.rows.iter().position(|row| row.id == id);
    if let Some(api) = profile.get("api").and_then(Value::as_str) {
        let id = ROWS.iter().find(|(known, _)| *known == api);
        let id = id.map_or("", |(_, id)| *id);
        return match find(id) {
            Some(at) if !composition.rows[at].disabled => Ok(at),
            Some(_) => Err(format!(
                "row {id}, which speaks {api}, is disabled; enable it by a patch: `- id: {id}` with `disabled: false`"
            )),
            None => Err(format!(
                "no row speaks {api}: row {id} is not in the profile"
            )),
        };
    }
    let shipping: Vec<(&str, usize)> = ROWS
        .iter()
        .filter_map(|(api, id)| Some((*api, find(id)?)))
        .filter(|(_, at)| listed(&composition.rows[*at], provider).is_some())
        .collect();
    match shipping.as_slice() {
        [(_, at)] => Ok(*at),
        [] => {
            let known: Vec<String> = composition.rows.iter().flat_map(shipped).collect();
            let meant = did_you_mean(provider, known.iter().map(String::as_str));
            let asleep = ROWS.iter().filter_map(|(_, id)| find(id));
            let asleep = asleep.map(|at| &composition.rows[at]);
            let asleep: Vec<&str> = asleep
                .filter(|row| row.disabled)
                .map(|row| row.id.as_str())
                .collect();
            let asleep = match asleep.as_slice() {
                [] => String::new(),
                rows => format!(" (disabled: {})", rows.join(", ")),
            };
            Err(format!(
                "it has no `api`, and no row{asleep} ships a provider of this name, so set `api` \
                 ({}), `baseURL` and `models`{meant}",
                APIS.join(", ")
            ))
        }
        several => {
            let apis: Vec<&str> = several.iter().map(|(api, _)| *api).collect();
            Err(format!(
                "its models speak several protocols; choose those of one by `api`: {}",
                apis.join(", ")
            ))
        }
    }
}

/// The names that a row of ours lists in its grant.
fn shipped(row: &Row) -> Vec<String> {
    if is_ours(row) {
        listed_names(row)
    } else {
        Vec::new()
    }
}

pub(crate) fn listed_names(row: &Row) -> Vec<String> {
    let name = |grant: &Value| grant.get("provider")?.as_str().map(str::to_owned);
    grants(row).iter().filter_map(name).collect()
}

fn listed(row: &Row, provider: &str) -> Option<Value> {
    let named = |grant: &&Value| grant.get("provider").and_then(Value::as_str) == Some(provider);
    grants(row).iter().find(named).cloned()
}

fn grants(row: &Row) -> Vec<Value> {
    match row.grants.get("route") {
        Some(Value::Array(list)) => list.clone(),
        Some(one @ Value::Object(_)) => vec![one.clone()],
        _ => Vec::new(),
    }
}

fn providers_of(row: &mut Row) -> &mut Map<String, Value> {
    let object = |value: &mut Value| {
        if !value.is_object() {
            *value = json!({});
        }
    };
    object(&mut row.config);
    object(&mut row.config["providers"]);
    match &mut row.config["providers"] {
        Value::Object(providers) => providers,
        _ => unreachable!("made an object above"),
    }
}

/// Grants a row what its providers need and nothing beside it.
fn grant(row: &mut Row, taken: &mut HashMap<String, String>, unserved: &mut Vec<Unserved>) {
    let mut routes = Vec::new();
    let written = std::mem::take(providers_of(row));
    let mut kept = Map::new();
    for (provider, written) in written {
        let profile = match profile::read(&provider, &written) {
            Ok(profile) => profile,
            Err(problem) => {
                unserved.push(Unserved::new(&provider, &written, problem));
                continue;
            }
        };
        if let Some(other) = taken.get(&provider) {
            unserved.push(Unserved::taken(&provider, &written, other.clone()));
            continue;
        }
        taken.insert(provider.clone(), row.id.clone());
        let route = listed(row, &provider);
        let (route, endpoint) = crate::route::of_provider(route, &provider, &profile);
        routes.push(route);
        row.endpoints.extend(endpoint);
        kept.insert(provider, Value::Object(profile));
    }
    row.dormant = kept.is_empty();
    *providers_of(row) = kept;
    // A row that sleeps keeps what it would have, for whoever looks at it.
    if !row.dormant {
        row.grants["route"] = Value::Array(routes);
    }
}

#[cfg(test)]
#[path = "providers_tests.rs"]
mod tests;
