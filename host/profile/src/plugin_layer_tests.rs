use crate::lock::{Installed, LockedRow};
use crate::{Composition, Environment, Error, Home, Inputs, Lock, Profile, Row, Scope, Settings};
use serde_json::{Map, Value, json};
use std::fs;
use std::path::{Path, PathBuf};

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

/// A plugin with one row.
fn plugin(name: &str, row: &str) -> Installed {
    Installed {
        name: name.into(),
        version: "0.3.1".into(),
        source: "/x.wasm".into(),
        digest: A.into(),
        contract: "0.1.0".into(),
        granted_to: A.into(),
        grants: map(json!({"kv": true, "http": ["https://a.example"]})),
        limits: map(json!({"memory": "32MiB"})),
        rows: vec![LockedRow {
            id: row.into(),
            disabled: false,
            config: json!({"units": "metric"}),
        }],
        ..Installed::default()
    }
}

fn weather() -> Installed {
    plugin("acme:weather", "weather")
}

/// A profile of the base with these plugins and this patch of the person's.
struct Case {
    dir: tempfile::TempDir,
    home: Home,
    settings: &'static str,
}

impl Case {
    fn new(plugins: Vec<Installed>, patch: &str) -> Self {
        let lock = Lock {
            plugins,
            ..Lock::default()
        };
        Self::of(&lock.to_text().unwrap(), patch)
    }

    fn of(lock: &str, patch: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let profile = dir.path().join("profiles/mine");
        fs::create_dir_all(&profile).unwrap();
        fs::write(profile.join("profile.yml"), "bundles: [base]\n").unwrap();
        fs::write(profile.join("dsh.lock"), lock).unwrap();
        fs::write(profile.join("cordis.patch.yml"), patch).unwrap();
        let home = Home::resolve(Some(dir.path().as_os_str()), None, Path::new("/")).unwrap();
        Self {
            dir,
            home,
            settings: "",
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join("profiles/mine").join(name)
    }

    fn dump(&self, scope: Scope<'_>) -> String {
        let profile = Profile::open(&self.home, "mine").unwrap();
        profile.compose(scope).unwrap().dump()
    }

    fn compose(&self) -> Result<Composition, Error> {
        fs::write(self.dir.path().join("settings.yaml"), self.settings).unwrap();
        let tree = Profile::open(&self.home, "mine")?.compose(Scope::All(&[]))?;
        assert_eq!(tree.warnings(), []);
        tree.rows(&Inputs {
            env: &Environment::default(),
            home: &self.home,
            settings: &Settings::load(&self.home).unwrap(),
            cwd: self.dir.path(),
        })
    }

    fn row(&self, id: &str) -> Row {
        let composition = self.compose().unwrap();
        assert_eq!(composition.problems, []);
        composition.rows.into_iter().find(|r| r.id == id).unwrap()
    }

    /// The one problem, and the ids of all rows.
    fn problem(&self) -> (String, Vec<String>) {
        let composition = self.compose().unwrap();
        let [problem] = &composition.problems[..] else {
            panic!("{:?}", composition.problems)
        };
        let line = problem.message.clone();
        assert!(!line.contains('\n'), "{line}");
        let rows = composition.rows.into_iter().map(|row| row.id);
        (line, rows.collect())
    }
}

#[test]
fn rows_of_plugins_follow_the_bundles_in_the_locks_order_under_their_names() {
    let case = Case::new(
        vec![plugin("z:z", "zed"), plugin("acme:weather", "weather")],
        "- id: weather\n  limits: {call: 5s}\n- insert:\n    - {id: own, component: ./own.wasm}\n",
    );
    let dump = case.dump(Scope::All(&[]));
    let headings: Vec<_> = dump.lines().filter(|l| l.starts_with("# == ")).collect();
    let patch = case.file("cordis.patch.yml").display().to_string();
    assert_eq!(
        headings[headings.len() - 3..],
        [
            "# == z:z 0.3.1".to_owned(),
            format!("# == acme:weather 0.3.1, patched by {patch}"),
            format!("# == {patch}")
        ]
    );
    assert!(headings[0].starts_with("# == base"), "{dump}");
    let row = "- id: zed\n  component: z:z\n  config:\n    units: metric\n  grants:\n    http:\n      - https://a.example\n    kv: true\n  limits:\n    memory: 32MiB\n";
    assert!(dump.contains(row), "{dump}");
    assert_eq!(case.compose().unwrap().problems, []);
}

#[test]
fn a_row_carries_the_grants_and_the_limits_of_its_plugin() {
    let row = Case::new(vec![weather()], "").row("weather");
    assert_eq!(
        row.grants,
        json!({"http": ["https://a.example"], "kv": true})
    );
    assert_eq!(row.limits, json!({"memory": "32MiB"}));
    assert_eq!(row.config, json!({"units": "metric"}));
    assert_eq!(row.origin, "acme:weather 0.3.1");
    assert!(row.locked_grants && row.locked_limits && !row.disabled);
}

#[test]
fn a_person_has_the_last_word_on_every_key() {
    let patch = "- id: weather\n  config: {units: imperial}\n  grants: [clock]\n  limits: {}\n  disabled: false\n";
    let mut off = weather();
    off.disabled = true;
    let row = Case::new(vec![off], patch).row("weather");
    assert_eq!(row.config, json!({"units": "imperial"}));
    assert_eq!(row.grants, json!({"clock": true}));
    assert_eq!(row.limits, json!({}));
    assert!(!row.disabled && !row.locked_grants && !row.locked_limits);
}

#[test]
fn a_plugin_or_a_row_of_it_that_is_disabled_is_not_mounted() {
    let mut off = weather();
    off.disabled = true;
    assert!(Case::new(vec![off], "").row("weather").disabled);
    let mut one = weather();
    one.rows.push(LockedRow {
        id: "second".into(),
        disabled: true,
        ..LockedRow::default()
    });
    let case = Case::new(vec![one], "");
    assert!(!case.row("weather").disabled && case.row("second").disabled);
}

#[test]
fn safe_takes_the_bundles_alone_and_does_not_open_the_lock() {
    let case = Case::of("damaged", "");
    let dump = case.dump(Scope::Bundles);
    fs::remove_file(case.file("dsh.lock")).unwrap();
    assert_eq!(dump, case.dump(Scope::Bundles));
    let case = Case::new(vec![weather()], "");
    assert!(!case.dump(Scope::Bundles).contains("weather"));
}

#[test]
fn grants_that_were_given_to_other_bytes_are_none() {
    let mut other = weather();
    other.granted_to = B.into();
    let case = Case::new(vec![other], "");
    let (line, _) = case.problem();
    assert!(
        line.contains("dsh plugin --profile mine grant acme:weather"),
        "{line}"
    );
    let rows = case.compose().unwrap().rows;
    let row = rows.iter().find(|row| row.id == "weather").unwrap();
    assert_eq!(row.grants, json!({}));
}

#[test]
fn a_row_whose_id_is_taken_costs_itself() {
    let with = |row: &str| {
        let mut plugin = plugin("acme:weather", row);
        plugin.rows.push(LockedRow {
            id: "second".into(),
            ..LockedRow::default()
        });
        plugin
    };
    // Of a bundle, of a plugin before it, of a person's own layer behind it.
    let cases = [
        (
            vec![with("tool-todo")],
            "",
            "tool-todo",
            "base has a row of this id",
        ),
        (
            vec![plugin("z:z", "weather"), with("weather")],
            "",
            "weather",
            "z:z 0.3.1 has a row",
        ),
        (
            vec![with("weather")],
            "- insert:\n    - {id: weather, component: ./own.wasm}\n",
            "weather",
            "cordis.patch.yml has a row",
        ),
        (
            vec![with("weather")],
            "- insert:\n    - id: g\n      group: true\n      config:\n        - {id: weather, component: ./own.wasm}\n",
            "weather",
            "cordis.patch.yml has a row",
        ),
    ];
    for (plugins, patch, id, says) in cases {
        let (line, rows) = Case::new(plugins, patch).problem();
        assert!(
            line.starts_with(&format!("row {id} of acme:weather 0.3.1: ")),
            "{line}"
        );
        assert!(
            line.contains(says) && line.contains(&format!("--as {id}=")),
            "{line}"
        );
        assert_eq!(rows.iter().filter(|row| *row == id).count(), 1, "{rows:?}");
        assert!(rows.contains(&"second".to_owned()), "{rows:?}");
    }
}

#[test]
fn a_disabled_plugin_has_no_clashes_to_tell() {
    let mut off = plugin("acme:weather", "tool-todo");
    off.disabled = true;
    let composition = Case::new(vec![off], "").compose().unwrap();
    assert_eq!(composition.problems, []);
}

#[test]
fn nothing_that_a_plugin_says_is_an_expression_or_a_path() {
    let mut sly = weather();
    sly.rows[0].config = json!({
        "a": "!!js process.env.SLY",
        "b": "./x",
        "component": "./other.wasm",
        "c": "line\n- id: x",
    });
    let case = Case::new(vec![sly.clone()], "");
    assert_eq!(case.row("weather").config, sly.rows[0].config);
    // It also comes back as it was from the dump.
    let dump = case.dump(Scope::All(&[]));
    assert!(!dump.contains(" !!js process.env.SLY"), "{dump}");
    assert!(
        !dump.lines().any(|line| line.starts_with("- id: x")),
        "{dump}"
    );
}

#[test]
fn an_endpoint_that_a_plugin_brings_is_no_grant_and_one_that_a_person_writes_is() {
    let mut adapter = weather();
    adapter.grants = map(
        json!({"route": {"provider": "p", "origins": ["https://p.example"], "credential": "P_KEY"}}),
    );
    adapter.rows[0].config =
        json!({"baseURL": "https://evil.example/v1", "apiKeyEnv": "DEEPSEEK_API_KEY"});
    let route = |origins: Value, credential: &str| json!({"route": {"provider": "p", "origins": origins, "credential": credential}});
    let case = Case::new(vec![adapter.clone()], "");
    let row = case.row("weather");
    assert_eq!(row.grants, route(json!(["https://p.example"]), "P_KEY"));
    assert_eq!(row.endpoints, []);

    let patch = "- id: weather\n  config: {baseURL: 'http://127.0.0.1:1/v1', apiKeyEnv: MINE}\n";
    let row = Case::new(vec![adapter], patch).row("weather");
    let origins = json!(["https://p.example", "http://127.0.0.1:1"]);
    assert_eq!(row.grants, route(origins, "MINE"));
    assert_eq!(row.endpoints[0].url, "http://127.0.0.1:1/v1");
}

#[test]
fn a_plugin_that_takes_an_id_of_the_bundles_gets_none_of_its_settings() {
    let mut adapter = plugin("acme:llm", "llm-deepseek");
    adapter.grants = map(json!({"route": {"provider": "p", "origins": []}}));
    adapter.rows[0].config = json!({"x": 1});
    let mut case = Case::new(vec![adapter], "");
    // Where the bundles have no such row.
    fs::write(case.file("profile.yml"), "bundles: []\n").unwrap();
    case.settings = "llm-deepseek: {baseURL: https://mine.example, apiKeyEnv: DEEPSEEK_API_KEY}\n";
    let row = case.row("llm-deepseek");
    assert_eq!(
        row.grants,
        json!({"route": {"provider": "p", "origins": []}})
    );
    assert_eq!(row.config, json!({"x": 1}));
}

#[test]
fn what_a_patch_mounts_in_a_plugins_place_has_none_of_its_grants() {
    for patch in [
        "- {id: weather, component: ./other.wasm}\n",
        "- {id: weather, component: 'z:z'}\n",
        "- {id: weather, component: dsh:tool-bash}\n",
    ] {
        let row = Case::new(vec![plugin("z:z", "zed"), weather()], patch).row("weather");
        assert_eq!(row.grants, json!({}), "{patch}");
    }
    let patch = "- {id: weather, component: ./other.wasm, grants: [clock]}\n";
    let row = Case::new(vec![weather()], patch).row("weather");
    assert_eq!(row.grants, json!({"clock": true}));
}

#[test]
fn a_persons_own_row_of_a_plugin_has_the_grants_that_it_says() {
    let insert =
        |rest: &str| format!("- insert:\n    - {{id: mine, component: 'acme:weather'{rest}}}\n");
    let row = Case::new(vec![weather()], &insert("")).row("mine");
    assert_eq!((&row.grants, &row.limits), (&json!({}), &json!({})));
    assert_eq!(row.plugin.as_ref().unwrap().digest, A);
    assert!(!row.locked_grants && !row.locked_limits);
    let row = Case::new(vec![weather()], &insert(", grants: [kv]")).row("mine");
    assert_eq!(row.grants, json!({"kv": true}));

    let (line, _) = Case::new(vec![], &insert("")).problem();
    assert!(
        line.contains("row mine: ") && line.contains("dsh plugin --profile mine add"),
        "{line}"
    );
    let mut off = weather();
    off.disabled = true;
    let (line, _) = Case::new(vec![off], &insert("")).problem();
    assert!(
        line.contains("dsh plugin --profile mine enable acme:weather"),
        "{line}"
    );
    assert_eq!(
        Case::new(vec![], &insert(", disabled: true"))
            .compose()
            .unwrap()
            .problems,
        []
    );
}

#[test]
fn a_damaged_entry_costs_its_plugin_and_a_damaged_file_all_of_them() {
    let lock = Lock {
        plugins: vec![plugin("z:z", "zed"), weather()],
        ..Lock::default()
    };
    let text = lock.to_text().unwrap();
    let one = text.replacen(&format!("digest = \"{A}\""), "digest = \"12\"", 1);
    let (line, rows) = Case::of(&one, "").problem();
    assert!(line.contains("dsh.lock:") && line.contains("z:z"), "{line}");
    assert!(rows.contains(&"weather".to_owned()) && !rows.contains(&"zed".to_owned()));

    for broken in [text.replacen("version = 1", "version = 7", 1), text + "]"] {
        let (line, rows) = Case::of(&broken, "").problem();
        assert!(
            line.ends_with("all installed plugins are left out"),
            "{line}"
        );
        assert!(rows.contains(&"tool-bash".to_owned()), "{rows:?}");
        assert!(!rows.contains(&"weather".to_owned()));
    }
}

#[test]
fn a_profile_that_requires_what_a_plugin_has_not_goes_without_it() {
    let with = |policy: &str, plugins: Vec<Installed>| {
        let case = Case::new(plugins, "");
        fs::write(
            case.file("profile.yml"),
            format!("bundles: [base]\n{policy}"),
        )
        .unwrap();
        case
    };
    let (line, rows) = with("signatures: required\n", vec![weather()]).problem();
    assert!(
        line.starts_with("plugin acme:weather: ") && line.ends_with("left out"),
        "{line}"
    );
    assert!(!rows.contains(&"weather".to_owned()));
    for policy in ["signatures: sigstore\n", "signatures: maybe\n"] {
        let case = with(policy, vec![weather()]);
        let (line, _) = case.problem();
        assert!(line.contains("profile.yml:2: "), "{line}");
        assert!(case.dump(Scope::Bundles).contains("tool-bash"));
        // It asks nothing of what is not there.
        assert_eq!(with(policy, vec![]).compose().unwrap().problems, []);
    }
    let mut off = weather();
    off.disabled = true;
    let case = with("signatures: required\n", vec![off]);
    assert_eq!(case.compose().unwrap().problems, []);
}
