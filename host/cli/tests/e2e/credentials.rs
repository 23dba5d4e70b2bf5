//! `dsh credentials`, as it is typed: on a terminal, on standard input, and against a home that is not as it should be.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::plugin_json::check;
use crate::support::{Ended, Scratch, root, say};

const KEY: &str = "sk-e2e-0123456789";

fn file(scratch: &Scratch) -> PathBuf {
    scratch.home().join(".credentials.yaml")
}

fn put(scratch: &Scratch, text: &str, mode: u32) {
    fs::create_dir_all(scratch.home()).unwrap();
    fs::write(file(scratch), text).unwrap();
    fs::set_permissions(file(scratch), fs::Permissions::from_mode(mode)).unwrap();
}

fn run(scratch: &Scratch, words: &[&str]) -> Ended {
    scratch
        .dsh()
        .args(["credentials"])
        .args(words.iter().copied())
        .run()
}

/// A file that holds what is given on standard input.
fn given(scratch: &Scratch, input: &str) -> fs::File {
    fs::File::open(scratch.write_beside("input", input)).unwrap()
}

fn set(scratch: &Scratch, name: &str, input: &str) -> Ended {
    scratch
        .dsh()
        .args(["credentials", "set", name])
        .stdin(given(scratch, input))
        .run()
}

fn refused(ended: &Ended, says: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for part in says {
        assert!(ended.stderr.contains(part), "{part}: {}", ended.stderr);
    }
    assert!(!ended.stderr.contains(KEY), "{ended:?}");
}

/// Types keys at the prompt of `dsh credentials set NAME`; gives the exit code, what was shown, and whether the terminal
/// shows what is typed afterwards.
fn typed(scratch: &Scratch, name: &str, keys: &str) -> (i32, String, bool) {
    const PLAY: &str = "
import os, pty, sys, termios
keys, command = sys.argv[1], sys.argv[2:]
leader, follower = pty.openpty()
child = os.fork()
if child == 0:
    os.setsid()
    for fd in (0, 1, 2):
        os.dup2(follower, fd)
    os.execv(command[0], command)
shown, asked = b'', False
while b'not shown' not in shown:
    shown += os.read(leader, 65536)
os.write(leader, keys.encode())
_, status = os.waitpid(child, 0)
echoes = termios.tcgetattr(follower)[3] & termios.ECHO
os.close(follower)
while True:
    try:
        piece = os.read(leader, 65536)
    except OSError:
        break
    if not piece:
        break
    shown += piece
sys.stdout.buffer.write(shown)
sys.stderr.write('echo' if echoes else 'silent')
sys.exit(os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else 200)
";
    let output = Command::new("python3")
        .args([
            "-c",
            PLAY,
            keys,
            env!("CARGO_BIN_EXE_dsh"),
            "credentials",
            "set",
            name,
        ])
        .current_dir(scratch.work())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scratch.user())
        .env("DSH_HOME", scratch.home())
        .stdin(Stdio::null())
        .output()
        .expect("python3 runs");
    let shown = String::from_utf8_lossy(&output.stdout).replace("\r\n", "\n");
    (
        output.status.code().unwrap_or(-1),
        shown,
        output.stderr == b"echo",
    )
}

#[test]
fn a_key_is_typed_unseen_and_kept_for_its_owner_alone() {
    let scratch = Scratch::new();
    let _ = fs::remove_dir_all(scratch.home());
    let (code, shown, echoes) = typed(&scratch, "E2E_KEY", &format!("wrong\u{15}{KEY}x\u{7f}\r"));
    assert_eq!((code, echoes), (0, true), "{shown}");
    assert!(
        !shown.contains("sk-e2e") && !shown.contains("wrong"),
        "{shown}"
    );
    assert!(shown.contains("E2E_KEY is kept in "), "{shown}");
    let text = fs::read_to_string(file(&scratch)).unwrap();
    assert_eq!(text, format!("version: 1\nrefs:\n  E2E_KEY: {KEY}\n"));
    assert_eq!(
        fs::metadata(file(&scratch)).unwrap().permissions().mode() & 0o777,
        0o600
    );
}

#[test]
fn giving_up_at_the_prompt_changes_nothing_and_leaves_the_terminal_as_it_was() {
    let scratch = Scratch::new();
    for (keys, code) in [("sk-half\u{3}", 130), ("\r", 1), ("sk with space\r", 1)] {
        let (ended, shown, echoes) = typed(&scratch, "E2E_KEY", keys);
        assert_eq!((ended, echoes), (code, true), "{keys:?}: {shown}");
        assert!(!shown.contains("sk"), "{shown}");
        assert!(!file(&scratch).exists());
    }
}

#[test]
fn a_key_on_standard_input_is_one_line() {
    let scratch = Scratch::new();
    let first = set(&scratch, "E2E_KEY", &format!("{KEY}\n"));
    assert_eq!((first.code, &*first.stderr), (Some(0), ""), "{first:?}");
    assert!(first.stdout.starts_with("E2E_KEY is kept in ") && !first.stdout.contains(KEY));
    let again = set(&scratch, "E2E_KEY", "sk-another-1");
    assert!(
        again.stdout.starts_with("E2E_KEY is changed in "),
        "{again:?}"
    );
    for (input, says) in [
        ("", "empty"),
        ("\n", "empty"),
        (" \n", "blank"),
        ("a\nb\n", "several lines"),
        ("sk 1\n", "no API key has"),
        ("sk-\u{e9}\n", "no API key has"),
    ] {
        refused(&set(&scratch, "E2E_KEY", input), &["E2E_KEY", says]);
    }
    let text = fs::read_to_string(file(&scratch)).unwrap();
    assert_eq!(text, "version: 1\nrefs:\n  E2E_KEY: sk-another-1\n");
}

#[test]
fn a_value_on_the_command_line_is_refused_and_not_repeated() {
    let scratch = Scratch::new();
    for words in [
        vec!["set", "E2E_KEY", KEY],
        vec!["set", "E2E_KEY=sk-e2e-0123456789"],
    ] {
        refused(
            &run(&scratch, &words),
            &["command line", "dsh credentials set E2E_KEY,", "history"],
        );
    }
    for (words, says) in [
        (vec![], "needs a command"),
        (vec!["set"], "needs a name"),
        (vec!["unset"], "needs a name"),
        (vec!["get", "X"], "it has set, list and unset"),
        (vec!["unset", "A", "B"], "one name at a time"),
        (vec!["set", "A-B"], "is not the name of a credential"),
        (vec!["unset", "A-B"], "is not the name of a credential"),
        (vec!["list", "x"], "takes no"),
        (vec!["set", "--force", "A"], "--force"),
    ] {
        refused(&run(&scratch, &words), &[says]);
    }
    assert!(!file(&scratch).exists());
    let help = run(&scratch, &["set", "--help"]);
    assert!(help.code == Some(0) && help.stdout.contains("Usage: dsh credentials set NAME"));
}

#[test]
fn comments_records_and_other_keys_of_the_file_stay() {
    let scratch = Scratch::new();
    let before = "# of the team\nversion: 1\nrefs:\n  OTHER: sk-other # mine\nrecords:\n  a/b: {kind: api-key, key: k}\n";
    put(&scratch, before, 0o600);
    assert_eq!(set(&scratch, "E2E_KEY", KEY).code, Some(0));
    let with = before.replace("# mine\n", &format!("# mine\n  E2E_KEY: {KEY}\n"));
    assert_eq!(fs::read_to_string(file(&scratch)).unwrap(), with);
    let unset = run(&scratch, &["unset", "E2E_KEY"]);
    assert!(
        unset.code == Some(0) && unset.stdout.contains("is taken out of "),
        "{unset:?}"
    );
    assert_eq!(fs::read_to_string(file(&scratch)).unwrap(), before);
    refused(
        &run(&scratch, &["unset", "E2E_KEY"]),
        &["is not in", "dsh credentials list"],
    );
}

#[test]
fn unset_says_where_a_value_is_left() {
    let scratch = Scratch::new();
    put(
        &scratch,
        &format!("version: 1\nrefs: {{E2E_KEY: {KEY}}}\n"),
        0o600,
    );
    scratch.write(".env", "E2E_KEY=sk-of-project\n");
    let unset = run(&scratch, &["unset", "E2E_KEY"]);
    assert!(
        unset.stdout.contains("still has a value in") && unset.stdout.contains("work/.env"),
        "{unset:?}"
    );
    refused(
        &run(&scratch, &["unset", "E2E_KEY"]),
        &["is not in", "work/.env"],
    );
    let inherited = scratch.dsh().env("E2E_KEY", "sk-inherited");
    let ended = inherited
        .args(["credentials", "set", "E2E_KEY"])
        .stdin(given(&scratch, KEY))
        .run();
    refused(
        &ended,
        &["E2E_KEY is set in the environment", "unset E2E_KEY"],
    );
}

#[test]
fn a_home_that_is_not_as_it_should_be_is_told_with_what_to_do() {
    let scratch = Scratch::new();
    for (text, mode, says) in [
        ("version: 1\n", 0o644, "chmod 600"),
        (
            "version: 2\n",
            0o600,
            ".credentials.yaml:1: `version` must be 1",
        ),
        (
            "version: 1\nrefs: [sk-e2e-0123456789]\n",
            0o600,
            ".credentials.yaml:2: `refs` must be a mapping",
        ),
    ] {
        put(&scratch, text, mode);
        refused(&set(&scratch, "E2E_KEY", KEY), &[says]);
        refused(&run(&scratch, &["unset", "E2E_KEY"]), &[says]);
        refused(&run(&scratch, &["list"]), &[says]);
        assert_eq!(fs::read_to_string(file(&scratch)).unwrap(), text);
    }
    put(&scratch, "version: 1\n", 0o600);
    let lock = scratch.home().join(".credentials.yaml.lock");
    fs::write(&lock, "").unwrap();
    refused(
        &set(&scratch, "E2E_KEY", KEY),
        &[".credentials.yaml.lock", "rm "],
    );
    let doctor = scratch.dsh().args(["doctor"]).run();
    assert!(
        doctor.stdout.contains(".credentials.yaml.lock is there"),
        "{}",
        doctor.stdout
    );
    fs::remove_file(lock).unwrap();
    put(&scratch, "OLD: sk-old # flat\n", 0o600);
    let moved = set(&scratch, "E2E_KEY", KEY);
    assert!(
        moved.code == Some(0) && moved.stderr.contains("early layout"),
        "{moved:?}"
    );
    let text = fs::read_to_string(file(&scratch)).unwrap();
    assert_eq!(
        text,
        format!("version: 1\nrefs:\n  OLD: sk-old # flat\n  E2E_KEY: {KEY}\n")
    );
}

#[test]
fn list_tells_where_each_name_has_its_value_and_never_the_value() {
    let scratch = Scratch::new();
    put(
        &scratch,
        "version: 1\nrefs: {DEEPSEEK_API_KEY: sk-e2e-file, SPARE: sk-e2e-spare, BAD: 'sk e2e'}\n",
        0o600,
    );
    scratch.write(".env", "DEEPSEEK_API_KEY=sk-e2e-project\n");
    fs::write(scratch.home().join(".env"), "SPARE=sk-e2e-user\n").unwrap();
    let list = |words: &[&str]| {
        let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", "sk-e2e-env");
        let ended = dsh
            .args(["credentials", "list"])
            .args(words.iter().copied())
            .run();
        assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
        assert!(
            !ended.stdout.contains("sk-e2e") && !ended.stdout.contains("sk e2e"),
            "{}",
            ended.stdout.replace(scratch.home().to_str().unwrap(), "")
        );
        ended
            .stdout
            .replace(scratch.home().to_str().unwrap(), "HOME")
    };
    let value: Value = serde_json::from_str(&list(&["--json"])).unwrap();
    let schema = fs::read(root().join("docs/schema/credentials-list.schema.json")).unwrap();
    let schema: Value = serde_json::from_slice(&schema).unwrap();
    check(&schema, &schema, &value, "it").unwrap();
    let find = |name: &str| {
        let all = value["credentials"].as_array().unwrap();
        all.iter().find(|one| one["name"] == name).unwrap().clone()
    };
    let deepseek = find("DEEPSEEK_API_KEY");
    assert_eq!(deepseek["layers"], json!(["env", "file", "project-env"]));
    assert_eq!(deepseek["source"], "env");
    assert_eq!(deepseek["wantedBy"], json!(["deepseek-official"]));
    assert_eq!(find("SPARE")["layers"], json!(["file", "user-env"]));
    assert!(find("BAD")["problem"].as_str().unwrap().contains("BAD"));
    let text = list(&[]);
    for part in [
        "for deepseek-official  the environment, before HOME/.credentials.yaml",
        "SPARE",
        "for no route",
    ] {
        assert!(text.contains(part), "{text}");
    }
    let empty = Scratch::new();
    let profile = "api: openai-responses, baseURL: 'https://acme.example', models: [{id: m}]";
    empty.write_home(
        "settings.yaml",
        &format!("llm-pi-ai: {{providers: {{acme: {{apiKeyEnv: ACME_KEY, {profile}}}}}}}\n"),
    );
    let ended = run(&empty, &["list"]);
    let acme = "ACME_KEY          for acme  missing: dsh credentials set ACME_KEY";
    assert!(ended.stdout.contains(acme), "{ended:?}");
    assert_eq!(
        ended.stdout.lines().count(),
        2,
        "who is not configured wants nothing: {ended:?}"
    );
    assert!(
        ended
            .stdout
            .contains("missing: dsh credentials set DEEPSEEK_API_KEY"),
        "{ended:?}"
    );
}

#[test]
fn a_key_that_was_set_is_what_a_run_sends() {
    let mock = mock_provider::Mock::start(vec![say("Done.").answer()]);
    let scratch = Scratch::new();
    assert_eq!(set(&scratch, "DEEPSEEK_API_KEY", KEY).code, Some(0));
    let ended = scratch
        .dsh()
        .env("DEEPSEEK_BASE_URL", mock.base_url())
        .headless()
        .args(["Go"])
        .run();
    assert_eq!(ended.code, Some(0), "{ended:?}");
    let sent = mock.requests();
    assert_eq!(
        sent[0].header("authorization"),
        Some(&*format!("Bearer {KEY}"))
    );
}
