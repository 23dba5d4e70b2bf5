use serde_json::json;

use super::*;

#[allow(
    clippy::needless_pass_by_value,
    reason = "reads better where it is called"
)]
fn parse(value: Value) -> Grants {
    Grants::parse(&value).unwrap_or_else(|error| panic!("{value}: {error}"))
}

#[test]
fn an_import_needs_the_grant_of_its_capability() {
    let table = [
        ("dsh:plugin/log@0.1.0", Need::Always),
        ("dsh:plugin/config@0.1.7", Need::Always),
        ("dsh:plugin/work@0.1.0", Need::Always),
        ("dsh:plugin/types@0.1.0", Need::Always),
        ("dsh:plugin/clock@0.1.0", Need::Grant("clock")),
        ("dsh:plugin/random@0.1.0", Need::Grant("random")),
        ("dsh:plugin/session@0.1.0", Need::Grant("session")),
        ("dsh:plugin/journal@0.1.0", Need::Grant("journal")),
        ("dsh:plugin/workspace@0.1.0", Need::Grant("workspace")),
        ("dsh:plugin/spill@0.1.0", Need::Grant("spill")),
        ("dsh:plugin/process@0.1.0", Need::Grant("process")),
        ("dsh:plugin/kv@0.1.0", Need::NotYet("a durable map")),
        ("dsh:plugin/people@0.1.0", Need::Unknown),
        ("wasi:cli/environment@0.2.6", Need::NotYet("WASI")),
        ("acme:other/log@0.1.0", Need::Unknown),
        ("dsh:plugin/log", Need::Unknown),
        ("log", Need::Unknown),
    ];
    for (import, expected) in table {
        assert_eq!(need(&Interface::new(import)), expected, "{import}");
    }
}

#[test]
fn grants_are_an_object_or_a_list_and_false_grants_nothing() {
    let grants = parse(json!({"clock": true, "random": false, "session": {}, "spill": null}));
    assert!(grants.has("clock") && grants.has("session"));
    assert!(!grants.has("random") && !grants.has("spill"));
    assert!(parse(json!(["clock", "spill"])).has("spill"));
    assert_eq!(parse(json!(null)), Grants::none());
}

#[test]
fn what_is_no_grant_or_not_of_its_shape_is_refused() {
    for value in [
        json!({"everything": true}),
        json!({"clock": {"fast": true}}),
        json!({"workspace": "write"}),
        json!({"workspace": {"read": ["/etc"]}}),
        json!({"workspace": {"write": "yes"}}),
        json!({"process": true}),
        json!({"process": "sh"}),
        json!({"process": {"programs": "git"}}),
        json!({"process": [1]}),
        json!({"journal": "todo/write"}),
        json!({"journal": ["user/message"]}),
        json!({"journal": ["tool/result"]}),
        json!({"route": "deepseek"}),
        json!({"route": {"origins": []}}),
        json!({"observe": true}),
        json!(["clock", 1]),
        json!("clock"),
    ] {
        assert!(
            matches!(Grants::parse(&value), Err(Error::Grant { .. })),
            "{value}"
        );
    }
}

#[test]
fn a_workspace_is_read_only_unless_it_says_write() {
    assert!(!parse(json!({"workspace": true})).workspace_write);
    assert!(!parse(json!({"workspace": {}})).workspace_write);
    assert!(!parse(json!({"workspace": {"write": false}})).workspace_write);
    assert!(parse(json!({"workspace": {"write": true}})).workspace_write);
}

#[test]
fn programs_are_named_exactly() {
    let git = parse(json!({"process": ["git"]})).programs;
    assert!(git.allows("git"));
    for other in ["git2", "/usr/bin/git", "./git", "gi", ""] {
        assert!(!git.allows(other), "{other}");
    }
    assert!(
        parse(json!({"process": "shell"}))
            .programs
            .allows("anything")
    );
    assert!(
        parse(json!({"process": {"programs": ["git"]}}))
            .programs
            .allows("git")
    );
    assert!(!Grants::none().programs.allows("git"));
}

#[test]
fn kinds_are_of_the_own_namespace_and_named_or_granted_one_by_one() {
    let own = ["acme/seen".to_owned(), "turn/start".to_owned()];
    let granted = ["todo/write".to_owned()];
    let table = [
        ("acme/seen", true),
        ("acme/other", false),
        ("todo/write", true),
        ("goal/change", false),
        ("turn/start", false),
        ("acme", false),
        ("acme/", false),
    ];
    for (kind, expected) in table {
        assert_eq!(may_append(kind, &granted, &own, "acme"), expected, "{kind}");
    }
    assert!(!may_append("acme/seen", &[], &own, ""));
    assert!(
        !may_append("turn/start", &[], &own, "turn"),
        "a plugin that calls itself as the host's kinds are called"
    );
}

#[test]
fn deciding_is_more_than_watching() {
    let grants =
        parse(json!({"observe": ["session/event"], "decide": {"events": ["tools/pre-execute"]}}));
    assert!(grants.may_listen("session/event") && grants.may_listen("tools/pre-execute"));
    assert!(grants.may_decide("tools/pre-execute") && !grants.may_decide("session/event"));
    assert!(!grants.may_listen("approval/request"));
}

#[test]
fn a_route_has_its_origins_and_its_credential() {
    let grants = parse(
        json!({"route": {"provider": "d", "origins": ["https://d.example"], "credential": "D_KEY"}}),
    );
    assert_eq!(grants.routes()[0].origins, ["https://d.example"]);
    assert_eq!(grants.routes()[0].credential.as_deref(), Some("D_KEY"));
    assert_eq!(
        parse(json!({"route": [{"provider": "a"}, {"provider": "b"}]}))
            .routes()
            .len(),
        2
    );
}
