//! From rows as written to rows as mounted.
//!
//! Each row is evaluated by itself: an expression outside of the grammar, or a
//! package that nothing here stands for, costs that row and no other, and is
//! reported. Two rows of one id are fatal, since nobody could say which is meant.

use crate::entry::Entry;
use crate::home::for_profile;
use crate::yaml::{Kind, Node};
use crate::{
    Composition, Environment, Error, Home, Implementation, Pin, Problem, Row, Settings, Tree,
    is_plugin_name,
};
use crate::{bundle, expression, providers, route, script};
use serde_json::{Map, Value, json};
use std::collections::HashMap;
use std::path::Path;

/// What expressions and rows may see.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// For `process.env.X`.
    pub env: &'a Environment,
    /// For `dshHomePath('…')`.
    pub home: &'a Home,
    /// Sections are laid over the config of the row of the same id.
    pub settings: &'a Settings,
    /// A relative `scriptFile` is below it.
    pub cwd: &'a Path,
}

impl Tree {
    /// Evaluates the tree into what the host mounts.
    ///
    /// # Errors
    /// [`Error::DuplicateRow`]. Everything else that is wrong with a row leaves
    /// it out, see [`Composition::problems`].
    pub fn rows(&self, inputs: &Inputs<'_>) -> Result<Composition, Error> {
        let mut walk = Walk {
            tree: self,
            inputs,
            seen: HashMap::new(),
            unnamed: 0,
            composition: Composition {
                rows: Vec::new(),
                problems: self.problems.clone(),
                unserved: Vec::new(),
            },
        };
        walk.entries(&self.entries, false)?;
        if let Err(why) = providers::deal_out(&mut walk.composition) {
            walk.left_out(providers::SECTION, &why);
        }
        Ok(walk.composition)
    }
}

struct Walk<'a> {
    tree: &'a Tree,
    inputs: &'a Inputs<'a>,
    seen: HashMap<String, usize>,
    unnamed: u32,
    composition: Composition,
}

impl Walk<'_> {
    fn entries(&mut self, entries: &[Entry], disabled_above: bool) -> Result<(), Error> {
        for entry in entries {
            let id = self.id(entry)?;
            let disabled = match self.disabled(entry) {
                Ok(own) => own || disabled_above,
                Err(why) => {
                    self.left_out(&id, &why);
                    continue;
                }
            };
            if entry.is_group() {
                self.entries(entry.rows(), disabled)?;
                continue;
            }
            match self.row(entry, &id, disabled) {
                Ok(row) => self.composition.rows.push(row),
                // A disabled row is not missed.
                Err(_) if disabled => {}
                Err(why) => self.left_out(&id, &why),
            }
        }
        Ok(())
    }

    fn id(&mut self, entry: &Entry) -> Result<String, Error> {
        let id = match entry.str("id") {
            Some(id) => id.to_owned(),
            // Upstream draws one at random; ours stays the same from run to run.
            None => {
                self.unnamed += 1;
                format!("row-{:08x}", self.unnamed)
            }
        };
        match self.seen.insert(id.clone(), entry.origin) {
            None => Ok(id),
            Some(first) => Err(Error::DuplicateRow {
                id,
                first: self.tree.labels[first].clone(),
                second: self.tree.labels[entry.origin].clone(),
            }),
        }
    }

    fn left_out(&mut self, id: &str, why: &str) {
        self.composition.problems.push(Problem {
            row: Some(id.to_owned()),
            message: for_profile(&self.tree.profile, &format!("row {id}: {why}; left out")),
        });
    }

    fn disabled(&self, entry: &Entry) -> Result<bool, String> {
        match entry.node("disabled").map(|node| &node.kind) {
            None | Some(Kind::Null) => Ok(false),
            Some(Kind::Bool(disabled)) => Ok(*disabled),
            // As JavaScript has it: an empty or unset one is false.
            Some(Kind::Js(e)) => Ok(self.js(e)?.is_some_and(|text| !text.is_empty())),
            Some(_) => Err("`disabled` must be true, false or an expression".into()),
        }
    }

    fn row(&self, entry: &Entry, id: &str, disabled: bool) -> Result<Row, String> {
        let (implementation, like) = implementation(entry)?;
        let plugin = self.plugin(entry, &implementation)?;
        let labels = &self.tree.labels;
        // A bundle's own rows need no look, which would read the bundles once more.
        let shipped = entry.patched_by.is_empty() && bundle::is_one(&labels[entry.origin]);
        if let Implementation::Host(part) = &implementation
            && !shipped
            && !bundle::has_host(part)
        {
            return Err(format!(
                "the host has no part {part:?}; docs/rows.md lists those that it has"
            ));
        }
        let mut row = Row {
            id: id.to_owned(),
            implementation,
            config: json!({}),
            grants: json!({}),
            limits: json!({}),
            disabled,
            locked_grants: entry.plugins_grants,
            locked_limits: entry.plugins_limits,
            plugin,
            dormant: false,
            endpoints: Vec::new(),
            origin: labels[entry.origin].clone(),
            patched_by: entry
                .patched_by
                .iter()
                .map(|l| labels[*l].clone())
                .collect(),
        };
        if disabled {
            return Ok(row);
        }
        // A row that names a package gets what our row for it has and it does not say.
        let node = |key: &str| entry.node(key).or_else(|| like?.node(key));
        // What was granted to a plugin is not for what a patch mounts in its place.
        let own = |pin: &Pin| entry.plugin.as_ref() == Some(pin);
        if !entry.plugins_grants || row.plugin.as_ref().is_some_and(own) {
            row.grants = grants(self.json(node("grants"))?)?;
        }
        row.limits = object("limits", self.json(node("limits"))?)?;
        row.config = self.json(node("defaults"))?;
        lay_over(&mut row.config, self.json(entry.node("config"))?);
        // Sections are for rows of the bundles: under their ids a plugin would get
        // an endpoint and a credential that were not meant for it.
        let section = self.inputs.settings.for_row(id);
        if let Some(section) = section.filter(|_| entry.plugin.is_none()) {
            lay_over(&mut row.config, section.clone());
        }
        self.inherit_time_limit(&mut row);
        script::read_in(&mut row, self.inputs.cwd)?;
        // What a plugin says of itself was not written by a person.
        if !entry.plugins_config {
            route::grant_what_was_written(&mut row.grants, &row.config);
            row.endpoints = route::written(&row.config);
        }
        Ok(row)
    }

    /// The installed plugin that a row mounts.
    fn plugin(&self, entry: &Entry, mounts: &Implementation) -> Result<Option<Pin>, String> {
        let Implementation::Component(name) = mounts else {
            return Ok(None);
        };
        if !is_plugin_name(name) {
            return Ok(None);
        }
        let installed = self.tree.installed.iter().find(|p| p.name == *name);
        let installed = installed.ok_or_else(|| {
            format!(
                "the profile has no plugin {name} that can be used; install it with `dsh plugin add SOURCE`"
            )
        })?;
        // Its own rows say themselves whether they are on.
        let own = entry.plugin.is_some();
        if installed.disabled && !own {
            return Err(format!(
                "plugin {name} is disabled; run `dsh plugin enable {name}`"
            ));
        }
        Ok(Some(installed.pin()))
    }

    /// Upstream's `bash` has its time limit from the executor's row, so that is
    /// where people set it.
    fn inherit_time_limit(&self, row: &mut Row) {
        let bash = row.implementation == Implementation::Component("dsh:tool-bash".into());
        let executor = self.composition.host("bash-sandbox").filter(|_| bash);
        let limit = executor.and_then(|executor| executor.config.get("timeoutMs"));
        if let (Value::Object(config), Some(limit)) = (&mut row.config, limit) {
            config.entry("timeoutMs").or_insert_with(|| limit.clone());
        }
    }

    fn json(&self, node: Option<&Node>) -> Result<Value, String> {
        let value = match node {
            Some(node) => node.to_json(&mut |e| self.js(e))?,
            None => None,
        };
        Ok(match value {
            None | Some(Value::Null) => json!({}),
            Some(value) => value,
        })
    }

    fn js(&self, expression: &str) -> Result<Option<String>, String> {
        expression::evaluate(expression, self.inputs.env, self.inputs.home)
            .map_err(|why| format!("the expression `!!js {expression}` cannot be used: {why}"))
    }
}

/// What the row mounts, and the row of ours that it is like where it only names
/// a package. `component` wins over `host`, both over `name`.
fn implementation(entry: &Entry) -> Result<(Implementation, Option<&'static Entry>), String> {
    if let Some(own) = direct(entry) {
        return Ok((own, None));
    }
    let Some(name) = entry.str("name") else {
        return Err("it has no `component`, `host` or `name`, so there is nothing to mount".into());
    };
    bundle::row_of_package(name)
        .and_then(|like| Some((direct(like)?, Some(like))))
        .ok_or_else(|| format!("no native or Wasm implementation of {name}"))
}

fn direct(entry: &Entry) -> Option<Implementation> {
    let component = entry
        .str("component")
        .map(|c| Implementation::Component(c.to_owned()));
    component.or_else(|| {
        entry
            .str("host")
            .map(|h| Implementation::Host(h.to_owned()))
    })
}

/// A list of names is short for an object of them.
fn grants(value: Value) -> Result<Value, String> {
    let Value::Array(names) = value else {
        return object("grants", value);
    };
    let mut granted = Map::new();
    for name in names {
        let name = name.as_str().ok_or("`grants` as a list must hold names")?;
        granted.insert(name.to_owned(), Value::Bool(true));
    }
    Ok(Value::Object(granted))
}

fn object(key: &str, value: Value) -> Result<Value, String> {
    match value {
        Value::Object(_) => Ok(value),
        _ => Err(format!("`{key}` must be a mapping")),
    }
}

/// Objects member by member, anything else replaced.
fn lay_over(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                lay_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
