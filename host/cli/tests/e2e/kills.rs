//! SIGKILL at any moment: the log that is left opens, and closes its turn when
//! it is taken up again. The moments are the provider's or the command's, so
//! that they are the same ones each time; a sweep takes others.

use std::sync::{Arc, OnceLock};

use dsh_session::Kind;
use mock_provider::{Answer, Mock};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use crate::signals::{Busy, runners, said};
use crate::support::{Record, Scratch, data, kinds, say, wait_until};

/// Two tools and a text.
fn answers() -> Vec<Answer> {
    vec![
        say("First this.").bash("echo one").answer(),
        say("")
            .thinking("And now.")
            .call("read", &json!({"file_path": "note.txt"}))
            .answer(),
        say("It is done.").answer(),
    ]
}

/// Opens what is left and takes it up; returns it as it was left.
#[track_caller]
pub(crate) fn opens(scratch: &Scratch) -> Record {
    let left = scratch.record();
    let id = left.inspection.header.id.clone();
    let (session, _writer) = scratch
        .store()
        .resume(&id, 0)
        .expect("the session can be taken up");
    assert!(!session.in_turn());
    let closed = scratch.record();
    assert!(closed.inspection.torn.is_none() && closed.inspection.closers.is_empty());
    let expected: Vec<_> = left
        .events()
        .iter()
        .chain(&left.inspection.closers)
        .map(|event| event.line())
        .collect();
    let lines: Vec<_> = closed.events().iter().map(|event| event.line()).collect();
    assert_eq!(
        lines[..expected.len()],
        expected,
        "what was durable stays, and the closers follow"
    );
    left
}

/// The events that would close it end its step and its turn.
#[track_caller]
fn interrupted(log: &Record) {
    let closers = &log.inspection.closers;
    let ends = kinds(closers);
    assert_eq!(ends[ends.len() - 2..], ["step/end", "turn/end"], "{ends:?}");
    assert_eq!(
        data(closers.last().unwrap())["reason"],
        json!({"kind": "interrupted"})
    );
}

/// A barrier stands before each request: what it was made of is durable.
#[test]
fn killed_at_the_nth_request_the_log_holds_what_was_sent() {
    for n in 1..=3 {
        let scratch = Scratch::new();
        scratch.write("note.txt", "a note\n");
        let victim: Arc<OnceLock<Pid>> = Arc::default();
        let (of_mock, mut answers, mut count) = (Arc::clone(&victim), answers().into_iter(), 0);
        let mock = Mock::with(move |_| {
            count += 1;
            if count == n {
                kill_process(*of_mock.wait(), Signal::KILL).unwrap();
            }
            answers.next().unwrap()
        });
        let run = scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["Do it"])
            .start();
        victim.set(run.pid()).unwrap();
        assert_eq!(run.end().signal, Some(9));
        let log = opens(&scratch);
        interrupted(&log);
        assert_eq!(log.of(&Kind::AssistantMessage).len(), n - 1);
        assert_eq!(log.of(&Kind::ToolResult).len(), n - 1);
        assert_eq!(log.of(&Kind::StepStart).len(), n);
        assert!(log.has(&Kind::RequestHeader));
    }
}

#[test]
fn killed_in_the_middle_of_a_stream() {
    for whether_logged in [true, false] {
        let scratch = Scratch::new();
        let words = say("A stream of words that has no end");
        let mock = Mock::start(vec![words.held()]);
        let run = scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["Talk"])
            .start();
        if whether_logged {
            said(&scratch, "words");
        } else {
            wait_until("the words were sent", || {
                mock.written() >= words.held_bytes()
            });
        }
        run.signal(Signal::KILL);
        assert_eq!(run.end().signal, Some(9));
        let log = opens(&scratch);
        interrupted(&log);
        assert!(log.has(&Kind::UserMessage));
        assert!(log.has(&Kind::AssistantChunk) || !whether_logged);
    }
}

/// A barrier stands before each tool body: the call is durable, and what became
/// of it is unknown.
#[test]
fn killed_during_a_command_the_call_is_in_the_log_and_its_tree_is_gone() {
    for runner in runners() {
        let busy = Busy::start(runner, "");
        let mark = busy.mark();
        busy.run.signal(Signal::KILL);
        assert_eq!(busy.run.end().signal, Some(9));
        Busy::gone(&mark);
        let log = opens(&busy.scratch);
        interrupted(&log);
        assert_eq!(log.of(&Kind::ToolCall).len(), 1);
        let closers = &log.inspection.closers;
        assert_eq!(closers[0].kind, Kind::ToolResult);
        assert_eq!(data(&closers[0])["error"]["code"], "TOOL_OUTCOME_UNKNOWN");
    }
}

/// Wherever the file is: killed after it changed for the i-th time.
#[test]
fn killed_whenever_the_file_changes() {
    for i in 0..8 {
        let scratch = Scratch::new();
        scratch.write("note.txt", "a note\n");
        let mut answers = answers();
        answers.push(say("Held at last").held());
        answers.swap(2, 3);
        let mock = Mock::start(answers);
        let run = scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["Do it"])
            .start();
        let (mut changes, mut size) = (0, 0);
        wait_until("the log changed", || {
            let now = scratch.listed().first().map_or(0, |entry| entry.bytes);
            changes += u32::from(now != size);
            size = now;
            // What is held can change no more.
            changes > i || (mock.requests().len() == 3 && mock.written() >= 3)
        });
        run.signal(Signal::KILL);
        assert_eq!(run.end().signal, Some(9));
        if !scratch.listed().is_empty() {
            opens(&scratch);
        }
    }
}

/// Before there is a log, none is left.
#[test]
fn killed_at_its_start_it_leaves_nothing_that_does_not_open() {
    for _ in 0..4 {
        let scratch = Scratch::new();
        let mock = Mock::start(vec![Answer::silence()]);
        let run = scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["Do it"])
            .start();
        wait_until("the home was made", || scratch.home().exists());
        run.signal(Signal::KILL);
        assert_eq!(run.end().signal, Some(9));
        if !scratch.listed().is_empty() {
            opens(&scratch);
        }
        // And the next run is not disturbed.
        let mock = Mock::start(vec![say("Here.").answer()]);
        scratch
            .dsh()
            .provider(&mock)
            .headless()
            .args(["Say it"])
            .run()
            .answered("Here.");
    }
}
