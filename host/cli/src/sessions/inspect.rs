//! `dsh sessions inspect`: everything that reading one log gives. Nothing is written, not even a lock.

use std::path::Path;

use dsh_store::report::{self, Compactions, Mark, error_json, inspect_json};
use dsh_store::{Inspection, Report, StoreError, Target};

use super::{Sessions, UNREADABLE, Words, events, meant, print, title_of, unread};
use crate::exit::Failure;

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    let json = words.has("--json");
    let report = target(sessions, words.one()).and_then(|target| sessions.store.report(&target));
    let report = match report {
        Ok(report) => report,
        Err(error) if json => {
            return print(&format!("{}\n", error_json(&error)), UNREADABLE);
        }
        Err(error) => {
            crate::report::line(format_args!("{}: {error}", error.code()));
            return Ok(UNREADABLE);
        }
    };
    if json {
        let json = inspect_json(&report).map_err(unread)?;
        return print(&format!("{json}\n"), 0);
    }
    print(&summary(&report)?, 0)
}

/// A file when it looks like one or is one, else a session.
fn target(sessions: &Sessions, text: &str) -> Result<Target, StoreError> {
    let path = Path::new(text);
    if text.contains('/') || path.is_file() {
        return Ok(Target::File(path.to_owned()));
    }
    let id = meant(sessions, text)?;
    Ok(Target::Id(id.to_string()))
}

fn summary(report: &Report) -> Result<String, Failure> {
    let log = &report.inspection;
    let title = title_of(log).map_err(unread)?;
    let json = inspect_json(report).map_err(unread)?;
    let count = |keys: &[&str]| {
        let list = json.value().path(keys);
        list.map_or(0, |list| list.items().count())
    };
    let created = i64::try_from(log.header.created_at).unwrap_or(i64::MAX);
    let mut lines = vec![
        ("log", log.path.display().to_string()),
        ("session", log.header.id.to_string()),
        ("title", title.unwrap_or_else(|| "none".to_owned())),
        ("created", report::date(created)),
    ];
    let optional = [
        ("directory", &log.header.cwd),
        ("forked from", &log.header.parent_session),
        ("agent preset", &log.header.agent_preset),
    ];
    for (name, value) in optional {
        lines.extend(value.as_ref().map(|value| (name, value.to_string())));
    }
    lines.push(("size", report::size(log.bytes)));
    let events = log.log.len();
    lines.push(("events", events.to_string()));
    lines.push((
        "surface",
        format!(
            "{} nodes, {} messages",
            count(&["surface", "nodes"]),
            count(&["messages"])
        ),
    ));
    lines.extend(
        compactions(log)?
            .into_iter()
            .map(|line| ("compaction", line)),
    );
    let model = json.value().path(&["requestHeader", "config"]);
    if let Some(model) = model {
        let part = |key| {
            model
                .get(key)
                .and_then(dsh_session::Value::text)
                .unwrap_or_default()
        };
        lines.push(("model", format!("{}/{}", part("provider"), part("model"))));
    }
    if log.migrated > 0 {
        lines.push((
            "upgraded",
            format!("{} events of an older shape", log.migrated),
        ));
    }
    lines.push((
        "tail",
        match (log.torn, log.closers.len()) {
            (None, 0) => "whole".to_owned(),
            (None, n) => format!("a turn is open; {n} events would close it"),
            (Some(torn), n) => format!(
                "torn at byte {}, {} events behind it are whole; {n} events would close the turn",
                torn.truncate_to, torn.recovered
            ),
        },
    ));
    lines.push((
        "damage",
        log.damage
            .as_ref()
            .map_or_else(|| "none".to_owned(), ToString::to_string),
    ));
    lines.push(("sha256", report.unpacked_sha256.clone()));
    let mut text = String::new();
    for (name, value) in lines {
        text += &format!("{name:<13} {}\n", report::line(&value, 4000));
    }
    Ok(text)
}

/// Where a summary took the place of messages, and what it says: a line each.
fn compactions(log: &Inspection) -> Result<Vec<String>, Failure> {
    let mut lines = Vec::new();
    let mut found = Compactions::default();
    for event in events(log) {
        let event = event.map_err(unread)?;
        let tell = |mark| {
            if let Mark::Summary {
                seq,
                time,
                nodes,
                text,
            } = mark
            {
                let nodes = nodes.map_or_else(String::new, |nodes| format!("{nodes} messages → "));
                lines.push(format!(
                    "event {seq}, {}: {nodes}{text}",
                    report::date(time)
                ));
            }
            Ok(())
        };
        // It fails where `tell` does, which does not.
        let _ = found.event(&event, tell);
    }
    Ok(lines)
}
