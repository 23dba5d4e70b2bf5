//! A request that failed and is made again: what the provider asks for, what a person sees of the wait, and how it is
//! ended. Which failures are retried at all is in `models_bad.rs`.

use std::process::{Command, Stdio};

use mock_provider::{Answer, Mock};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::support::{Ended, Record, Scratch, data, say, wait_until};

/// A home whose waits are these.
fn scratch(mock: &Mock, initial_ms: u64, most_ms: u64) -> Scratch {
    let scratch = Scratch::new();
    let backoff = json!({"initialDelayMs": initial_ms, "maxDelayMs": most_ms, "jitterRatio": 0});
    let policy = json!({"mode": "normal", "maxRetries": 2, "backoff": backoff});
    let settings = json!({"llm-deepseek": {"baseURL": mock.base_url(), "retryPolicy": policy}});
    scratch.write_home("settings.yaml", &settings.to_string());
    scratch
}

fn busy(retry_after: &str) -> Answer {
    let answer = Answer::new(429, r#"{"error":{"message":"slow down"}}"#);
    // A date is measured against the answer's own.
    let answer = answer.header("date", ANSWERED);
    if retry_after.is_empty() {
        answer
    } else {
        answer.header("retry-after", retry_after)
    }
}

/// Refuses the first request, answers the rest.
fn once(retry_after: &str) -> Mock {
    Mock::start(vec![busy(retry_after), say("Done.").answer()])
}

fn of(record: &Record, kind: &str) -> Vec<Value> {
    let events = record.events().iter();
    events
        .filter(|event| event.kind.as_str() == kind)
        .map(|event| data(event))
        .collect()
}

fn run(scratch: &Scratch, words: &[&str]) -> Ended {
    let dsh = scratch.dsh().env("DEEPSEEK_API_KEY", "sk-e2e").headless();
    dsh.args(words.iter().copied()).args(["Go"]).run()
}

/// The moment of every answer: a date is measured against it and not against a clock.
const ANSWERED: &str = "Wed, 21 Oct 2015 07:28:00 GMT";

#[test]
fn a_wait_that_the_provider_asks_for_is_kept_up_to_the_policys_longest() {
    type Fits = fn(f64) -> bool;
    let kept: [(String, Fits); 6] = [
        ("1".to_owned(), |ms| (ms - 1000.0).abs() < 1.0),
        ("Wed, 21 Oct 2015 07:28:02 GMT".to_owned(), |ms| {
            (ms - 2000.0).abs() < 1.0
        }),
        // No wait at all, and what is no wait, leave it to the policy.
        ("0".to_owned(), |ms| (ms - 3.0).abs() < 1.0),
        ("soon".to_owned(), |ms| (ms - 3.0).abs() < 1.0),
        ("-5".to_owned(), |ms| (ms - 3.0).abs() < 1.0),
        (String::new(), |ms| (ms - 3.0).abs() < 1.0),
    ];
    for (asked, fits) in kept {
        let mock = once(&asked);
        let scratch = scratch(&mock, 3, 5000);
        run(&scratch, &[]).answered("Done.");
        let retries = of(&scratch.record(), "llm/retry");
        assert_eq!(retries.len(), 1, "{asked:?}");
        let delay = retries[0]["delayMs"].as_f64().unwrap();
        assert!(fits(delay), "{asked:?}: {delay}");
        assert_eq!(of(&scratch.record(), "llm/retry-started").len(), 1);
    }
    // To wait for less than was asked for is to be refused again.
    for asked in [
        "9999".to_owned(),
        "Wed, 21 Oct 2015 08:28:00 GMT".to_owned(),
        "99999999999999999999".to_owned(),
    ] {
        let mock = once(&asked);
        let scratch = scratch(&mock, 3, 5000);
        let ended = run(&scratch, &[]);
        let retried = of(&scratch.record(), "llm/retry");
        assert_eq!(
            (ended.code, retried.len()),
            (Some(1), 0),
            "{asked:?}: {ended:?}"
        );
        assert!(
            ended.stderr.starts_with("dsh: RATE_LIMIT: slow down"),
            "{ended:?}"
        );
    }
}

#[test]
fn a_stream_has_all_that_a_countdown_needs() {
    let mock = once("");
    let scratch = scratch(&mock, 20, 5000);
    let ended = run(&scratch, &["--output", "stream-json"]);
    assert_eq!((ended.code, &*ended.stderr), (Some(0), ""), "{ended:?}");
    let lines: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let at = |kind: &str| {
        lines
            .iter()
            .position(|line| line["kind"] == kind || line["type"] == kind)
            .unwrap_or_else(|| panic!("{kind}"))
    };
    let (wait, started) = (at("llm/retry"), at("llm/retry-started"));
    assert!(wait < started);
    let event = &lines[wait]["data"];
    assert_eq!(event["delayMs"], 20);
    assert_eq!(
        (&event["retry"], &event["maxRetries"]),
        (&json!(1), &json!(2))
    );
    assert_eq!(event["provider"], "deepseek-official");
    assert_eq!(
        event["failure"],
        json!({"message": "slow down", "code": "RATE_LIMIT", "status": 429})
    );
}

#[test]
fn without_a_terminal_nothing_is_said_of_a_wait_unless_it_is_asked_for() {
    let mock = once("");
    let quiet = scratch(&mock, 20, 5000);
    run(&quiet, &[]).answered("Done.");
    let mock = once("");
    let verbose = run(&scratch(&mock, 20, 5000), &["--verbose"]);
    assert_eq!(verbose.code, Some(0));
    let says = "dsh: deepseek-official is asked again in 1 s (1 of 2): RATE_LIMIT: slow down\n";
    assert!(verbose.stderr.contains(says), "{verbose:?}");
}

#[test]
fn on_a_terminal_a_line_counts_down_and_is_gone_when_the_attempt_starts() {
    const PLAY: &str = "
import os, pty, subprocess, sys
leader, follower = pty.openpty()
run = subprocess.Popen(sys.argv[1:], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=follower)
os.close(follower)
shown = b''
while True:
    try:
        piece = os.read(leader, 65536)
    except OSError:
        break
    if not piece:
        break
    shown += piece
sys.stdout.buffer.write(run.stdout.read() + b'\\0' + shown)
sys.exit(run.wait())
";
    let mock = once("2");
    let scratch = scratch(&mock, 3, 5000);
    let output = Command::new("python3")
        .args([
            "-c",
            PLAY,
            env!("CARGO_BIN_EXE_dsh"),
            "--profile",
            "headless",
            "Go",
        ])
        .current_dir(scratch.work())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", scratch.user())
        .env("DSH_HOME", scratch.home())
        .env("DEEPSEEK_API_KEY", "sk-e2e")
        .stdin(Stdio::null())
        .output()
        .expect("python3 runs");
    let out = String::from_utf8_lossy(&output.stdout).into_owned();
    let (answer, shown) = out.split_once('\0').unwrap();
    assert_eq!(
        (output.status.code(), answer),
        (Some(0), "Done.\n"),
        "{shown:?}"
    );
    let two = shown
        .find("is asked again in 2 s (1 of 2): RATE_LIMIT")
        .expect(shown);
    let one = shown.find("is asked again in 1 s").expect(shown);
    assert!(two < one, "{shown:?}");
    assert!(shown.ends_with("\r\x1b[K"), "{shown:?}");
}

#[test]
fn a_signal_during_a_wait_ends_the_run_at_once() {
    let mock = Mock::with(|_| busy(""));
    let scratch = scratch(&mock, 600_000, 600_000);
    let running = scratch
        .dsh()
        .env("DEEPSEEK_API_KEY", "sk-e2e")
        .headless()
        .args(["Go"])
        .start();
    let waits = || {
        let record = scratch.record_so_far();
        record.is_some_and(|record| !of(&record, "llm/retry").is_empty())
    };
    wait_until("it waits to ask again", waits);
    running.signal(Signal::INT);
    let ended = running.end();
    assert_eq!((ended.code, &*ended.stdout), (Some(130), ""), "{ended:?}");
    let record = scratch.record();
    assert!(of(&record, "llm/retry-started").is_empty());
    assert_eq!(record.turn_end()["kind"], "aborted");
    assert_eq!(mock.requests().len(), 1);
}
