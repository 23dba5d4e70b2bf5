//! What a plugin says of itself is a stranger's text: nothing of it speaks to the terminal, and a manifest that lies is
//! refused with what it says and what is.

use serde_json::{Value, json};

use crate::support::{COUNTER, Scratch, Signer, made};

/// Colours, a window's title, the other direction, something invisible, a new line with a promise of its own.
const EVIL: &str =
    "\u{1b}[31mred\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}txt.exe\u{200b}\nSigned by everybody\r";

/// Nothing but lines of printable text.
#[track_caller]
fn harmless(text: &str) {
    for c in text.chars() {
        let bad = (c.is_control() && c != '\n') || "\u{202e}\u{200b}".contains(c);
        assert!(!bad, "{c:?} in {text:?}");
    }
    assert!(
        text.lines().all(|line| !line.starts_with("Signed by")),
        "{text}"
    );
}

#[test]
fn nothing_that_a_plugin_says_reaches_the_terminal_as_it_is() {
    let scratch = Scratch::new();
    let signer = Signer::new(0x44);
    let manifest = |version: &str| {
        json!({
            "plugin": {"name": "acme:counter", "version": version, "description": EVIL, "licence": EVIL, "authors": [EVIL]},
            "rows": [{"id": "counter", "config": {EVIL: EVIL}}],
            EVIL: 1,
        })
    };
    let name = "evil.wasm";
    let put = |version: &str| {
        let bytes = made(COUNTER, &manifest(version));
        scratch.put(name, &bytes);
        // A comment of one line, as a signature's has to be.
        let comment = EVIL.replace(['\n', '\r'], " ");
        scratch.write(&format!("{name}.minisig"), &signer.sign(&bytes, &comment));
    };
    put("1.0.0");
    let path = format!("./{name}");
    let key = signer.public();
    let mut all = vec![
        scratch.plugin(["add", &path]),
        scratch.plugin(["info", &path]),
    ];
    all.push(scratch.plugin(["add", "--yes", "--key", &key, &path]));
    for words in [
        &["list"][..],
        &["info", "acme:counter"],
        &["why", "counter"],
        &["audit"],
        &["verify"],
        &["outdated"],
        &["--json", "info", "acme:counter"],
    ] {
        all.push(scratch.plugin(words.iter().copied()));
    }
    put("1.1.0");
    all.push(scratch.plugin(["update", "--dry-run"]));
    all.push(scratch.plugin(["update", "--yes"]));
    for ended in all.iter().skip(1) {
        assert_eq!(ended.code, Some(0), "{ended:?}");
    }
    for ended in all {
        harmless(&ended.stdout);
        harmless(&ended.stderr);
    }
    let ended = scratch.dsh().headless().args(["--dump-config"]).run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    harmless(&ended.stdout);
}

#[test]
fn a_manifest_that_lies_or_is_damaged_is_one_line_that_says_what_is() {
    let scratch = Scratch::new();
    let plugin = json!({"name": "acme:liar", "version": "1.0.0"});
    let with = |member: &str, value: Value| {
        let mut manifest = json!({"plugin": plugin});
        manifest[member] = value;
        manifest
    };
    for (manifest, parts) in [
        (
            with("wants", json!({"http": ["https://a.example"]})),
            &["http", "import"][..],
        ),
        (with("wants", json!({"nonsense": true})), &["nonsense"]),
        (
            with("wants", json!({"tool-names": [EVIL]})),
            &["tool-names"],
        ),
        (
            with("events", json!({"appends": ["turn/start"]})),
            &["turn/start"],
        ),
        (with("events", json!({"sources": ["user"]})), &["user"]),
        (with("rows", json!([{"id": "A b"}])), &["rows[0].id"]),
        (
            with("rows", json!([{"id": "x"}, {"id": "x"}])),
            &["two of its rows"],
        ),
        (with("limits", json!({"memory": "lots"})), &["memory"]),
        (
            with("plugin", json!({"name": "acme:liar", "version": "new"})),
            &["plugin.version", "new"],
        ),
        (
            with("plugin", json!({"name": "liar", "version": "1.0.0"})),
            &["plugin.name", "namespace:name"],
        ),
        (
            with("plugin", json!({"name": "dsh:liar", "version": "1.0.0"})),
            &["dsh:liar"],
        ),
        (
            with("plugin", json!({"name": EVIL, "version": "1.0.0"})),
            &["plugin.name"],
        ),
        (
            json!({"plugin": plugin, "config": {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}, "additionalProperties": false}}, "rows": [{"id": "x", "config": {"a": "b"}}]}),
            &["row x", "\"a\" must be an integer"],
        ),
    ] {
        scratch.put("liar.wasm", &made(COUNTER, &manifest));
        let mut all = vec!["liar.wasm"];
        all.extend(parts);
        let ended = scratch.plugin(["add", "--yes", "liar.wasm"]).refused(&all);
        assert_eq!(ended.stderr.lines().count(), 1, "{manifest}: {ended:?}");
        harmless(&ended.stderr);
    }
    let twice = [
        made(COUNTER, &json!({"plugin": plugin})),
        made(COUNTER, &json!({"plugin": plugin})),
    ];
    let section = &twice[0][std::fs::read(crate::support::root().join(COUNTER))
        .unwrap()
        .len()..];
    scratch.put("twice.wasm", &[&twice[0][..], section].concat());
    scratch
        .plugin(["add", "--yes", "twice.wasm"])
        .refused(&["two"]);
    assert!(scratch.lock_text().is_empty());
}

/// No tool of the model's gets at the lock: it is in `$DSH_HOME`, where nothing writes.
#[test]
fn a_model_cannot_install_or_grant_anything() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &crate::support::counter("1.0.0"));
    let dsh = env!("CARGO_BIN_EXE_dsh");
    let command = format!(
        "{dsh} plugin add --yes {}/counter.wasm; echo code $?",
        scratch.work().display()
    );
    let (ended, results) = scratch.calls(
        "bash",
        &json!({"command": command, "description": "install"}),
    );
    assert_eq!(ended.stdout, "Called.\n", "{ended:?}");
    assert!(results[0].0.contains("code 1"), "{results:?}");
    assert!(scratch.lock_text().is_empty(), "{}", scratch.lock_text());
    assert!(scratch.packages().is_empty());
}
