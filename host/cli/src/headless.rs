//! The `headless` app: one task, one answer (spec/cli.md §4).

use std::time::Duration;

use dsh_agent::{Message, RunOutcome};
use dsh_profile::launch::Boot;

use crate::boot::{self, Composed};
use crate::exit::Failure;
use crate::report;
use crate::run::Run;
use crate::signals::Signals;

const HELP: &str = "\
Usage: dsh --profile headless [options] [task...]

Runs one task to its end and prints the answer.

Arguments:
  task         the words of the task; they are joined with spaces

Options:
  -h, --help   print this help

Exit codes: 0 the task completed; 1 it did not, or the start failed;
130 interrupted; 143 terminated. The whole run is in the session's log.
";

/// How long an interrupted run may take to close its turn and its log.
const GRACE: Duration = Duration::from_secs(5);

enum Arguments {
    Help,
    Task(String),
}

/// Boots the profile and runs the task.
pub(crate) fn main(boot: &Boot) -> Result<u8, Failure> {
    let composed = boot::compose(boot)?;
    if composed.rows.host("headless-runner").is_none() {
        return Err(Failure::of(format_args!(
            "profile {:?} has no row that runs a task (headless-runner); \
             list the bundle `headless` in its profile.yml, or take --profile headless",
            boot.profile
        )));
    }
    let task = match arguments(&boot.args)? {
        Arguments::Help => return report::product(HELP),
        Arguments::Task(task) => task,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of(format_args!("cannot start threads: {error}")))?;
    let end = runtime.block_on(task_to_end(&composed, &task));
    // What still blocks a thread (a command that will not die) must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    end
}

fn arguments(arguments: &[String]) -> Result<Arguments, Failure> {
    let mut words = Vec::new();
    let mut options = true;
    for argument in arguments {
        match argument.as_str() {
            "--" if options => options = false,
            "-h" | "--help" if options => return Ok(Arguments::Help),
            word if options && word.len() > 1 && word.starts_with('-') => {
                return Err(Failure::usage(format!(
                    "error: unknown option '{word}'; put `--` before a task that starts with a dash"
                )));
            }
            word => words.push(word),
        }
    }
    let task = words.join(" ");
    if task.trim().is_empty() {
        return Err(Failure::usage(
            "error: a task is required, for example: dsh --profile headless \"run the tests\""
                .to_owned(),
        ));
    }
    Ok(Arguments::Task(task))
}

/// How a run was left.
enum Left {
    Idle,
    Signal(u8),
}

async fn task_to_end(composed: &Composed, task: &str) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let started = tokio::select! {
        run = Run::start(composed) => run?,
        code = signals.next() => return Ok(code),
    };
    composed.left_out.report();
    let first = started.log.read(dsh_session::Session::next_seq);
    started
        .agent
        .followup(&Message::from_person(task))
        .map_err(Failure::of)?;
    let left = tokio::select! {
        () = started.agent.when_idle() => Left::Idle,
        code = signals.next() => Left::Signal(code),
    };
    // A second signal, or a run that does not close in time, ends the process as it is.
    let closed = tokio::select! {
        closed = started.close() => closed,
        code = signals.next() => return Ok(code),
        () = tokio::time::sleep(GRACE) => Err(Failure::of("the run did not close in time")),
    };
    match (left, closed) {
        (Left::Signal(code), closed) => {
            if let Err(failure) = closed {
                failure.report();
            }
            Ok(code)
        }
        (Left::Idle, closed) => {
            closed?;
            answer(&started.log.read(|session| RunOutcome::of(session, first)))
        }
    }
}

/// Prints the answer and, of a failed run, the error.
fn answer(outcome: &RunOutcome) -> Result<u8, Failure> {
    report::product(&format!("{}\n", outcome.answer))?;
    if let Some(error) = outcome.error() {
        report::line(format_args!("{}: {}", error.code, error.message));
    }
    Ok(u8::from(!outcome.completed()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(words: &[&str]) -> Result<String, String> {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        match arguments(&words) {
            Ok(Arguments::Task(task)) => Ok(task),
            Ok(Arguments::Help) => Ok("(help)".to_owned()),
            Err(failure) => Err(failure.to_string()),
        }
    }

    #[test]
    fn words_are_joined_and_options_end_at_two_dashes() {
        assert_eq!(task(&["run", "the tests"]).as_deref(), Ok("run the tests"));
        assert_eq!(task(&["--", "-h"]).as_deref(), Ok("-h"));
        assert_eq!(task(&["a", "-h"]).as_deref(), Ok("(help)"));
        assert_eq!(task(&["-"]).as_deref(), Ok("-"));
    }

    #[test]
    fn no_task_and_unknown_options_are_usage_errors() {
        assert!(
            task(&[])
                .unwrap_err()
                .starts_with("error: a task is required")
        );
        assert!(
            task(&["  "])
                .unwrap_err()
                .starts_with("error: a task is required")
        );
        assert!(task(&["--json", "x"]).unwrap_err().contains("--json"));
    }
}
