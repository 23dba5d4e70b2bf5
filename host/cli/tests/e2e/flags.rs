//! The headless app's flags (spec/cli.md §4, docs/cli.md).

use std::fs::File;
use std::path::PathBuf;

use dsh_session::Kind;
use mock_provider::{Answer, Mock};
use serde_json::{Value, json};

use crate::signals::said;
use crate::support::{Dsh, Ended, Record, Scratch, data, say, wait_until};

/// A `dsh` against this provider.
fn dsh(scratch: &Scratch, mock: &Mock) -> Dsh {
    scratch.dsh().provider(mock).headless()
}

/// A provider that gives these texts, one a request.
fn says(texts: &[&str]) -> Mock {
    Mock::start(texts.iter().map(|text| say(text).answer()).collect())
}

/// The object on stdout; its time is not looked at.
#[track_caller]
fn object(ended: &Ended) -> Value {
    let line = ended.stdout.strip_suffix('\n').expect("a line");
    assert!(!line.contains('\n'), "{ended:?}");
    let mut object: Value = serde_json::from_str(line).expect("stdout is JSON");
    let took = object.as_object_mut().unwrap().remove("duration_ms");
    assert!(took.is_some_and(|took| took.is_u64()), "{line}");
    object
}

/// Not run, with one line that has these words.
#[track_caller]
fn refused(ended: &Ended, words: &[&str]) {
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), ""),
        "{ended:?}"
    );
    assert!(ended.stderr.starts_with("error: "), "{ended:?}");
    assert_eq!(ended.stderr.matches('\n').count(), 1, "{ended:?}");
    for word in words {
        assert!(ended.stderr.contains(word), "{word:?} is not in {ended:?}");
    }
}

fn id(log: &Record) -> String {
    log.inspection.header.id.to_string()
}

#[test]
fn json_is_one_object_with_the_whole_result() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![
        say("").bash("echo hi").answer(),
        say("Done \"it\".").answer(),
    ]);
    let ended = dsh(&scratch, &mock).args(["--output", "json", "Go"]).run();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    assert_eq!(
        object(&ended),
        json!({
            "session_id": id(&scratch.record()), "reason": "completed", "text": "Done \"it\".",
            "usage": {"inputTokens": 264, "outputTokens": 80, "cacheReadTokens": 1536},
            "turns": 1, "steps": 2
        })
    );
}

#[test]
fn json_of_a_failed_run_has_its_error() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![Answer::new(401, "{}")]);
    let ended = dsh(&scratch, &mock).args(["--output=json", "Go"]).run();
    let object = object(&ended);
    assert_eq!((ended.code, &object["reason"]), (Some(1), &json!("error")));
    let error = &object["error"];
    // The failure as it came; what only dsh knows stands behind it for people.
    assert_eq!(
        ended.stderr,
        format!(
            "dsh: {}: {}; it was given DEEPSEEK_API_KEY of the environment\n",
            error["code"].as_str().unwrap(),
            error["message"].as_str().unwrap()
        )
    );
}

#[test]
fn the_streamed_lines_are_the_log_and_then_the_result() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![
        say("").thinking("Let me see.").bash("echo hi").answer(),
        say("Done it.").answer(),
        say("Again.").answer(),
    ]);
    let stream = ["--output", "stream-json"];
    let ended = dsh(&scratch, &mock).args(stream).args(["Go"]).run();
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    let log = scratch.record();
    let streamed = |ended: &Ended| {
        let mut lines: Vec<String> = ended.stdout.lines().map(str::to_owned).collect();
        let result: Value = serde_json::from_str(&lines.pop().unwrap()).unwrap();
        (lines, result)
    };
    let stored =
        |log: &Record| -> Vec<String> { log.events().iter().map(|event| event.line()).collect() };
    let (lines, result) = streamed(&ended);
    assert_eq!(lines, stored(&log));
    assert_eq!(result["text"], "Done it.");

    // A resumed session streams what is new.
    let ended = dsh(&scratch, &mock)
        .args(stream)
        .args(["--resume=last", "More"])
        .run();
    let (lines, result) = streamed(&ended);
    let before = log.events().len();
    assert_eq!(lines, stored(&scratch.record())[before..]);
    assert_eq!(result["text"], "Again.");
}

#[test]
fn a_resumed_session_goes_on_in_its_file_with_its_next_turn() {
    let scratch = Scratch::new();
    let mock = says(&["One.", "Two."]);
    dsh(&scratch, &mock).args(["Begin"]).run().answered("One.");
    let before = scratch.record();
    dsh(&scratch, &mock)
        .args(["--resume", &id(&before), "Go on"])
        .run()
        .answered("Two.");
    let after = scratch.record();
    let count = before.events().len();
    assert_eq!(&after.events()[..count], before.events());
    let turns: Vec<Value> = after.of(&Kind::TurnStart).into_iter().map(data).collect();
    let turns: Vec<&Value> = turns.iter().map(|turn| &turn["turn"]).collect();
    assert_eq!(turns, [1, 2]);
    let headers = after.of(&Kind::RequestHeader);
    assert_eq!(data(headers[1])["reason"], "resume");
    assert_eq!(after.of(&Kind::SandboxMode).len(), 1, "the facts are kept");
    let request = mock.requests().pop().unwrap().text();
    for word in ["Begin", "One.", "Go on"] {
        assert!(request.contains(word), "{word} is sent: {request}");
    }
}

#[test]
fn a_resumed_session_keeps_model_and_mode_until_a_flag_changes_them() {
    let scratch = Scratch::new();
    let mock = says(&["One.", "Two.", "Three."]);
    let model = |model: &'static str| ["--model", model];
    dsh(&scratch, &mock)
        .args(model("deepseek-official/other"))
        .args(["--effort=low", "--permission=read-only", "Go"])
        .run()
        .answered("One.");
    dsh(&scratch, &mock)
        .args(["--resume=last", "Go"])
        .run()
        .answered("Two.");
    dsh(&scratch, &mock)
        .args(model("deepseek-official/third"))
        .args(["--resume=last", "--permission", "danger-full-access", "Go"])
        .run()
        .answered("Three.");
    let log = scratch.record();
    let configs: Vec<Value> = log.of(&Kind::RequestHeader).into_iter().map(data).collect();
    let part = |index: usize, key: &str| configs[index]["header"]["config"][key].clone();
    for index in [0, 1] {
        assert_eq!(part(index, "model"), "other");
        assert_eq!(part(index, "reasoningEffort"), "low");
    }
    assert_eq!(part(2, "model"), "third");
    assert_ne!(part(2, "reasoningEffort"), "low");
    let facts = |kind: &Kind, key: &str| -> Vec<Value> {
        log.of(kind)
            .into_iter()
            .map(|fact| data(fact)[key].clone())
            .collect()
    };
    let modes = ["read-only", "danger-full-access"];
    assert_eq!(facts(&Kind::PermissionPreset, "preset"), modes);
    assert_eq!(facts(&Kind::SandboxMode, "mode"), modes);
    assert_eq!(facts(&Kind::ApprovalPolicy, "policy"), ["ask", "never"]);
}

#[test]
fn permission_is_stronger_than_the_environment() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![
        say("")
            .call("write", &json!({"file_path": "a", "content": "x"}))
            .answer(),
        say("No.").answer(),
    ]);
    dsh(&scratch, &mock)
        .env("DSH_PERMISSION_MODE", "danger-full-access")
        .args(["--permission=read-only", "Go"])
        .run()
        .answered("No.");
    assert!(!scratch.work().join("a").exists());
}

#[test]
fn an_id_that_is_taken_is_refused_and_its_log_stays() {
    let scratch = Scratch::new();
    let mock = says(&["One."]);
    let go = || {
        dsh(&scratch, &mock)
            .args(["--session-id", "mine", "Go"])
            .run()
    };
    go().answered("One.");
    let log = scratch.record();
    assert_eq!(id(&log), "mine");
    let bytes = std::fs::read(log_path(&scratch)).unwrap();
    refused(
        &go(),
        &["SESSION_ALREADY_EXISTS", "\"mine\"", "--resume mine"],
    );
    assert_eq!(std::fs::read(log_path(&scratch)).unwrap(), bytes);

    let long = "long".repeat(100);
    let ended = dsh(&scratch, &mock)
        .args(["--session-id", &long, "Go"])
        .run();
    refused(&ended, &["--session-id", "shorter"]);
}

fn log_path(scratch: &Scratch) -> PathBuf {
    scratch.listed()[0].path.clone()
}

#[test]
fn a_session_that_is_being_written_is_refused_to_a_second_process() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![say("All of it").held()]);
    let first = dsh(&scratch, &mock)
        .args(["--session-id=mine", "Go"])
        .start();
    said(&scratch, "it");
    for resume in ["--resume=mine", "--resume=last"] {
        let second = dsh(&scratch, &mock).args([resume, "Go"]).run();
        refused(&second, &["SESSION_LOCKED", "\"mine\"", "pid"]);
    }
    mock.open_gate();
    first.end().answered("All of it");
    assert!(scratch.record().inspection.closers.is_empty());
}

#[test]
fn a_damaged_session_is_refused_and_stays_as_it_is() {
    let scratch = Scratch::new();
    let mock = says(&["One."]);
    dsh(&scratch, &mock)
        .args(["--session-id=mine", "Go"])
        .run()
        .answered("One.");
    let path = log_path(&scratch);
    let mut bytes = std::fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0xff;
    std::fs::write(&path, &bytes).unwrap();
    let ended = dsh(&scratch, &mock).args(["--resume=mine", "Go"]).run();
    refused(&ended, &[path.to_str().unwrap(), "is not usable"]);
    assert_eq!(std::fs::read(&path).unwrap(), bytes);
}

#[test]
fn a_session_that_is_not_there_is_refused() {
    let scratch = Scratch::new();
    let go = |resume: &str| scratch.dsh().headless().args([resume, "Go"]).run();
    refused(&go("--resume=nobody"), &["SESSION_NOT_FOUND", "\"nobody\""]);
    refused(
        &go("--resume=last"),
        &["no session of", "leave --resume out"],
    );
}

#[test]
fn a_session_works_where_it_began_and_last_is_of_the_directory() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![
        say("Here.").answer(),
        say("")
            .call("write", &json!({"file_path": "made", "content": "x"}))
            .answer(),
        say("There.").answer(),
        say("Here again.").answer(),
        say("")
            .call("write", &json!({"file_path": "more", "content": "x"}))
            .answer(),
        say("There again.").answer(),
    ]);
    let there = scratch.work().join("there");
    std::fs::create_dir(&there).unwrap();
    let go = |args: &[&str]| dsh(&scratch, &mock).args(args.iter().copied()).run();
    go(&["--session-id=here", "Go"]).answered("Here.");
    go(&["--session-id=there", "--cwd", "there", "Go"]).answered("There.");
    assert!(
        there.join("made").exists(),
        "the workspace is the directory"
    );
    // The newest of all is not of this directory.
    go(&["--resume=last", "Go"]).answered("Here again.");
    go(&["--resume=there", "Go"]).answered("There again.");
    assert!(there.join("more").exists(), "it goes on where it began");

    refused(
        &go(&["--resume=here", "--cwd=there", "Go"]),
        &["leave --cwd out"],
    );
    refused(
        &go(&["--cwd=nowhere", "Go"]),
        &["--cwd: nowhere is no directory"],
    );
    std::fs::remove_dir_all(&there).unwrap();
    refused(&go(&["--resume=there", "Go"]), &["is no directory now"]);
}

#[test]
fn a_timeout_closes_the_turn_as_aborted() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![
        Answer::silence(),
        Answer::silence(),
        say("Now.").answer(),
    ]);
    let ended = dsh(&scratch, &mock).args(["--timeout=0.2", "Go"]).run();
    assert_eq!(
        (ended.code, ended.stdout.as_str()),
        (Some(1), "\n"),
        "{ended:?}"
    );
    assert_eq!(
        ended.stderr,
        "dsh: TIMEOUT: the task was given up after 0.2 s (--timeout); --resume goes on with its session\n"
    );
    let log = scratch.record();
    assert_eq!(log.turn_end()["kind"], "aborted");
    assert!(log.inspection.closers.is_empty());

    let ended = dsh(&scratch, &mock)
        .args([
            "--timeout",
            "0.2",
            "--output",
            "json",
            "--resume",
            "last",
            "Go",
        ])
        .run();
    let object = object(&ended);
    assert_eq!(
        (ended.code, &object["reason"], &object["error"]["code"]),
        (Some(1), &json!("aborted"), &json!("TIMEOUT"))
    );
    dsh(&scratch, &mock)
        .args(["--timeout=100", "--resume=last", "Go"])
        .run()
        .answered("Now.");
}

#[test]
fn a_lone_dash_reads_the_task_from_stdin() {
    let scratch = Scratch::new();
    let mock = says(&["Read."]);
    let task = scratch.write_beside("task", "Two\nlines\n");
    dsh(&scratch, &mock)
        .stdin(File::open(task).unwrap())
        .args(["-"])
        .run()
        .answered("Read.");
    let messages = scratch
        .record()
        .of(&Kind::UserMessage)
        .into_iter()
        .map(data)
        .collect::<Vec<_>>();
    let task = json!([{"type": "text", "text": "Two\nlines"}]);
    assert!(
        messages.iter().any(|message| message["content"] == task),
        "{messages:?}"
    );

    refused(
        &dsh(&scratch, &mock).args(["-"]).run(),
        &["a task is required"],
    );
    let raw = scratch.write_beside("raw", "");
    std::fs::write(&raw, b"\xff").unwrap();
    let ended = dsh(&scratch, &mock)
        .stdin(File::open(raw).unwrap())
        .args(["-"])
        .run();
    refused(&ended, &["standard input", "UTF-8"]);
}

#[test]
fn verbose_names_the_session_and_its_log_in_one_line() {
    let scratch = Scratch::new();
    let mock = says(&["One."]);
    let ended = dsh(&scratch, &mock).args(["--verbose", "Go"]).run();
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "One.\n"));
    let (id, path) = (id(&scratch.record()), log_path(&scratch));
    assert_eq!(
        ended.stderr,
        format!("dsh: session {id}, log {}\n", path.display())
    );
}

#[test]
fn a_signal_ends_json_with_an_object_too() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![Answer::silence()]);
    let run = dsh(&scratch, &mock).args(["--output=json", "Go"]).start();
    wait_until("the request came", || !mock.requests().is_empty());
    run.signal(rustix::process::Signal::TERM);
    let ended = run.end();
    assert_eq!((ended.code, ended.stderr.as_str()), (Some(143), ""));
    assert_eq!(object(&ended)["reason"], "aborted");
}

#[test]
fn a_config_that_its_component_does_not_take_leaves_the_row_out() {
    let scratch = Scratch::new();
    let mock = says(&["One."]);
    let patch = scratch.write_beside("bad.yml", "- id: tool-bash\n  config: {timeoutMs: soon}\n");
    let bad = |args: &[&str]| {
        let dsh = scratch.dsh().provider(&mock).headless().patch(&patch);
        dsh.args(args.iter().copied()).run()
    };
    let ended = bad(&["Go"]);
    assert_eq!((ended.code, ended.stdout.as_str()), (Some(0), "One.\n"));
    let says = format!(
        "row tool-bash is left out: config: \"timeoutMs\" must be an integer; mend or disable the row in {}",
        patch.display()
    );
    assert_eq!(ended.stderr, format!("dsh: {says}\n"));
    let strict = bad(&["--strict", "Go"]);
    assert_eq!((strict.code, strict.stdout.as_str()), (Some(1), ""));
    assert_eq!(strict.stderr, format!("dsh: {says} (--strict)\n"));
}

/// More events than a pipe holds: a reader who takes nothing holds up neither
/// the run nor its end.
#[test]
fn a_stream_that_nobody_reads_ends_on_a_signal() {
    let scratch = Scratch::new();
    let words = "many words ".repeat(2000);
    let mock = Mock::start(vec![say(&words).answer(), Answer::silence()]);
    let (reader, writer) = std::io::pipe().unwrap();
    let run = dsh(&scratch, &mock)
        .args(["--output=stream-json", "Go"])
        .stdout(writer)
        .start();
    wait_until("the turn is over", || {
        scratch
            .record_so_far()
            .is_some_and(|log| log.has(&Kind::TurnEnd))
    });
    run.signal(rustix::process::Signal::TERM);
    assert_eq!(run.end().code, Some(143));
    drop(reader);
}
