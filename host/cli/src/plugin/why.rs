//! `dsh plugin why`: where a plugin, a row or a tool comes from, and who let it.

use dsh_plugin::want;
use dsh_profile::{Installed, Row};
use serde_json::{Value, json};

use super::names::{self, Meant};
use super::rows::{Mount, Rows};
use super::text::{list, shown};
use super::{Desk, Done, Report, entry, given, look};
use crate::words::Words;

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    let word = words.one();
    let lock = desk.lock(&desk.profile()?)?;
    let rows = Rows::compose(desk)?;
    let mounted = rows.mount(desk)?;
    let state = |row: &Row| state(row, &mounted);
    // A plugin by its whole name first, then the row of that id, then a tool, then what a word is short for.
    let meant = names::meant(&lock, word);
    let row = rows.composition.rows.iter().find(|row| row.id == word);
    let with_tool = || {
        mounted.iter().find(|(_, mount)| {
            mount
                .as_ref()
                .is_ok_and(|mount| mount.tools().iter().any(|tool| tool.name == word))
        })
    };
    let named = lock.plugins.iter().position(|plugin| plugin.name == word);
    if let (None, Some(row)) = (named, row) {
        let plugin = row.plugin.as_ref().and_then(|pin| lock.find(&pin.name));
        let (text, json) = of_row(row, plugin, &state(row));
        return Ok(Report::new(text, json!({"kind": "row", "row": json})));
    }
    if let (None, Some((row, _))) = (named, with_tool()) {
        let plugin = row.plugin.as_ref().and_then(|pin| lock.find(&pin.name));
        let (text, json) = of_row(row, plugin, &state(row));
        let text = format!("the tool {word} is one of row {}\n{text}", row.id);
        return Ok(Report::new(
            text,
            json!({"kind": "tool", "tool": word, "row": json}),
        ));
    }
    if let Meant::Plugin(index) = meant {
        return Ok(of_plugin(desk, &lock.plugins[index], &rows, &state));
    }
    // A row that a plugin would bring, and which is not there.
    if let Meant::Row(index, _) = meant {
        return Ok(of_plugin(desk, &lock.plugins[index], &rows, &state));
    }
    if let Some(plugin) = lock
        .plugins
        .iter()
        .find(|plugin| plugin.tools.iter().any(|tool| tool == word))
    {
        let mut report = of_plugin(desk, plugin, &rows, &state);
        report.text = format!(
            "the tool {} belongs to {}, and is not there now\n{}",
            shown(word, 64),
            plugin.name,
            report.text
        );
        return Ok(report);
    }
    let problem = rows
        .composition
        .problems
        .iter()
        .find(|problem| problem.row.as_deref() == Some(word));
    if let Some(problem) = problem {
        return Ok(Report::new(
            format!("{}\n", problem.message),
            json!({"kind": "row", "row": {"id": word, "state": "left-out", "reason": problem.message}}),
        ));
    }
    Err(super::Stop::of(format_args!(
        "the profile {} has no plugin, no row and no tool {}; dsh plugin list shows its plugins, dsh --profile {} --dump-config its rows",
        desk.name,
        shown(word, 140),
        given::quoted(&desk.name)
    )))
}

/// What became of a row, and why.
enum State {
    /// With its tools, and what it does that needs no grant.
    Mounted(Vec<String>, Vec<String>),
    Host,
    Disabled,
    LeftOut(String),
}

fn state(row: &Row, mounted: &[Mount<'_>]) -> State {
    if row.disabled {
        return State::Disabled;
    }
    match mounted.iter().find(|(known, _)| known.id == row.id) {
        None => State::Host,
        Some((_, Ok(mount))) => State::Mounted(
            mount.tools().iter().map(|tool| tool.name.clone()).collect(),
            want::also(mount.component().description(), &look::offered(mount)),
        ),
        Some((_, Err(reason))) => State::LeftOut(shown(reason, 1000)),
    }
}

fn of_row(row: &Row, plugin: Option<&Installed>, state: &State) -> (String, Value) {
    let id = shown(&row.id, 64);
    let mut text = format!("row {id} comes from {}", shown(&row.origin, 300));
    if !row.patched_by.is_empty() {
        text += &format!(", changed by {}", shown(&list(&row.patched_by), 600));
    }
    text += "\n";
    let (name, tools, reason) = match state {
        State::Mounted(tools, also) => {
            text += "  it is mounted\n";
            for words in also {
                text += &format!("  it {}\n", shown(words, 300));
            }
            ("mounted", tools.clone(), None)
        }
        State::Host => {
            text += "  it is a part of the host\n";
            ("host", Vec::new(), None)
        }
        State::Disabled => {
            let by = disabled_by(row, plugin);
            text += &format!("  it is disabled by {by}\n");
            ("disabled", Vec::new(), Some(format!("disabled by {by}")))
        }
        State::LeftOut(reason) => {
            text += &format!("  it is left out: {reason}\n");
            ("left-out", Vec::new(), Some(reason.clone()))
        }
    };
    if !tools.is_empty() {
        let tools: Vec<String> = tools.iter().map(|tool| shown(tool, 64)).collect();
        text += &format!("  it brings the tools {}\n", list(&tools));
    }
    // Those of a row that is disabled are not composed; what the lock has is what it would have.
    let grants = match (state, plugin.filter(|_| row.is_plugins_own())) {
        (State::Disabled, Some(plugin)) => plugin.granted(),
        _ => row.grants.as_object().cloned().unwrap_or_default(),
    };
    let granted: Vec<String> = grants
        .iter()
        .map(|(grant, what)| given::written(grant, what))
        .collect();
    let by = granted_by(row);
    if granted.is_empty() {
        text += "  nobody granted it anything\n";
    } else {
        text += &format!(
            "  it may {}, granted by {by}\n",
            shown(&granted.join(" "), 600)
        );
    }
    let json = json!({
        "id": row.id,
        "origin": row.origin,
        "patchedBy": row.patched_by,
        "plugin": row.plugin.as_ref().map(|pin| &pin.name),
        "state": name,
        "reason": reason,
        "tools": tools,
        "grants": grants,
        "grantedBy": if granted.is_empty() { None } else { Some(by) },
    });
    (text, json)
}

/// Whose word a row's grants are.
fn granted_by(row: &Row) -> String {
    if row.locked_grants || (row.disabled && row.is_plugins_own()) {
        "you, when it was added or by dsh plugin grant (dsh.lock)".to_owned()
    } else if row.patched_by.is_empty() {
        shown(&row.origin, 300)
    } else {
        shown(
            &format!(
                "{} or what changed it: {}",
                row.origin,
                list(&row.patched_by)
            ),
            600,
        )
    }
}

fn disabled_by(row: &Row, plugin: Option<&Installed>) -> String {
    match plugin.filter(|_| row.is_plugins_own()) {
        Some(plugin) if plugin.disabled => format!("dsh plugin disable {}", plugin.name),
        Some(plugin)
            if plugin
                .rows
                .iter()
                .any(|own| own.id == row.id && own.disabled) =>
        {
            format!("dsh plugin disable {}", row.id)
        }
        _ if row.patched_by.is_empty() => shown(&row.origin, 300),
        _ => shown(&list(&row.patched_by), 600),
    }
}

fn of_plugin(
    desk: &Desk,
    plugin: &Installed,
    rows: &Rows,
    state: &dyn Fn(&Row) -> State,
) -> Report {
    let mut text = format!(
        "{} {} is installed in the profile {}\n  from {}\n  sha256 {}\n",
        plugin.name,
        shown(&plugin.version, 60),
        desk.name,
        shown(&plugin.source, 300),
        plugin.digest
    );
    if let Some(signed) = &plugin.signature {
        text += &format!("  signed by key {}\n", entry::key_id(&signed.key));
    }
    let mut all = Vec::new();
    for row in &rows.composition.rows {
        if row
            .plugin
            .as_ref()
            .is_some_and(|pin| pin.name == plugin.name)
        {
            let (words, json) = of_row(row, Some(plugin), &state(row));
            text += &words;
            all.push(json);
        }
    }
    for own in &plugin.rows {
        let there = rows.composition.rows.iter().any(|row| {
            row.id == own.id
                && row
                    .plugin
                    .as_ref()
                    .is_some_and(|pin| pin.name == plugin.name)
        });
        if there {
            continue;
        }
        let problem = rows.composition.problems.iter().find(|problem| {
            problem.row.as_deref() == Some(&own.id) || problem.message.contains(&plugin.name)
        });
        let reason = problem.map_or_else(
            || "its row is not there".to_owned(),
            |problem| shown(&problem.message, 1000),
        );
        text += &format!("row {} is left out: {reason}\n", own.id);
        all.push(json!({"id": own.id, "origin": plugin.label(), "patchedBy": [], "plugin": plugin.name, "state": "left-out", "reason": reason, "tools": [], "grants": {}, "grantedBy": null}));
    }
    Report::new(
        text,
        json!({"kind": "plugin", "plugin": entry::json(plugin), "rows": all}),
    )
}
