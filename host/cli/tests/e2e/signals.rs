//! SIGINT, SIGTERM and SIGHUP: the first closes the run, a second ends it as it is.

use std::sync::atomic::{AtomicU32, Ordering};

use dsh_session::Kind;
use mock_provider::Mock;
use rustix::process::Signal;
use serde_json::json;

use crate::support::{Record, Running, Scratch, data, kinds, say, wait_until};

/// A signal and the exit code that it asks for (docs/cli.md).
const SIGNALS: [(Signal, i32); 3] = [(Signal::INT, 130), (Signal::TERM, 143), (Signal::HUP, 129)];

#[track_caller]
fn closed_as_aborted(log: &Record) {
    assert_eq!(
        log.turn_end(),
        json!({"kind": "aborted", "reason": {"kind": "disposed"}})
    );
    let inspection = &log.inspection;
    assert!(inspection.torn.is_none(), "{:?}", inspection.torn);
    assert!(inspection.closers.is_empty(), "{:?}", inspection.closers);
    // A title comes beside the turn, and may have been on its way.
    let kinds = kinds(log.events());
    let last = kinds
        .iter()
        .rfind(|kind| !kind.starts_with("session/title"));
    assert_eq!(last, Some(&"turn/end"));
}

#[test]
fn a_signal_while_the_model_speaks_keeps_what_it_said() {
    for (signal, code) in SIGNALS {
        let scratch = Scratch::new();
        let mock = Mock::start(vec![say("These words came before the end").held()]);
        let run = scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["Talk"])
            .start();
        said(&scratch, "end");
        run.signal(signal);
        let ended = run.end();
        assert_eq!(
            (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
            (Some(code), "", "")
        );

        let log = scratch.record();
        closed_as_aborted(&log);
        let messages = log.of(&Kind::AssistantMessage);
        let message = data(messages[0]);
        assert_eq!(message["interrupted"], true);
        assert_eq!(
            message["message"]["content"][0]["text"],
            "These words came before the end"
        );
    }
}

/// Waits until the log on disk holds a chunk with this text.
pub(crate) fn said(scratch: &Scratch, word: &str) {
    wait_until("the words are in the log", || {
        scratch.record_so_far().is_some_and(|log| {
            log.of(&Kind::AssistantChunk)
                .into_iter()
                .any(|chunk| chunk.data.as_str().contains(word))
        })
    });
}

#[test]
fn a_signal_before_the_model_speaks_closes_the_step() {
    for (signal, code) in SIGNALS {
        let scratch = Scratch::new();
        let mock = Mock::start(vec![mock_provider::Answer::silence()]);
        let run = scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["Talk"])
            .start();
        wait_until("the request came", || !mock.requests().is_empty());
        run.signal(signal);
        assert_eq!(run.end().code, Some(code));
        let log = scratch.record();
        closed_as_aborted(&log);
        assert!(!log.has(&Kind::AssistantMessage));
        assert!(log.has(&Kind::StepEnd));
    }
}

/// A run in which `bash` has started this, with children that wait for ever.
pub(crate) struct Busy {
    pub(crate) scratch: Scratch,
    pub(crate) run: Running,
    /// In the command line of each process of the tree.
    mark: String,
    _mock: Mock,
}

impl Busy {
    /// Under this runner; `script` goes first.
    pub(crate) fn start(runner: &str, script: &str) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        // Seconds for `sleep` that no other process has.
        let mark = format!("86400.{}{count:04}", std::process::id());
        let scratch = Scratch::new();
        let command = format!(
            "{script}\nsleep {mark} & setsid sleep {mark} & echo > started\n\
             while :; do sleep 0.05; done"
        );
        let mock = Mock::start(vec![say("").bash(&command).answer()]);
        let run = scratch
            .dsh()
            .provider(&mock)
            .env("DSH_SANDBOX", runner)
            .headless()
            .args(["Wait"])
            .start();
        let started = scratch.work().join("started");
        wait_until("the command started", || started.exists());
        Self {
            scratch,
            run,
            mark,
            _mock: mock,
        }
    }

    /// Waits until no process of the tree is left.
    pub(crate) fn gone(mark: &str) {
        wait_until("the command's processes are gone", || !alive(mark));
    }

    pub(crate) fn mark(&self) -> String {
        assert!(alive(&self.mark), "the children run");
        self.mark.clone()
    }
}

fn alive(mark: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap();
    let mut lines = processes
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    // The script itself holds the mark as well.
    lines.any(|line| String::from_utf8_lossy(&line).contains(mark))
}

pub(crate) fn runners() -> impl Iterator<Item = &'static str> {
    ["bwrap", "landlock"]
        .into_iter()
        .filter(|runner| crate::support::can_confine(runner))
}

#[test]
fn a_signal_during_a_command_ends_its_whole_tree() {
    for runner in runners() {
        for (signal, code) in SIGNALS {
            let busy = Busy::start(runner, "");
            let mark = busy.mark();
            busy.run.signal(signal);
            let ended = busy.run.end();
            assert_eq!(
                (ended.code, ended.stdout.as_str(), ended.stderr.as_str()),
                (Some(code), "", "")
            );
            Busy::gone(&mark);
            let log = busy.scratch.record();
            closed_as_aborted(&log);
            let codes: Vec<Option<String>> =
                log.results().into_iter().map(|(_, code)| code).collect();
            assert_eq!(codes, [Some("ABORTED".to_owned())], "{runner}");
        }
    }
}

#[test]
fn a_command_that_ignores_its_end_is_killed() {
    for runner in runners() {
        let busy = Busy::start(runner, "trap '' TERM");
        let mark = busy.mark();
        busy.run.signal(Signal::TERM);
        assert_eq!(busy.run.end().code, Some(143));
        Busy::gone(&mark);
        closed_as_aborted(&busy.scratch.record());
    }
}

#[test]
fn a_command_has_its_time_to_tidy_up() {
    for runner in runners() {
        let busy = Busy::start(runner, "trap 'sleep 0.3; echo > tidied; exit' TERM");
        let mark = busy.mark();
        busy.run.signal(Signal::TERM);
        assert_eq!(busy.run.end().code, Some(143));
        assert!(busy.scratch.work().join("tidied").exists(), "{runner}");
        Busy::gone(&mark);
    }
}

/// The command holds the run open for its 3 s of grace. That the exit code is
/// the second signal's shows that it was not waited for.
#[test]
fn a_second_signal_ends_the_run_as_it_is() {
    for runner in runners() {
        let busy = Busy::start(runner, "trap 'echo > told' TERM");
        let mark = busy.mark();
        busy.run.signal(Signal::INT);
        let told = busy.scratch.work().join("told");
        wait_until("the command was told", || told.exists());
        busy.run.signal(Signal::TERM);
        assert_eq!(busy.run.end().code, Some(143));
        Busy::gone(&mark);
        // What was durable opens.
        busy.scratch.record();
    }
}
