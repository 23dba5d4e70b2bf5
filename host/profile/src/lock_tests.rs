use super::*;
use crate::Error;
use serde_json::json;
use std::path::Path;

const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";

fn map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is no object"),
    }
}

fn weather() -> Installed {
    Installed {
        name: "acme:weather".into(),
        version: "0.3.1".into(),
        source: "/home/me/my plugins/weather.wasm".into(),
        digest: A.into(),
        fetched: Some(B.into()),
        contract: "0.1.0".into(),
        disabled: false,
        tools: vec!["get_weather".into()],
        commands: vec!["weather".into()],
        granted_to: A.into(),
        signature: Some(Signed {
            key: "RWQ".into(),
            comment: "timestamp:1\tfile:x".into(),
        }),
        grants: map(
            json!({"http": ["https://api.weather.example"], "kv": true, "route": [{"provider": "p", "origins": []}]}),
        ),
        limits: map(json!({"memory": "32MiB", "calls": 7})),
        rows: vec![
            LockedRow {
                id: "weather".into(),
                disabled: false,
                config: json!({"units": "metric", "deep": {"list": [1, "two", {"x": 1.5}], "empty": {}}}),
            },
            LockedRow {
                id: "weather-2".into(),
                disabled: true,
                config: json!({}),
            },
        ],
    }
}

fn parse(text: &str) -> Result<Lock, Error> {
    Lock::parse(Path::new("dsh.lock"), text)
}

/// A lock of a sound plugin, and another one with `extra` in it.
fn beside(name: &str, extra: &str) -> Lock {
    let text = format!(
        "version = 1\n\n[[plugin]]\nname = \"a:sound\"\nversion = \"1.0.0\"\nsource = \"/s\"\ndigest = \"{A}\"\ncontract = \"0.1.0\"\n\n\
         [[plugin]]\nname = \"{name}\"\nversion = \"1.0.0\"\nsource = \"/b.wasm\"\ncontract = \"0.1.0\"\n{extra}\n"
    );
    parse(&text).unwrap()
}

#[test]
fn what_is_written_reads_back_equal() {
    let mut lock = Lock::default();
    lock.put(weather());
    lock.put(Installed {
        name: "b:plain".into(),
        version: "1.0.0".into(),
        source: "https://x.example/b.wasm".into(),
        digest: B.into(),
        contract: "0.1.0".into(),
        disabled: true,
        ..Installed::default()
    });
    let text = lock.to_text().unwrap();
    assert_eq!(parse(&text).unwrap(), lock, "{text}");
    assert!(text.starts_with("# "), "{text}");
    let name = text.find("name = ").unwrap();
    assert!(name < text.find("digest = ").unwrap(), "{text}");
}

#[test]
fn an_empty_lock_is_one() {
    let text = Lock::default().to_text().unwrap();
    assert_eq!(parse(&text).unwrap(), Lock::default(), "{text}");
}

#[test]
fn the_order_is_kept_and_a_plugin_stays_in_its_place() {
    let mut lock = Lock::default();
    for name in ["z:a", "a:z", "m:m"] {
        lock.put(Installed {
            name: name.into(),
            ..weather()
        });
    }
    lock.put(Installed {
        name: "a:z".into(),
        version: "2.0.0".into(),
        ..weather()
    });
    let lock = parse(&lock.to_text().unwrap()).unwrap();
    let names: Vec<_> = lock.plugins.iter().map(Installed::label).collect();
    assert_eq!(names, ["z:a 0.3.1", "a:z 2.0.0", "m:m 0.3.1"]);
}

#[test]
fn what_is_no_toml_or_of_another_version_is_an_error_with_its_line() {
    for (text, line, says) in [
        ("version = 1\n[[plugin]\nname = 1\n", 2, "not TOML"),
        ("version = 1\nversion = 1\n", 2, "not TOML"),
        ("version = 2\n", 1, "version 2"),
        ("# x\n\nversion = -1\n", 3, "version -1"),
        ("version = \"1\"\n", 1, "`version = 1` is missing"),
        ("", 1, "`version = 1` is missing"),
        ("version = 1\nplugin = 3\n", 2, "list of tables"),
        (
            "version = 1\n[[plugin]]\nname = \"a:b\"\nx = 99999999999999999999\n",
            4,
            "not TOML",
        ),
        ("{\"version\": 1}", 1, "not TOML"),
    ] {
        match parse(text) {
            Err(Error::Document {
                line: at, message, ..
            }) => {
                assert_eq!(at, line, "{text:?}: {message}");
                assert!(message.contains(says), "{text:?}: {message}");
                assert!(message.contains("add its plugins again"), "{message}");
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }
}

#[test]
fn an_entry_that_breaks_a_rule_costs_itself() {
    let digest = format!("digest = \"{B}\"");
    let with = |more: &str| format!("{digest}\n{more}");
    let row = |row: &str| with(&format!("[[plugin.rows]]\n{row}"));
    let cases: Vec<(&str, String, &str)> = vec![
        ("b:b", String::new(), "digest"),
        (
            "b:b",
            "digest = \"abc\"".into(),
            "`digest` must be a SHA-256",
        ),
        (
            "b:b",
            format!("digest = \"{}\"", B.to_uppercase()),
            "`digest`",
        ),
        ("b:b", with("fetched = \"x\""), "`fetched`"),
        ("b:b", with("granted-to = \"x\""), "`granted-to`"),
        ("b:b", with("gants = {}"), "gants"),
        ("b:b", with("disabled = \"no\""), "boolean"),
        ("b:b", with("tools = \"x\""), "sequence"),
        ("b:b", with("grants = 3"), "map"),
        ("b:b", with("signature = {}"), "key"),
        (
            "b:b",
            with("tools = [\"a\\u001b[2J\"]"),
            "`tools` must be text",
        ),
        ("b:b", with("commands = [\"\"]"), "`commands` must be text"),
        ("b", digest.clone(), "namespace:name"),
        ("dsh:tool-bash", digest.clone(), "not of `dsh`"),
        ("B:b", digest.clone(), "kebab-case"),
        ("a:sound", digest.clone(), "two entries of this name"),
        ("b:b", row("id = \"\""), "an id has"),
        ("b:b", row("id = \"a b\""), "an id has"),
        ("b:b", row("config = {}"), "id"),
        ("b:b", row("id = \"r\"\nconfig = 3"), "must be a table"),
        ("b:b", row("id = \"r\"\nconfig = []"), "must be a table"),
        (
            "b:b",
            row("id = \"r\"\nconfig = {x = {y = [1979-05-27]}}"),
            "config.x.y[0] is a date",
        ),
        (
            "b:b",
            row("id = \"r\"\nconfig = {x = nan}"),
            "config.x is null or no number",
        ),
        ("b:b", with("limits = {x = 07:32:00}"), "limits.x is a date"),
        ("b:b", row("id = \"r\"\nmore = 1"), "more"),
        (
            "b:b",
            row("id = \"r\"\n[[plugin.rows]]\nid = \"r\""),
            "two of its rows",
        ),
    ];
    for (name, extra, says) in cases {
        let lock = beside(name, &extra);
        assert_eq!(lock.plugins.len(), 1, "{name} {extra}");
        assert_eq!(lock.plugins[0].name, "a:sound");
        let [damaged] = &lock.damaged[..] else {
            panic!("{extra}: {lock:?}")
        };
        let line = &damaged.message;
        assert!(line.starts_with("dsh.lock:"), "{line}");
        assert!(line.contains(says), "{extra}: {line}");
        assert!(line.contains(name) && line.contains("left out"), "{line}");
        assert!(!line.contains('\n'), "{line}");
        assert!(line.contains("dsh plugin add /b.wasm") || line.contains("take the entry out"));
    }
}

#[test]
fn a_damaged_entry_is_not_lost_until_it_is_removed_or_replaced() {
    let mut lock = beside("b:b", "grants = {kv = true}");
    let mut again = parse(&lock.to_text().unwrap()).unwrap();
    assert_eq!(again.damaged.len(), 1);
    assert_eq!(again.damaged[0].raw, lock.damaged[0].raw);
    assert!(lock.remove("b:b") && !lock.remove("b:b"));
    assert!(lock.damaged.is_empty());
    again.put(Installed {
        name: "b:b".into(),
        ..weather()
    });
    assert!(again.damaged.is_empty() && again.plugins.len() == 2);
    // What is not even a table.
    let lock = parse("version = 1\nplugin = [3]\n").unwrap();
    assert_eq!(lock.damaged.len(), 1);
    assert!(lock.to_text().unwrap().contains("plugin = [3]"));
}

#[test]
fn a_member_that_is_not_known_is_told_and_nothing_else() {
    let lock = parse("version = 1\nplugins = []\n").unwrap();
    assert_eq!(
        lock.problems,
        ["dsh.lock:2: dsh.lock has no member \"plugins\", so it is ignored; take it out"]
    );
}

#[test]
fn grants_to_other_bytes_are_none_and_told() {
    let mut lock = Lock::default();
    lock.put(Installed {
        granted_to: B.into(),
        ..weather()
    });
    let lock = parse(&lock.to_text().unwrap()).unwrap();
    assert!(lock.plugins[0].granted().is_empty());
    let [line] = &lock.problems[..] else {
        panic!("{lock:?}")
    };
    assert!(line.contains("acme:weather") && line.contains("dsh plugin grant acme:weather"));
    assert_eq!(weather().granted(), weather().grants);
}

#[test]
fn what_toml_cannot_hold_is_refused_with_its_path() {
    let with = |config: Value| {
        let mut plugin = weather();
        plugin.rows[0].config = config;
        Lock {
            plugins: vec![plugin],
            ..Lock::default()
        }
    };
    for (config, says) in [
        (json!({"a": null}), "row weather: config.a is null"),
        (json!({"a": [1, {"b": null}]}), "config.a[1].b is null"),
        (json!({"n": u64::MAX}), "config.n is 18446744073709551615"),
    ] {
        let error = with(config).to_text().unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
        assert!(error.contains("acme:weather"), "{error}");
    }
    let mut plugin = weather();
    plugin.grants = map(json!({"kv": null}));
    let lock = Lock {
        plugins: vec![plugin],
        ..Lock::default()
    };
    assert!(
        lock.to_text()
            .unwrap_err()
            .to_string()
            .contains("grants.kv")
    );
}

#[test]
fn nothing_is_written_that_would_not_be_read() {
    for wrong in [
        Installed {
            digest: "x".into(),
            ..weather()
        },
        Installed {
            name: "dsh:x".into(),
            ..weather()
        },
    ] {
        let lock = Lock {
            plugins: vec![wrong],
            ..Lock::default()
        };
        assert!(matches!(lock.to_text(), Err(Error::Unlockable { .. })));
    }
    let twice = Lock {
        plugins: vec![weather(), weather()],
        ..Lock::default()
    };
    assert!(twice.to_text().is_err());
}

#[test]
fn plugin_names_are_told_from_paths_and_from_our_own() {
    for (text, is) in [
        ("acme:weather", true),
        ("a-1:b-2", true),
        ("dsh:tool-bash", false),
        ("./a:b", false),
        ("/a:b", false),
        ("a:b.wasm", false),
        ("a:b:c", false),
        ("C:x", false),
        ("weather", false),
        ("", false),
        (":", false),
    ] {
        assert_eq!(is_plugin_name(text), is, "{text}");
    }
}

#[test]
fn no_text_makes_reading_panic() {
    let text = {
        let mut lock = Lock::default();
        lock.put(weather());
        lock.to_text().unwrap()
    };
    for at in 0..text.len() {
        let _ = parse(&text[..at]);
        let mut bytes = text.clone().into_bytes();
        for byte in [b'\0', b'[', b'"', b'=', b'1', b'\n'] {
            bytes[at] = byte;
            let _ = parse(std::str::from_utf8(&bytes).unwrap());
        }
    }
}

#[test]
fn h61_no_text_of_a_lock_reaches_a_terminal_as_an_escape() {
    for key in ["version", "source", "contract"] {
        let text = "version = 1\n[[plugin]]\nname = \"b:b\"\nversion = \"1.0.0\"\nsource = \"/b\"\ncontract = \"0.1.0\"\n"
            .replace(
                &format!("\n{key} = \""),
                &format!("\n{key} = \"\\u001b]0;x\\u0007"),
            )
            + &format!("digest = \"{A}\"\n");
        let lock = parse(&text).unwrap();
        assert!(lock.plugins.is_empty(), "{key}: {lock:?}");
        let line = &lock.damaged[0].message;
        assert!(line.contains(key) && !line.contains('\u{1b}'), "{line:?}");
    }
    let turned = beside("b:b", &format!("digest = \"{B}\"\ntools = [\"a\\u202Eb\"]"));
    assert!(turned.damaged[0].message.is_ascii(), "{turned:?}");
}
