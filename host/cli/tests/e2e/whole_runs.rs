//! The whole runs of `tests/conformance/run`, played by their own player: exit
//! code, stdout, whether stderr was empty, files, requests, and the log in
//! order, against what upstream did with the same scenario.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

use crate::support::root;

macro_rules! equal {
    ($($test:ident = $scenario:literal,)*) => {
        const EQUAL: &[&str] = &[$($scenario,)*];
        $(
            #[test]
            fn $test() {
                comes_out_equal($scenario);
            }
        )*
    };
}

equal! {
    status_401 = "401",
    status_402 = "402",
    status_429_then_ok = "429-then-ok",
    status_500_always = "500-always",
    agents_md = "agents-md",
    args_empty = "args-empty",
    bash_big_output = "bash-big-output",
    bash_exit_3 = "bash-exit-3",
    bash_timeout = "bash-timeout",
    bash_write_inside = "bash-write-inside",
    bash_write_outside = "bash-write-outside",
    content_filter = "content-filter",
    edit_not_found = "edit-not-found",
    full_access = "full-access",
    glob_grep = "glob-grep",
    long_task = "long-task",
    max_tokens_text = "max-tokens-text",
    one_bash = "one-bash",
    ppep = "ppep",
    read_edit = "read-edit",
    read_missing = "read-missing",
    read_only_mode = "read-only-mode",
    repeat_reminder = "repeat-reminder",
    reset_before = "reset-before",
    skill_listed = "skill-listed",
    text_only = "text-only",
    think_then_text = "think-then-text",
    todo = "todo",
    truncated = "truncated",
    write_existing_unobserved = "write-existing-unobserved",
    write_outside = "write-outside",
}

/// A scenario that needs a component of a later issue, and how ours differs
/// until then: in these parts of the summary, and in the log by these lines.
struct Later {
    scenario: &'static str,
    needs: &'static str,
    parts: &'static [&'static str],
    /// Lines of the log that only upstream has, by how they begin.
    missing: &'static [&'static str],
    /// Lines that only ours has.
    instead: &'static [&'static str],
}

/// When the component comes, its scenario moves up.
const LATER: &[Later] = &[Later {
    scenario: "subagent",
    needs: "subagents: the tool is unknown, so the second answer is the parent's",
    parts: &["stdout", "logs", "wire", "events"],
    missing: &["tool/result turn=1 step=1 isError=False error=None"],
    instead: &["tool/result turn=1 step=1 isError=True error=UNKNOWN_TOOL"],
}];

#[test]
fn every_scenario_is_played() {
    let listed: BTreeSet<String> = EQUAL
        .iter()
        .copied()
        .chain(LATER.iter().map(|later| later.scenario))
        .map(str::to_owned)
        .collect();
    let there: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .filter_map(|entry| {
            entry
                .unwrap()
                .file_name()
                .to_str()?
                .strip_suffix(".json")
                .map(str::to_owned)
        })
        .collect();
    assert_eq!(listed, there);
}

#[test]
fn the_scenarios_of_later_components_lack_those_alone() {
    differ_as_said(&["subagent"]);
}

fn folder() -> PathBuf {
    root().join("tests/conformance/run")
}

/// Plays with the scenarios' own player, which needs Python and zstd.
fn player(arguments: &[&str]) -> Output {
    let needs = "the whole runs need `python3` (3.8 or newer) and the command `zstd`; \
                 install them, on Debian by `apt-get install python3 zstd`";
    let found = Command::new("zstd").arg("--version").output();
    assert!(found.is_ok_and(|output| output.status.success()), "{needs}");
    let patch = root().join("host/cli/tests/e2e/retry-soon.yml");
    let dsh = format!(
        "'{}' --patch '{}'",
        env!("CARGO_BIN_EXE_dsh"),
        patch.display()
    );
    let output = Command::new("python3")
        .arg(folder().join("scenario.py"))
        .args(arguments)
        .args(["--cmd", &dsh])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .output();
    output.unwrap_or_else(|error| panic!("starting python3: {error}; {needs}"))
}

#[track_caller]
fn comes_out_equal(scenario: &str) {
    let folder = folder();
    let only = format!("^{}\\.json", scenario.replace('-', "\\-"));
    let output = player(&["check", folder.to_str().unwrap(), "--only", &only]);
    assert!(
        output.status.success(),
        "upstream and ours differ in {scenario}:\n{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

fn differ_as_said(scenarios: &[&str]) {
    for scenario in scenarios {
        let later = LATER
            .iter()
            .find(|later| later.scenario == *scenario)
            .unwrap();
        println!(
            "{scenario} is not played to be equal; it needs {}",
            later.needs
        );
        let file = folder().join(format!("{scenario}.json"));
        let output = player(&["run", file.to_str().unwrap()]);
        let got: Value = serde_json::from_slice(&output.stdout)
            .unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stderr)));
        let text = std::fs::read_to_string(&file).unwrap();
        let expected = serde_json::from_str::<Value>(&text).unwrap()["expected"].clone();
        later.check(&expected, &got);
    }
}

impl Later {
    fn check(&self, expected: &Value, got: &Value) {
        let parts: Vec<&str> = expected
            .as_object()
            .unwrap()
            .keys()
            .map(String::as_str)
            .filter(|part| *part == "events" || expected[part] != got[part])
            .collect();
        assert_eq!(parts, self.parts, "{}: {got:#}", self.scenario);
        let (theirs, ours) = (lines(expected), lines(got));
        let shared: Vec<&String> = theirs
            .iter()
            .filter(|line| !self.missing.iter().any(|start| line.starts_with(start)))
            .collect();
        let rest: Vec<&String> = ours
            .iter()
            .filter(|line| !self.instead.iter().any(|start| line.starts_with(start)))
            // Of a kind that is missing in one place, others may be in both.
            .filter(|line| !self.missing.iter().any(|start| line.starts_with(start)))
            .collect();
        assert_eq!(rest, shared, "{}", self.scenario);
        for start in self.instead {
            assert!(
                ours.iter().any(|line| line.starts_with(start)),
                "{}: no {start}: {ours:#?}",
                self.scenario
            );
        }
        let count = |lines: &[String]| {
            lines
                .iter()
                .filter(|line| self.missing.iter().any(|start| line.starts_with(start)))
                .count()
        };
        assert!(
            count(&ours) < count(&theirs),
            "{}: nothing is missing",
            self.scenario
        );
    }
}

fn lines(summary: &Value) -> Vec<String> {
    let lines = summary["events"].as_array().cloned().unwrap_or_default();
    let lines = lines
        .iter()
        .filter_map(|line| line.as_str().map(str::to_owned));
    lines.collect()
}
