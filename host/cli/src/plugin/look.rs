//! What came from a source, looked at before anybody decides: described, made a component where it was a core module,
//! compiled, asked what it offers.
//!
//! Describing reads sections and runs nothing. Asking (`dsh_plugin::Engine::survey`) runs the component under the
//! default limits with every import but its log and its configuration a trap, so a stranger's component can compute for
//! a while here and nothing else.

use dsh_plugin::want::{self, Want};
use dsh_plugin::{Description, Limits, Offered, componentise};
use dsh_profile::{Installed, LockedRow};
use serde_json::{Map, Value};

use super::text::{shown, size};
use super::{Desk, Stop, rows, what};
use crate::row_config;

/// A plugin that could be installed.
pub(super) struct Candidate {
    /// The component, as it would be stored.
    pub(super) component: Vec<u8>,
    pub(super) description: Description,
    /// SHA-256 of what the source gave.
    pub(super) given: String,
    pub(super) rows: Vec<LockedRow>,
    /// The rows' ids as its manifest has them.
    pub(super) ids: Vec<String>,
    pub(super) offered: Offered,
    pub(super) wants: Vec<Want>,
    /// What it does beside that needs no grant, in words.
    pub(super) also: Vec<String>,
    /// Whether its schema of `config` says more than this host checks.
    pub(super) unchecked: bool,
    /// Limits of which its manifest asks for more than a row gets unless a person's patch says so.
    pub(super) beyond: Vec<String>,
}

impl Candidate {
    /// `namespace:name`
    pub(super) fn name(&self) -> &str {
        self.description
            .manifest
            .as_ref()
            .map_or("", |manifest| &manifest.plugin.name)
    }

    pub(super) fn version(&self) -> &str {
        self.description
            .manifest
            .as_ref()
            .map_or("", |manifest| &manifest.plugin.version)
    }

    pub(super) fn tools(&self) -> Vec<String> {
        self.offered
            .tools
            .iter()
            .map(|tool| tool.name.clone())
            .collect()
    }

    /// The providers that it serves.
    pub(super) fn providers(&self) -> Vec<String> {
        let routes = self.offered.routes.iter();
        routes.filter_map(|route| rows::provider(route)).collect()
    }

    /// As the lock would have it, with nothing granted yet.
    pub(super) fn installed(&self, source: &str) -> Installed {
        Installed {
            name: self.name().to_owned(),
            version: self.version().to_owned(),
            source: source.to_owned(),
            digest: self.description.digest.clone(),
            fetched: (self.given != self.description.digest).then(|| self.given.clone()),
            contract: self.description.contract.clone().unwrap_or_default(),
            tools: self.tools(),
            rows: self.rows.clone(),
            ..Installed::default()
        }
    }
}

/// Looks at what `source` (as it is shown) gave.
///
/// # Errors
/// One line that says what the bytes are, or what of the component cannot be.
pub(super) fn at(desk: &Desk, source: &str, bytes: Vec<u8>) -> Result<Candidate, Stop> {
    let source = shown(source, 300);
    let refused = |what: &dyn std::fmt::Display| Stop::of(format_args!("{source}: {what}"));
    if let Some(what) = what::told(&bytes) {
        return Err(refused(&what));
    }
    let given = dsh_profile::digest(&bytes);
    let component = componentise(bytes)
        .map_err(|error| refused(&error))?
        .component;
    let description = Description::read(&component).map_err(|error| refused(&error))?;
    let Some(manifest) = &description.manifest else {
        return Err(refused(
            &"the component has no manifest (section `dsh:manifest`), so it has no name to be installed under; \
              mount it by a row with `component:` in cordis.patch.yml, or ask its author for a build with a manifest",
        ));
    };
    let name = shown(&manifest.plugin.name, 140);
    let rows = rows_of(&description);
    if let Some(row) = rows.iter().find(|row| depth(&row.config) > DEPTH) {
        return Err(refused(&format_args!(
            "its own row {}: its config nests deeper than {DEPTH}; its author has to mend it",
            shown(&row.id, 80)
        )));
    }
    if let Some(schema) = &manifest.config.schema {
        for row in &rows {
            if let Some(fault) = row_config::fault(schema, &row.config) {
                return Err(refused(&format_args!(
                    "its own row {}: {fault}; its author has to mend it",
                    shown(&row.id, 80)
                )));
            }
        }
    }
    let engine = desk.engine()?;
    let offered = desk.wait(async {
        let what = format!("compiling {name} ({})", size(component.len() as u64));
        let compiled = desk
            .progress
            .during(&what, engine.load_bytes(component.clone()))
            .await?;
        let mut all = Offered::default();
        let mut twice = None;
        for row in &rows {
            let offered = engine
                .survey(&compiled, &row.id, &row.config.to_string())
                .await?;
            twice = twice.or_else(|| merge(&mut all, offered, &row.id));
        }
        let beyond = beyond(&Limits::of(&compiled, &Value::Null)?, &manifest.limits)?;
        Ok::<_, dsh_plugin::Error>((all, beyond, twice))
    });
    let (offered, beyond, twice) =
        offered.map_err(|error| refused(&shown(&error.to_string(), 1000)))?;
    if let Some(twice) = twice {
        return Err(refused(&twice));
    }
    let wants = want::wants(&description, &offered).map_err(|error| refused(&error))?;
    let also = want::also(&description, &offered);
    Ok(Candidate {
        component,
        given,
        ids: rows.iter().map(|row| row.id.clone()).collect(),
        rows,
        offered,
        wants,
        also,
        beyond,
        unchecked: description
            .manifest
            .as_ref()
            .and_then(|manifest| manifest.config.schema.as_ref())
            .is_some_and(|schema| !row_config::is_checked(schema)),
        description,
    })
}

/// Which of these limits are more than what holds.
fn beyond(holds: &Limits, asked: &Map<String, Value>) -> Result<Vec<String>, dsh_plugin::Error> {
    let mut names = Vec::new();
    for (name, value) in asked {
        let one = Map::from_iter([(name.clone(), value.clone())]);
        if holds.with(&Value::Object(one))? != *holds {
            names.push(name.clone());
        }
    }
    Ok(names)
}

/// The rows that its manifest brings; one that is named like the plugin where it brings none.
fn rows_of(description: &Description) -> Vec<LockedRow> {
    let Some(manifest) = &description.manifest else {
        return Vec::new();
    };
    if manifest.rows.is_empty() {
        let id = manifest
            .plugin
            .name
            .split_once(':')
            .map_or("", |(_, name)| name);
        return vec![LockedRow {
            id: id.to_owned(),
            disabled: false,
            config: Value::Object(Map::new()),
        }];
    }
    let row = |row: &dsh_plugin::manifest::Row| LockedRow {
        id: row.id.clone(),
        disabled: row.disabled,
        config: Value::Object(row.config.clone()),
    };
    manifest.rows.iter().map(row).collect()
}

/// What a mounted row offers.
pub(super) fn offered(mounted: &dsh_plugin::Mounted) -> Offered {
    let mut offered = Offered::default();
    offered.tools = mounted.tools().to_vec();
    offered.routes = mounted.routes().to_vec();
    offered.subscriptions = mounted.subscriptions().to_vec();
    offered
}

/// What several rows of one component offer together; what two of them cannot both have.
fn merge(all: &mut Offered, more: Offered, row: &str) -> Option<String> {
    let mut twice = None;
    let row = shown(row, 64);
    for tool in more.tools {
        if all.tools.iter().any(|known| known.name == tool.name) {
            let name = shown(&tool.name, 64);
            twice = Some(format!(
                "its row {row} brings the tool {name}, and so does one before it; its author has to mend it"
            ));
        }
        all.tools.push(tool);
    }
    for route in more.routes {
        let provider = rows::provider(&route);
        if all
            .routes
            .iter()
            .any(|known| rows::provider(known) == provider)
        {
            twice = Some(format!(
                "its row {row} serves the provider {}, and so does one before it; its author has to mend it",
                shown(&provider.unwrap_or_default(), 64)
            ));
        }
        all.routes.push(route);
    }
    for subscription in more.subscriptions {
        if !all.subscriptions.contains(&subscription) {
            all.subscriptions.push(subscription);
        }
    }
    for projection in more.projections {
        if !all.projections.contains(&projection) {
            all.projections.push(projection);
        }
    }
    twice
}

/// How deep a row's configuration may nest: what the lock's format and its readers take.
const DEPTH: usize = 32;

fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}
