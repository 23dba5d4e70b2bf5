//! The `headless` app: one task, one answer (spec/cli.md §4).

use std::future::pending;
use std::io::Read;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dsh_agent::{Message, RunError, RunOutcome};
use dsh_profile::launch::Boot;
use dsh_session::Json;

use crate::arguments::{self, Arguments, Format, HELP, Request, Task, usage};
use crate::attachments::{self, Attachments};
use crate::boot::{self, Composed};
use crate::countdown::Countdown;
use crate::exit::Failure;
use crate::hint;
use crate::report;
use crate::result::{self, Usage};
use crate::run::Run;
use crate::signals::Signals;
use crate::stream::Stream;

/// How long an interrupted run may take to close its turn and its log.
const GRACE: Duration = Duration::from_secs(5);

/// The longest task that is read from standard input, in bytes.
const LONGEST: u64 = 16 * 1024 * 1024;

/// Boots the profile and runs the task.
pub(crate) fn main(boot: &Boot) -> Result<u8, Failure> {
    let arguments = arguments::parse(&boot.args);
    let cwd = match &arguments {
        Ok(Arguments::Run(request)) => request.cwd.as_deref(),
        _ => None,
    };
    let composed = boot::compose(boot, cwd)?;
    // Before the arguments are judged: another app would have others.
    if composed.rows.host("headless-runner").is_none() {
        return Err(Failure::of(format_args!(
            "profile {:?} has no row that runs a task (headless-runner); \
             list the bundle `headless` in its profile.yml, or take --profile headless",
            boot.profile
        )));
    }
    let request = match arguments? {
        Arguments::Help => return report::product(HELP),
        Arguments::Run(request) => request,
    };
    let task = match &request.task {
        Task::Words(words) => words.clone(),
        Task::Stdin => from_stdin()?,
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| Failure::of(format_args!("cannot start threads: {error}")))?;
    let end = runtime.block_on(task_to_end(&composed, &request, &task));
    // What still blocks a thread (a command that will not die) must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    end
}

fn from_stdin() -> Result<String, Failure> {
    let mut text = String::new();
    std::io::stdin()
        .lock()
        .take(LONGEST + 1)
        .read_to_string(&mut text)
        .map_err(|error| {
            usage(format_args!(
                "cannot read the task from standard input: {error}"
            ))
        })?;
    if text.len() as u64 > LONGEST {
        return Err(usage(format_args!(
            "the task on standard input is longer than {LONGEST} bytes; put it into a file and name that"
        )));
    }
    // The end of the last line is the shell's, not the task's.
    text.truncate(text.trim_end_matches(['\n', '\r']).len());
    arguments::checked(text)
}

/// How a run was left.
enum Left {
    Idle,
    TimedOut(Duration),
    Signal(u8),
}

/// Takes the files of `--attach` in; before there is a session, as one that is no
/// picture ends the run.
async fn attached(attachments: &Attachments, files: &[PathBuf]) -> Result<Vec<Json>, Failure> {
    let mut attached = Vec::with_capacity(files.len());
    for file in files {
        let failed = |why: &str| Failure::of(format_args!("--attach {}: {why}", file.display()));
        let name = file
            .file_name()
            .map(|name| name.to_string_lossy().into_owned());
        let content = attachments::content(file).map_err(|why| failed(&why))?;
        let put = attachments.attach(content, name).await;
        let put = put.map_err(|error| failed(&error.message))?;
        attached.push(Json::normalise(&put.to_json()).map_err(Failure::of)?);
    }
    Ok(attached)
}

async fn task_to_end(composed: &Composed, request: &Request, task: &str) -> Result<u8, Failure> {
    let mut signals = Signals::catch()?;
    let attachments = Attachments::of(&composed.place.home);
    let starting = async {
        let attached = attached(&attachments, &request.attach).await?;
        let run = Run::start(composed, request, &attachments).await?;
        Ok::<_, Failure>((attached, run))
    };
    let (attached, mut run) = tokio::select! {
        started = starting => started?,
        code = signals.next() => return Ok(code),
    };
    composed.left_out.report();
    let session_id = run.log.read(|session| session.id().to_string());
    if request.verbose {
        let path = run.path().display();
        report::line(format_args!("session {session_id}, log {path}"));
    }
    if !attached.is_empty() {
        run.warn_of_pictures().await;
    }
    let first = run.log.read(dsh_session::Session::next_seq);
    let begun = Instant::now();
    let countdown = Countdown::start(&run.log, request.verbose);
    run.agent
        .followup(&Message::from_person_with(task, &attached))
        .map_err(Failure::of)?;
    let left = tokio::select! {
        biased;
        () = run.agent.when_idle() => Left::Idle,
        code = signals.next() => Left::Signal(code),
        limit = over(request.timeout) => Left::TimedOut(limit),
    };
    drop(countdown);
    // A second signal, or a run that does not close in time, ends the process as it is.
    let closed = tokio::select! {
        closed = run.close() => closed,
        code = signals.next() => return Ok(code),
        () = tokio::time::sleep(GRACE) => Err(Failure::of("the run did not close in time")),
    };
    let (outcome, usage) = run
        .log
        .read(|session| (RunOutcome::of(session, first), Usage::of(session, first)));
    let error = error(&outcome, &left, &closed);
    let product = match request.output {
        // Without an end of its own, or a log that holds it, there is no answer.
        Format::Text if matches!(left, Left::Signal(_)) || closed.is_err() => String::new(),
        Format::Text => format!("{}\n", outcome.answer),
        Format::Json | Format::StreamJson => result::line(
            &session_id,
            &outcome,
            usage,
            begun.elapsed(),
            error.as_ref(),
        ),
    };
    let signalled = matches!(left, Left::Signal(_));
    // A reader that takes nothing more must not keep a process that was told to end.
    tokio::select! {
        printed = print(run.stream.take(), product) => printed?,
        code = signals.next() => return Ok(code),
        () = tokio::time::sleep(GRACE), if signalled => {}
    }
    if let Left::Signal(code) = left {
        if let Err(failure) = closed {
            failure.report();
        }
        return Ok(code);
    }
    closed?;
    if let Some(error) = &error {
        let hint = run
            .log
            .read(|session| hint::of(&error.code, composed, session, first));
        report::line(format_args!("{}: {}{hint}", error.code, error.message));
    }
    Ok(u8::from(error.is_some() || !outcome.completed()))
}

/// Writes the product, behind the lines of a stream where there is one.
async fn print(stream: Option<Stream>, product: String) -> Result<(), Failure> {
    if let Some(stream) = stream {
        return stream.finish(product).await;
    }
    let printed = tokio::task::spawn_blocking(move || report::product(&product)).await;
    printed
        .map_err(|error| Failure::of(format_args!("cannot write to stdout: {error}")))?
        .map(drop)
}

/// What went wrong, the last thing first.
fn error(outcome: &RunOutcome, left: &Left, closed: &Result<(), Failure>) -> Option<RunError> {
    let error = |code: &str, message: String| {
        let code = code.to_owned();
        Some(RunError { code, message })
    };
    match (left, closed) {
        (_, Err(failure)) => error("RUN_NOT_CLOSED", failure.message().to_owned()),
        (Left::TimedOut(limit), Ok(())) => error(
            "TIMEOUT",
            format!(
                "the task was given up after {} s (--timeout); --resume goes on with its session",
                limit.as_secs_f64()
            ),
        ),
        _ => outcome.error(),
    }
}

/// Waits until a limit is over; for ever without one.
async fn over(limit: Option<Duration>) -> Duration {
    match limit {
        None => pending().await,
        Some(limit) => {
            tokio::time::sleep(limit).await;
            limit
        }
    }
}
