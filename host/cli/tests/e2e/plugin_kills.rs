//! SIGKILL at any moment of `add`, `update` and `remove`: the old state or the new one, whole, and the next command
//! goes on. And two at once.

use std::path::Path;
use std::time::Instant;

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Scratch, counter, photograph, todo};

/// What the lock says: the versions of `acme:counter`, none where it is not there.
fn version(scratch: &Scratch) -> Option<String> {
    let (ended, list) = scratch.plugin_json(["list"]);
    assert_eq!(
        (ended.code, ended.stderr.as_str()),
        (Some(0), ""),
        "{ended:?}"
    );
    let plugins = list["plugins"].as_array().unwrap();
    assert!(plugins.len() <= 1, "{list}");
    plugins
        .first()
        .map(|plugin| plugin["version"].as_str().unwrap().to_owned())
}

/// The state is whole: what the lock names is there and boots.
fn whole(scratch: &Scratch, moment: &str) {
    let verify = scratch.plugin(["verify"]);
    assert_eq!(
        (verify.code, verify.stderr.as_str()),
        (Some(0), ""),
        "{moment}: {verify:?}"
    );
    let there = version(scratch).is_some();
    let (ended, results) = scratch.calls("c_count", &json!({"text": ""}));
    assert_eq!(
        (ended.stdout.as_str(), ended.stderr.as_str()),
        ("Called.\n", ""),
        "{moment}: {ended:?}"
    );
    assert_eq!(results[0].1.is_none(), there, "{moment}: {results:?}");
}

/// How much there is below the profiles and the packages, which is what a command changes. Another process is at it.
fn names(dir: &Path) -> usize {
    let entries = std::fs::read_dir(dir).into_iter().flatten().flatten();
    entries.map(|entry| 1 + names(&entry.path())).sum()
}

fn changed(scratch: &Scratch) -> usize {
    names(&scratch.home().join("plugins")) + names(&scratch.home().join("profiles"))
}

/// Kills the command at the n-th change of what is on disk, for each n until it ends before; then at moments spread over
/// the time that it takes.
fn swept(prepare: impl Fn() -> Scratch, words: &[&str], old: Option<&str>, new: Option<&str>) {
    let check = |scratch: &Scratch, moment: &str| {
        let found = version(scratch);
        assert!(
            found.as_deref() == old || found.as_deref() == new,
            "{moment}: {found:?}"
        );
        whole(scratch, moment);
        // Once more, to its end: nothing is in its way, and nothing is left of the first.
        let again = scratch.plugin(words.iter().copied());
        assert!(
            again.code == Some(0) || (new.is_none() && found.is_none()),
            "{moment}: {again:?}"
        );
        assert_eq!(version(scratch).as_deref(), new, "{moment}");
        if new.is_none() {
            // What could not be removed twice is swept by the next change.
            scratch.plugin(["add", "--yes", "counter.wasm"]).done();
            scratch.plugin(["remove", "acme:counter"]).done();
        }
        assert_eq!(
            scratch.packages().len(),
            usize::from(new.is_some()),
            "{moment}"
        );
        let drafts: Vec<_> = photograph(&scratch.home().join("plugins"))
            .into_keys()
            .chain(photograph(&scratch.home().join("profiles")).into_keys())
            .filter(|path| path.to_string_lossy().ends_with(".draft"))
            .collect();
        assert!(drafts.is_empty(), "{moment}: {drafts:?}");
    };
    for n in 0..6 {
        let scratch = prepare();
        let run = scratch
            .dsh()
            .args(["plugin"])
            .args(words.iter().copied())
            .start();
        let (mut changes, mut before) = (0, changed(&scratch));
        let started = Instant::now();
        // A command that changed less is at its end by then.
        while changes <= n && started.elapsed().as_secs() < 3 {
            let now = changed(&scratch);
            changes += usize::from(now != before);
            before = now;
        }
        run.signal(Signal::KILL);
        run.end();
        check(&scratch, &format!("change {n} of {words:?}"));
    }
    let scratch = prepare();
    let started = Instant::now();
    scratch.plugin(words.iter().copied());
    let whole_time = started.elapsed();
    for part in 1..=12u32 {
        let scratch = prepare();
        let run = scratch
            .dsh()
            .args(["plugin"])
            .args(words.iter().copied())
            .start();
        std::thread::sleep(whole_time * part / 12);
        run.signal(Signal::KILL);
        run.end();
        check(&scratch, &format!("{part}/12 of {words:?}"));
    }
}

#[test]
fn killed_at_any_moment_add_leaves_nothing_or_all_of_it() {
    let prepare = || {
        let scratch = Scratch::new();
        scratch.put("counter.wasm", &counter("1.0.0"));
        scratch.plugin(["list"]).done();
        scratch
    };
    swept(
        prepare,
        &["add", "--yes", "counter.wasm"],
        None,
        Some("1.0.0"),
    );
}

#[test]
fn killed_at_any_moment_update_leaves_the_old_version_or_the_new_one() {
    let prepare = || {
        let scratch = Scratch::new();
        scratch.with_counter();
        scratch.put("counter.wasm", &counter("1.1.0"));
        scratch
    };
    swept(prepare, &["update", "--yes"], Some("1.0.0"), Some("1.1.0"));
}

#[test]
fn killed_at_any_moment_remove_leaves_it_or_nothing_of_it() {
    let prepare = || {
        let scratch = Scratch::new();
        scratch.with_counter();
        scratch
    };
    swept(prepare, &["remove", "acme:counter"], Some("1.0.0"), None);
}

#[test]
fn two_adds_at_once_both_land_and_two_of_one_name_land_once() {
    for _ in 0..4 {
        let scratch = Scratch::new();
        scratch.put("counter.wasm", &counter("1.0.0"));
        scratch.put("todo.wasm", &todo());
        let add = |file: &str| scratch.dsh().args(["plugin", "add", "--yes", file]).start();
        let runs = [add("counter.wasm"), add("todo.wasm"), add("counter.wasm")];
        let ended = runs.map(crate::support::Running::end);
        assert_eq!(
            (ended[1].code, ended[1].stderr.as_str()),
            (Some(0), ""),
            "{ended:?}"
        );
        let counters = [&ended[0], &ended[2]];
        assert!(
            counters
                .iter()
                .any(|ended| ended.stdout.starts_with("added ")),
            "{counters:?}"
        );
        for ended in counters {
            let told = ended.stdout.starts_with("added acme:counter")
                || ended.stdout.contains("is there already")
                || ended
                    .stderr
                    .contains("was added by another process meanwhile");
            assert!(told, "{ended:?}");
        }
        let (_, list) = scratch.plugin_json(["list"]);
        let mut names: Vec<&str> = list["plugins"]
            .as_array()
            .unwrap()
            .iter()
            .map(|plugin| plugin["name"].as_str().unwrap())
            .collect();
        names.sort_unstable();
        assert_eq!(names, ["acme:counter", "acme:todo"]);
        scratch.plugin(["verify"]).done();
    }
}
