//! `dsh sessions …`: looks at stored sessions and mends them. Nothing is booted for it: no profile is made, no
//! component loaded, no provider asked.
//!
//! Each command is a file below; the words of their command lines are read in `words.rs`, and what they print of a log
//! is made by `dsh_store::report`. What a log says is not trusted with a terminal. A reader of the output that goes
//! away ends the command quietly.

mod check;
mod export;
mod fork;
mod inspect;
mod list;
mod place;
mod repair;
mod rm;
mod show;
mod words;

use std::io::{self, BufWriter, ErrorKind, StdoutLock, Write};
use std::sync::Arc;

use dsh_session::{Error, Event, Kind, Seq, title};
use dsh_store::{Inspection, LAST, StoreError};

use crate::arguments::usage;
use crate::exit::Failure;
use crate::open::refused;
use crate::report;
use place::Sessions;
use words::Words;

/// What the process ends with when `inspect` finds nothing that can be read.
const UNREADABLE: u8 = 2;

/// Runs `dsh sessions` with the words that follow it.
pub(crate) fn main(arguments: &[String]) -> Result<u8, Failure> {
    let (verb, words) = match words::parse(arguments)? {
        words::Asked::Help(text) => return report::product(&text),
        words::Asked::Do(verb, words) => (verb, words),
    };
    (verb.run)(&Sessions::open()?, &words)
}

/// Buffered standard output.
type Out = BufWriter<StdoutLock<'static>>;

fn out() -> Out {
    BufWriter::with_capacity(64 * 1024, io::stdout().lock())
}

/// What writing to standard output came to: `code`, also when its reader has gone.
fn written(result: io::Result<()>, code: u8) -> Result<u8, Failure> {
    match result {
        Err(e) if e.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::of(format_args!("cannot write to stdout: {e}")))
        }
        _ => Ok(code),
    }
}

/// Writes the whole product.
fn print(text: &str, code: u8) -> Result<u8, Failure> {
    let mut out = out();
    written(
        out.write_all(text.as_bytes()).and_then(|()| out.flush()),
        code,
    )
}

#[allow(
    clippy::needless_pass_by_value,
    reason = "errors are handed over by map_err"
)]
fn unread(error: Error) -> Failure {
    usage(format_args!("{}: {error}", error.code()))
}

/// The events of a log, one by one.
fn events(log: &Inspection) -> impl Iterator<Item = Result<Arc<Event>, Error>> + '_ {
    log.log.events_from(Seq(0))
}

/// The title that a list shows: the last one that was logged, else what the first prompt gives.
fn title_of(log: &Inspection) -> Result<Option<String>, Error> {
    let mut fallback = None;
    let mut logged = None;
    for event in events(log) {
        let event = event?;
        if event.kind == Kind::SessionTitle {
            logged = event
                .data
                .get("title")
                .and_then(|title| Some(title.text()?.into_owned()));
        } else if fallback.is_none() && event.kind == Kind::UserMessage {
            fallback = title::eligible_prompt(&event)
                .map(|text| title::fallback(&text, title::FALLBACK_WORDS, title::FALLBACK_BYTES));
        }
    }
    Ok(logged.or(fallback))
}

/// A seq as a person writes it.
fn seq(text: &str) -> Result<Seq, Failure> {
    text.parse().map(Seq).map_err(|_| {
        usage(format_args!(
            "--at: {text:?} is no seq; events count from 0"
        ))
    })
}

/// The id that a shortened one, or `last`, means: the newest of this directory, and where it has none, of all.
fn meant(sessions: &Sessions, text: &str) -> Result<Arc<str>, StoreError> {
    let here = sessions.store.resolve(text, Some(&sessions.cwd()));
    match here {
        Err(StoreError::NotFound { .. }) if text == LAST => sessions.store.resolve(text, None),
        here => here,
    }
}

/// [`meant`], with an error for people.
fn resolved(sessions: &Sessions, text: &str) -> Result<Arc<str>, Failure> {
    meant(sessions, text).map_err(refused)
}

/// [`resolved`] for what cannot be undone: `last` never leaves the working directory.
fn resolved_here(sessions: &Sessions, text: &str) -> Result<Arc<str>, Failure> {
    sessions
        .store
        .resolve(text, Some(&sessions.cwd()))
        .map_err(|error| match error {
            StoreError::NotFound { .. } if text == LAST => usage(format_args!(
                "{}: no session of {} is stored; dsh sessions list shows all",
                error.code(),
                sessions.cwd()
            )),
            other => refused(other),
        })
}
