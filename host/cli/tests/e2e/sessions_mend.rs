//! `dsh sessions …`: what changes what is stored.

use std::fs;
use std::path::PathBuf;

use dsh_session::Kind;
use dsh_session::projection::Registry;
use dsh_store::Target;
use dsh_store::projcache::ProjectionCache;
use mock_provider::Mock;
use serde_json::{Value, json};

use crate::support::{Ended, Scratch, data, event, header, kinds, photograph, said, say, turn};

#[track_caller]
fn done(ended: &Ended) -> &str {
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    &ended.stdout
}

#[track_caller]
fn refused(ended: &Ended, parts: &[&str]) {
    assert_eq!((ended.code, &*ended.stdout), (Some(1), ""), "{ended:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{ended:?}");
    for part in parts {
        assert!(ended.stderr.contains(part), "{part}: {ended:?}");
    }
}

/// The ids in the home's projection cache.
fn remembered(scratch: &Scratch) -> Vec<String> {
    let cache = ProjectionCache::open(&scratch.home()).unwrap();
    let text = fs::read_to_string(cache.path()).unwrap();
    let document: Value = serde_json::from_str(&text).unwrap();
    let table = document["tables"]["sessions"].as_object().unwrap();
    table.keys().cloned().collect()
}

#[test]
fn what_is_remembered_of_a_log_goes_with_its_events() {
    let scratch = Scratch::new();
    damaged(&scratch, "bad");
    let good = scratch.shelve(
        &header("good", 1, &scratch.work()),
        &turn(1, 0, 2, "Go", "Yes."),
    );
    let cache = ProjectionCache::open(&scratch.home()).unwrap();
    let rows = Registry::standard().start().checkpoint();
    for id in ["bad", "good", "other"] {
        cache.put(&header(id, 1, &scratch.work()), &rows).unwrap();
    }
    done(&scratch.sessions_command(["repair", "good"]));
    done(&scratch.sessions_command(["repair", "--dry-run", "bad"]));
    assert_eq!(remembered(&scratch), ["bad", "good", "other"]);
    done(&scratch.sessions_command(["repair", "bad"]));
    assert_eq!(remembered(&scratch), ["good", "other"]);
    done(&scratch.sessions_command(["rm", "--yes", "good"]));
    assert_eq!(remembered(&scratch), ["other"]);
    assert!(!good.exists());
}

/// Two turns, the second one open, and behind them an event that continues nothing.
fn damaged(scratch: &Scratch, id: &str) -> PathBuf {
    let mut lines = turn(1, 0, 5000, "Go", "Yes.");
    lines.push(event("turn/start", 4, 6000, r#"{"turn":2}"#));
    lines.push(said(5, 6001, "More"));
    lines.extend(turn(3, 9, 7000, "Lost", "Lost."));
    scratch.shelve(&header(id, 4000, &scratch.work()), &lines)
}

#[test]
fn a_check_says_what_is_sound_and_ends_with_1_when_something_is_not() {
    let scratch = Scratch::new();
    let work = scratch.work();
    scratch.shelve(&header("good", 1, &work), &turn(1, 0, 2, "Go", "Yes."));
    let torn = scratch.shelve(&header("torn", 1, &work), &turn(1, 0, 2, "Go", "Yes."));
    let bytes = fs::read(&torn).unwrap();
    fs::write(&torn, &bytes[..bytes.len() - 9]).unwrap();
    let ended = scratch.sessions_command(["check"]);
    assert_eq!(
        done(&ended).lines().last(),
        Some("2 checked, 0 damaged"),
        "{ended:?}"
    );
    assert!(
        ended.stdout.contains("ok       good  4 events\n"),
        "{ended:?}"
    );
    assert!(ended.stdout.contains("normal after a crash"), "{ended:?}");

    damaged(&scratch, "bad");
    fs::write(scratch.sessions().join("--w--.jsonl"), "").unwrap();
    fs::create_dir_all(scratch.sessions().join("--w--/broken")).unwrap();
    fs::write(
        scratch.sessions().join("--w--/broken/session.jsonl.zstd"),
        "x",
    )
    .unwrap();
    let before = photograph(&scratch.home());
    for words in [&["check"][..], &["check", "--all"]] {
        let ended = scratch.sessions_command(words.iter().copied());
        assert_eq!((ended.code, &*ended.stderr), (Some(1), ""), "{ended:?}");
        assert!(
            ended.stdout.contains("DAMAGED  bad  corrupt: "),
            "{ended:?}"
        );
        assert!(ended.stdout.contains("DAMAGED  broken  "), "{ended:?}");
        assert!(
            ended.stdout.ends_with("4 checked, 2 damaged\n"),
            "{ended:?}"
        );
    }
    assert_eq!(
        scratch.sessions_command(["check", "good", "torn"]).code,
        Some(0)
    );
    assert_eq!(
        scratch.sessions_command(["check", "good", "bad"]).code,
        Some(1)
    );
    let ended = scratch.sessions_command(["check", "--json"]);
    assert_eq!(ended.code, Some(1));
    let found: Value = serde_json::from_str(&ended.stdout).unwrap();
    let of = |id: &str| {
        let found = found.as_array().unwrap();
        found
            .iter()
            .find(|found| found["id"] == id)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&of("good")["ok"], &of("good")["events"]),
        (&json!(true), &json!(4))
    );
    assert_eq!(
        (&of("torn")["ok"], &of("torn")["torn"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(of("bad")["ok"], false);
    assert_eq!(of("bad")["damage"]["seq"], 6);
    assert_eq!(
        photograph(&scratch.home()),
        before,
        "a check writes nothing"
    );
    refused(
        &scratch.sessions_command(["check", "nobody"]),
        &["SESSION_NOT_FOUND"],
    );
    refused(
        &scratch.sessions_command(["check", "--all", "good"]),
        &["--all"],
    );
}

#[test]
fn a_damaged_session_goes_on_after_its_repair_and_not_before() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![say("Again.").answer()]);
    let path = damaged(&scratch, "session-bad");
    let bytes = fs::read(&path).unwrap();
    let go = || {
        let dsh = scratch.dsh().headless().provider(&mock);
        dsh.args(["--resume", "bad", "Go"]).run()
    };
    refused(
        &go(),
        &["SESSION_DAMAGED", "dsh sessions repair session-bad"],
    );
    let before = photograph(&scratch.sessions());

    let ended = scratch.sessions_command(["repair", "--dry-run", "bad"]);
    for part in [
        "6 events would be kept",
        "from seq 6 on",
        "closed by turn/end",
        "nothing was changed",
    ] {
        assert!(done(&ended).contains(part), "{part}: {ended:?}");
    }
    assert_eq!(photograph(&scratch.sessions())[&path], before[&path]);

    let ended = scratch.sessions_command(["repair", "bad"]);
    let original = path.with_file_name("damaged-1.zst");
    for part in ["6 events are kept", original.to_str().unwrap()] {
        assert!(done(&ended).contains(part), "{part}: {ended:?}");
    }
    assert_eq!(fs::read(&original).unwrap(), bytes);
    assert_eq!(scratch.sessions_command(["check"]).code, Some(0));
    let ended = scratch.sessions_command(["repair", "bad"]);
    assert!(done(&ended).contains("is sound"), "{ended:?}");
    go().answered("Again.");
    let log = scratch.record();
    assert_eq!(data(log.of(&Kind::TurnStart)[2])["turn"], 3);
    let ended = scratch.sessions_command(["show", "bad"]);
    assert!(
        done(&ended).contains("[turn 2 ended: interrupted]"),
        "{ended:?}"
    );
}

#[test]
fn what_a_crash_left_is_repaired_in_place() {
    let scratch = Scratch::new();
    let lines = [event("turn/start", 0, 5, r#"{"turn":1}"#), said(1, 6, "Go")];
    let path = scratch.shelve(&header("s", 1, &scratch.work()), &lines);
    let ended = scratch.sessions_command(["repair", "s"]);
    assert!(done(&ended).contains("ends early") && ended.stdout.contains("closed by turn/end"));
    let log = scratch.record();
    assert_eq!(kinds(log.events()).last(), Some(&"turn/end"));
    assert!(log.inspection.closers.is_empty());
    assert!(!path.with_file_name("damaged-1.zst").exists());
}

#[test]
fn what_cannot_be_repaired_is_said() {
    let scratch = Scratch::new();
    let dir = scratch.sessions().join("--w--/s");
    fs::create_dir_all(&dir).unwrap();
    fs::write(dir.join("session.jsonl.zstd"), "no frame at all").unwrap();
    refused(
        &scratch.sessions_command(["repair", "s"]),
        &["SESSION_DAMAGED", "seen in the file"],
    );
    // Taken from where its header says that it is.
    let path = scratch.shelve(
        &header("t", 1, &scratch.work()),
        &turn(1, 0, 2, "Go", "Yes."),
    );
    fs::rename(path.parent().unwrap(), scratch.sessions().join("--w--/t")).unwrap();
    refused(
        &scratch.sessions_command(["repair", "t"]),
        &["SESSION_IDENTITY", "move its directory"],
    );
}

#[test]
fn a_fork_goes_on_from_a_finished_turn_and_its_parent_stays() {
    let scratch = Scratch::new();
    let mock = Mock::start(vec![say("Forked.").answer()]);
    let mut lines = turn(1, 0, 5000, "First", "Yes.");
    lines.extend(turn(2, 4, 6000, "Second", "Yes."));
    lines.push(event("turn/start", 8, 7000, r#"{"turn":3}"#));
    let parent = scratch.shelve(&header("parent", 4000, &scratch.work()), &lines);
    let bytes = fs::read(&parent).unwrap();
    let fork = |words: &[&str]| {
        let ended = scratch.sessions_command([&["fork", "parent"], words].concat());
        let id = done(&ended).trim_end().to_owned();
        assert!(id.starts_with("session-") && id.len() == 44, "{id}");
        id
    };
    let (whole, first) = (fork(&[]), fork(&["--at", "1"]));
    let inspect = |id: &str| scratch.store().inspect(&Target::Id(id.to_owned())).unwrap();
    for (id, inherited) in [(&whole, 8), (&first, 4)] {
        let log = inspect(id);
        assert_eq!(log.header.seed_length, Some(inherited));
        assert_eq!(log.header.parent_session.as_deref(), Some("parent"));
        assert_eq!(log.log.len(), inherited + 1);
    }
    assert_eq!(fs::read(&parent).unwrap(), bytes);
    let dsh = scratch.dsh().headless().provider(&mock);
    dsh.args(["--resume", &first, "Go on"])
        .run()
        .answered("Forked.");
    let request = mock.requests().pop().unwrap().text();
    assert!(
        request.contains("First") && !request.contains("Second"),
        "{request}"
    );
    let ended = scratch.sessions_command(["fork", "parent", "--at", "8"]);
    refused(&ended, &["FORK_UNAVAILABLE", "seq 8"]);
}

#[test]
fn removing_needs_a_yes_and_a_session_that_nobody_writes() {
    let scratch = Scratch::new();
    let work = scratch.work();
    let one = scratch.shelve(&header("one", 1, &work), &turn(1, 0, 2, "Go", "Yes."));
    let two = scratch.shelve(&header("two", 1, &work), &turn(1, 0, 2, "Go", "Yes."));
    let dir = one.parent().unwrap().parent().unwrap();
    refused(&scratch.sessions_command(["rm", "one"]), &["--yes"]);
    refused(
        &scratch.sessions_command(["rm", "--yes", "one", "nobody"]),
        &["SESSION_NOT_FOUND"],
    );
    assert!(one.exists(), "all or nothing");
    let writer = scratch.store().resume("one", 3).unwrap();
    refused(
        &scratch.sessions_command(["rm", "--yes", "one"]),
        &["SESSION_LOCKED"],
    );
    assert!(one.exists());
    drop(writer);
    let ended = scratch.sessions_command(["rm", "--yes", "one"]);
    assert!(done(&ended).starts_with("removed one ("), "{ended:?}");
    assert!(!one.parent().unwrap().exists() && two.exists());
    done(&scratch.sessions_command(["rm", "two", "--yes"]));
    assert!(!dir.exists() && scratch.sessions().exists());
}
