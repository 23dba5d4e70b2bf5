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
        ("dsh:plugin/kv@0.1.0", Need::Grant("kv")),
        ("dsh:plugin/inbox@0.1.0", Need::Grant("inbox")),
        ("dsh:plugin/llm@0.1.0", Need::Grant("llm")),
        ("dsh:plugin/attachments@0.1.0", Need::Grant("attachments")),
        ("dsh:plugin/pictures@0.1.0", Need::Grant("pictures")),
        ("dsh:plugin/people@0.1.0", Need::Unknown),
        ("wasi:cli/environment@0.2.6", Need::StandIn),
        ("wasi:http/outgoing-handler@0.2.10", Need::StandIn),
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
        json!({"workspace": {"read": "/etc"}}),
        json!({"workspace": {"read": []}}),
        json!({"workspace": {"read": [""]}}),
        json!({"workspace": {"roots": ["/etc"]}}),
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
        json!({"observe": ["everything"]}),
        json!({"observe": ["approval/request"]}),
        json!({"decide": ["tools/pre-execute", "approval/request"]}),
        json!({"approval": ["tools/pre-execute"]}),
        json!({"inbox": {"wake": -1}}),
        json!({"inbox": {"wake": true}}),
        json!({"inbox": ["wake"]}),
        json!({"people": 3}),
        json!({"agents": {"deep": 1}}),
        json!({"jobs": {"number": "many"}}),
        json!({"llm": {"tokens": 1.5}}),
        json!({"llm": 1000}),
        json!({"kv": {"quota": "lots"}}),
        json!({"kv": {"scopes": ["world"]}}),
        json!({"kv": ["profile"]}),
        json!({"spill": {"quota": -1}}),
        json!({"attachments": "all"}),
        json!({"pictures": {"quota": 1}}),
        json!({"secret": {"name": "KEY", "host": "a.example"}}),
        json!({"secret": {"name": "KEY", "header": "x:y", "host": "a.example"}}),
        json!({"secret": {"name": "KEY", "header": "x-key", "host": "https://a.example"}}),
        json!({"tool-names": "one"}),
        json!({"dir": "/tmp"}),
        json!({"dir": {"path": "tmp"}}),
        json!({"dir": {"path": "/tmp", "mode": "w"}}),
        json!({"env": ["A=1"]}),
        json!({"env": {"A": "1"}}),
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
fn a_workspace_is_read_only_unless_it_says_write_and_reaches_as_far_as_it_says() {
    for value in [json!(true), json!({}), json!({"write": false})] {
        let grant = parse(json!({"workspace": value})).workspace;
        assert!(!grant.write && grant.roots.is_none(), "{value}");
    }
    let grant = parse(json!({"workspace": {"read": ["src", "/usr"], "write": true}})).workspace;
    assert!(grant.write);
    assert_eq!(grant.roots.unwrap(), ["src", "/usr"]);
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

/// A person reads these before they decide: what is shown is what there is.
#[test]
fn a_text_that_would_not_look_like_what_it_is_is_refused() {
    for text in [
        "a\u{1b}[31mb",
        "a\rb",
        "a\nb",
        "a\u{9b}b",
        "a\u{202e}b",
        "a\u{2066}b",
        "a\u{200b}b",
        &"a".repeat(1025),
    ] {
        for value in [
            json!({"process": [text]}),
            json!({"tool-names": [text]}),
            json!({"env": [text]}),
            json!({"dir": {"path": format!("/{text}")}}),
            json!({"workspace": {"read": [text]}}),
            json!({"route": {"provider": text}}),
            json!({"route": {"provider": "p", "origins": [text]}}),
            json!({"observe": [format!("a/{text}")]}),
        ] {
            let error = Grants::parse(&value).unwrap_err().to_string();
            assert!(
                !error.contains(['\u{1b}', '\r', '\n', '\u{9b}', '\u{202e}']),
                "{error}"
            );
        }
    }
    assert!(Grants::parse(&json!({"env": vec!["A"; 257]})).is_err());
    parse(json!({"workspace": {"read": ["Bücher und Ähnliches"]}}));
}

#[test]
fn answering_for_a_person_is_a_grant_of_its_own() {
    let all = parse(json!({"observe": ["tools/pre-execute"], "decide": ["tools/pre-execute"]}));
    assert!(!all.may_listen("approval/request") && !all.may_decide("approval/request"));
    let approval = parse(json!({"approval": true}));
    assert!(approval.may_listen("approval/request") && approval.may_decide("approval/request"));
    assert!(!approval.may_decide("tools/pre-execute"));
}

#[test]
fn tools_are_named_freely_unless_names_were_granted() {
    assert!(Grants::none().may_name_tool("anything"));
    let named = parse(json!({"tool-names": ["one"]}));
    assert!(named.may_name_tool("one") && !named.may_name_tool("two"));
}

#[test]
fn an_address_that_could_be_read_in_two_ways_is_refused() {
    for (place, one) in [
        ("https://api.example", true),
        ("https://api.example:8443/v1/", true),
        ("http://127.0.0.1:80", true),
        ("https://[::1]:443/a", true),
        ("https://", false),
        ("ftp://api.example", false),
        ("api.example", false),
        ("https://user@api.example", false),
        ("https://api.example:0", false),
        ("https://api.example:70000", false),
        ("https://api.example:", false),
        ("https://*.example", false),
        ("https://API.example", false),
        ("https://api.example./", false),
        ("https://api.example/?q", false),
        ("https://api.example/#f", false),
        ("https://api.example/../b", false),
        ("https://api.example/%2e", false),
        ("https://api.example\\b", false),
        ("https://ap\u{456}.example", false),
        ("https://[::1", false),
        ("https://[127.0.0.1]", false),
    ] {
        let parsed = Grants::parse(&json!({"http": [place]}));
        assert_eq!(parsed.is_ok(), one, "{place}");
        if let Err(error) = parsed {
            assert!(!error.to_string().contains("user@"), "{error}");
        }
    }
}

#[test]
fn what_is_written_of_grants_reads_back_as_the_same() {
    for value in [
        json!({}),
        json!([
            "clock",
            "random",
            "session",
            "people",
            "pictures",
            "prompt.complete",
            "approval",
            "spill"
        ]),
        json!({"workspace": true}),
        json!({"workspace": {"write": true}}),
        json!({"workspace": {"read": ["src"]}}),
        json!({"workspace": {"read": ["src"], "write": true}}),
        json!({"process": "shell"}),
        json!({"process": ["git"]}),
        json!({"journal": true}),
        json!({"journal": ["todo/write"]}),
        json!({"inbox": true}),
        json!({"inbox": {"wake": 3}}),
        json!({"kv": true}),
        json!({"kv": {"quota": "2MiB", "scopes": ["session", "profile"]}}),
        json!({"agents": true, "jobs": {"depth": 2, "number": 3, "budget": 1000}}),
        json!({"llm": true}),
        json!({"llm": {"tokens": 5}}),
        json!({"http": ["https://a.example/v1"]}),
        json!({"secret": {"name": "KEY", "header": "x-key", "host": "a.example"}}),
        json!({"route": [{"provider": "a"}, {"provider": "b", "origins": ["https://b.example"], "credential": "B"}]}),
        json!({"observe": ["session/event"], "decide": ["tools/pre-execute"]}),
        json!({"tool-names": ["one"], "env": ["HOME"]}),
        json!({"dir": [{"path": "/tmp"}, {"path": "/srv", "mode": "rw"}]}),
        json!({"spill": {"quota": 5}, "attachments": {"quota": "1KiB"}}),
    ] {
        let grants = Grants::parse(&value).unwrap_or_else(|error| panic!("{value}: {error}"));
        let written = Value::Object(grants.to_value());
        assert_eq!(
            Grants::parse(&written).unwrap(),
            grants,
            "{value} as {written}"
        );
    }
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
