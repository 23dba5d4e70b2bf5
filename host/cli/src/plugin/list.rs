//! `dsh plugin list`.

use dsh_profile::Installed;
use serde_json::{Value, json};

use super::text::{short, shown};
use super::{Desk, Done, Report, Stop, entry, given, names};
use crate::words::Words;

pub(super) fn run(desk: &Desk, _: &Words) -> Done {
    let profile = desk.profile()?;
    let lock = desk.lock(&profile)?;
    let plugins: Vec<Value> = lock.plugins.iter().map(entry::json).collect();
    let faults: Vec<&str> = lock.faults().collect();
    let json = json!({"lock": profile.lock_path().display().to_string(), "plugins": plugins, "faults": faults});
    let text = if lock.plugins.is_empty() {
        format!(
            "the profile {} has no plugins; dsh plugin add SOURCE installs one\n",
            desk.name
        )
    } else {
        table(&lock.plugins)
    };
    Ok(Report::new(text, json)).map_err(|stop: Stop| stop)
}

fn table(plugins: &[Installed]) -> String {
    let head = ["NAME", "VERSION", "STATE", "DIGEST", "ROWS", "GRANTS"].map(str::to_owned);
    let mut lines = vec![head];
    for plugin in plugins {
        let rows = names::rows(plugin);
        let grants: Vec<String> = plugin
            .granted()
            .iter()
            .map(|(name, what)| given::written(name, what))
            .collect();
        let state = if plugin.disabled {
            "disabled"
        } else {
            "enabled"
        };
        lines.push([
            shown(&plugin.name, 60),
            shown(&plugin.version, 24),
            state.to_owned(),
            short(&plugin.digest).to_owned(),
            shown(&rows.join(","), 60),
            if grants.is_empty() {
                "none".to_owned()
            } else {
                shown(&grants.join(" "), 200)
            },
        ]);
    }
    let width = |column: usize| {
        lines
            .iter()
            .map(|line| line[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let mut text = String::new();
    for line in &lines {
        for (cell, width) in line.iter().zip(widths) {
            text += &format!("{cell:<width$}  ");
        }
        text += &line[5];
        text += "\n";
    }
    text
}
