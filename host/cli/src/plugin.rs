//! `dsh plugin …`: what is installed into a profile, and what it may do.
//!
//! People install what strangers wrote, so this is where they decide. What holds for every command:
//!
//! - **Nothing of a plugin's is trusted with a terminal.** Names, descriptions, addresses go through `text::shown`.
//! - **Nothing is changed before everything is known.** Fetching, describing, compiling, asking the component what it
//!   offers and asking the person come first, with nothing held; then one `dsh_profile::Change`, which is short and puts
//!   the new lock in place whole. Whoever is stopped anywhere leaves the old state.
//! - **Only a person decides.** Grants come from a person's answer on a terminal or from their command line. No tool,
//!   event or component reaches this code.
//! - **A person's files are theirs.** Only `dsh.lock` and `$DSH_HOME/plugins` are written.
//!
//! Each command is a file below and gives a [`Report`]: text for people, one JSON object for programs (`docs/schema`).
//! A failure is one line on stderr and exit code 1, and with `--json` an object with `error` too.

mod add;
mod audit;
mod consent;
mod entry;
mod fetch;
mod given;
mod grant;
mod info;
mod list;
mod look;
mod names;
mod outdated;
mod progress;
mod remove;
mod replay;
mod rows;
mod source;
mod switch;
mod taken;
mod text;
mod trust;
mod update;
mod verify;
mod what;
mod why;
mod words;

use std::future::Future;
use std::io::{self, Write};
use std::time::Duration;

use dsh_plugin::{Engine, EngineConfig};
use dsh_profile::{Lock, Profile};
use serde_json::{Map, Value, json};
use tokio::runtime::Runtime;

use crate::arguments::usage;
use crate::boot::Place;
use crate::exit::Failure;
use crate::report;
use crate::words::Words;
use progress::Progress;

/// How long a download may take where `--timeout` does not say.
const DOWNLOAD: Duration = Duration::from_secs(600);

/// Characters of an error: what stands in it may be a stranger's.
const ERROR: usize = 6000;

/// What a command came to.
pub(super) struct Report {
    /// For people: whole lines.
    text: String,
    /// For programs: the members beside `profile` and `ok`, which tells whether `code` is 0.
    json: Map<String, Value>,
    /// 0, or 1 where what was looked at is not as it should be.
    code: u8,
    /// In place of `json`, a whole line with members of its own.
    whole: Option<String>,
}

impl Report {
    /// `json` is an object.
    fn new(text: String, json: Value) -> Self {
        let json = match json {
            Value::Object(members) => members,
            _ => Map::new(),
        };
        Self {
            text,
            json,
            code: 0,
            whole: None,
        }
    }
}

/// Why a command did nothing.
#[derive(Debug)]
pub(super) struct Stop {
    failure: Failure,
    /// Members beside `ok`, `profile` and `error`, for programs.
    json: Map<String, Value>,
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            json: Map::new(),
        }
    }
}

impl Stop {
    /// One line.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "errors are handed over by map_err"
    )]
    fn of(what: impl std::fmt::Display) -> Self {
        Failure::of(text::shown(&what.to_string(), ERROR)).into()
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.json.insert(name.to_owned(), value);
        self
    }
}

pub(super) type Done = Result<Report, Stop>;

/// What every command works with.
pub(super) struct Desk {
    place: Place,
    /// The profile's name.
    name: String,
    progress: Progress,
    runtime: Runtime,
}

impl Desk {
    fn new(name: String, words: &Words) -> Result<Self, Failure> {
        Ok(Self {
            place: Place::find(None)?,
            name,
            progress: Progress::new(words.has("--progress")),
            runtime: tokio::runtime::Builder::new_multi_thread()
                .worker_threads(2)
                .enable_all()
                .build()
                .map_err(|error| Failure::of(format_args!("cannot start threads: {error}")))?,
        })
    }

    /// The profile; one that does not exist is an error.
    fn profile(&self) -> Result<Profile, Stop> {
        Profile::open(&self.place.home, &self.name).map_err(Stop::of)
    }

    /// What the profile has installed. A lock that cannot be read is an error; what is damaged in it is said on stderr.
    fn lock(&self, profile: &Profile) -> Result<Lock, Stop> {
        let lock = profile.lock().map_err(Stop::of)?;
        lock.faults().for_each(report::line);
        Ok(lock)
    }

    fn engine(&self) -> Result<Engine, Stop> {
        let engine = Engine::new(EngineConfig {
            cache_dir: Some(self.place.home.path().join("cache")),
            host_version: env!("CARGO_PKG_VERSION").to_owned(),
            home: Some(self.place.home.path().to_owned()),
        });
        engine.map_err(Stop::of)
    }

    /// Lets the cache forget what nothing uses any more. Losing any of it costs time only.
    fn sweep(&self) {
        if let Ok(engine) = self.engine() {
            engine.sweep_cache();
        }
    }

    fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.runtime.block_on(work)
    }
}

/// Runs `dsh plugin` with the words that follow it.
pub(crate) fn main(arguments: &[String]) -> Result<u8, Failure> {
    let json = words::wants_json(arguments);
    let mut profile = None;
    let done = (|| -> Result<Option<Report>, Stop> {
        let (verb, order) = match words::parse(arguments)? {
            words::Asked::Help(text) => {
                report::product(&text)?;
                return Ok(None);
            }
            words::Asked::Do(verb, order) => (verb, order),
        };
        profile = Some(order.profile.clone());
        let desk = Desk::new(order.profile, &order.words)?;
        (verb.run)(&desk, &order.words).map(Some)
    })();
    match done {
        Ok(None) => Ok(0),
        Ok(Some(report)) if json => {
            if let Some(whole) = &report.whole {
                out(whole)?;
                return Ok(report.code);
            }
            print(report.code == 0, profile.as_ref(), report.json)?;
            Ok(report.code)
        }
        Ok(Some(report)) => {
            out(&report.text)?;
            Ok(report.code)
        }
        Err(stop) => {
            if json {
                let mut members = Map::new();
                let message = stop.failure.message();
                let message = message.strip_prefix("error: ").unwrap_or(message);
                members.insert("error".to_owned(), json!({"message": message}));
                members.extend(stop.json);
                print(false, profile.as_ref(), members)?;
            }
            Err(stop.failure)
        }
    }
}

/// One object on stdout.
fn print(ok: bool, profile: Option<&String>, members: Map<String, Value>) -> Result<(), Failure> {
    let mut object = Map::new();
    object.insert("ok".to_owned(), Value::Bool(ok));
    object.insert("profile".to_owned(), json!(profile));
    object.extend(members);
    out(&text::json_line(&Value::Object(object)))
}

/// Writes the product. What was done is done, so a reader that has gone away is no failure.
fn out(text: &str) -> Result<(), Failure> {
    let mut stdout = io::stdout().lock();
    match stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
    {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failure::of(format_args!(
            "it is done, and cannot be told on stdout: {error}"
        ))),
        _ => Ok(()),
    }
}

/// `--timeout`, in seconds.
fn patience(words: &Words) -> Result<Duration, Failure> {
    let Some(text) = words.value("--timeout") else {
        return Ok(DOWNLOAD);
    };
    let seconds: Option<f64> = text
        .parse()
        .ok()
        .filter(|seconds| (0.001..=86_400.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| {
        usage(format_args!(
            "--timeout: {text:?} is no number of seconds up to a day"
        ))
    })
}
