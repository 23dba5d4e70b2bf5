//! `docs/rows.md` is the account of upstream's rows: it covers each of them, and
//! what it says is what the bundles mount.

use dsh_profile::{
    Composition, Environment, Home, Implementation, Inputs, Profile, Scope, Settings,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Id, package name and origin of upstream's rows, in order.
fn upstream() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(root().join("tests/conformance/rows.json")).unwrap();
    let rows: Value = serde_json::from_str(&text).unwrap();
    let member = |row: &Value, key: &str| row[key].as_str().unwrap().to_owned();
    let rows = rows["rows"].as_array().unwrap().iter();
    rows.map(|row| {
        (
            member(row, "id"),
            member(row, "name"),
            member(row, "origin"),
        )
    })
    .collect()
}

/// Id, `here` and reason of the table's lines.
fn documented() -> Vec<(String, String, String)> {
    let text = std::fs::read_to_string(root().join("docs/rows.md")).unwrap();
    let lines = text.lines().skip_while(|l| !l.starts_with("| ---")).skip(1);
    lines
        .take_while(|l| l.starts_with('|'))
        .map(|line| {
            let cells: Vec<_> = line
                .trim_matches('|')
                .split('|')
                .map(|c| c.trim().to_owned())
                .collect();
            let [id, here, why] = <[String; 3]>::try_from(cells).unwrap();
            (id, here, why)
        })
        .collect()
}

fn shipped() -> (Composition, String) {
    let dir = tempfile::tempdir().unwrap();
    let home = Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap();
    let tree = Profile::open(&home, "headless")
        .unwrap()
        .compose(Scope::Bundles)
        .unwrap();
    let inputs = Inputs {
        env: &Environment::default(),
        home: &home,
        settings: &Settings::default(),
        cwd: dir.path(),
    };
    (tree.rows(&inputs).unwrap(), tree.dump())
}

#[test]
fn the_table_covers_upstreams_rows_exactly_and_gives_a_reason_for_each() {
    let ids: Vec<_> = upstream().into_iter().map(|(id, ..)| id).collect();
    let documented = documented();
    let covered: Vec<_> = documented.iter().map(|(id, ..)| id.clone()).collect();
    assert_eq!(covered, ids);
    for (id, _, why) in &documented {
        assert!(why.ends_with('.') && why.len() > 4, "{id}: {why:?}");
    }
}

#[test]
fn the_table_says_what_the_bundles_mount() {
    let (composition, _) = shipped();
    let mounted: BTreeMap<_, _> = composition
        .rows
        .iter()
        .map(|row| {
            let here = match &row.implementation {
                Implementation::Component(name) => {
                    format!("component: {}", name.strip_prefix("dsh:").unwrap())
                }
                Implementation::Host(name) => format!("host: {name}"),
            };
            (row.id.clone(), here)
        })
        .collect();
    let table: BTreeMap<_, _> = documented()
        .into_iter()
        .map(|(id, here, _)| (id, here))
        .collect();
    for (id, here) in &table {
        let expected = mounted.get(id).map_or("absent", String::as_str);
        assert_eq!(here, expected, "{id}");
    }
    let ours: Vec<_> = mounted
        .keys()
        .filter(|id| !table.contains_key(*id))
        .collect();
    assert_eq!(ours, OURS);
}

/// Rows that upstream's profile does not have, in the order of their names.
const OURS: [&str; 7] = [
    "context-pressure",
    "llm-anthropic",
    "llm-openai-completions",
    "llm-openai-responses",
    "llm-scripted",
    "session-stats",
    "time-context",
];

/// So that a patch guarded by `name`, as copied from upstream's dump, still applies.
#[test]
fn mounted_rows_have_upstreams_package_name_and_come_from_its_bundle() {
    let (composition, dump) = shipped();
    let upstream: BTreeMap<_, _> = upstream()
        .into_iter()
        .map(|(id, name, origin)| (id, (name, origin)))
        .collect();
    for row in composition
        .rows
        .iter()
        .filter(|row| !OURS.contains(&&*row.id))
    {
        let (name, origin) = &upstream[&row.id];
        assert!(
            dump.contains(&format!("- id: {}\n  name: '{name}'\n", row.id)),
            "{}",
            row.id
        );
        assert_eq!(
            format!("@deepseek-ai/dsh-{}", row.origin),
            *origin,
            "{}",
            row.id
        );
    }
}

#[test]
fn no_official_component_is_granted_more_than_it_needs() {
    let (composition, _) = shipped();
    let granted: BTreeMap<_, _> = composition
        .components()
        .map(|row| {
            let names: Vec<_> = row.grants.as_object().unwrap().keys().cloned().collect();
            (row.id.as_str(), names.join(" "))
        })
        .collect();
    let wanted = BTreeMap::from([
        ("agent-instructions", "workspace session observe decide"),
        ("compaction-basic", "session llm"),
        ("context-pressure", ""),
        ("fs-observation-policy", "observe decide"),
        ("llm-deepseek", "pictures route"),
        ("llm-retry", "decide random"),
        ("llm-scripted", "route"),
        ("repeat-tool-reminder", "observe decide"),
        ("session-stats", ""),
        ("session-title-llm", "llm"),
        ("skill-filesystem", "workspace session observe decide"),
        ("spill-policy", "decide spill"),
        ("system-prompt", ""),
        ("timeout-policy", "decide"),
        ("token-meter", ""),
        ("tool-bash", "process session"),
        ("tool-fs", "workspace attachments"),
        ("tool-fs-search", "workspace spill"),
        ("tool-result-pruner", "session"),
        ("tool-todo", "journal"),
    ]);
    assert_eq!(
        granted,
        wanted.into_iter().map(|(k, v)| (k, v.to_owned())).collect()
    );
}

/// What an adapter ships of a provider is of no use without the grant, and a grant
/// without it would be one that nobody needs.
#[test]
fn each_provider_that_is_shipped_is_granted_its_own_address_and_key_and_no_other_is() {
    let (composition, _) = shipped();
    for (api, id) in [
        ("openai-completions", "llm-openai-completions"),
        ("openai-responses", "llm-openai-responses"),
        ("anthropic-messages", "llm-anthropic"),
    ] {
        let file = root().join(format!("plugins/adapter/catalogue/{api}.json"));
        let catalogue: Value =
            serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
        let member = |of: &Value, key: &str| of[key].as_str().unwrap_or_default().to_owned();
        let ships: BTreeMap<_, _> = catalogue
            .as_object()
            .unwrap()
            .iter()
            .map(|(provider, route)| {
                assert!(
                    !route["models"].as_array().unwrap().is_empty(),
                    "{provider}"
                );
                let url = member(route, "baseURL");
                let end = url
                    .match_indices('/')
                    .nth(2)
                    .map_or(url.len(), |(at, _)| at);
                (
                    provider.clone(),
                    (url[..end].to_owned(), member(route, "credential")),
                )
            })
            .collect();
        let row = composition.rows.iter().find(|row| row.id == id).unwrap();
        let granted: BTreeMap<_, _> = row.grants["route"]
            .as_array()
            .unwrap()
            .iter()
            .map(|grant| {
                let [origin] = grant["origins"].as_array().unwrap().as_slice() else {
                    panic!("{grant}: one origin");
                };
                let origin = origin.as_str().unwrap().to_owned();
                (
                    member(grant, "provider"),
                    (origin, member(grant, "credential")),
                )
            })
            .collect();
        assert_eq!(granted, ships, "{id}");
    }
}
