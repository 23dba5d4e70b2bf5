use serde_json::json;

use super::*;
use crate::component::{Description, Interface};

fn parse(manifest: &Value) -> Result<Manifest, Error> {
    Manifest::parse(manifest.to_string().as_bytes())
}

/// A sound manifest with one member replaced.
fn with(pointer: &str, value: Value) -> Value {
    let mut manifest = json!({
        "plugin": {"name": "acme:weather", "version": "0.3.1"}, "rows": [{"id": "weather", "config": {}}],
        "config": {}, "wants": {}, "events": {}, "limits": {},
    });
    let (above, name) = pointer.rsplit_once('/').unwrap();
    manifest.pointer_mut(above).unwrap()[name] = value;
    manifest
}

fn component(imports: &[&str], exports: &[&str], manifest: &Value) -> Description {
    let interfaces = |names: &[&str]| names.iter().map(|name| Interface::new(*name)).collect();
    Description {
        imports: interfaces(imports),
        exports: interfaces(exports),
        contract: Some("0.1.0".to_owned()),
        manifest: Some(parse(manifest).unwrap()),
        ..Description::default()
    }
}

fn reason(result: Result<impl Sized, Error>) -> String {
    match result {
        Err(Error::Manifest(reason)) => reason,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("it was taken"),
    }
}

#[test]
fn takes_what_a_plugin_toml_says() {
    let text = json!({
        "plugin": {"name": "acme:weather", "version": "0.3.1", "description": "d", "licence": "MIT",
            "authors": ["A"], "stateful": true, "tools": "dynamic"},
        "rows": [{"id": "weather", "config": {"units": "metric"}}, {"id": "more", "disabled": true}],
        "config": {"schema": {"type": "object"}},
        "wants": {"session": true}, "events": {"appends": ["acme/weather-seen"], "sources": ["acme-weather"]},
        "limits": {"memory": "32MiB"},
    });
    let manifest = parse(&text).unwrap();
    assert_eq!(manifest.plugin.namespace(), "acme");
    assert_eq!(manifest.plugin.licence, "MIT");
    assert_eq!(manifest.plugin.authors, ["A"]);
    assert!(manifest.plugin.stateful);
    assert_eq!(manifest.plugin.tools, Listing::Dynamic);
    assert_eq!(manifest.rows[0].config["units"], "metric");
    assert!(manifest.rows[1].disabled && manifest.rows[1].config.is_empty());
    assert_eq!(manifest.events.appends, ["acme/weather-seen"]);
    assert_eq!(manifest.limits["memory"], "32MiB");
    assert!(manifest.unknown.is_empty());
}

#[test]
fn what_is_not_known_is_passed_over_and_listed() {
    let mut manifest = with("/x", json!(1));
    manifest["plugin"]["logo"] = json!("a");
    manifest["rows"][0]["colour\n"] = json!("b");
    manifest["config"]["form"] = json!({});
    manifest["events"]["reads"] = json!([]);
    assert_eq!(
        parse(&manifest).unwrap().unknown,
        [
            "x",
            "plugin.logo",
            "config.form",
            "events.reads",
            "rows[0].colour\\n"
        ]
    );
}

#[test]
fn what_is_not_of_its_shape_is_refused_with_its_place() {
    let no_schema = with("/config/schema", json!("a file"));
    let table = [
        (
            with("/plugin/name", json!("weather")),
            "plugin.name is \"weather\"",
        ),
        (with("/plugin/name", json!("acme:")), "plugin.name"),
        (with("/plugin/name", json!(":weather")), "plugin.name"),
        (with("/plugin/name", json!("Acme:weather")), "plugin.name"),
        (with("/plugin/name", json!("acme:wea ther")), "plugin.name"),
        (with("/plugin/name", json!("acme:-a")), "plugin.name"),
        (with("/plugin/name", json!("a:b:c")), "plugin.name"),
        (
            with("/plugin/version", json!("1")),
            "plugin.version is \"1\"",
        ),
        (with("/plugin/version", json!("v1.0.0")), "plugin.version"),
        (with("/plugin/version", json!("1.0.0.0")), "plugin.version"),
        (with("/plugin/tools", json!("often")), "often"),
        (
            with("/rows/0/id", json!("the weather")),
            "rows[0].id is \"the weather\"",
        ),
        (with("/rows/0/id", json!("../weather")), "rows[0].id"),
        (with("/rows/0/id", json!("")), "rows[0].id"),
        (with("/rows/0/config", json!([])), "invalid type"),
        (
            with("/rows", json!([{"id": "a"}, {"id": "a"}])),
            "two of its rows have the id a",
        ),
        (no_schema, "config.schema"),
        (with("/limits/memory", json!("lots")), "limits.memory"),
        (with("/limits/fuel", json!(1)), "limits.fuel"),
        (
            with("/wants/everything", json!(true)),
            "wants.everything: there is no such grant",
        ),
        (with("/wants/process", json!("sh")), "wants.process"),
        (
            with("/wants/journal", json!(["user/message"])),
            "wants.journal: user/message",
        ),
        (with("/wants", json!([])), "invalid type"),
    ];
    for (manifest, expected) in table {
        let reason = reason(parse(&manifest));
        assert!(reason.contains(expected), "{manifest}: {reason}");
        assert!(!reason.contains('\n'), "{reason}");
    }
    assert!(matches!(Manifest::parse(b"{"), Err(Error::Manifest(_))));
    assert!(matches!(Manifest::parse(b"{}"), Err(Error::Manifest(_))));
    assert!(matches!(
        text(&vec![b' '; MAX + 1]),
        Err(Error::Manifest(_))
    ));
    assert!(matches!(text(b"\xff"), Err(Error::Manifest(_))));
}

#[test]
fn rows_are_bounded() {
    let rows: Vec<Value> = (0..=MAX_ROWS)
        .map(|n| json!({"id": format!("r{n}")}))
        .collect();
    assert!(reason(parse(&with("/rows", json!(rows)))).contains("64 are allowed"));
}

/// Each grant with parameters that are of its shape, and what it is for.
const USES: [(&str, &str, &[&str], &[&str]); 13] = [
    ("clock", "true", &["dsh:plugin/clock@0.1.0"], &[]),
    ("clock", "true", &["wasi:clocks/wall-clock@0.2.6"], &[]),
    ("random", "true", &["dsh:plugin/random@0.1.0"], &[]),
    ("random", "true", &["wasi:random/insecure-seed@0.2.12"], &[]),
    ("session", "true", &["dsh:plugin/session@0.1.0"], &[]),
    (
        "journal",
        "[\"todo/write\"]",
        &["dsh:plugin/journal@0.1.0"],
        &[],
    ),
    (
        "workspace",
        "{\"write\":true}",
        &["dsh:plugin/workspace@0.1.0"],
        &[],
    ),
    ("process", "\"shell\"", &["dsh:plugin/process@0.1.0"], &[]),
    ("spill", "true", &["dsh:plugin/spill@0.1.0"], &[]),
    (
        "route",
        "[{\"provider\":\"a\"}]",
        &[],
        &["dsh:plugin/llm-adapter@0.1.0"],
    ),
    (
        "observe",
        "[\"session/event\"]",
        &[],
        &["dsh:plugin/dispatch@0.1.0"],
    ),
    (
        "decide",
        "[\"tools/execute\"]",
        &[],
        &["dsh:plugin/dispatch@0.1.0"],
    ),
    ("prompt.complete", "true", &[], &["dsh:plugin/prompt@0.1.0"]),
];

#[test]
fn a_want_that_the_component_could_not_use_is_a_lie() {
    for (grant, parameters, imports, exports) in USES {
        let manifest = with(
            &format!("/wants/{grant}"),
            serde_json::from_str(parameters).unwrap(),
        );
        check(&component(imports, exports, &manifest)).unwrap();
        let others = [
            "dsh:plugin/log@0.1.0",
            "wasi:io/streams@0.2.6",
            "acme:x/clock@0.1.0",
        ];
        let reason = reason(check(&component(
            &others,
            &["dsh:plugin/title@0.1.0"],
            &manifest,
        )));
        assert!(
            reason.contains(&format!("it wants `{grant}`")) && reason.contains("has none"),
            "{reason}"
        );
    }
    // Not wanted after all.
    check(&component(&[], &[], &with("/wants/session", json!(false)))).unwrap();
}

#[test]
fn kinds_that_it_says_to_append_are_of_its_own_namespace() {
    let journal = ["dsh:plugin/journal@0.1.0"];
    check(&component(
        &journal,
        &[],
        &with("/events/appends", json!(["acme/seen"])),
    ))
    .unwrap();
    for kind in [
        "user/message",
        "tool/result",
        "other/seen",
        "acme",
        "acme/",
        "acmes/seen",
        "todo/write",
        "",
    ] {
        let manifest = with("/events/appends", json!([kind]));
        let reason = reason(check(&component(&journal, &[], &manifest)));
        assert!(
            reason.contains(&format!("events.appends has {kind:?}")),
            "{reason}"
        );
    }
    let unable = component(&[], &[], &with("/events/appends", json!(["acme/seen"])));
    assert!(reason(check(&unable)).contains("no import dsh:plugin/journal"));
    let mut posing = with("/events/appends", json!(["turn/start"]));
    posing["plugin"]["name"] = json!("turn:weather");
    assert!(reason(check(&component(&journal, &[], &posing))).contains("turn/start"));
}

#[test]
fn sources_that_it_says_to_stamp_are_its_own() {
    for source in ["acme", "acme-weather"] {
        check(&component(
            &[],
            &[],
            &with("/events/sources", json!([source])),
        ))
        .unwrap();
    }
    let others = [
        "user",
        "model",
        "tool",
        "approval",
        "plugin",
        "goal",
        "skill-catalog",
        "agent-instructions",
        "acmes",
        "other-weather",
        "acme weather",
        "acme/weather",
        "Acme",
        "",
    ];
    for source in others {
        let manifest = with("/events/sources", json!([source]));
        let reason = reason(check(&component(&[], &[], &manifest)));
        assert!(
            reason.contains(&format!("events.sources has {source:?}")),
            "{reason}"
        );
    }
    // What upstream's logs name is for the component that does that job.
    for source in ["agent-instructions", "skill-catalog", "skill-invocation"] {
        assert!(lies::own_source(source, "dsh"), "{source}");
    }
    for (namespace, source) in [
        ("dsh", "user"),
        ("dsh", "goal"),
        ("agent", "agent-instructions"),
        ("user", "user"),
        ("skill", "skill-catalog"),
        ("model", "model"),
    ] {
        assert!(!lies::own_source(source, namespace), "{source}");
    }
}

#[test]
fn h60_the_imports_decide_the_contracts_version() {
    check(&component(
        &[],
        &[],
        &with("/plugin/contract", json!("0.1.0")),
    ))
    .unwrap();
    let reason = reason(check(&component(
        &[],
        &[],
        &with("/plugin/contract", json!("0.2.0")),
    )));
    assert!(
        reason.contains("says \"0.2.0\"") && reason.contains("dsh:plugin@0.1.0"),
        "{reason}"
    );
}
