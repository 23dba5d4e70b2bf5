//! `dsh plugin outdated`: asks the sources, changes nothing, mounts nothing.

use dsh_plugin::{Description, componentise};
use dsh_profile::Installed;
use serde_json::{Value, json};

use super::source::Source;
use super::text::{short, shown};
use super::{Desk, Done, Report, fetch, names, patience, update};
use crate::report;
use crate::words::Words;

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    let limit = patience(words)?;
    let lock = desk.lock(&desk.profile()?)?;
    let plugins = names::plugins(&lock, &words.arguments, &desk.name)?;
    let mut text = String::new();
    let mut all: Vec<Value> = Vec::new();
    let mut code = 0;
    for plugin in &plugins {
        match ask(desk, plugin, limit) {
            Ok((version, digest)) if update::differs(plugin, &digest) => {
                let to = version.as_ref().map_or_else(
                    || "of an unknown version".to_owned(),
                    |version| shown(version, 60),
                );
                text += &format!(
                    "{} {} ({}): its source has {to} ({}); {}\n",
                    plugin.name,
                    shown(&plugin.version, 60),
                    short(plugin.fetched.as_ref().unwrap_or(&plugin.digest)),
                    short(&digest),
                    update::command(&desk.name, &plugin.name)
                );
                all.push(json!({"name": plugin.name, "version": plugin.version, "outdated": true, "available": {"version": version, "digest": digest}}));
            }
            Ok((version, digest)) => {
                text += &format!(
                    "{} {} is what its source has\n",
                    plugin.name,
                    shown(&plugin.version, 60)
                );
                all.push(json!({"name": plugin.name, "version": plugin.version, "outdated": false, "available": {"version": version, "digest": digest}}));
            }
            Err(error) => {
                code = 1;
                report::line(format_args!("{}: {error}", plugin.name));
                all.push(json!({"name": plugin.name, "version": plugin.version, "outdated": null, "error": {"message": error}}));
            }
        }
    }
    if plugins.is_empty() {
        text = format!("the profile {} has no plugins\n", desk.name);
    }
    let mut report = Report::new(text, json!({"plugins": all}));
    report.code = code;
    Ok(report)
}

/// The version that the source has, where its bytes say one, and their digest.
fn ask(
    desk: &Desk,
    plugin: &Installed,
    limit: std::time::Duration,
) -> Result<(Option<String>, String), String> {
    let source = Source::read(&plugin.source, &desk.place.cwd)?;
    let bytes = fetch::component(desk, &source, limit)?.bytes;
    let digest = dsh_profile::digest(&bytes);
    let made = componentise(bytes).map_err(|error| error.to_string())?;
    let description = Description::read(&made.component).map_err(|error| error.to_string())?;
    let version = description.manifest.map(|manifest| manifest.plugin.version);
    Ok((version, digest))
}
