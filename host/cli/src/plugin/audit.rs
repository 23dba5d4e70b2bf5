//! `dsh plugin audit`: what each component row of the profile may do, and what stands out.
//!
//! A finding is no fault: a shell tool runs any program because that is what it is for. So the exit code is 0, and what
//! is looked at is each row as a run would mount it, whoever brought it.

use dsh_plugin::Mounted;
use dsh_plugin::want::{self, Want};
use dsh_profile::{Installed, Row};
use serde_json::{Map, Value, json};

use super::rows::Rows;
use super::text::{list, shown};
use super::{Desk, Done, Report, given, look};
use crate::words::Words;

pub(super) fn run(desk: &Desk, _: &Words) -> Done {
    let lock = desk.lock(&desk.profile()?)?;
    let rows = Rows::compose(desk)?;
    let mut text = String::new();
    let mut all: Vec<Value> = Vec::new();
    for (row, mounted) in rows.mount(desk)? {
        let plugin = row.plugin.as_ref().and_then(|pin| lock.find(&pin.name));
        let grants = row.grants.as_object().cloned().unwrap_or_default();
        let mut findings = match &mounted {
            Ok(mounted) => about_grants(&grants, mounted),
            Err(reason) => vec![(
                "left-out",
                format!("it is left out: {}", shown(reason, 600)),
            )],
        };
        findings.extend(powers(&grants));
        findings.extend(provenance(row, plugin));
        let who = row
            .plugin
            .as_ref()
            .map_or_else(|| row.origin.clone(), ToString::to_string);
        text += &format!("{} ({})\n", shown(&row.id, 64), shown(&who, 200));
        let mut may: Vec<String> = grants
            .iter()
            .flat_map(|(grant, what)| want::in_words(grant, what))
            .collect();
        if let Ok(mounted) = &mounted {
            // What needs no grant is power too.
            let description = mounted.component().description();
            may.extend(want::also(description, &look::offered(mounted)));
        }
        text += &format!(
            "  it {}\n",
            if may.is_empty() {
                "computes, and nothing else".to_owned()
            } else {
                list(&may)
            }
        );
        for (_, finding) in &findings {
            text += &format!("  ! {finding}\n");
        }
        let findings: Vec<Value> = findings
            .iter()
            .map(|(kind, text)| json!({"kind": kind, "text": text}))
            .collect();
        all.push(json!({
            "id": row.id,
            "origin": row.origin,
            "plugin": row.plugin.as_ref().map(|pin| &pin.name),
            "mounted": mounted.is_ok(),
            "grants": row.grants,
            "may": may,
            "findings": findings,
        }));
    }
    let count: usize = all
        .iter()
        .map(|row| row["findings"].as_array().map_or(0, Vec::len))
        .sum();
    text += &match count {
        0 => format!("{} rows, nothing stands out\n", all.len()),
        1 => format!("{} rows, 1 thing to know\n", all.len()),
        count => format!("{} rows, {count} things to know\n", all.len()),
    };
    Ok(Report::new(text, json!({"rows": all, "findings": count})))
}

type Finding = (&'static str, String);

/// Grants that are not used, or wider than what is wanted.
fn about_grants(grants: &Map<String, Value>, mounted: &Mounted) -> Vec<Finding> {
    let description = mounted.component().description();
    let mut found = Vec::new();
    for grant in grants.keys() {
        if let Some(lacking) = want::lacks(description, grant) {
            found.push((
                "unused",
                format!(
                    "it can make nothing of the grant {}: it lacks {}",
                    shown(grant, 60),
                    shown(&lacking, 200)
                ),
            ));
        }
    }
    // What it does not say that it wants, nobody can compare.
    if description
        .manifest
        .as_ref()
        .is_some_and(|manifest| !manifest.wants.is_empty())
    {
        let wants = want::wants(description, &look::offered(mounted)).unwrap_or_default();
        found.extend(wider(grants, &wants));
    }
    found
}

/// What is granted and not wanted.
fn wider(grants: &Map<String, Value>, wants: &[Want]) -> Vec<Finding> {
    let less = want::difference(grants, wants).less;
    less.into_iter()
        .map(|words| ("wider", format!("granted, and not wanted: it {words}")))
        .collect()
}

/// What a person should know that they gave.
fn powers(grants: &Map<String, Value>) -> Vec<Finding> {
    let mut found = Vec::new();
    for (grant, what) in grants {
        if matches!(what, Value::Null | Value::Bool(false)) {
            continue;
        }
        let kind = match grant.as_str() {
            "process" if *what == "shell" || what.get("shell") == Some(&Value::Bool(true)) => {
                "any-program"
            }
            "http" => "requests",
            "route" if sends(what) => "conversations",
            "approval" => "approvals",
            "decide" => "decides",
            "prompt.complete" => "whole-prompt",
            "secret" => "credentials",
            "dir" => "folders",
            "env" => "environment",
            _ => continue,
        };
        found.extend(
            want::in_words(grant, what)
                .into_iter()
                .map(|words| (kind, format!("it {words}"))),
        );
    }
    found
}

/// Whether a route leads anywhere: an adapter without a wire has no origins.
fn sends(routes: &Value) -> bool {
    let routes = match routes {
        Value::Array(routes) => routes.clone(),
        one => vec![one.clone()],
    };
    routes.iter().any(|route| {
        route
            .get("origins")
            .and_then(Value::as_array)
            .is_some_and(|origins| !origins.is_empty())
    })
}

/// Whether anybody stands in for the bytes.
fn provenance(row: &Row, plugin: Option<&Installed>) -> Vec<Finding> {
    let mut found = Vec::new();
    let dsh_profile::Implementation::Component(source) = &row.implementation else {
        return found;
    };
    match plugin {
        Some(plugin) if plugin.signature.is_none() => {
            found.push((
                "unsigned",
                "nobody signed it; its digest is pinned".to_owned(),
            ));
        }
        None if !source.starts_with("dsh:") => found.push((
            "unpinned",
            format!(
                "its bytes are whatever {} holds at a start; dsh plugin add {} pins them",
                shown(source, 300),
                given::quoted(source)
            ),
        )),
        _ => {}
    }
    if plugin.is_some() && row.is_plugins_own() && !row.locked_grants {
        found.push((
            "patched",
            format!(
                "a patch gives it other grants than dsh.lock has for it ({})",
                shown(&row.patched_by.join(", "), 300)
            ),
        ));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn what_a_person_should_know_that_they_gave_is_found() {
        for (grants, kinds) in [
            (json!({}), &[][..]),
            (json!({"clock": true, "process": ["git"]}), &[]),
            (json!({"process": "shell"}), &["any-program"]),
            (json!({"http": ["https://a.example"]}), &["requests"]),
            (
                json!({"route": [{"provider": "x", "origins": ["https://a"]}]}),
                &["conversations"],
            ),
            (json!({"route": [{"provider": "scripted"}]}), &[]),
            (
                json!({"approval": true, "decide": ["tools/pre-execute"]}),
                &["approvals", "decides"],
            ),
        ] {
            let mut found: Vec<&str> = powers(&map(grants.clone()))
                .iter()
                .map(|(kind, _)| *kind)
                .collect();
            found.dedup();
            assert_eq!(found, kinds, "{grants}");
        }
    }

    #[test]
    fn what_is_granted_and_not_wanted_is_wider() {
        let want = Want {
            grant: "http".to_owned(),
            parameters: json!(["https://a.example"]),
            because: want::Because::Manifest,
            words: Vec::new(),
        };
        let grants = map(json!({"http": ["https://a.example", "https://b.example"]}));
        let found = wider(&grants, &[want]);
        assert_eq!(found.len(), 1);
        assert!(found[0].1.contains("b.example") && !found[0].1.contains("a.example"));
    }
}
