//! `dsh plugin`, the life of a plugin: added, used, disabled, granted and revoked, removed.

use serde_json::json;

use crate::support::{CORE, COUNTER, Scratch, TODO, counter, made, replaced, root, todo};

#[test]
fn a_plugin_is_added_and_used_disabled_and_gone_enabled_and_there_and_removed() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    let added = scratch.plugin(["add", "--yes", "./counter.wasm"]).done();
    assert!(
        added
            .stdout
            .starts_with("added acme:counter 1.0.0 to the profile headless\n")
            && added.stdout.contains("tools     c_count\n")
            && added.stdout.contains("dsh plugin remove acme:counter"),
        "{added:?}"
    );
    let count = json!({"text": "one\ntwo"});
    let answer = format!("{} bytes, 1 line ends", count.to_string().len());
    let (ended, results) = scratch.calls("c_count", &count);
    ended.answered("Called.");
    assert_eq!(results, [(answer.clone(), None)]);

    assert_eq!(
        scratch.plugin(["disable", "acme:counter"]).done().stdout,
        "disabled acme:counter\n"
    );
    let (ended, results) = scratch.calls("c_count", &count);
    ended.answered("Called.");
    assert!(results[0].1.is_some(), "there is no such tool: {results:?}");
    assert!(scratch.dump().contains("disabled: true"));

    assert_eq!(
        scratch
            .plugin(["enable", "counter"])
            .done()
            .stdout
            .lines()
            .count(),
        2,
        "the row, and that the plugin is off"
    );
    scratch.plugin(["enable", "acme:counter"]).done();
    assert_eq!(scratch.calls("c_count", &count).1, [(answer, None)]);

    assert_eq!(scratch.packages().len(), 1);
    assert_eq!(
        scratch.plugin(["remove", "acme:counter"]).done().stdout,
        "removed acme:counter 1.0.0\n"
    );
    assert!(
        scratch.packages().is_empty(),
        "no lock names its bytes any more"
    );
    let (ended, results) = scratch.calls("c_count", &count);
    ended.answered("Called.");
    assert!(results[0].1.is_some());
}

#[test]
fn its_rows_are_in_the_dump_with_their_origin_and_a_patch_addresses_them() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let patches = scratch.home().join("profiles/headless/cordis.patch.yml");
    let before = std::fs::read_to_string(&patches).unwrap();
    let dump = scratch.dump();
    assert!(
        dump.contains("# == acme:counter 1.0.0\n- id: counter\n"),
        "{dump}"
    );
    scratch.write_home(
        "profiles/headless/cordis.patch.yml",
        "- id: counter\n  config: {unit: y}\n  disabled: true\n",
    );
    let dump = scratch.dump();
    assert!(
        dump.contains("# == acme:counter 1.0.0, patched by ") && dump.contains("unit: y"),
        "{dump}"
    );
    std::fs::write(&patches, &before).unwrap();
    for words in [
        &["disable", "acme:counter"][..],
        &["enable", "acme:counter"],
        &["revoke", "acme:counter", "tool-names"],
        &["remove", "acme:counter"],
    ] {
        scratch.plugin(words.iter().copied());
        assert_eq!(
            std::fs::read_to_string(&patches).unwrap(),
            before,
            "{words:?} is the lock's alone"
        );
    }
}

#[test]
fn a_grant_that_is_revoked_leaves_the_row_out_and_one_that_is_given_brings_it_back() {
    let scratch = Scratch::new();
    // Its tool is free where the bundle's row that has it is switched off.
    scratch.plugin(["list"]).done();
    let patch = "- id: tool-todo\n  disabled: true\n";
    scratch.write_home("profiles/headless/cordis.patch.yml", patch);
    let manifest = json!({
        "plugin": {"name": "acme:todo", "version": "1.0.0"},
        "rows": [{"id": "todo"}],
        "wants": {"journal": ["todo/write"]},
    });
    scratch.put("todo.wasm", &made(TODO, &manifest));
    scratch.plugin(["add", "--yes", "todo.wasm"]).done();
    let call = json!({"todos": [{"content": "x", "status": "pending"}]});
    let (ended, results) = scratch.calls("todo_write", &call);
    ended.answered("Called.");
    assert_eq!(results[0].1, None, "{results:?}");

    let revoked = scratch.plugin(["revoke", "acme:todo", "journal"]).done();
    assert!(
        revoked
            .stdout
            .contains("without journal its rows are left out"),
        "{revoked:?}"
    );
    let (ended, _) = scratch.calls("todo_write", &call);
    assert!(
        ended.stderr.starts_with("dsh: row todo is left out:")
            && ended.stderr.contains("dsh plugin grant acme:todo journal"),
        "{ended:?}"
    );
    let why = scratch.plugin(["why", "todo"]);
    assert!(why.stdout.contains("it is left out:"), "{why:?}");

    scratch
        .plugin(["grant", "acme:todo", "journal=todo/write"])
        .done();
    let (ended, results) = scratch.calls("todo_write", &call);
    ended.answered("Called.");
    assert_eq!(results[0].1, None, "{results:?}");
    scratch
        .plugin(["revoke", "acme:todo", "clock"])
        .refused(&["has no grant clock; it has"]);
    scratch
        .plugin(["grant", "acme:todo", "clock"])
        .refused(&["can make nothing of the grant clock", "dsh:plugin/clock"]);
    scratch
        .plugin(["grant", "acme:todo", "nonsense"])
        .refused(&["nonsense"]);
    scratch
        .plugin(["grant", "acme:todo", "journal=turn/start"])
        .refused(&["journal", "turn/start"]);
    scratch
        .plugin(["grant", "acme:nothing", "clock"])
        .refused(&["no plugin acme:nothing; it has acme:todo"]);
}

/// Granted less than it imports, it is added all the same, and it is said what that means.
#[test]
fn what_a_person_grants_is_what_it_has() {
    let scratch = Scratch::new();
    scratch.put("todo.wasm", &todo());
    let added = scratch.plugin(["add", "--none", "todo.wasm"]).done();
    assert!(
        added
            .stdout
            .contains("without the grant journal it is left out of a run"),
        "{added:?}"
    );
    let (_, info) = scratch.plugin_json(["info", "acme:todo"]);
    assert_eq!(info["installed"]["grants"], json!({}));
    scratch.plugin(["remove", "acme:todo"]).done();
    scratch
        .plugin(["add", "--grant", "journal", "todo.wasm"])
        .done();
    let (_, list) = scratch.plugin_json(["list"]);
    assert_eq!(list["plugins"][0]["grants"], json!({"journal": true}));
    scratch
        .plugin(["remove", "todo"])
        .refused(&["is a row of acme:todo", "dsh plugin remove acme:todo"]);
    scratch.plugin(["remove", "acme:todo"]).done();
    scratch
        .plugin(["add", "--grant", "clock", "todo.wasm"])
        .refused(&["can make nothing of the grant clock"]);
}

#[test]
fn a_core_module_is_made_a_component_and_used() {
    let scratch = Scratch::new();
    let manifest = json!({"plugin": {"name": "acme:core", "version": "0.1.0"}});
    scratch.put("core.wasm", &made(CORE, &manifest));
    let (ended, added) = scratch.plugin_json(["add", "--yes", "core.wasm"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert_ne!(added["plugin"]["fetched"], added["plugin"]["digest"]);
    assert_eq!(
        added["plugin"]["rows"][0]["id"], "core",
        "a row of the plugin's name, as it brings none"
    );
    let (ended, results) = scratch.calls("c_count", &json!({"text": ""}));
    ended.answered("Called.");
    assert_eq!(results[0].1, None);
    scratch.plugin(["verify"]).done();
    // Without its section it is no plugin that anybody could mount.
    let bare = made(CORE, &manifest);
    let at = bare
        .windows(14)
        .position(|part| part == b"component-type")
        .unwrap();
    let mut broken = bare.clone();
    broken[at] = b'K';
    scratch.put("bare.wasm", &broken);
    scratch
        .plugin(["add", "--yes", "bare.wasm"])
        .refused(&["bare.wasm: ", "core WebAssembly module"]);
}

#[test]
fn what_is_no_component_is_refused_with_what_it_is() {
    let scratch = Scratch::new();
    let whole = counter("1.0.0");
    let unversioned = replaced(&whole, b"dsh:plugin/tool@0.1.0", b"dsh:plugin/tool@7.1.0");
    let table: [(&str, &[u8], &[&str]); 12] = [
        ("elf", b"\x7fELF\x02\x01\x01\0", &["native program"]),
        ("js", b"export const tool = 1;", &["JavaScript"]),
        ("zip", b"PK\x03\x04....", &["zip archive"]),
        ("tgz", b"\x1f\x8b\x08\0", &["gzip archive"]),
        (
            "wat",
            b"(component)",
            &["WebAssembly text", "wasm-tools parse"],
        ),
        ("html", b"<!DOCTYPE html><p>404", &["web page"]),
        ("empty", b"", &["it is empty"]),
        (
            "noise",
            b"\xff\xfe\x80\x81\x99",
            &["not a WebAssembly component"],
        ),
        ("truncated", &whole[..whole.len() / 2], &["ends too early"]),
        ("future", &unversioned, &["7.1.0", "this host serves 0.1.0"]),
        ("module", b"\0asm\x01\0\0\0", &["core WebAssembly module"]),
        (
            "bare",
            b"\0asm\x0d\0\x01\0",
            &["no manifest", "cordis.patch.yml"],
        ),
    ];
    for (name, bytes, parts) in table {
        scratch.put(name, bytes);
        let path = format!("./{name}");
        let mut all = vec![name];
        all.extend(parts);
        scratch.plugin(["add", "--yes", &path]).refused(&all);
        scratch.plugin(["info", &path]).refused_or_bare(name, parts);
    }
    std::fs::create_dir(scratch.work().join("folder")).unwrap();
    scratch
        .plugin(["add", "./folder"])
        .refused(&["it is a folder"]);
    std::fs::write(scratch.work().join("folder/package.json"), "{}").unwrap();
    scratch
        .plugin(["add", "folder"])
        .refused(&["folder of an npm package"]);
    scratch
        .plugin(["add", "./nothing.wasm"])
        .refused(&["nothing.wasm", "check the path"]);
    scratch
        .plugin(["add", "@acme/dsh-weather"])
        .refused(&["npm package", ".wasm"]);
    scratch
        .plugin(["add", "github:acme/weather"])
        .refused(&["git repository"]);
    scratch
        .plugin(["install", "x"])
        .refused(&["dsh plugin add SOURCE"]);
    assert!(scratch.lock_text().is_empty() && scratch.packages().is_empty());
}

impl crate::support::Ended {
    /// `info` reads a component without a manifest, and refuses the rest as `add` does.
    #[track_caller]
    fn refused_or_bare(self, name: &str, parts: &[&str]) {
        if name == "bare" {
            let ended = self.done();
            assert!(ended.stdout.contains("without a manifest"), "{ended:?}");
        } else {
            self.refused(parts);
        }
    }
}

#[test]
fn a_name_that_is_taken_is_refused_with_who_has_it() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let twin = |name: &str, row: &str| {
        let manifest = json!({"plugin": {"name": name, "version": "1.0.0"}, "rows": [{"id": row}]});
        made(COUNTER, &manifest)
    };
    scratch.put("tool.wasm", &twin("evil:twin", "twin"));
    scratch
        .plugin(["add", "--yes", "tool.wasm"])
        .refused(&["tool c_count", "the plugin acme:counter"]);
    scratch.put("row.wasm", &twin("evil:twin", "tool-bash"));
    scratch.plugin(["add", "--yes", "row.wasm"]).refused(&[
        "a row tool-bash",
        "base",
        "--as tool-bash=OTHER-ID",
    ]);
    scratch.put("first.wasm", &twin("dsh:tool-bash", "x"));
    scratch
        .plugin(["add", "--yes", "first.wasm"])
        .refused(&["dsh:tool-bash"]);
    let todo = made(
        TODO,
        &json!({"plugin": {"name": "evil:todo", "version": "1.0.0"}, "rows": [{"id": "x"}]}),
    );
    scratch.put("todo.wasm", &todo);
    scratch
        .plugin(["add", "--yes", "todo.wasm"])
        .refused(&["tool todo_write", "row tool-todo of"]);
    assert_eq!(
        scratch.packages().len(),
        1,
        "nothing of what was refused is kept"
    );
}

#[test]
fn a_row_has_the_id_that_a_person_gives_it() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    scratch
        .plugin(["add", "--yes", "--as", "counter=mine", "counter.wasm"])
        .done();
    assert!(scratch.dump().contains("- id: mine\n"));
    scratch
        .plugin(["add", "--as", "counter=a b", "counter.wasm"])
        .refused(&["is no id of a row"]);
    scratch.plugin(["remove", "acme:counter"]).done();
    scratch
        .plugin(["add", "--yes", "--as", "x=y", "counter.wasm"])
        .refused(&["brings no row \"x\"; it brings counter"]);
}

#[test]
fn the_same_bytes_again_change_nothing_and_put_a_lost_package_back() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let lock = scratch.lock_text();
    let again = scratch.plugin(["add", "counter.wasm"]).done();
    assert!(again.stdout.contains("is there already"), "{again:?}");
    let package = scratch
        .home()
        .join(format!("plugins/sha256/{}.wasm", scratch.packages()[0]));
    std::fs::write(&package, b"damaged").unwrap();
    let verify = scratch.plugin(["verify"]);
    assert_eq!(verify.code, Some(1));
    assert!(
        verify.stdout.starts_with("WRONG  acme:counter 1.0.0")
            && verify.stdout.contains("dsh plugin add"),
        "{verify:?}"
    );
    let again = scratch.plugin(["add", "counter.wasm"]).done();
    assert!(again.stdout.contains("whole again"), "{again:?}");
    scratch.plugin(["verify"]).done();
    assert_eq!(scratch.lock_text(), lock);
    scratch.put("counter.wasm", &counter("2.0.0"));
    scratch
        .plugin(["add", "--yes", "counter.wasm"])
        .refused(&["already", "dsh plugin update --from"]);
}

#[test]
fn a_row_of_a_bundle_is_a_persons_to_switch_and_the_lines_are_told() {
    let scratch = Scratch::new();
    scratch.with_counter();
    scratch.plugin(["disable", "tool-bash"]).refused(&[
        "row of",
        "not of a plugin",
        "- id: tool-bash",
        "disabled: true",
        "cordis.patch.yml",
    ]);
    scratch
        .plugin(["disable", "nothing"])
        .refused(&["no plugin nothing; it has acme:counter"]);
}

#[test]
fn why_tells_of_a_plugin_a_row_and_a_tool() {
    let scratch = Scratch::new();
    scratch.with_counter();
    for (word, parts) in [
        (
            "acme:counter",
            &[
                "acme:counter 1.0.0 is installed in the profile headless",
                "row counter comes from acme:counter 1.0.0",
                "it is mounted",
            ][..],
        ),
        ("counter", &["row counter comes from acme:counter 1.0.0"]),
        (
            "c_count",
            &["the tool c_count is one of row counter", "granted by you"],
        ),
        (
            "bash",
            &["the tool bash is one of row tool-bash", "comes from"],
        ),
        ("tool-fs", &["row tool-fs comes from"]),
        ("headless-runner", &["it is a part of the host"]),
    ] {
        let why = scratch.plugin(["why", word]).done();
        for part in parts {
            assert!(why.stdout.contains(part), "{part} in {}", why.stdout);
        }
    }
    scratch.plugin(["disable", "acme:counter"]).done();
    let why = scratch.plugin(["why", "counter"]).done();
    assert!(
        why.stdout
            .contains("it is disabled by dsh plugin disable acme:counter"),
        "{why:?}"
    );
    scratch
        .plugin(["why", "nothing-at-all"])
        .refused(&["no plugin, no row and no tool"]);
}

#[test]
fn audit_lists_what_each_row_may_do_and_what_stands_out() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let loose = json!({"plugin": {"name": "acme:loose", "version": "1.0.0"}});
    let loose = replaced(&made(COUNTER, &loose), b"c_count", b"d_count");
    let component = scratch.put("loose.wasm", &loose);
    let component = component.display();
    scratch.write_home(
        "profiles/headless/cordis.patch.yml",
        &format!("- insert: [{{id: loose, component: {component}, grants: {{clock: true}}}}]\n- id: counter\n  grants: {{}}\n"),
    );
    let (ended, audit) = scratch.plugin_json(["audit"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let kinds = |id: &str| -> Vec<String> {
        let rows = audit["rows"].as_array().unwrap();
        let row = rows
            .iter()
            .find(|row| row["id"] == id)
            .unwrap_or_else(|| panic!("{id}"));
        let findings = row["findings"].as_array().unwrap();
        findings
            .iter()
            .map(|finding| finding["kind"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(kinds("counter"), ["unsigned", "patched"]);
    assert_eq!(kinds("loose"), ["unused", "unpinned"]);
    assert!(kinds("tool-bash").contains(&"any-program".to_owned()));
    assert!(kinds("llm-deepseek").contains(&"conversations".to_owned()));
    let text = scratch.plugin(["audit"]).done().stdout;
    assert!(text.contains("! it runs any program"), "{text}");
}

#[test]
fn list_tells_what_there_is_and_that_there_is_nothing() {
    let scratch = Scratch::new();
    let none = scratch.plugin(["list"]).done();
    assert!(
        none.stdout
            .contains("has no plugins; dsh plugin add SOURCE"),
        "{none:?}"
    );
    scratch.with_counter();
    let list = scratch.plugin(["list"]).done().stdout;
    let lines: Vec<&str> = list.lines().collect();
    assert!(
        lines[0].starts_with("NAME") && lines[1].starts_with("acme:counter"),
        "{list}"
    );
    assert!(
        lines[1].contains("1.0.0") && lines[1].contains("enabled") && lines[1].contains("counter")
    );
}

/// Upstream's word order, and a profile that is not there yet.
#[test]
fn a_new_profile_begins_with_the_base_and_keeps_its_plugins_to_itself() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    let added = scratch.plugin(["--profile", "mine", "add", "--yes", "file:./counter.wasm"]);
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(
        added
            .stderr
            .starts_with("dsh: initialized profile mine at "),
        "{added:?}"
    );
    assert!(
        added
            .stdout
            .contains("dsh plugin remove acme:counter --profile mine"),
        "{added:?}"
    );
    let list = scratch.plugin(["list", "--profile", "mine"]).done();
    assert!(list.stdout.contains("acme:counter"));
    assert!(
        scratch
            .plugin(["list"])
            .done()
            .stdout
            .contains("has no plugins")
    );
    scratch
        .plugin(["list", "--profile", "nope"])
        .refused(&["\"nope\" does not exist"]);
    scratch
        .plugin(["add", "--profile", "../x", "counter.wasm"])
        .refused(&["is not a profile's name"]);
}

/// An option that cannot be followed is told before anything is fetched or made.
#[test]
fn help_and_usage_errors_touch_nothing() {
    let scratch = Scratch::new();
    let help = scratch.plugin(["--help"]).done();
    assert!(
        help.stdout.contains("Commands:\n  add ")
            && help.stdout.contains("dsh plugin add ./notes.wasm"),
        "{help:?}"
    );
    for words in [
        &["add", "--sha256", "abc", "x.wasm"][..],
        &["add", "--key", "nonsense", "x.wasm"],
        &["add", "--key", "./no.pub", "x.wasm"],
        &["add", "--grant", "Clock", "x.wasm"],
        &["add", "--grant", "workspace=all", "x.wasm"],
        &["add", "--timeout", "soon", "x.wasm"],
        &["add", "--yes", "--none", "x.wasm"],
        &["frobnicate"],
    ] {
        let ended = scratch.plugin(words.iter().copied());
        assert_eq!(
            (
                ended.code,
                ended.stdout.as_str(),
                ended.stderr.lines().count()
            ),
            (Some(1), "", 1),
            "{ended:?}"
        );
        assert!(ended.stderr.starts_with("error: "), "{ended:?}");
        assert!(!scratch.home().exists(), "{words:?}");
    }
}

/// The script of docs/plugins.md is what an author has.
#[test]
fn the_documented_script_makes_a_plugin_of_a_component() {
    let scratch = Scratch::new();
    scratch.write(
        "plugin.toml",
        "[plugin]\nname = \"acme:counter\"\nversion = \"0.1.0\"\ndescription = \"Zählt\"\n\n\
         [[rows]]\nid = \"counter\"\nconfig = { unit = \"x\" }\n\n[config]\nschema = \"schema.json\"\n\n\
         [limits]\nmemory = \"1GiB\"\ncpu = \"1s\"\n",
    );
    scratch.write(
        "schema.json",
        r#"{"type": "object", "properties": {"unit": {"type": "string"}}, "additionalProperties": false}"#,
    );
    let made = std::process::Command::new("python3")
        .arg(root().join("docs/manifest.py"))
        .arg("plugin.toml")
        .arg(root().join(COUNTER))
        .arg("counter.wasm")
        .current_dir(scratch.work())
        .status();
    assert!(made.unwrap().success());
    let (_, info) = scratch.plugin_json(["info", "counter.wasm"]);
    assert_eq!(info["description"], "Zählt");
    let refused = scratch.plugin(["add", "counter.wasm"]);
    assert!(
        refused
            .stderr
            .contains("it asks for more memory than a row gets"),
        "{refused:?}"
    );
    scratch.plugin(["add", "--yes", "counter.wasm"]).done();
    assert!(
        !scratch.lock_text().contains("1GiB"),
        "more than the default is a person's to give"
    );
    scratch
        .calls("c_count", &json!({"text": ""}))
        .0
        .answered("Called.");
}

/// What needs no grant is power too: it is said wherever a person decides or looks.
#[test]
fn a_plugin_that_writes_into_the_prompt_says_so_everywhere() {
    const SAYS: &str = "adds text of its own to the system prompt";
    let scratch = Scratch::new();
    let manifest = json!({"plugin": {"name": "acme:prompt", "version": "1.0.0"}});
    let component = made("target/components/prompt-base.wasm", &manifest);
    scratch.put("prompt.wasm", &component);
    scratch
        .plugin(["add", "prompt.wasm"])
        .refused(&["acme:prompt adds text", SAYS]);
    let added = scratch.plugin(["add", "--yes", "prompt.wasm"]).done();
    assert!(added.stdout.contains(SAYS), "{added:?}");
    for words in [
        &["audit"][..],
        &["why", "acme:prompt"],
        &["info", "acme:prompt"],
    ] {
        let said = scratch.plugin(words.iter().copied()).done();
        assert!(said.stdout.contains(SAYS), "{said:?}");
    }
}

#[test]
fn an_update_that_begins_to_write_into_the_prompt_asks_again() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let manifest = json!({
        "plugin": {"name": "acme:counter", "version": "1.1.0"}, "rows": [{"id": "counter"}],
    });
    let component = made("target/components/prompt-base.wasm", &manifest);
    scratch.put("counter.wasm", &component);
    let lock = scratch.lock_text();
    scratch.plugin(["update"]).refused(&[
        "adds text of its own to the system prompt",
        "dsh plugin update --none acme:counter",
    ]);
    assert_eq!(scratch.lock_text(), lock);
    scratch.plugin(["update", "--yes"]).done();
}

#[test]
fn a_provider_that_is_served_already_is_refused_and_so_are_rows_that_clash_among_themselves() {
    let scratch = Scratch::new();
    let manifest = json!({
        "plugin": {"name": "acme:llm", "version": "1.0.0"},
        "rows": [{"id": "mine"}],
        "wants": {"route": [{"provider": "scripted"}]},
    });
    let component = made("target/components/llm-scripted.wasm", &manifest);
    scratch.put("llm.wasm", &component);
    scratch
        .plugin(["add", "--yes", "llm.wasm"])
        .refused(&["serves the provider scripted", "row llm-scripted of base"]);
    let twice = json!({
        "plugin": {"name": "acme:twice", "version": "1.0.0"}, "rows": [{"id": "a"}, {"id": "b"}],
    });
    scratch.put("twice.wasm", &made(COUNTER, &twice));
    scratch
        .plugin(["add", "--yes", "twice.wasm"])
        .refused(&["its row b brings the tool c_count"]);
    scratch.put("counter.wasm", &counter("1.0.0"));
    scratch
        .plugin(["add", "--yes", "--as", "counter=tool-bash", "counter.wasm"])
        .refused(&["a row tool-bash", "--as counter=OTHER-ID"]);
    let mut deep = json!({});
    for _ in 0..60 {
        deep = json!({"a": deep});
    }
    let deep = json!({
        "plugin": {"name": "acme:deep", "version": "1.0.0"}, "rows": [{"id": "deep", "config": deep}],
    });
    scratch.put("deep.wasm", &made(COUNTER, &deep));
    scratch
        .plugin(["add", "--yes", "deep.wasm"])
        .refused(&["its own row deep", "nests deeper"]);
    assert!(scratch.packages().is_empty());
}

#[test]
fn what_a_patch_keeps_disabled_is_told_and_why_shows_the_grants_that_wait() {
    let scratch = Scratch::new();
    scratch.with_counter();
    let patch = "- id: counter\n  disabled: true\n";
    scratch.write_home("profiles/headless/cordis.patch.yml", patch);
    let enabled = scratch.plugin(["enable", "counter"]).done();
    assert!(
        enabled
            .stdout
            .contains("row counter is disabled still, by "),
        "{enabled:?}"
    );
    scratch.write_home("profiles/headless/cordis.patch.yml", "");
    scratch.plugin(["disable", "counter"]).done();
    let why = scratch.plugin(["why", "counter"]).done();
    assert!(
        why.stdout
            .contains("it may tool-names=c_count, granted by you"),
        "{why:?}"
    );
}

#[test]
fn a_home_whose_name_is_no_text_is_used_like_any_other() {
    use std::os::unix::ffi::OsStringExt;
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    let mut home = scratch.home().into_os_string().into_vec();
    home.push(0xff);
    let home = std::ffi::OsString::from_vec(home);
    for words in [
        &["add", "--json", "--yes", "counter.wasm"][..],
        &["list", "--json"],
        &["verify", "--json"],
        &["why", "counter", "--json"],
        &["disable", "tool-bash", "--json"],
    ] {
        let dsh = scratch.dsh().env("DSH_HOME", &home).args(["plugin"]);
        let ended = dsh.args(words.iter().copied()).run();
        let value: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
        assert_eq!(value["ok"], ended.code == Some(0), "{ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{ended:?}");
    }
}

#[test]
fn a_reader_that_has_gone_away_makes_nothing_fail_that_was_done() {
    let scratch = Scratch::new();
    scratch.put("counter.wasm", &counter("1.0.0"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let dsh = scratch
        .dsh()
        .args(["plugin", "add", "--yes", "counter.wasm"]);
    let ended = dsh.stdout(writer).run();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    assert!(scratch.lock_text().contains("acme:counter"));
}
