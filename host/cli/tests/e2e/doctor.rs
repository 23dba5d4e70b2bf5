//! `dsh doctor`: each thing that can be wrong is a line with the row or file and
//! what to do; what it says is wrong costs a task nothing but that row.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use mock_provider::Mock;
use serde_json::{Value, json};

use crate::plugin_json::check;
use crate::support::{COUNTER, Ended, Scratch, counter, made, replaced, root, say, wait_until};

/// What it printed, line by line.
fn doctor(scratch: &Scratch) -> Ended {
    let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", "sk-e2e");
    dsh.args(["doctor"]).run()
}

/// A line of this level with all of these words; the exit code fits.
#[track_caller]
fn told(ended: &Ended, level: &str, words: &[&str]) {
    let mut lines = ended.stdout.lines();
    let fits = |line: &str| line.starts_with(level) && words.iter().all(|word| line.contains(word));
    assert!(
        lines.any(fits),
        "{level} with {words:?} is not in:\n{}",
        ended.stdout
    );
    let wrong = ended.stdout.lines().any(|line| line.starts_with("wrong"));
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(i32::from(wrong)), ""),
        "{ended:?}"
    );
}

#[track_caller]
fn wrong(ended: &Ended, words: &[&str]) {
    told(ended, "wrong", words);
}

/// A home with its profile.
fn furnished() -> Scratch {
    let scratch = Scratch::new();
    scratch.write_home(
        "profiles/headless/profile.yml",
        "bundles: [base, headless]\n",
    );
    scratch
}

fn patched(patch: &str) -> Scratch {
    let scratch = furnished();
    scratch.write_home("profiles/headless/cordis.patch.yml", patch);
    scratch
}

/// A task runs in spite of it all, with a tool of another row.
#[track_caller]
fn a_task_still_runs(scratch: &Scratch) -> Ended {
    let mock = Mock::start(vec![
        say("").bash("echo hi").answer(),
        say("Still here.").answer(),
    ]);
    let ended = scratch.dsh().provider(&mock).headless().args(["Go"]).run();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Still here.\n"),
        "{ended:?}"
    );
    ended
}

#[test]
fn before_a_first_use_it_makes_nothing_and_says_what_is_missing() {
    let scratch = Scratch::new();
    let ended = doctor(&scratch);
    told(
        &ended,
        "warning",
        &["home", "there is no", "the first run makes it"],
    );
    told(&ended, "ok", &["rows", "row tool-bash mounts"]);
    told(
        &ended,
        "ok",
        &["model", "DEEPSEEK_API_KEY is in the environment"],
    );
    assert!(
        ended.stdout.ends_with(" ok\n") && ended.code == Some(0),
        "{ended:?}"
    );
    assert!(!scratch.home().exists());

    let keyless = scratch.dsh().args(["doctor"]).run();
    wrong(
        &keyless,
        &[
            "model",
            "row llm-deepseek",
            "export DEEPSEEK_API_KEY",
            "dsh credentials set DEEPSEEK_API_KEY",
        ],
    );
    assert!(!scratch.home().exists());
}

#[test]
fn a_sound_home_after_a_run_has_nothing_wrong_and_its_json_says_the_same() {
    let scratch = furnished();
    a_task_still_runs(&scratch);
    let ended = doctor(&scratch);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    told(&ended, "ok", &["sessions", "1 sessions"]);
    told(&ended, "ok", &["engine", "is usable"]);
    told(&ended, "ok", &["tools", "bash"]);
    let run = |args: &[&str]| {
        let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", "sk-e2e");
        dsh.args(args.iter().copied()).run()
    };
    let json = run(&["doctor", "--json", "--profile", "headless"]);
    let value: Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!((json.code, &value["ok"]), (Some(0), &json!(true)));
    let schema = std::fs::read(root().join("docs/schema/doctor.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    check(&schema, &schema, &value, "it").unwrap();
    let findings = value["findings"].as_array().unwrap();
    assert_eq!(findings.len(), ended.stdout.lines().count() - 1);
    assert!(!json.stdout.contains("sk-e2e") && !ended.stdout.contains("sk-e2e"));

    let none = run(&["doctor", "--profile", "nope"]);
    wrong(&none, &["profile", "\"nope\"", "profile.yml"]);
    let usage = run(&["doctor", "--fix"]);
    assert!(
        usage.code == Some(1) && usage.stderr.contains("--fix"),
        "{usage:?}"
    );
    assert!(
        run(&["doctor", "--help"])
            .stdout
            .starts_with("Usage: dsh doctor")
    );
}

/// Rows of components that are none of what they should be.
#[test]
fn a_component_that_cannot_be_used_is_told_with_row_file_and_reason_and_the_rest_runs() {
    let scratch = furnished();
    let whole = std::fs::read(root().join("target/components/tool-todo.wasm")).unwrap();
    let put = |name: &str, bytes: &[u8]| {
        let path = scratch.write_beside(name, "");
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let cut = put("cut.wasm", &whole[..whole.len() / 2]);
    let module = put("module.wasm", b"\0asm\x01\0\0\0");
    let text = put("text.wasm", b"hello");
    let version = put(
        "version.wasm",
        &replaced(&whole, b"dsh:plugin/tool@0.1.0", b"dsh:plugin/tool@0.9.0"),
    );
    let lies = put(
        "lies.wasm",
        &made(
            COUNTER,
            &json!({"plugin": {"name": "acme:lies", "version": "1.0.0"}, "wants": {"http": ["https://a.example"]}}),
        ),
    );
    let schema = put(
        "schema.wasm",
        &made(
            COUNTER,
            &json!({"plugin": {"name": "acme:schema", "version": "1.0.0"},
                    "config": {"schema": {"type": "object", "properties": {"units": {"type": "string"}}}}}),
        ),
    );
    let row = |id: &str, component: &str, more: &str| {
        format!("    - {{id: {id}, component: {component}{more}}}\n")
    };
    let patch = [
        row("cut", &cut, ""),
        row("module", &module, ""),
        row("text", &text, ""),
        row("version", &version, ""),
        row("lies", &lies, ""),
        row("schema", &schema, ", config: {units: 3}"),
        row("gone", "/not/there.wasm", ""),
        row("ungranted", "dsh:tool-bash", ""),
        row("limit", "dsh:tool-fs", ", limits: {memory: much}"),
        row(
            "grant",
            "dsh:tool-fs",
            ", grants: {workspace: {writes: true}}",
        ),
        row(
            "again",
            "dsh:tool-todo",
            ", grants: {journal: [todo/write]}",
        ),
    ];
    scratch.write_home(
        "profiles/headless/cordis.patch.yml",
        &format!("- insert:\n{}", patch.concat()),
    );
    let ended = doctor(&scratch);
    let own = scratch.home().join("profiles/headless/cordis.patch.yml");
    for line in ended
        .stdout
        .lines()
        .filter(|line| line.starts_with("wrong    rows"))
    {
        assert!(
            line.ends_with(&format!("the row in {}", own.display())),
            "{line}"
        );
    }
    wrong(&ended, &["row cut:", &cut]);
    wrong(&ended, &["row module:", &module, "core WebAssembly module"]);
    wrong(&ended, &["row text:", &text]);
    wrong(&ended, &["row version:", &version, "0.9.0", "0.1.0"]);
    wrong(&ended, &["row lies:", &lies, "http"]);
    wrong(&ended, &["row schema:", "units"]);
    wrong(&ended, &["row gone:", "/not/there.wasm"]);
    wrong(&ended, &["row ungranted:", "grant `session`"]);
    wrong(&ended, &["row limit:", "memory"]);
    wrong(&ended, &["row grant:", "workspace"]);
    wrong(
        &ended,
        &["tools", "tool-todo and again both offer a tool todo_write"],
    );
    told(&ended, "ok", &["row tool-bash mounts"]);

    let ran = a_task_still_runs(&scratch);
    for id in [
        "cut",
        "module",
        "text",
        "version",
        "lies",
        "schema",
        "gone",
        "ungranted",
        "limit",
        "grant",
    ] {
        let line = format!("dsh: row {id} is left out: ");
        assert!(
            ran.stderr.lines().any(|one| one.starts_with(&line)),
            "{line} is not in {ran:?}"
        );
    }
}

/// No schema says what holds between two members; the components do, when they are mounted.
#[test]
fn members_of_a_configuration_that_do_not_go_together_cost_the_row_at_the_start() {
    let table = [
        (
            "compaction-basic",
            "{summarizationProvider: x}",
            "summarizationProvider and summarizationModel must be set together",
        ),
        (
            "compaction-basic",
            "{retainRatio: 0.1, retainTokens: 5}",
            "only one of retainRatio and retainTokens",
        ),
        (
            "compaction-basic",
            "{retainRatio: 0.8}",
            "retainRatio (0.8) must be below thresholdRatio (0.8)",
        ),
        (
            "compaction-basic",
            "{modelPolicies: [{provider: p, model: m, thresholdRatio: 0.1}]}",
            "modelPolicies[0]: retainRatio (0.16) must be below thresholdRatio (0.1)",
        ),
        (
            "compaction-basic",
            "{retainTokens: 1e308}",
            "\"retainTokens\" must be 4294967295 or less",
        ),
        (
            "tool-result-pruner",
            "{thresholdChars: 1}",
            "must be at most thresholdChars (1)",
        ),
        (
            "tool-result-pruner",
            "{headChars: 99999999999999999999999}",
            "\"headChars\" must be 4294967295 or less",
        ),
    ];
    for (row, config, why) in table {
        let scratch = patched(&format!("- id: {row}\n  config: {config}\n"));
        wrong(
            &doctor(&scratch),
            &[&format!("row {row}:"), "config: ", why],
        );
        let ran = a_task_still_runs(&scratch);
        let line = format!("dsh: row {row} is left out: ");
        let lines: Vec<&str> = ran.stderr.lines().collect();
        assert!(
            lines.len() == 1 && lines[0].starts_with(&line) && lines[0].contains(why),
            "{ran:?}"
        );
        let mock = Mock::start(vec![]);
        let strict = scratch.dsh().provider(&mock).headless();
        let strict = strict.args(["--strict", "Go"]).run();
        assert!(
            strict.code != Some(0) && strict.stderr.contains(why),
            "{strict:?}"
        );
    }
}

#[test]
fn a_lock_that_was_edited_by_hand_and_a_package_that_changed_are_told_and_the_rest_runs() {
    let scratch = furnished();
    scratch.put("counter.wasm", &counter("0.3.1"));
    scratch.plugin(["add", "--yes", "./counter.wasm"]).done();
    told(&doctor(&scratch), "ok", &["plugins", "acme:counter 0.3.1"]);

    let sound = scratch.lock_text();
    let packages = scratch.home().join("plugins/sha256");
    let digest = scratch.packages().remove(0);
    let name = format!("{digest}.wasm");
    std::fs::write(packages.join(&name), "changed").unwrap();
    wrong(
        &doctor(&scratch),
        &["plugins", "acme:counter", "dsh plugin add"],
    );
    a_task_still_runs(&scratch);
    std::fs::remove_file(packages.join(&name)).unwrap();
    wrong(&doctor(&scratch), &["acme:counter", "dsh plugin add"]);

    std::fs::write(scratch.lock_file(), sound.replace(&digest, "nonsense")).unwrap();
    wrong(&doctor(&scratch), &["dsh.lock", "acme:counter"]);
    a_task_still_runs(&scratch);
    std::fs::write(scratch.lock_file(), "nonsense [").unwrap();
    wrong(&doctor(&scratch), &["dsh.lock"]);
    let lines = doctor(&scratch).stdout;
    assert_eq!(lines.matches("wrong ").count(), 1, "told once: {lines}");
    let ran = a_task_still_runs(&scratch);
    assert!(ran.stderr.contains("dsh.lock"), "{ran:?}");
}

#[test]
fn files_of_the_home_that_a_run_would_refuse_are_told() {
    let scratch = furnished();
    let credentials = scratch.write_home(".credentials.yaml", "version: 1\nrefs: {A: b}\n");
    std::fs::set_permissions(&credentials, std::fs::Permissions::from_mode(0o644)).unwrap();
    scratch.write_home("settings.yaml", "agent-default-model: 3\n");
    scratch.write_home(".env", "PATH=/evil\n");
    scratch.write_home("settings.yaml.lock", "");
    let ended = doctor(&scratch);
    wrong(&ended, &[".credentials.yaml", "chmod 600"]);
    wrong(&ended, &["settings.yaml:1", "agent-default-model"]);
    wrong(&ended, &[".env", "PATH"]);
    told(&ended, "warning", &["settings.yaml.lock", "remove it"]);

    let scratch = patched("- id: nobody\n  config: {}\n- 3\n");
    wrong(&doctor(&scratch), &["cordis.patch.yml"]);
    let scratch = patched("- id: nobody\n  config: {}\n");
    told(&doctor(&scratch), "warning", &["nobody"]);
    let scratch = patched("- insert:\n    - {id: x, name: '@a/b'}\n");
    wrong(&doctor(&scratch), &["row x", "@a/b"]);
    a_task_still_runs(&scratch);
    let scratch = patched("- id: agent-default-model\n  config: {provider: nobody, model: m}\n");
    wrong(
        &doctor(&scratch),
        &["model", "\"nobody\"", "deepseek-official"],
    );
    scratch.write_home("profiles/headless/profile.yml", "bundles: 3\n");
    wrong(&doctor(&scratch), &["profile.yml"]);
}

#[test]
fn a_home_that_is_not_usable_is_told() {
    let scratch = furnished();
    let loose = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(scratch.home(), loose).unwrap();
    wrong(&doctor(&scratch), &["others can write to", "chmod go-w"]);
    let scratch = Scratch::new();
    std::fs::write(scratch.home(), "").unwrap();
    wrong(&doctor(&scratch), &["is no directory", "DSH_HOME"]);
}

/// Runs in a namespace of its own, with these mounts over the machine.
fn inside(scratch: &Scratch, mounts: &[&std::ffi::OsStr]) -> Ended {
    let output = std::process::Command::new("bwrap")
        .args(["--dev-bind", "/", "/"])
        .args(mounts)
        .args([env!("CARGO_BIN_EXE_dsh"), "doctor"])
        .current_dir(scratch.work())
        .env("DSH_HOME", scratch.home())
        .env("HOME", scratch.user())
        .env("DEEPSEEK_API_KEY", "sk-e2e")
        .output()
        .unwrap();
    Ended::of(&output)
}

#[test]
fn a_cache_or_a_home_that_cannot_be_written_or_is_full_is_told() {
    let scratch = furnished();
    let cache = scratch.home().join("cache");
    std::fs::write(&cache, "").unwrap();
    wrong(&doctor(&scratch), &["engine", "the cache", "remove it"]);
    a_task_still_runs(&scratch);
    std::fs::remove_file(&cache).unwrap();
    a_task_still_runs(&scratch);
    let key = cache.join("key");
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o777)).unwrap();
    wrong(&doctor(&scratch), &["the cache", "chmod 700"]);
    std::fs::set_permissions(&cache, std::fs::Permissions::from_mode(0o700)).unwrap();
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
    wrong(&doctor(&scratch), &["cache/key", "can be read by others"]);
    std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
    if !crate::support::can_confine("bwrap") {
        return;
    }
    let home = scratch.home();
    let (home, at) = (home.as_os_str(), cache.as_os_str());
    let full = ["--size", "4096", "--perms", "0700", "--tmpfs"].map(std::ffi::OsStr::new);
    let full: Vec<_> = full.into_iter().chain([at]).collect();
    wrong(&inside(&scratch, &full), &["the cache", "make room"]);
    let unwritable = inside(&scratch, &["--ro-bind".as_ref(), home, home]);
    wrong(&unwritable, &["home", "cannot be written"]);
    wrong(&unwritable, &["the cache", "cannot be written"]);
}

#[test]
fn what_the_sandbox_leaves_open_is_told() {
    let with = |name: &str, value: &Path, cwd: Option<&Path>| {
        let scratch = patched("- id: sandbox-policy\n  config: {guardHome: false}\n");
        let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", "k").env(name, value);
        let _ = cwd;
        dsh.args(["doctor"]).run()
    };
    let open = with("A", Path::new("b"), None);
    told(&open, "warning", &["sandbox-policy", "guardHome"]);
    let landlock = with("DSH_SANDBOX", Path::new("landlock"), None);
    if crate::support::can_confine("landlock") {
        told(
            &landlock,
            "warning",
            &[
                "Landlock",
                "read all that you can read",
                "install bubblewrap",
            ],
        );
    }
    let odd = with("DSH_SANDBOX", Path::new("odd"), None);
    wrong(&odd, &["sandbox", "DSH_SANDBOX", "bwrap or landlock"]);

    // No bubblewrap on PATH, and nothing else allowed.
    let scratch = furnished();
    let bin = scratch.work().join("bin");
    std::fs::create_dir(&bin).unwrap();
    symlink("/bin/sh", bin.join("sh")).unwrap();
    let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", "k");
    let none = dsh
        .env("PATH", &bin)
        .env("DSH_SANDBOX", "bwrap")
        .args(["doctor"])
        .run();
    wrong(
        &none,
        &[
            "nothing confines commands here",
            "not on PATH",
            "install bubblewrap",
        ],
    );
}

#[test]
fn a_damaged_log_and_a_session_that_is_being_written_are_told() {
    let scratch = furnished();
    scratch.write_home("sessions/--w--/bad/session.jsonl", "nonsense\n");
    let ended = doctor(&scratch);
    wrong(
        &ended,
        &["sessions", "bad/session.jsonl", "dsh sessions check bad"],
    );
    a_task_still_runs(&scratch);

    // The row says how logs are stored, and where.
    let plain = patched("- id: session-persistence-jsonl\n  config: {compression: none}\n");
    a_task_still_runs(&plain);
    told(&doctor(&plain), "ok", &["sessions", "1 sessions"]);
    let odd = patched("- id: session-persistence-jsonl\n  config: {compression: odd}\n");
    wrong(
        &doctor(&odd),
        &["sessions", "session-persistence-jsonl", "odd"],
    );

    let mock = Mock::start(vec![say("Wait.").held()]);
    let running = scratch
        .dsh()
        .provider(&mock)
        .headless()
        .args(["Go"])
        .start();
    wait_until("the session is being written", || {
        doctor(&scratch).stdout.contains("is held by pid")
    });
    mock.open_gate();
    assert_eq!(running.end().code, Some(0));
}
