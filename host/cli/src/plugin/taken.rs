//! Names that are taken: row ids and tools' names, with who has them.
//!
//! A name belongs to one plugin. It is refused when a plugin is added, where a person can choose, rather than found out
//! at a start. What installed plugins have is in the lock, also of those that are disabled; what the rest of the profile
//! has is asked of its rows, which the cache answers.

use std::collections::BTreeMap;

use dsh_profile::{Installed, Lock};

use super::rows::{self, Rows};
use super::text::shown;
use super::{Desk, Stop};

/// Name -> who has it, as in `acme:weather` or `row tool-bash (bundle base)`.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) rows: BTreeMap<String, String>,
    pub(super) tools: BTreeMap<String, String>,
    /// Providers, with the plugin where one's row has it.
    pub(super) providers: BTreeMap<String, (String, Option<String>)>,
}

impl Taken {
    /// What the profile's rows have that no installed plugin brought.
    pub(super) fn by_others(desk: &Desk) -> Result<Self, Stop> {
        let mut taken = Self::default();
        let all = Rows::compose(desk)?;
        for (row, mounted) in all.mount(desk)? {
            let plugin = row.plugin.as_ref().map(|pin| pin.name.clone());
            let routes = mounted.iter().flat_map(dsh_plugin::Mounted::routes);
            for provider in routes.filter_map(|route| rows::provider(route)) {
                let holder = (format!("row {} of {}", row.id, row.origin), plugin.clone());
                taken.providers.entry(provider).or_insert(holder);
            }
            if plugin.is_some() {
                continue;
            }
            let tools = mounted.iter().flat_map(dsh_plugin::Mounted::tools);
            for tool in tools {
                let holder = format!("row {} of {}", row.id, row.origin);
                taken.tools.entry(tool.name.clone()).or_insert(holder);
            }
        }
        for row in all.composition.rows {
            if row.plugin.is_none() {
                taken
                    .rows
                    .insert(row.id, format!("the layer {}", row.origin));
            }
        }
        Ok(taken)
    }

    /// What is wrong with a plugin's serving these providers.
    pub(super) fn serves(&self, name: &str, providers: &[String]) -> Option<String> {
        providers.iter().find_map(|provider| {
            let (holder, plugin) = self.providers.get(provider)?;
            (plugin.as_deref() != Some(name)).then(|| {
                format!(
                    "{name} serves the provider {}, and {} does already; a provider belongs to one row, so remove or disable that first",
                    shown(provider, 64),
                    shown(holder, 300)
                )
            })
        })
    }

    /// What is wrong with adding this plugin beside what is there. `ids` are its rows' ids as its manifest has them.
    pub(super) fn clash(&self, lock: &Lock, plugin: &Installed, ids: &[String]) -> Option<String> {
        let others = || {
            lock.plugins
                .iter()
                .filter(|other| other.name != plugin.name)
        };
        for (index, row) in plugin.rows.iter().enumerate() {
            let other = others().find(|other| other.rows.iter().any(|own| own.id == row.id));
            let holder = other
                .map(|other| format!("the plugin {}", other.name))
                .or_else(|| self.rows.get(&row.id).cloned());
            if let Some(holder) = holder {
                let id = shown(&row.id, 64);
                let own = ids.get(index).map_or(&row.id, |id| id);
                let own = shown(own, 64);
                return Some(format!(
                    "{} brings a row {id}, and {} has one of that id; add it with --as {own}=OTHER-ID",
                    plugin.name,
                    shown(&holder, 300)
                ));
            }
        }
        for tool in &plugin.tools {
            let other = others().find(|other| other.tools.contains(tool));
            let (holder, free) = match (other, self.tools.get(tool)) {
                (Some(other), _) => (
                    format!("the plugin {}", other.name),
                    format!("dsh plugin remove {}", other.name),
                ),
                (None, Some(row)) => (
                    row.clone(),
                    "`disabled: true` for that row in cordis.patch.yml".to_owned(),
                ),
                (None, None) => continue,
            };
            return Some(format!(
                "{} brings a tool {}, and {} has one of that name; a name belongs to one, and is free after {free}",
                plugin.name,
                shown(tool, 64),
                shown(&holder, 300)
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dsh_profile::LockedRow;

    fn plugin(name: &str, row: &str, tool: &str) -> Installed {
        Installed {
            name: name.to_owned(),
            rows: vec![LockedRow {
                id: row.to_owned(),
                ..LockedRow::default()
            }],
            tools: vec![tool.to_owned()],
            ..Installed::default()
        }
    }

    #[test]
    fn a_name_that_is_taken_is_refused_with_who_has_it() {
        let mut taken = Taken::default();
        taken
            .rows
            .insert("tool-bash".to_owned(), "the layer base".to_owned());
        taken
            .tools
            .insert("bash".to_owned(), "row tool-bash of base".to_owned());
        let mut lock = Lock::default();
        lock.put(plugin("acme:weather", "weather", "get_weather"));
        for (row, tool, part) in [
            ("tool-bash", "x", Some("the layer base")),
            ("weather", "x", Some("the plugin acme:weather")),
            ("x", "bash", Some("row tool-bash of base")),
            ("x", "get_weather", Some("the plugin acme:weather")),
            ("x", "y", None),
        ] {
            let clash = taken.clash(&lock, &plugin("evil:twin", row, tool), &[]);
            assert_eq!(clash.is_some(), part.is_some(), "{clash:?}");
            assert!(clash.unwrap_or_default().contains(part.unwrap_or_default()));
        }
        // What is put in its own place takes nothing of anybody.
        assert_eq!(
            taken.clash(
                &lock,
                &plugin("acme:weather", "weather", "get_weather"),
                &[]
            ),
            None
        );
    }
}
