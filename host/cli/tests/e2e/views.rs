//! Views of a session: for its components, for lists, and over kills.

use std::path::PathBuf;

use dsh_session::Kind;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::hostile::guest;
use crate::support::{Ended, Scratch, wait_until};

fn cache(scratch: &Scratch) -> PathBuf {
    scratch.home().join("storages/session_projcache.json")
}

/// The rows that the cache has of the only session.
fn rows(scratch: &Scratch) -> Option<Value> {
    let text = std::fs::read_to_string(cache(scratch)).ok()?;
    let document: Value = serde_json::from_str(&text).unwrap();
    let sessions = document["tables"]["sessions"].as_object()?;
    Some(sessions.values().next()?["rows"].clone())
}

/// The newest event that any state of the cache knows.
fn newest(rows: &Value) -> u64 {
    let seqs = rows.as_object().unwrap().values();
    seqs.filter_map(|row| row["seq"].as_u64()).max().unwrap()
}

fn listed(scratch: &Scratch) -> Value {
    let ended = scratch.sessions_command(["list", "--json"]);
    let rows: Value = serde_json::from_str(&ended.stdout).unwrap();
    rows[0]["projections"].clone()
}

fn bash(times: usize) -> Value {
    let call =
        json!({"calls": [{"name": "bash", "arguments": {"command": "true", "description": "d"}}]});
    let mut script = vec![call; times];
    script.push(json!({"text": "Done.", "times": "always"}));
    Value::from(script)
}

#[test]
fn a_component_is_shown_a_view_as_of_its_call() {
    let scratch = Scratch::new();
    let row = json!({
        "id": "prober",
        "component": guest().to_string_lossy(),
        "config": {"says": ["tool:view"]},
        "grants": {
            "clock": true, "random": true, "session": true, "journal": true, "workspace": true,
            "spill": true, "attachments": true, "pictures": true, "process": [], "inbox": true, "kv": true, "llm": true, "route": {"provider": "prober"},
        },
    });
    let row = scratch.write_beside("prober.yml", &json!([{"insert": [row]}]).to_string());
    let call = |key: &str| json!({"name": "view", "arguments": {"key": key}});
    let script = json!([
        {"calls": [call("sessionStats"), call("nobody's")]},
        {"calls": [call("sessionStats"), call("contextBreakdown")]},
        {"text": "Done."},
    ]);
    let script = scratch.script(&script);
    let ended = scratch
        .dsh()
        .headless()
        .patch(script)
        .patch(row)
        .args(["--strict", "Go"])
        .run();
    ended.answered("Done.");
    let results = scratch.record().results();
    let views: Vec<&str> = results.iter().map(|(text, _)| &**text).collect();
    let steps = |text: &str| serde_json::from_str::<Value>(text).unwrap()["steps"].clone();
    assert_eq!((steps(views[0]), views[1]), (json!(0), "none"));
    assert_eq!(steps(views[2]), 1);
    assert!(views[3].contains("messageTokens"), "{views:?}");
}

#[test]
fn a_list_shows_what_the_cache_has_and_asks_neither_log_nor_component() {
    let scratch = Scratch::new();
    let script = scratch.script(&bash(1));
    let run = || scratch.dsh().headless().patch(&script).args(["Go"]).run();
    run().answered("Done.");
    let shown = listed(&scratch);
    assert_eq!(shown["values"]["sessionStats"]["steps"], 2);
    assert_eq!(shown["asOfSeq"], newest(&rows(&scratch).unwrap()));
    let text = std::fs::read_to_string(cache(&scratch)).unwrap();
    let view = text.rfind("\"steps\": 2").unwrap();
    let other = format!("{}\"steps\": 7{}", &text[..view], &text[view + 10..]);
    std::fs::write(cache(&scratch), other).unwrap();
    assert_eq!(listed(&scratch)["values"]["sessionStats"]["steps"], 7);
    let seq = format!("\"seq\": {}", newest(&rows(&scratch).unwrap()));
    std::fs::write(
        cache(&scratch),
        text.replace(&seq, "\"seq\": 1000000000000000"),
    )
    .unwrap();
    let ahead = listed(&scratch)["asOfSeq"].as_u64();
    assert!(ahead.is_none_or(|seq| seq < 100), "{ahead:?}");
    std::fs::write(cache(&scratch), "somebody else's").unwrap();
    let ended = scratch.sessions_command(["list", "--json"]);
    assert!(
        ended.stderr.contains("PROJECTION_CACHE_UNUSABLE"),
        "{ended:?}"
    );
    assert_eq!(ended.code, Some(0));
    std::fs::remove_file(cache(&scratch)).unwrap();
    assert_eq!(listed(&scratch), Value::Null);
}

/// A pipe is the worst of what can stand there: whoever opens one waits.
#[test]
fn what_is_no_cache_in_its_place_costs_a_line_and_a_doctor_says_what_to_do() {
    let scratch = Scratch::new();
    let script = scratch.script(&bash(0));
    let run = || scratch.dsh().headless().patch(&script).args(["Go"]).run();
    let doctor = || {
        let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", "sk-e2e");
        dsh.args(["doctor"]).run()
    };
    let says = |ended: &Ended, words: &[&str]| {
        let fits = |line: &str| words.iter().all(|word| line.contains(word));
        assert!(ended.stdout.lines().any(fits), "{words:?}: {ended:?}");
    };
    run().answered("Done.");
    let path = cache(&scratch);
    let at = path.to_string_lossy().into_owned();
    says(&doctor(), &["ok", "sessions", &at, "1 sessions"]);
    let sound = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    let bits = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mkfifoat(rustix::fs::CWD, &path, bits).unwrap();
    let listed = scratch.sessions_command(["list", "--json"]);
    assert_eq!(listed.code, Some(0), "{listed:?}");
    assert!(listed.stderr.contains("no regular file"), "{listed:?}");
    let ended = run();
    assert_eq!((ended.code, &*ended.stdout), (Some(0), "Done.\n"));
    assert!(ended.stderr.contains("no regular file"), "{ended:?}");
    says(
        &doctor(),
        &[
            "warning",
            "sessions",
            &at,
            "no regular file",
            "move it away",
        ],
    );
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, sound.replace("\"version\": 3", "\"version\": 99")).unwrap();
    says(
        &doctor(),
        &["warning", "sessions", &at, "version is 99", "move it away"],
    );
}

#[test]
fn a_write_point_that_is_none_costs_a_line_and_the_usual_one_counts() {
    let scratch = Scratch::new();
    let script = scratch.script(&bash(0));
    let patch = json!([{"id": "session-projection", "config": {"writeEveryEvents": 0}}]);
    let patch = scratch.write_beside("never.yml", &patch.to_string());
    let run = |args: &[&str]| {
        let dsh = scratch.dsh().headless().patch(&script).patch(&patch);
        dsh.args(args.iter().copied()).run()
    };
    let says = format!(
        "row session-projection: writeEveryEvents is no whole number from 1 on, so 200 counts; mend the row in {}",
        patch.display()
    );
    let ended = run(&["Go"]);
    assert_eq!(
        (ended.code, &*ended.stdout),
        (Some(0), "Done.\n"),
        "{ended:?}"
    );
    assert_eq!(ended.stderr, format!("dsh: {says}\n"));
    assert!(cache(&scratch).exists());
    let strict = run(&["--strict", "Go"]);
    assert_eq!((strict.code, &*strict.stdout), (Some(1), ""), "{strict:?}");
    assert_eq!(strict.stderr, format!("dsh: {says} (--strict)\n"));
    let own = std::fs::read_to_string(&patch).unwrap();
    scratch.write_home("profiles/headless/cordis.patch.yml", &own);
    let doctor = scratch.dsh().env("DEEPSEEK_API_KEY", "sk-e2e");
    let doctor = doctor.args(["doctor"]).run();
    let line = "row session-projection: writeEveryEvents is no whole number";
    assert!(doctor.stdout.contains(line), "{doctor:?}");
}

#[test]
fn without_its_row_nothing_is_folded_or_kept() {
    let scratch = Scratch::new();
    let script = scratch.script(&bash(0));
    let patch = json!([{"id": "session-projection", "disabled": true}]).to_string();
    let patch = scratch.write_beside("off.yml", &patch);
    let run = scratch.dsh().headless().patch(script).patch(patch);
    run.args(["--strict", "Go"]).run().answered("Done.");
    assert!(!cache(&scratch).exists());
    assert_eq!(listed(&scratch), Value::Null);
}

/// Killed when the cache has come so far, it knows no event that the log has not; and whoever takes the session up goes
/// on from there to what a fold of the whole log gives.
#[test]
fn killed_at_any_moment_the_cache_is_not_ahead_of_the_log() {
    for so_far in [1, 8, 15, 22, 29] {
        let scratch = Scratch::new();
        let script = scratch.script(&bash(12));
        let patch =
            json!([{"id": "session-projection", "config": {"writeEveryEvents": 1}}]).to_string();
        let patch = scratch.write_beside("often.yml", &patch);
        let dsh = || scratch.dsh().headless().patch(&script).patch(&patch);
        let run = dsh().args(["Go"]).start();
        wait_until("the cache has come so far", || {
            rows(&scratch).is_some_and(|rows| newest(&rows) >= so_far)
        });
        run.signal(Signal::KILL);
        run.end();
        let known = newest(&rows(&scratch).unwrap());
        let log = scratch.record_so_far().unwrap();
        let length = log.events().len() as u64;
        assert!(
            known < length,
            "the cache knows {known}, the log has {length}"
        );
        let ended = dsh().args(["--resume", "last", "On"]).run();
        assert_eq!(ended.code, Some(0), "{ended:?}");
        let log = scratch.record();
        assert!(log.has(&Kind::TurnEnd));
        let path = log.inspection.path.to_string_lossy().into_owned();
        let whole = scratch.sessions_command(["inspect", "--json", &path]);
        let whole: Value = serde_json::from_str(&whole.stdout).unwrap();
        let kept = listed(&scratch);
        assert_eq!(
            kept["asOfSeq"].as_u64(),
            Some(log.events().len() as u64 - 1)
        );
        for key in [
            "sessionStats",
            "tokenUsage",
            "contextPressure",
            "contextBreakdown",
            "title",
        ] {
            assert_eq!(
                kept["values"][key], whole["projections"][key],
                "{key} after {so_far}"
            );
        }
    }
}
