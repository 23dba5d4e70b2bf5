use super::*;
use crate::Scope;
use crate::layer::Layer;
use std::fs;

/// The shipped bundles, a patch over them, and what they are evaluated with.
struct Case {
    dir: tempfile::TempDir,
    env: Vec<(&'static str, &'static str)>,
    settings: &'static str,
}

fn case() -> Case {
    Case {
        dir: tempfile::tempdir().unwrap(),
        env: Vec::new(),
        settings: "",
    }
}

impl Case {
    fn rows(&self, patch: &str) -> Result<Composition, Error> {
        let file = self.dir.path().join("patch.yml");
        fs::write(&file, patch).unwrap();
        fs::write(self.dir.path().join("settings.yaml"), self.settings).unwrap();
        let home = Home::resolve(Some(self.dir.path().as_os_str()), None, Path::new("/")).unwrap();
        let tree = crate::Profile::open(&home, "headless")
            .unwrap()
            .compose(Scope::All(&[file]))
            .unwrap();
        assert_eq!(tree.warnings(), []);
        tree.rows(&Inputs {
            env: &Environment::process(self.env.iter().map(|(k, v)| ((*k).into(), (*v).into()))),
            home: &home,
            settings: &Settings::load(&home).unwrap(),
            cwd: self.dir.path(),
        })
    }

    fn row(&self, patch: &str, id: &str) -> Row {
        let composition = self.rows(patch).unwrap();
        assert_eq!(composition.problems, []);
        composition.rows.into_iter().find(|r| r.id == id).unwrap()
    }

    fn problem(&self, patch: &str) -> String {
        let composition = self.rows(patch).unwrap();
        assert_eq!(composition.problems.len(), 1, "{:?}", composition.problems);
        composition.problems[0].message.clone()
    }
}

#[test]
fn the_shipped_rows_evaluate_without_a_problem() {
    let composition = case().rows("").unwrap();
    assert_eq!(composition.problems, []);
    let disabled = composition.rows.iter().filter(|row| row.disabled);
    let disabled: Vec<_> = disabled.map(|row| row.id.as_str()).collect();
    assert_eq!(disabled, ["time-context"]);
    let components: Vec<_> = composition
        .components()
        .map(|row| row.id.as_str())
        .collect();
    // What each of them is granted is held in `tests/rows.rs`.
    for id in ["system-prompt", "tool-bash", "llm-deepseek", "llm-scripted"] {
        assert!(components.contains(&id), "{id}: {components:?}");
    }
    assert_eq!(
        composition.host("agent-default-model").unwrap().config,
        json!({"provider": "deepseek-official", "model": "deepseek-v4-flash"})
    );
    assert_eq!(
        composition.host("agent-loop").unwrap().config,
        json!({"maxParallelToolCalls": 10})
    );
    assert_eq!(
        composition.host("bash-sandbox").unwrap().config,
        json!({"timeoutMs": 60000})
    );
    assert!(composition.host("headless-runner").is_some());
}

#[test]
fn expressions_read_the_environment_and_the_home() {
    let mut case = case();
    let sessions = case.dir.path().join("sessions");
    assert_eq!(
        case.row("", "session-persistence-jsonl").config,
        json!({"root": sessions})
    );
    assert_eq!(
        case.row("", "sandbox-policy").config,
        json!({"mode": "workspace-write"})
    );
    case.env = vec![("DSH_PERMISSION_MODE", "read-only")];
    assert_eq!(
        case.row("", "sandbox-policy").config,
        json!({"mode": "read-only"})
    );
}

#[test]
fn an_unset_variable_drops_its_member() {
    let patch = "- id: agent-loop\n  config: {a: !!js process.env.NONE, b: [!!js process.env.NONE], c: 1}\n";
    assert_eq!(
        case().row(patch, "agent-loop").config,
        json!({"b": [null], "c": 1})
    );
}

#[test]
fn an_expression_outside_of_the_grammar_leaves_its_row_out_and_no_other() {
    let case = case();
    let patch = "- id: tool-todo\n  config: {x: !!js process.platform === 'win32'}\n";
    let message = case.problem(patch);
    assert!(
        message.starts_with("row tool-todo: ") && message.ends_with("; left out"),
        "{message}"
    );
    assert!(
        message.contains("!!js process.platform === 'win32'"),
        "{message}"
    );
    let composition = case.rows(patch).unwrap();
    let whole = case.rows("").unwrap().components().count();
    assert_eq!(composition.components().count(), whole - 1);
    assert!(
        case.problem("- id: tool-todo\n  disabled: !!js ctx.x\n")
            .contains("ctx.x")
    );
}

#[test]
fn a_package_that_nothing_stands_for_is_left_out_by_its_name() {
    let patch = "- insert:\n    - {id: mine, name: acme-dsh-plugin}\n";
    assert_eq!(
        case().problem(patch),
        "row mine: no native or Wasm implementation of acme-dsh-plugin; left out"
    );
    assert!(
        case()
            .problem("- insert: [{id: mine}]")
            .contains("nothing to mount")
    );
    let disabled = case()
        .rows("- insert:\n    - {id: mine, name: acme-dsh-plugin, disabled: true}\n")
        .unwrap();
    assert_eq!(disabled.problems, []);
}

#[test]
fn a_known_package_stands_for_our_row_with_its_grants() {
    let patch =
        "- insert:\n    - {id: my-bash, name: '@deepseek-ai/dsh-tool-bash', config: {x: 1}}\n";
    let row = case().row(patch, "my-bash");
    assert_eq!(
        row.implementation,
        Implementation::Component("dsh:tool-bash".into())
    );
    assert_eq!(row.grants, case().row("", "tool-bash").grants);
    assert_eq!(row.config, json!({"x": 1, "timeoutMs": 60000}));
    let own = "- insert:\n    - {id: my-bash, name: '@deepseek-ai/dsh-tool-bash', grants: {}}\n";
    assert_eq!(case().row(own, "my-bash").grants, json!({}));
}

#[test]
fn disabled_rows_and_rows_below_a_disabled_group_are_not_evaluated() {
    let patch = "\
- insert:
    - id: g
      group: true
      disabled: !!js process.env.OFF
      config:
        - {id: child, component: ./c.wasm, config: {x: !!js nonsense}}
    - id: off
      component: ./o.wasm
      disabled: true
      config: {x: !!js nonsense}
";
    let mut case = case();
    case.env = vec![("OFF", "1")];
    assert!(case.row(patch, "child").disabled && case.row(patch, "off").disabled);
    case.env = vec![("OFF", "")];
    assert!(case.problem(patch).starts_with("row child: "));
}

#[test]
fn two_rows_of_one_id_are_an_error_that_names_both_layers() {
    let error = case()
        .rows("- insert:\n    - {id: tool-bash, component: ./x.wasm}\n")
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("duplicate loader entry id: tool-bash (from base and from "),
        "{error}"
    );
    assert!(error.contains("patch.yml"), "{error}");
}

#[test]
fn a_row_without_an_id_gets_one_that_stays_the_same() {
    let patch = "- insert: [{component: ./a.wasm}, {component: ./b.wasm}]";
    let ids = |c: Composition| -> Vec<String> {
        c.rows
            .into_iter()
            .map(|r| r.id)
            .filter(|id| id.starts_with("row-"))
            .collect()
    };
    let first = ids(case().rows(patch).unwrap());
    assert_eq!(first.len(), 2);
    assert_eq!(first, ids(case().rows(patch).unwrap()));
}

#[test]
fn a_row_tells_the_layers_that_made_it() {
    let case = case();
    let row = case.row(
        "- {id: system-prompt, config: {persona: x}}",
        "system-prompt",
    );
    assert_eq!(row.origin, "base");
    assert_eq!(
        row.patched_by,
        [
            "headless".to_owned(),
            case.dir.path().join("patch.yml").display().to_string()
        ]
    );
}

#[test]
fn defaults_lie_under_a_config_that_was_replaced_whole() {
    let row = case().row(
        "- {id: system-prompt, config: {persona: x, includeRuntimeContext: false}}",
        "system-prompt",
    );
    assert_eq!(
        row.config,
        json!({"includeHarnessIdentity": true, "includeRuntimeContext": false, "persona": "x"})
    );
}

#[test]
fn settings_lie_over_the_row_of_their_name() {
    let mut case = case();
    case.settings = "agent-default-model: {model: m, reasoningEffort: max}\nllm-deepseek: {maxTokens: 5}\ntool-todo: {x: 1}\n";
    assert_eq!(
        case.row("", "agent-default-model").config,
        json!({"provider": "deepseek-official", "model": "m", "reasoningEffort": "max"})
    );
    assert_eq!(
        case.row("", "llm-deepseek").config,
        json!({"baseURL": "https://api.deepseek.com", "maxTokens": 5})
    );
    assert_eq!(
        case.row("", "tool-todo").config,
        json!({"allowParallelInProgress": true})
    );
}

#[test]
fn an_endpoint_and_a_credential_that_a_person_wrote_are_granted() {
    let mut case = case();
    let route = |row: Row| row.grants["route"].clone();
    let shipped = json!({"provider": "deepseek-official", "origins": ["https://api.deepseek.com"], "credential": "DEEPSEEK_API_KEY"});
    assert_eq!(route(case.row("", "llm-deepseek")), shipped);

    case.env = vec![("DEEPSEEK_BASE_URL", "http://127.0.0.1:9/v1")];
    let row = case.row(
        "- {id: llm-deepseek, config: {maxTokens: 1}}",
        "llm-deepseek",
    );
    assert_eq!(row.config["baseURL"], "http://127.0.0.1:9/v1");
    assert_eq!(
        route(row)["origins"],
        json!(["https://api.deepseek.com", "http://127.0.0.1:9"])
    );

    case.settings = "llm-deepseek: {baseURL: 'https://proxy.example/x', apiKeyEnv: OTHER_KEY}\n";
    let granted = route(case.row("", "llm-deepseek"));
    assert_eq!(
        granted["origins"],
        json!(["https://api.deepseek.com", "https://proxy.example"])
    );
    assert_eq!(granted["credential"], "OTHER_KEY");
    assert_eq!(
        route(case.row("", "llm-scripted")),
        json!({"provider": "scripted", "origins": []})
    );
}

#[test]
fn a_script_file_is_read_in_for_the_scripted_model() {
    let case = case();
    fs::write(
        case.dir.path().join("s.json"),
        r#"[{"text": "hello", "times": 2}]"#,
    )
    .unwrap();
    fs::write(case.dir.path().join("s.yml"), "- text: hello\n  times: 2\n").unwrap();
    for file in ["s.json", "s.yml"] {
        let row = case.row(
            &format!("- {{id: llm-scripted, config: {{scriptFile: {file}}}}}"),
            "llm-scripted",
        );
        assert_eq!(
            row.config,
            json!({"script": [{"text": "hello", "times": 2}]}),
            "{file}"
        );
    }
    let message = case.problem("- {id: llm-scripted, config: {scriptFile: none.json}}");
    assert!(
        message.starts_with("row llm-scripted: cannot read ") && message.contains("none.json"),
        "{message}"
    );
    fs::write(case.dir.path().join("s.json"), "[{]").unwrap();
    assert!(
        case.problem("- {id: llm-scripted, config: {scriptFile: s.json}}")
            .contains("s.json:1: ")
    );
}

#[test]
fn grants_may_be_a_list_of_names_and_nothing_else_but_a_mapping() {
    let patch =
        |grants: &str| format!("- insert: [{{id: x, component: ./x.wasm, grants: {grants}}}]");
    assert_eq!(
        case().row(&patch("[clock, kv]"), "x").grants,
        json!({"clock": true, "kv": true})
    );
    for grants in ["all", "[1]", "7"] {
        assert!(
            case().problem(&patch(grants)).contains("`grants`"),
            "{grants}"
        );
    }
}

#[test]
fn no_debug_output_of_a_row_holds_its_config() {
    let mut case = case();
    case.env = vec![("K", "sk-secret")];
    let composition = case
        .rows("- {id: tool-todo, config: {k: !!js process.env.K}}")
        .unwrap();
    assert!(!format!("{composition:?}").contains("sk-secret"));
}

#[test]
fn bundles_hold_what_the_package_names_of_upstream_stand_for() {
    let layer: Layer = bundle::layer("base").unwrap().unwrap();
    assert!(layer.items.iter().all(|item| item.insert.is_some()));
    assert!(bundle::row_of_package("@deepseek-ai/dsh-headless").is_some());
    assert!(bundle::row_of_package("@deepseek-ai/dsh-jobs-local").is_none());
}

#[test]
fn the_executors_time_limit_is_the_bash_tools_where_that_has_none() {
    let limit = |patch: &str| case().row(patch, "tool-bash").config["timeoutMs"].clone();
    assert_eq!(limit(""), 60000);
    assert_eq!(limit("- {id: bash-sandbox, config: {timeoutMs: 5}}"), 5);
    assert_eq!(limit("- {id: tool-bash, config: {timeoutMs: 7}}"), 7);
    assert_eq!(limit("- {id: bash-sandbox, disabled: true}"), Value::Null);
}
