//! What goes wrong at a person's desk: each is one line on stderr that says what
//! to do, and the exit code that docs/cli.md gives it.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use mock_provider::Mock;
use serde_json::json;

use crate::support::{Dsh, Ended, Scratch, say};

#[track_caller]
fn one_line(ended: &Ended, says: &[&str]) {
    let line = ended.stderr.strip_suffix('\n').unwrap_or(&ended.stderr);
    assert!(
        !line.is_empty() && !line.contains('\n'),
        "one line is on stderr: {ended:?}"
    );
    assert!(
        line.starts_with("dsh: ") || line.starts_with("error: "),
        "{ended:?}"
    );
    for word in says {
        assert!(line.contains(word), "{word:?} is not in {line:?}");
    }
}

/// It did not come to a run.
#[track_caller]
fn refused(ended: &Ended, says: &[&str]) {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), ""),
        "{ended:?}"
    );
    one_line(ended, says);
}

/// A run came to an end that is no answer.
#[track_caller]
fn failed(ended: &Ended, says: &[&str]) {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "\n"),
        "{ended:?}"
    );
    one_line(ended, says);
}

/// The run completed without what the line tells.
#[track_caller]
fn left_out(ended: &Ended, says: &[&str]) {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(0), "Still here.\n"),
        "{ended:?}"
    );
    one_line(ended, says);
}

/// A run that would answer `Still here.`, with one more patch.
fn patched(scratch: &Scratch, patch: &str, strict: bool) -> Ended {
    let scripted = scratch.script(&json!([{"text": "Still here."}]));
    let patch = scratch.write_beside("extra.yml", patch);
    let dsh = scratch.dsh().headless().patch(scripted).patch(patch);
    let dsh = if strict { dsh.args(["--strict"]) } else { dsh };
    dsh.args(["Go"]).run()
}

/// Reported and left out; with `--strict`, refused.
#[track_caller]
fn soft(patch: &str, says: &[&str]) {
    left_out(&patched(&Scratch::new(), patch, false), says);
    refused(&patched(&Scratch::new(), patch, true), says);
}

/// Refused either way.
#[track_caller]
fn hard(patch: &str, says: &[&str]) {
    refused(&patched(&Scratch::new(), patch, false), says);
    refused(&patched(&Scratch::new(), patch, true), says);
}

fn scripted(scratch: &Scratch) -> Dsh {
    let patch = scratch.script(&json!([{"text": "Still here."}]));
    scratch.dsh().headless().patch(patch)
}

// The command line.

#[test]
fn a_missing_or_blank_task() {
    for words in [&[][..], &["  "], &["--", ""]] {
        let ended = scripted(&Scratch::new()).args(words.iter().copied()).run();
        refused(
            &ended,
            &["error: a task is required", "dsh --profile headless"],
        );
    }
}

#[test]
fn an_unknown_option_of_the_app() {
    let ended = scripted(&Scratch::new()).args(["--jsno", "Go"]).run();
    refused(&ended, &["error: unknown option '--jsno'", "`-- --`"]);
}

#[test]
fn no_profile_and_an_unknown_one() {
    let scratch = Scratch::new();
    refused(
        &scratch.dsh().args(["Go"]).run(),
        &["error: ", "--profile <name>"],
    );
    refused(
        &scratch.dsh().args(["--profile", "nope", "Go"]).run(),
        &["\"nope\"", "profile.yml"],
    );
    refused(
        &scratch.dsh().args(["--profile", "../up", "Go"]).run(),
        &["../up"],
    );
}

#[test]
fn a_patch_that_is_not_there() {
    let scratch = Scratch::new();
    refused(
        &scratch.dsh().headless().patch("no.yml").args(["Go"]).run(),
        &["no.yml"],
    );
}

// The provider.

fn to(url: &str) -> Ended {
    let scratch = Scratch::new();
    let dsh = scratch
        .dsh()
        .env("DEEPSEEK_BASE_URL", url)
        .env("DEEPSEEK_API_KEY", "sk-secret");
    let ended = dsh.headless().args(["Go"]).run();
    assert!(!ended.stderr.contains("sk-secret"), "{ended:?}");
    ended
}

#[test]
fn a_missing_key() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![say("No.").answer()]);
    let ended = scratch
        .dsh()
        .provider(&mock)
        .without("DEEPSEEK_API_KEY")
        .headless()
        .args(["Go"])
        .run();
    failed(&ended, &["DEEPSEEK_API_KEY"]);
    assert!(mock.requests().is_empty());
}

#[test]
fn a_refused_key() {
    let scratch = Scratch::new();
    let body =
        json!({"error": {"message": "bad key", "code": "invalid_request_error"}}).to_string();
    let mock = Mock::start(vec![mock_provider::Answer::new(401, body)]);
    let ended = scratch.dsh().provider(&mock).headless().args(["Go"]).run();
    failed(&ended, &["AUTH", "bad key"]);
    assert!(!ended.stderr.contains("sk-e2e"), "{ended:?}");
}

#[test]
fn an_endpoint_that_nobody_listens_on() {
    let free = TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    failed(&to(&format!("http://{free}")), &[&free.to_string()]);
}

#[test]
fn an_endpoint_that_is_no_url() {
    for url in [
        "not a url",
        "ftp://127.0.0.1/x",
        "http://",
        "https://user:pass-word@127.0.0.1/",
    ] {
        let ended = to(url);
        refused(
            &ended,
            &["row llm-deepseek", "baseURL", "DEEPSEEK_BASE_URL"],
        );
        assert!(!ended.stderr.contains("pass-word"), "{ended:?}");
    }
}

#[test]
fn an_unknown_provider_and_an_unknown_model() {
    let scratch = Scratch::new();
    scratch.write_home(
        "settings.yaml",
        "agent-default-model: {provider: nobody, model: none}\n",
    );
    failed(&scratch.dsh().headless().args(["Go"]).run(), &["nobody"]);
    scratch.write_home(
        "settings.yaml",
        "agent-default-model: {provider: scripted, model: none}\n",
    );
    failed(&scratch.dsh().headless().args(["Go"]).run(), &["none"]);
}

// The script.

fn with_script(scratch: &Scratch, path: &Path) -> Ended {
    let file = serde_json::Value::from(path.to_string_lossy());
    let patch = scratch.write_beside(
        "own.yml",
        &format!(
            "- id: agent-default-model\n  config: {{provider: scripted, model: script}}\n\
             - id: llm-scripted\n  config: {{scriptFile: {file}}}\n"
        ),
    );
    scratch.dsh().headless().patch(patch).args(["Go"]).run()
}

#[test]
fn a_script_that_has_no_answer_left() {
    let scratch = Scratch::new();
    let patch = scratch.script(&json!([{"match": "never", "text": "x"}]));
    let ended = scratch.dsh().headless().patch(patch).args(["Go"]).run();
    failed(&ended, &["SCRIPT_EXHAUSTED"]);
    // None at all, as the row comes.
    let patch = scratch.write_beside(
        "own.yml",
        "- id: agent-default-model\n  config: {provider: scripted, model: script}\n",
    );
    failed(
        &scratch.dsh().headless().patch(patch).args(["Go"]).run(),
        &["SCRIPT_EXHAUSTED"],
    );
}

#[test]
fn a_script_that_is_not_there_or_is_none() {
    let scratch = Scratch::new();
    let missing = scratch.work().join("missing.json");
    for (path, says) in [
        (missing, "missing.json"),
        (scratch.write("broken.json", "[{\"text\": "), "broken.json"),
        (
            scratch.write("shape.json", "[{\"tetx\": \"misspelt\"}]"),
            "tetx",
        ),
        (
            scratch.write("regex.json", "[{\"match\": \"(\", \"text\": \"x\"}]"),
            "match",
        ),
    ] {
        let ended = with_script(&scratch, &path);
        refused(&ended, &["llm-scripted", says]);
    }
}

// Rows of the host.

#[test]
fn a_part_that_the_host_does_not_have() {
    soft(
        "- insert: [{id: extra, host: nope}]\n",
        &["row extra", "no part \"nope\"", "docs/rows.md"],
    );
}

#[test]
fn a_part_that_runs_all_the_same() {
    soft(
        "- {id: session-persistence-jsonl, disabled: true}\n",
        &["row session-persistence-jsonl", "`disabled` has no effect"],
    );
}

/// What waits for a writer would hold the start up for ever.
#[test]
fn a_pipe_in_a_files_place() {
    let scratch = Scratch::new();
    let pipe = |name: &str| {
        let path = scratch.work().join(name);
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &path,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .unwrap();
        path
    };
    pipe(".env");
    left_out(
        &scripted(&scratch).args(["Go"]).run(),
        &[".env", "not a regular file"],
    );
    std::fs::remove_file(scratch.work().join(".env")).unwrap();
    let ended = with_script(&scratch, &pipe("script.json"));
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.contains("not a regular file"), "{ended:?}");
}

// Components.

#[test]
fn a_component_file_that_is_not_there() {
    soft(
        "- insert:\n    - id: extra\n      component: ./none.wasm\n",
        &["row extra", "none.wasm"],
    );
}

#[test]
fn a_component_that_is_none() {
    for (name, bytes) in [
        ("garbage.wasm", &b"not wasm at all"[..]),
        ("empty.wasm", b""),
        // A core module, which has no types to speak by.
        ("module.wasm", b"\0asm\x01\0\0\0"),
    ] {
        let patch = format!("- insert:\n    - id: extra\n      component: ./{name}\n");
        for strict in [false, true] {
            let scratch = Scratch::new();
            std::fs::write(scratch.work().with_file_name(name), bytes).unwrap();
            let ended = patched(&scratch, &patch, strict);
            let check = if strict { refused } else { left_out };
            check(&ended, &["row extra", name]);
        }
    }
}

#[test]
fn a_component_that_this_build_does_not_have() {
    soft(
        "- insert:\n    - id: extra\n      component: dsh:nothing\n",
        &["row extra", "dsh:nothing", "dsh:tool-bash"],
    );
}

#[test]
fn a_component_without_what_it_imports() {
    soft(
        "- id: tool-bash\n  grants: {session: true}\n",
        &["row tool-bash", "`process`", "`grants`"],
    );
}

#[test]
fn a_row_of_a_package_that_is_not_here() {
    soft(
        "- insert:\n    - id: extra\n      name: '@acme/thing'\n",
        &[
            "row extra",
            "no native or Wasm implementation of @acme/thing",
        ],
    );
}

// Patches.

#[test]
fn a_patch_that_is_no_yaml_or_no_list() {
    hard("- id: [unclosed\n", &["extra.yml:"]);
    hard("id: agent-loop\n", &["extra.yml"]);
    hard("- just a word\n", &["extra.yml:1"]);
}

#[test]
fn a_patch_of_a_row_that_is_not_there() {
    soft(
        "- id: no-such-row\n  disabled: true\n",
        &["no-such-row", "not found"],
    );
}

#[test]
fn two_rows_of_one_id() {
    hard(
        "- insert:\n    - id: tool-fs\n      component: dsh:tool-fs\n",
        &["tool-fs", "base", "extra.yml"],
    );
}

#[test]
fn an_expression_that_is_not_understood() {
    soft(
        "- insert:\n    - id: extra\n      component: dsh:tool-todo\n      config: {x: !!js 1 + 1}\n",
        &["extra", "1 + 1"],
    );
}

// The home and the environment.

#[test]
fn a_home_that_cannot_be_made() {
    let scratch = Scratch::new();
    let file = scratch.write("file", "");
    let ended = scripted(&scratch)
        .env("DSH_HOME", file.join("home"))
        .args(["Go"])
        .run();
    refused(&ended, &[&*file.to_string_lossy(), "DSH_HOME"]);
}

#[test]
fn a_home_where_nothing_can_be_written() {
    let scratch = Scratch::new();
    // A profile that is there, and a file where the sessions go; root too is stopped by that.
    scratch.write_home("sessions", "not a folder");
    let ended = scripted(&scratch).args(["Go"]).run();
    assert_eq!(ended.code, Some(1), "{ended:?}");
    one_line(&ended, &["sessions"]);
}

#[test]
fn settings_that_are_none() {
    let scratch = Scratch::new();
    scratch.write_home("settings.yaml", "agent-loop: [\n");
    refused(&scripted(&scratch).args(["Go"]).run(), &["settings.yaml"]);
}

#[test]
fn credentials_that_others_may_read() {
    let scratch = Scratch::new();
    let text = "version: 1\nrefs:\n  DEEPSEEK_API_KEY: sk-secret\n";
    let file = scratch.write_home(".credentials.yaml", text);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let ended = scripted(&scratch).args(["Go"]).run();
    refused(&ended, &["chmod 600", ".credentials.yaml"]);
    assert!(!ended.stderr.contains("sk-secret"));
}

#[test]
fn a_dotenv_that_decides_how_programs_start() {
    let scratch = Scratch::new();
    scratch.write(".env", "LD_PRELOAD=/x.so\n");
    refused(
        &scripted(&scratch).args(["Go"]).run(),
        &[".env", "LD_PRELOAD"],
    );
}

#[test]
fn a_mode_and_a_runner_that_do_not_exist() {
    let scratch = Scratch::new();
    let ended = scripted(&scratch)
        .env("DSH_PERMISSION_MODE", "all")
        .args(["Go"])
        .run();
    refused(&ended, &["\"all\"", "workspace-write"]);
    let ended = scripted(&scratch)
        .env("DSH_SANDBOX", "none")
        .args(["Go"])
        .run();
    refused(&ended, &["\"none\"", "bwrap"]);
}

/// Options of the launcher after its first unknown word are the app's.
#[test]
fn what_is_left_out_is_fatal_with_strict_and_silent_with_safe() {
    let scratch = Scratch::new();
    scratch.write_home("cordis.patch.yml", "- id: no-such-row\n  disabled: true\n");
    let mock = Mock::start(vec![
        say("Still here.").answer(),
        say("Still here.").answer(),
    ]);
    left_out(
        &scratch.dsh().provider(&mock).headless().args(["Go"]).run(),
        &["no-such-row"],
    );
    refused(
        &scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["--strict", "Go"])
            .run(),
        &["no-such-row"],
    );
    scratch
        .dsh()
        .provider(&mock)
        .headless()
        .args(["--safe", "Go"])
        .run()
        .answered("Still here.");
}
