use super::*;
use crate::{Environment, Home, Inputs, Profile, Scope, Settings};
use serde_json::json;
use std::path::Path;

/// The shipped rows with a patch and settings.
fn rows(patch: &str, settings: &str) -> Composition {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("patch.yml");
    std::fs::write(&file, patch).unwrap();
    std::fs::write(dir.path().join("settings.yaml"), settings).unwrap();
    let home = Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap();
    let tree = Profile::open(&home, "headless")
        .unwrap()
        .compose(Scope::All(&[file]))
        .unwrap();
    assert_eq!(tree.warnings(), []);
    tree.rows(&Inputs {
        env: &Environment::default(),
        home: &home,
        settings: &Settings::load(&home).unwrap(),
        cwd: dir.path(),
    })
    .unwrap()
}

fn settings(providers: &str) -> Composition {
    rows("", &format!("llm-pi-ai: {{providers: {providers}}}"))
}

/// As somebody's own row says it, where a wrong member is no wrong document.
fn patched(providers: &str) -> Composition {
    rows(
        &format!("- {{id: llm-pi-ai, config: {{providers: {providers}}}}}"),
        "",
    )
}

fn row<'a>(of: &'a Composition, id: &str) -> &'a Row {
    of.rows.iter().find(|row| row.id == id).unwrap()
}

fn problem(of: &Composition) -> &str {
    assert_eq!(of.problems, []);
    assert_eq!(of.unserved.len(), 1, "{:?}", of.unserved);
    &of.unserved[0].problem
}

const THREE: [&str; 3] = [
    "llm-openai-completions",
    "llm-openai-responses",
    "llm-anthropic",
];

#[test]
fn without_a_provider_the_rows_sleep_and_nothing_is_said() {
    for composition in [rows("", ""), settings("{}"), settings("~")] {
        for id in THREE {
            assert!(row(&composition, id).dormant, "{id}");
            assert!(composition.components().all(|row| row.id != id));
        }
        assert_eq!(composition.problems, []);
        assert_eq!(composition.unserved, []);
    }
}

#[test]
fn a_profile_goes_to_the_row_of_its_protocol_and_to_no_other() {
    let composition = settings(
        "{mine: {api: openai-responses, baseURL: 'https://a.example/v1', models: [{id: m}]},
          theirs: {api: anthropic-messages, baseURL: 'https://b.example', models: [{id: m}]}}",
    );
    assert!(row(&composition, "llm-openai-completions").dormant);
    let responses = row(&composition, "llm-openai-responses");
    assert_eq!(
        responses.config,
        json!({"providers": {"mine": {
            "api": "openai-responses", "baseURL": "https://a.example/v1", "models": [{"id": "m"}]
        }}})
    );
    let anthropic = row(&composition, "llm-anthropic");
    assert!(anthropic.config["providers"]["theirs"].is_object());
    assert!(!responses.dormant && !anthropic.dormant);
}

#[test]
fn a_shipped_provider_needs_no_more_than_its_name() {
    let composition = settings("{openrouter: , openai: {}, anthropic: {reasoning: high}}");
    let granted = |id: &str| row(&composition, id).grants["route"].clone();
    assert_eq!(
        granted("llm-openai-completions"),
        json!([{"provider": "openrouter", "origins": ["https://openrouter.ai"], "credential": "OPENROUTER_API_KEY"}])
    );
    assert_eq!(
        granted("llm-openai-responses"),
        json!([{"provider": "openai", "origins": ["https://api.openai.com"], "credential": "OPENAI_API_KEY"}])
    );
    assert_eq!(
        granted("llm-anthropic"),
        json!([{"provider": "anthropic", "origins": ["https://api.anthropic.com"], "credential": "ANTHROPIC_API_KEY"}])
    );
    for id in THREE {
        assert_eq!(row(&composition, id).endpoints, []);
    }
}

/// What is granted to one provider.
#[test]
fn a_grant_is_what_is_listed_with_what_was_written_in_its_place() {
    let listed =
        || Some(json!({"provider": "p", "origins": ["https://listed"], "credential": "L"}));
    let cases = [
        (
            listed(),
            json!({}),
            json!(["https://listed"]),
            json!("L"),
            None,
        ),
        (
            listed(),
            json!({"apiKeyEnv": "W"}),
            json!(["https://listed"]),
            json!("W"),
            None,
        ),
        // The listed origin is gone: only one server may have the key.
        (
            listed(),
            json!({"baseURL": "http://127.0.0.1:1/v1"}),
            json!(["http://127.0.0.1:1"]),
            json!("L"),
            Some("http://127.0.0.1:1/v1"),
        ),
        (
            None,
            json!({"baseURL": "https://w/v1", "apiKeyEnv": "W"}),
            json!(["https://w"]),
            json!("W"),
            Some("https://w/v1"),
        ),
        // Nobody named a key, so none is sent; nobody named a server, so nothing is.
        (
            None,
            json!({"baseURL": "https://w/v1"}),
            json!(["https://w"]),
            Value::Null,
            Some("https://w/v1"),
        ),
        (None, json!({"apiKeyEnv": "W"}), json!([]), json!("W"), None),
    ];
    for (listed, profile, origins, credential, url) in cases {
        let (grant, endpoint) =
            crate::route::of_provider(listed, "p", profile.as_object().unwrap());
        assert_eq!(grant["provider"], "p", "{profile}");
        assert_eq!(grant["origins"], origins, "{profile}");
        assert_eq!(
            grant.get("credential").cloned().unwrap_or_default(),
            credential,
            "{profile}"
        );
        assert_eq!(endpoint.map(|one| one.url).as_deref(), url, "{profile}");
    }
}

#[test]
fn the_settings_lie_over_what_a_patch_says_of_the_same_provider() {
    let composition = rows(
        "- {id: llm-pi-ai, config: {providers: {openai: {apiKeyEnv: ONE, reasoning: low}, groq: {}}}}",
        "llm-pi-ai: {providers: {openai: {apiKeyEnv: TWO}}}",
    );
    let responses = row(&composition, "llm-openai-responses");
    assert_eq!(
        responses.config["providers"]["openai"],
        json!({"apiKeyEnv": "TWO", "reasoning": "low"})
    );
    assert_eq!(responses.grants["route"][0]["credential"], "TWO");
    assert!(!row(&composition, "llm-openai-completions").dormant);
}

#[test]
fn a_row_may_be_given_providers_of_its_own() {
    let composition = rows(
        "- {id: llm-anthropic, config: {providers: {near: {baseURL: 'http://127.0.0.1:1', models: [{id: m}]}}}}",
        "llm-pi-ai: {providers: {anthropic: {}}}",
    );
    let providers = &row(&composition, "llm-anthropic").config["providers"];
    let names: Vec<_> = providers.as_object().unwrap().keys().collect();
    assert_eq!(names, ["near", "anthropic"]);
}

#[test]
fn nothing_is_dealt_out_from_a_row_that_is_disabled() {
    let composition = rows(
        "- {id: llm-pi-ai, disabled: true}",
        "llm-pi-ai: {providers: {openai: {}}}",
    );
    assert!(row(&composition, "llm-openai-responses").dormant);
    assert_eq!(composition.unserved, []);
}

#[test]
fn a_profile_that_cannot_be_dealt_costs_its_provider_and_says_why() {
    let composition = patched("{opnrouter: {}, openai: {}}");
    let why = problem(&composition);
    assert!(
        why.contains("no `api`") && why.contains("did you mean openrouter"),
        "{why}"
    );
    assert!(!row(&composition, "llm-openai-responses").dormant);

    let composition = patched("{opencode: {}}");
    let why = problem(&composition);
    assert!(
        why.contains("openai-completions, openai-responses, anthropic-messages"),
        "{why}"
    );
    let chosen = patched("{opencode: {api: openai-responses}}");
    let grant = &row(&chosen, "llm-openai-responses").grants["route"][0];
    assert_eq!(grant["origins"], json!(["https://opencode.ai"]));

    for (providers, what) in [
        ("{p: {api: openai-chat}}", "`p.api` must be one of"),
        (
            "{p: {api: openai_responses}}",
            "did you mean openai-responses",
        ),
        ("{p: {models: {m: {}}}}", "`p.models` must be a list"),
        (
            "{p: {models: [{id: m, contextWindow: big}]}}",
            "`p.models[0].contextWindow`",
        ),
        ("{p: {baseURL: 'ftp://x'}}", "https:// or http://"),
        ("{p: {baseUrl: 'https://x'}}", "did you mean `baseURL`"),
        ("{p: {maxRetries: 3}}", "retryPolicy"),
        ("{p: {provider: x}}", "older versions"),
        ("{p: 7}", "must be a mapping"),
        ("{'a/b': {api: openai-responses}}", "no `/`"),
        ("{p: {headers: {x-a: 1}}}", "`p.headers.x-a`"),
        ("{p: {apiKeyEnv: sk-1234567890}}", "name of a variable"),
        (
            "{p: {compat: {supportsStore: ~}}}",
            "`p.compat.supportsStore`",
        ),
        (
            "{p: {models: [{id: m, reasoningEfforts: {high: ~}}]}}",
            "spelling",
        ),
        (
            "{p: {models: [{id: m, reasoningEfforts: {off: ~}}]}}",
            "beside off",
        ),
        (
            "{p: {models: [{id: m, reasoningEfforts: true}]}}",
            "must be false",
        ),
        (
            "{p: {modelOverrides: {m: {input: [sound]}}}}",
            "`p.modelOverrides.m.input[0]`",
        ),
    ] {
        let composition = patched(providers);
        let why = problem(&composition);
        assert!(why.contains(what), "{providers}: {why}");
        assert!(!why.contains("sk-1234567890"));
    }
}

#[test]
fn a_row_that_is_disabled_serves_nobody_and_the_provider_says_so() {
    let off = "- {id: llm-anthropic, disabled: true}";
    let composition = rows(
        off,
        "llm-pi-ai: {providers: {p: {api: anthropic-messages, baseURL: 'https://x', models: [{id: m}]}}}",
    );
    assert!(
        problem(&composition)
            .contains("row llm-anthropic, which speaks anthropic-messages, is disabled")
    );
    let composition = rows(off, "llm-pi-ai: {providers: {anthropic: {}}}");
    assert!(problem(&composition).contains("disabled: llm-anthropic"));
}

#[test]
fn providers_as_a_list_leave_the_row_out_with_the_shape_that_is_wanted() {
    let composition = patched("[{provider: openai}]");
    assert_eq!(composition.problems.len(), 1);
    let message = &composition.problems[0].message;
    assert!(
        message.starts_with("row llm-pi-ai: ") && message.contains("older versions"),
        "{message}"
    );
}

#[test]
fn no_debug_output_holds_what_a_profile_says() {
    let composition = patched("{openai: {headers: {x-key: sk-in-a-header}}}");
    assert!(!format!("{composition:?}").contains("sk-in-a-header"));
}

#[test]
fn the_dump_names_what_each_row_gets_and_shows_no_header() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("patch.yml");
    let patch = "- id: llm-pi-ai\n  config:\n    providers:\n      openai: {headers: {x-a: sk-hidden, x-b: 'key {credential}'}}\n      mine: {api: openai-responses}\n      groq:\n";
    std::fs::write(&file, patch).unwrap();
    let home = Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap();
    let profile = Profile::open(&home, "headless").unwrap();
    let dump = profile.compose(Scope::All(&[file])).unwrap().dump();
    assert!(
        dump.contains("# of llm-pi-ai: openai, mine\n- id: llm-openai-responses\n"),
        "{dump}"
    );
    assert!(
        dump.contains("# of llm-pi-ai: groq\n- id: llm-openai-completions\n"),
        "{dump}"
    );
    assert!(
        !dump.contains("sk-hidden") && dump.contains("(not shown)"),
        "{dump}"
    );
    assert!(dump.contains("key {credential}"), "{dump}");
}

#[test]
fn a_name_or_a_host_that_no_grant_takes_costs_its_provider_alone() {
    let long = "n".repeat(256);
    let host = "h".repeat(1100);
    for (name, url, what) in [
        ("\\e[31mred", "http://h", "its name"),
        ("a\\u202eb", "http://h", "its name"),
        (long.as_str(), "http://h", "its name"),
        ("p", "http://h\\u200b/v1", "the host of its baseURL"),
        ("p", &format!("http://{host}/v1"), "the host of its baseURL"),
    ] {
        let composition = settings(&format!(
            "{{good: {{api: openai-completions, baseURL: 'http://h', models: [{{id: m}}]}},
              \"{name}\": {{api: openai-completions, baseURL: \"{url}\", models: [{{id: m}}]}}}}"
        ));
        let why = problem(&composition);
        assert!(why.contains(what), "{name}: {why}");
        let served = row(&composition, "llm-openai-completions");
        assert_eq!(served.grants["route"].as_array().unwrap().len(), 1);
        assert!(served.config["providers"]["good"].is_object());
    }
}

#[test]
fn a_name_that_another_row_serves_costs_the_profile_alone_and_says_which_row() {
    let mine = "{api: openai-completions, baseURL: 'http://h', models: [{id: m}]}";
    for (name, by) in [
        ("deepseek-official", "llm-deepseek"),
        ("scripted", "llm-scripted"),
    ] {
        let composition = settings(&format!("{{good: {mine}, {name}: {mine}}}"));
        let why = problem(&composition);
        assert!(why.contains(&format!("row {by} serves")), "{why}");
        assert_eq!(composition.unserved[0].taken_by.as_deref(), Some(by));
        let providers = &row(&composition, "llm-openai-completions").config["providers"];
        let names: Vec<_> = providers.as_object().unwrap().keys().collect();
        assert_eq!(names, ["good"]);
    }
    // Two rows of ours: the first has it.
    let composition = rows(
        &format!("- {{id: llm-anthropic, config: {{providers: {{twice: {mine}}}}}}}"),
        &format!("llm-pi-ai: {{providers: {{twice: {mine}}}}}"),
    );
    let taken = composition.unserved[0].taken_by.as_deref();
    assert_eq!(taken, Some("llm-openai-completions"));
    assert!(row(&composition, "llm-anthropic").dormant);
    // A row that is off serves nobody.
    let composition = rows(
        "- {id: llm-deepseek, disabled: true}",
        &format!("llm-pi-ai: {{providers: {{deepseek-official: {mine}}}}}"),
    );
    assert_eq!(composition.unserved, []);
}
