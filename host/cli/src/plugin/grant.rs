//! `dsh plugin grant` and `dsh plugin revoke`.
//!
//! A grant that the component could make nothing of is refused: it would only be a trap for a later version.

use dsh_plugin::{Description, want};
use dsh_profile::{Installed, Packages};
use serde_json::{Map, Value, json};

use super::rows::Rows;
use super::text::shown;
use super::{Desk, Done, Report, Stop, consent, entry, given, names};
use crate::arguments::usage;
use crate::words::Words;

pub(super) fn grant(desk: &Desk, words: &Words) -> Done {
    let (plugin, written) = split(desk, words)?;
    let given = consent::read_grants(written.iter().map(String::as_str), "dsh plugin grant")?;
    let description = describe(desk, &plugin)?;
    consent::useful(&description, &given, &plugin.name)?;
    set(desk, &plugin.name, |grants| {
        let mut text = String::new();
        for (grant, what) in &given {
            let was = grants.insert(grant.clone(), what.clone());
            for words in want::in_words(grant, what) {
                text += &format!("  - {words}\n");
            }
            if let Some(was) = was.filter(|was| was != what) {
                text += &format!("      in place of {}\n", given::written(grant, &was));
            }
        }
        Ok(format!("granted to {}, which now\n{text}", plugin.name))
    })
    .map(|mut report| {
        for reason in left_out(desk, &plugin.name) {
            report.text += &format!("  {reason}\n");
        }
        report
    })
}

/// What a run would say of its rows now.
fn left_out(desk: &Desk, name: &str) -> Vec<String> {
    let Ok(rows) = Rows::compose(desk) else {
        return Vec::new();
    };
    let mounts = rows.mount(desk).unwrap_or_default();
    let own = mounts
        .into_iter()
        .filter(|(row, _)| row.plugin.as_ref().is_some_and(|pin| pin.name == name));
    own.filter_map(|(row, mount)| {
        let reason = mount.err()?;
        Some(format!(
            "but row {} is left out of a run: {}",
            row.id,
            shown(&reason, 600)
        ))
    })
    .collect()
}

pub(super) fn revoke(desk: &Desk, words: &Words) -> Done {
    let (plugin, written) = split(desk, words)?;
    let needed = describe(desk, &plugin).ok();
    set(desk, &plugin.name, |grants| {
        let mut text = String::new();
        for grant in &written {
            if grant.contains('=') {
                return Err(usage(format_args!(
                    "dsh plugin revoke: a grant is revoked as a whole; to narrow it: dsh plugin grant {} {grant}",
                    plugin.name
                ))
                .into());
            }
            if grants.remove(grant).is_none() {
                let has: Vec<&str> = grants.keys().map(String::as_str).collect();
                let has = if has.is_empty() {
                    "nothing".to_owned()
                } else {
                    has.join(", ")
                };
                return Err(Stop::of(format_args!(
                    "{} has no grant {}; it has {has}",
                    plugin.name,
                    shown(grant, 100)
                )));
            }
            text += &format!("revoked {grant} of {}\n", plugin.name);
        }
        let lacks = needed.as_ref().map(|description| {
            let wants =
                want::wants(description, &dsh_plugin::Offered::default()).unwrap_or_default();
            consent::missing(&wants, grants)
        });
        for grant in lacks
            .into_iter()
            .flatten()
            .filter(|grant| written.contains(grant))
        {
            text += &format!(
                "  without {grant} its rows are left out of a run: dsh plugin disable {} keeps them quiet\n",
                plugin.name
            );
        }
        Ok(text)
    })
}

/// The plugin that is named, and the words behind it.
fn split(desk: &Desk, words: &Words) -> Result<(Installed, Vec<String>), Stop> {
    let lock = desk.lock(&desk.profile()?)?;
    let plugin = names::plugin(&lock, words.one(), &desk.name)?.clone();
    Ok((plugin, words.arguments[1..].to_vec()))
}

fn describe(desk: &Desk, plugin: &Installed) -> Result<Description, Stop> {
    let bytes = Packages::at(&desk.place.home)
        .read(&plugin.digest)
        .map_err(Stop::of)?;
    Description::read(&bytes).map_err(|error| Stop::of(format_args!("{}: {error}", plugin.name)))
}

/// Alters the grants that count now, for the bytes that are installed now.
fn set(
    desk: &Desk,
    name: &str,
    alter: impl FnOnce(&mut Map<String, Value>) -> Result<String, Stop>,
) -> Done {
    let profile = desk.profile()?;
    let mut change = profile.change().map_err(Stop::of)?;
    let Some(plugin) = change.lock().find_mut(name) else {
        return Err(Stop::of(format_args!(
            "{name} was removed by another process meanwhile"
        )));
    };
    let before = plugin.granted();
    let mut grants = before.clone();
    let text = alter(&mut grants)?;
    plugin.grants = grants;
    plugin.granted_to.clone_from(&plugin.digest);
    let json = json!({"plugin": entry::json(plugin), "before": before});
    change.commit().map_err(Stop::of)?;
    Ok(Report::new(text, json))
}
