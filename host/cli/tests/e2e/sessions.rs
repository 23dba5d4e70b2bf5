//! `dsh sessions …`: looking at what is stored.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use serde_json::{Value, json};

use crate::support::{Ended, Scratch, event, header, photograph, said, spoken, turn};

#[track_caller]
fn done(ended: &Ended) -> &str {
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    &ended.stdout
}

#[track_caller]
fn refused(ended: &Ended, parts: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    assert!(ended.stderr.starts_with("error: "), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
}

/// Two sessions of the working directory, a damaged one among them, and one of elsewhere.
fn shelf(scratch: &Scratch) {
    let work = scratch.work();
    let mut lines = turn(1, 0, 2000, "Fix the tests", "Done.");
    lines.extend(turn(2, 4, 9000, "And the docs", "Those too."));
    scratch.shelve(&header("session-11111111-aaaa", 1000, &work), &lines);
    let mut lines = turn(1, 0, 5000, "Look \u{1b}[2Jaround now please thanks", "Yes.");
    lines.push(event("turn/start", 9, 6000, r#"{"turn":2}"#));
    scratch.shelve(&header("session-11111111-bbbb", 4000, &work), &lines);
    let mut lines = turn(1, 0, 7000, "Elsewhere", "Yes.");
    let title = r#"{"title":"A title","messageSeqs":[],"source":{"kind":"user"}}"#;
    lines.push(event("session/title", 4, 7900, title));
    scratch.shelve(&header("mine", 3000, Path::new("/else/where")), &lines);
}

#[test]
fn the_list_is_an_array_with_the_newest_first_and_the_damaged_marked() {
    let scratch = Scratch::new();
    shelf(&scratch);
    let ended = scratch.sessions_command(["list", "--json"]);
    let rows: Value = serde_json::from_str(done(&ended)).unwrap();
    let rows = rows.as_array().unwrap();
    let ids: Vec<&Value> = rows.iter().map(|row| &row["id"]).collect();
    assert_eq!(
        ids,
        ["session-11111111-aaaa", "mine", "session-11111111-bbbb"]
    );
    let first = &rows[0];
    let keys: Vec<&String> = first.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        [
            "id",
            "title",
            "cwd",
            "createdAt",
            "updatedAt",
            "turns",
            "bytes",
            "damage",
            "path",
            "projections"
        ]
    );
    assert_eq!(first["title"], "Fix the tests");
    assert_eq!(first["cwd"], scratch.work().to_str().unwrap());
    assert_eq!(
        (&first["createdAt"], &first["updatedAt"]),
        (&json!(1000), &json!(9001))
    );
    assert_eq!(
        (&first["turns"], &first["damage"]),
        (&json!(2), &Value::Null)
    );
    let path = first["path"].as_str().unwrap();
    assert_eq!(first["bytes"], std::fs::metadata(path).unwrap().len());
    assert_eq!(rows[1]["title"], "A title");
    let damage = &rows[2]["damage"];
    assert_eq!(
        (&damage["class"], &damage["stage"], &damage["seq"]),
        (&json!("Error"), &json!("scan"), &json!(4))
    );
    assert!(
        damage["offset"].is_u64() && damage["reason"].is_string(),
        "{damage}"
    );
    assert_eq!(rows[2]["turns"], 1, "of what is sound");
}

#[test]
fn the_table_has_a_line_for_each_and_cannot_speak_to_the_terminal() {
    let scratch = Scratch::new();
    shelf(&scratch);
    let ended = scratch.sessions_command(["list"]);
    let lines: Vec<&str> = done(&ended).lines().collect();
    assert_eq!(lines.len(), 4, "{ended:?}");
    assert!(lines[1].starts_with("11111111-a") && lines[1].ends_with("Fix the tests"));
    assert!(lines[2].starts_with("mine ") && lines[2].ends_with("A title"));
    assert!(
        lines[3].starts_with("11111111-b") && lines[3].contains("! "),
        "{lines:?}"
    );
    assert!(!ended.stdout.contains('\u{1b}'));
}

#[test]
fn the_list_can_be_of_one_directory() {
    let scratch = Scratch::new();
    shelf(&scratch);
    for (dir, count) in [
        (".", 2),
        ("/else/where", 1),
        ("/else/../else/where", 1),
        ("/nowhere", 0),
    ] {
        let ended = scratch.sessions_command(["list", "--json", "--cwd", dir]);
        let rows: Value = serde_json::from_str(done(&ended)).unwrap();
        assert_eq!(rows.as_array().unwrap().len(), count, "{dir}");
    }
    let ended = scratch.sessions_command(["list", "--cwd=/nowhere"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), ""));
    assert!(ended.stderr.contains("no session is stored"), "{ended:?}");
}

#[test]
fn an_id_may_be_shortened_while_it_is_one_sessions() {
    let scratch = Scratch::new();
    shelf(&scratch);
    let shown = |id: &str| scratch.sessions_command(["show", id]);
    for id in [
        "session-11111111-aaaa",
        "11111111-a",
        "session-11111111-a",
        "last",
    ] {
        assert!(done(&shown(id)).starts_with("Fix the tests\n"), "{id}");
    }
    for id in ["mi", "mine"] {
        assert!(done(&shown(id)).starts_with("A title\n"), "{id}");
    }
    let both = [
        "SESSION_AMBIGUOUS",
        "session-11111111-aaaa",
        "session-11111111-bbbb",
    ];
    refused(&shown("1111"), &both);
    refused(
        &shown("nobody"),
        &["SESSION_NOT_FOUND", "\"nobody\"", "dsh sessions list"],
    );
    let empty = Scratch::new();
    refused(
        &empty.sessions_command(["show", "last"]),
        &["SESSION_NOT_FOUND", "no session"],
    );
    // A run takes a shortened id too.
    let ended = scratch
        .dsh()
        .headless()
        .args(["--resume", "1111", "Go"])
        .run();
    refused(&ended, &["SESSION_AMBIGUOUS"]);
}

#[test]
fn the_last_session_is_looked_for_elsewhere_but_never_removed_there() {
    let scratch = Scratch::new();
    let away = header("away", 1, Path::new("/else/where"));
    let path = scratch.shelve(&away, &[event("turn/start", 0, 5, r#"{"turn":1}"#)]);
    let shown = scratch.sessions_command(["inspect", "last"]);
    assert!(done(&shown).contains("away"), "{shown:?}");
    refused(
        &scratch.sessions_command(["rm", "last", "--yes"]),
        &["SESSION_NOT_FOUND", "no session of"],
    );
    assert!(path.exists());
}

#[test]
fn a_transcript_is_what_was_appended_in_order_and_whole_turns() {
    let scratch = Scratch::new();
    let long = format!("first line\n{}", "many words ".repeat(600));
    let call = r#"{"turn":1,"step":1,"message":{"role":"assistant","content":[{"type":"reasoning","text":"Let me think."},{"type":"text","text":"I look."},{"type":"tool-call","id":"c1","name":"bash","arguments":"{\"command\":\"ls\"}"}],"source":{"kind":"model","provider":"p","model":"m"},"id":"a1"}}"#;
    let result = format!(
        r#"{{"turn":1,"step":1,"message":{{"source":{{"kind":"tool","callId":"c1"}},"content":[{{"type":"tool-result","toolCallId":"c1","content":[{{"type":"text","text":{}}}],"isError":false}}],"role":"user","id":"r1"}}}}"#,
        serde_json::to_string(&long).unwrap()
    );
    let replaced = r#"{"content":[{"type":"text","text":"A summary of it."}],"source":{"kind":"plugin","plugin":"compact"},"role":"user","id":"k"}"#;
    let lines = [
        event("turn/start", 0, 0, r#"{"turn":1}"#),
        said(
            1,
            1,
            "What is\u{1b}]0;gone\u{7} here?\r\n\tTell \u{9b}31mme.\u{202e}",
        ),
        spoken("assistant/message", 2, 2, call),
        spoken("tool/result", 3, 3, &result),
        event(
            "turn/end",
            4,
            4,
            r#"{"turn":1,"reason":{"kind":"error","error":{"message":"no answer","code":"NETWORK"}}}"#,
        ),
        format!(
            r#"{{"type":"user/message","seq":5,"time":5,"data":{replaced},"sourceEventSeqs":[1,2,3],"surfaceOp":{{"op":"replace","start":1,"end":3}}}}"#
        ),
        event("turn/start", 6, 6, r#"{"turn":2}"#),
        said(7, 7, "Again."),
    ];
    scratch.shelve(&header("s", 1_700_000_000_000, &scratch.work()), &lines);
    let ended = scratch.sessions_command(["show", "s"]);
    let text = done(&ended);
    let parts = [
        "What is here? Tell me.\n",
        "session      s\n",
        "2023-11-14 22:13 UTC",
        "── turn 1,",
        "You:\n  What is here?\n  \tTell me.\n",
        "Assistant (p/m):\n",
        "(reasoning)\n  | Let me think.\n",
        "I look.",
        "→ bash {\"command\":\"ls\"}",
        "← bash\n    first line\n",
        "characters left out; --full shows all",
        "[turn 1 ended: error: NETWORK no answer]",
        "[compaction: from here on the model sees this summary in place of older messages]",
        "Summary:\n  A summary of it.",
        "── turn 2,",
        "Again.",
        "[turn 2 has no end in the log",
    ];
    let mut at = 0;
    for part in parts {
        let found = text[at..].find(part);
        at += found.unwrap_or_else(|| panic!("{part:?} is not where it belongs in:\n{text}"));
    }
    let spoken = |c: char| c.is_control() && c != '\n' && c != '\t';
    assert!(!text.contains(spoken) && !text.contains('\u{202e}'));
    let whole = scratch.sessions_command(["show", "--full", "s"]);
    assert!(done(&whole).contains(long.lines().last().unwrap().trim_end()));

    let ended = scratch.sessions_command(["export", "--format", "md", "s"]);
    let text = done(&ended);
    for part in [
        "# What is here? Tell me.\n",
        "## Turn 1\n",
        "### You\n",
        "> Let me think.",
        "**Call: bash**",
        "**Result: bash**\n\n```\nfirst line\n",
        "### Summary\n\nA summary of it.",
    ] {
        assert!(text.contains(part), "{part:?}: {text}");
    }
    assert!(!text.contains(spoken));

    let ended = scratch.sessions_command(["inspect", "s"]);
    let line = "compaction    event 5, 1970-01-01 00:00 UTC: A summary of it.\n";
    assert!(done(&ended).contains(line), "{ended:?}");
}

#[test]
fn a_reader_that_goes_away_ends_it_quietly() {
    let scratch = Scratch::new();
    let lines = turn(1, 0, 0, "Go", &"many words\n".repeat(100_000));
    scratch.shelve(&header("s", 1, &scratch.work()), &lines);
    for words in [
        &["show", "s"][..],
        &["export", "s"],
        &["list"],
        &["inspect", "s", "--json"],
        &["check"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended = scratch
            .dsh()
            .args(["sessions"])
            .args(words.iter().copied())
            .stdout(writer)
            .run();
        assert_eq!(
            (ended.code, ended.signal, &*ended.stderr),
            (Some(0), None, ""),
            "{words:?}"
        );
    }
}

#[test]
fn an_export_is_the_log_in_plain_lines() {
    let scratch = Scratch::new();
    let chunk = |seq: u64, text: &str| {
        let chunk = format!(
            r#"{{"turn":1,"step":1,"chunk":{{"type":"text-delta","index":0,"text":"{text}"}}}}"#
        );
        event("assistant/chunk", seq, seq, &chunk)
    };
    let row = r#"{"type":"text-chunks","seq0":1,"time0":1,"data":{"turn":1,"step":1,"index":0,"dt":[1,1],"texts":["a","b","\ud83d"]}}"#;
    let header = header("s", 1, &scratch.work());
    let start = event("turn/start", 0, 0, r#"{"turn":1}"#);
    scratch.shelve(&header, &[start.clone(), row.to_owned()]);
    let ended = scratch.sessions_command(["export", "s"]);
    let expected = [
        header.line(),
        start,
        chunk(1, "a"),
        chunk(2, "b"),
        chunk(3, "\\ud83d"),
    ];
    assert_eq!(done(&ended), expected.join("\n") + "\n");

    shelf(&scratch);
    let ended = scratch.sessions_command(["export", "11111111-b"]);
    assert_eq!(ended.stdout.lines().count(), 5);
    assert_eq!(ended.code, Some(1), "it is not whole");
    assert!(ended.stderr.starts_with("dsh: ") && ended.stderr.contains("is damaged"));
    refused(
        &scratch.sessions_command(["export", "--format=pdf", "s"]),
        &["jsonl or md"],
    );
}

#[test]
fn an_inspection_is_one_object_and_changes_nothing() {
    let scratch = Scratch::new();
    shelf(&scratch);
    let lines = [
        event("turn/start", 0, 0, r#"{"turn":1}"#),
        event(
            "feedback/record",
            1,
            1,
            r#"{"text":"\ud83d","n":1e400,"m":123456789012345678901234567890}"#,
        ),
        said(2, 2, "Go"),
    ];
    let path = scratch.shelve(&header("odd", 1, &scratch.work()), &lines);
    let before = photograph(&scratch.home());
    let by_id = scratch.sessions_command(["inspect", "--json", "odd"]);
    let by_file = scratch.sessions_command(["inspect", path.to_str().unwrap(), "--json"]);
    assert_eq!(done(&by_id), done(&by_file));
    let object: Value = serde_json::from_str(&by_id.stdout).unwrap();
    assert_eq!(
        (&object["eventCount"], &object["lastSeq"]),
        (&json!(3), &json!(2))
    );
    assert_eq!(object["closers"][0]["type"], "turn/end");
    assert_eq!(object["messages"][0]["content"][0]["text"], "Go");
    assert_eq!(object["projections"]["sessionStats"]["turns"], 0);
    let ended = scratch.sessions_command(["inspect", "--json", "11111111-b"]);
    let object: Value = serde_json::from_str(done(&ended)).unwrap();
    assert_eq!(
        (&object["eventCount"], &object["damage"]["seq"]),
        (&json!(4), &json!(4))
    );
    assert_eq!(object["closers"], json!([]));
    let ended = scratch.sessions_command(["inspect", "11111111-b"]);
    assert!(
        done(&ended).contains("damage        corrupt: "),
        "{ended:?}"
    );
    assert_eq!(photograph(&scratch.home()), before);
}

#[test]
fn what_cannot_be_read_at_all_is_an_error_object_and_exit_code_2() {
    let scratch = Scratch::new();
    let broken = scratch.write("broken.jsonl", "not json\n");
    let newer = scratch.write("newer.jsonl", "{\"type\":\"session\",\"version\":3}\n");
    for (what, class) in [
        (broken.to_str().unwrap(), "Error"),
        (newer.to_str().unwrap(), "SessionFormatUnsupportedError"),
        ("./missing.jsonl", "Error"),
        ("/", "Error"),
        ("nobody", "Error"),
    ] {
        let ended = scratch.sessions_command(["inspect", "--json", what]);
        assert_eq!((ended.code, &*ended.stderr), (Some(2), ""), "{ended:?}");
        let object: Value = serde_json::from_str(&ended.stdout).unwrap();
        let error = object["error"].as_object().unwrap();
        assert_eq!(
            error.keys().collect::<Vec<_>>(),
            ["class", "stage", "message"]
        );
        assert_eq!(
            (&error["class"], &error["stage"]),
            (&json!(class), &json!("scan"))
        );
        let ended = scratch.sessions_command(["inspect", what]);
        assert_eq!((ended.code, &*ended.stdout), (Some(2), ""), "{ended:?}");
        assert!(ended.stderr.starts_with("dsh: ") && ended.stderr.lines().count() == 1);
    }
    assert!(!scratch.home().exists(), "nothing was made");
}

#[test]
fn it_needs_no_profile_and_makes_none() {
    let scratch = Scratch::new();
    for words in [&["--help"][..], &["list", "--help"], &["rm", "-h"]] {
        let ended = scratch.sessions_command(words.iter().copied());
        assert!(
            done(&ended).starts_with("Usage: dsh sessions "),
            "{ended:?}"
        );
    }
    assert_eq!(scratch.sessions_command(["list", "--json"]).stdout, "[]\n");
    assert!(!scratch.home().exists());
    let ended = scratch.dsh().args(["--help"]).run();
    assert!(done(&ended).contains("dsh sessions --help"), "{ended:?}");
}

#[test]
fn words_that_mean_nothing_are_one_line_and_exit_code_1() {
    let scratch = Scratch::new();
    refused(&scratch.sessions_command([]), &["dsh sessions list"]);
    refused(
        &scratch.sessions_command(["prune"]),
        &["\"prune\"", "repair"],
    );
    refused(&scratch.sessions_command(["list", "--all"]), &["--all"]);
    refused(&scratch.sessions_command(["show"]), &["dsh sessions list"]);
    refused(
        &scratch.sessions_command(["fork", "x", "--at", "-1"]),
        &["-1"],
    );
    let odd = OsStr::from_bytes(b"\xff\xfe");
    let ended = scratch.dsh().args(["sessions", "show"]).arg(odd).run();
    refused(&ended, &["UTF-8"]);
    // Where no home can be.
    let ended = scratch
        .dsh()
        .without("HOME")
        .without("DSH_HOME")
        .args(["sessions", "list"])
        .run();
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    let file = scratch.write("file", "");
    let ended = scratch
        .dsh()
        .env("DSH_HOME", file)
        .args(["sessions", "list"])
        .run();
    assert_eq!(ended.stdout, "", "{ended:?}");
    assert_eq!(ended.code, Some(1), "{ended:?}");
}

#[test]
fn sessions_are_where_the_profile_keeps_them() {
    let scratch = Scratch::new();
    let elsewhere = scratch.work().join("kept");
    let patch = format!(
        "- id: session-persistence-jsonl\n  config:\n    root: {}\n    compression: none\n",
        elsewhere.display()
    );
    scratch.write_home("cordis.patch.yml", &patch);
    scratch.write_home(
        "profiles/headless/profile.yml",
        "bundles: [base, headless]\n",
    );
    let dir = elsewhere.join("--w--/s");
    std::fs::create_dir_all(&dir).unwrap();
    let mut text = header("s", 1, Path::new("/w")).line() + "\n";
    text += &(turn(1, 0, 2, "Hello", "Yes.").join("\n") + "\n");
    std::fs::write(dir.join("session.jsonl"), text).unwrap();
    let ended = scratch.sessions_command(["list"]);
    assert!(done(&ended).contains("Hello"), "{ended:?}");
    // A profile that cannot be read is said, and does not stand in the way.
    scratch.write_home("cordis.patch.yml", "{");
    let ended = scratch.sessions_command(["list", "--json"]);
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "[]\n"), "{ended:?}");
    assert!(ended.stderr.contains("all the same"), "{ended:?}");
}
