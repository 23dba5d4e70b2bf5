//! `dsh plugin enable` and `dsh plugin disable`: the lock alone says it, and no file of a person's.
//!
//! A row of a bundle or of a person's own is not a plugin's, so it is theirs to switch: the lines to write are told.

use dsh_profile::Lock;
use serde_json::{Value, json};

use super::names::{self, Meant};
use super::rows::Rows;
use super::text::shown;
use super::{Desk, Done, Report, Stop};
use crate::words::Words;

pub(super) fn enable(desk: &Desk, words: &Words) -> Done {
    run(desk, words, false)
}

pub(super) fn disable(desk: &Desk, words: &Words) -> Done {
    run(desk, words, true)
}

fn run(desk: &Desk, words: &Words, off: bool) -> Done {
    let profile = desk.profile()?;
    let mut change = profile.change().map_err(Stop::of)?;
    let before = change.before().clone();
    let mut text = String::new();
    let mut changed: Vec<Value> = Vec::new();
    let done = if off { "disabled" } else { "enabled" };
    for word in &words.arguments {
        let (plugin, row) = match names::meant(&before, word) {
            Meant::Plugin(index) => (index, None),
            Meant::Row(index, row) => (index, Some(row)),
            Meant::Nothing => return Err(no_plugin(desk, &before, word, off)),
        };
        let name = before.plugins[plugin].name.clone();
        let Some(entry) = change.lock().find_mut(&name) else {
            continue;
        };
        let (what, state) = match row {
            None => (name.clone(), &mut entry.disabled),
            Some(row) => (
                format!("row {} of {name}", entry.rows[row].id),
                &mut entry.rows[row].disabled,
            ),
        };
        let was = std::mem::replace(state, off);
        text += &if was == off {
            format!("{what} is {done} already\n")
        } else {
            format!("{done} {what}\n")
        };
        if row.is_some() && !off && entry.disabled {
            text += &format!("  {name} as a whole is disabled still: dsh plugin enable {name}\n");
        }
        let row = row.map(|row| before.plugins[plugin].rows[row].id.clone());
        changed.push(json!({"name": name, "row": row, "disabled": off, "changed": was != off}));
    }
    change.commit().map_err(Stop::of)?;
    if !off {
        text += &still_off(desk, &changed);
    }
    Ok(Report::new(text, json!({"changes": changed})))
}

/// Rows that a person's own layer keeps disabled.
fn still_off(desk: &Desk, changed: &[Value]) -> String {
    let Ok(rows) = Rows::compose(desk) else {
        return String::new();
    };
    let mut text = String::new();
    let off = |row: &&dsh_profile::Row| row.disabled && !row.patched_by.is_empty();
    for row in rows.composition.rows.iter().filter(off) {
        let plugin = row.plugin.as_ref().map(|pin| pin.name.as_str());
        let meant = |change: &Value| {
            change["name"].as_str() == plugin
                && change["row"].as_str().is_none_or(|id| id == row.id)
        };
        if changed.iter().any(meant) {
            let by = shown(&row.patched_by.join(", "), 300);
            text += &format!("  row {} is disabled still, by {by}\n", row.id);
        }
    }
    text
}

/// A row that is no plugin's is switched by a patch.
fn no_plugin(desk: &Desk, lock: &Lock, word: &str, off: bool) -> Stop {
    let row = Rows::compose(desk).ok().and_then(|rows| {
        let found = rows
            .composition
            .rows
            .into_iter()
            .find(|row| row.id == word)?;
        Some(found.origin)
    });
    let Some(origin) = row else {
        return names::none(lock, word, &desk.name);
    };
    let file = desk
        .place
        .home
        .path()
        .join("profiles")
        .join(&desk.name)
        .join("cordis.patch.yml");
    Stop::of(format_args!(
        "{} is a row of {}, not of a plugin; write these lines into {}: `- id: {}` and below it `  disabled: {off}`",
        shown(word, 100),
        shown(&origin, 300),
        file.display(),
        shown(word, 100)
    ))
}
