//! The headless app's words and options, as a pure function (spec/cli.md §4).
//!
//! Options may stand anywhere before `--`, as `--flag value` or `--flag=value`;
//! the last one of a name wins, but for `--attach`. What else starts with a dash is refused rather
//! than sent to the model.

use std::path::PathBuf;
use std::time::Duration;

use dsh_agent::Preset;
use dsh_store::LAST;

use crate::exit::Failure;

pub(crate) const HELP: &str = "\
Usage: dsh --profile headless [options] [task...]

Runs one task to its end and prints the answer.

Arguments:
  task                       the words of the task; they are joined with spaces.
                             A lone `-` reads the task from standard input

Options:
  --model <provider/model>   the model, in place of the default one
  --attach <file>            a picture (PNG, JPEG, GIF or WebP) that goes with the
                             task; may be given several times
  --effort <level>           how much it reasons; the model says which levels
  --permission <mode>        read-only, workspace-write or danger-full-access
  --cwd <dir>                work there instead of in the current directory
  --session-id <id>          the new session's id; one that is taken is refused
  --resume <id|last>         go on with a stored session; `last` is the newest
                             one of the working directory
  --output <format>          text: the answer. json: one object with the result.
                             stream-json: each event of the log as a line, then
                             that object
  --timeout <seconds>        give the task up after that long
  --verbose                  say session, log and retries on standard error
  -h, --help                 print this help

Exit codes: 0 the task completed; 1 it did not, or the start failed;
130 interrupted; 143 terminated. The whole run is in the session's log.
";

/// What the command line asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    Help,
    Run(Box<Request>),
}

/// One run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) task: Task,
    /// Pictures that go with it, in this order.
    pub(crate) attach: Vec<PathBuf>,
    pub(crate) model: Option<Model>,
    pub(crate) effort: Option<String>,
    pub(crate) permission: Option<Preset>,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) session: Which,
    pub(crate) output: Format,
    pub(crate) timeout: Option<Duration>,
    pub(crate) verbose: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Task {
    Words(String),
    Stdin,
}

impl Default for Task {
    fn default() -> Self {
        Self::Words(String::new())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) provider: String,
    pub(crate) model: String,
}

/// The session that a run is of.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Which {
    #[default]
    New,
    /// A new one with this id.
    Named(String),
    Resume(String),
    /// The newest one of the working directory.
    Last,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Format {
    #[default]
    Text,
    Json,
    StreamJson,
}

/// Reads the app's arguments.
pub(crate) fn parse(arguments: &[String]) -> Result<Arguments, Failure> {
    let mut request = Request::default();
    let mut words: Vec<&str> = Vec::new();
    let mut rest = arguments.iter().map(String::as_str).peekable();
    let mut literal = false;
    while let Some(argument) = rest.next() {
        match argument {
            "--" => {
                literal = true;
                words.extend(rest.by_ref());
            }
            "-h" | "--help" => return Ok(Arguments::Help),
            "--verbose" => request.verbose = true,
            option if option.len() > 1 && option.starts_with('-') => {
                let (name, attached) = match option.split_once('=') {
                    Some((name, value)) => (name, Some(value)),
                    None => (option, None),
                };
                if matches!(name, "--verbose" | "--help") {
                    return Err(usage(format_args!("option '{name}' takes no value")));
                }
                let Some(flag) = FLAGS.iter().find(|flag| flag.name == name) else {
                    return Err(usage(format_args!(
                        "unknown option '{name}'; put `-- --` before a task that starts with a dash (the launcher takes the first)"
                    )));
                };
                // A flag in a value's place is a value that was forgotten.
                let value = attached.or_else(|| rest.next_if(|next| !next.starts_with("--")));
                let value = value.ok_or_else(|| {
                    usage(format_args!(
                        "option '{name} {}' argument missing",
                        flag.value
                    ))
                })?;
                (flag.set)(&mut request, value)
                    .map_err(|why| usage(format_args!("{name}: {why}")))?;
            }
            word => words.push(word),
        }
    }
    request.task = if words == ["-"] && !literal {
        Task::Stdin
    } else {
        Task::Words(checked(words.join(" "))?)
    };
    Ok(Arguments::Run(Box::new(request)))
}

/// A task that says something.
pub(crate) fn checked(task: String) -> Result<String, Failure> {
    if task.trim().is_empty() {
        return Err(usage(
            "a task is required, for example: dsh --profile headless \"run the tests\"",
        ));
    }
    Ok(task)
}

/// One line on stderr that starts with `error: `.
pub(crate) fn usage(what: impl std::fmt::Display) -> Failure {
    Failure::usage(format!("error: {what}"))
}

struct Flag {
    name: &'static str,
    value: &'static str,
    set: fn(&mut Request, &str) -> Result<(), String>,
}

static FLAGS: &[Flag] = &[
    Flag {
        name: "--model",
        value: "<provider/model>",
        set: |request, value| {
            // Models may have slashes in their names, providers have none.
            let (provider, model) = value
                .split_once('/')
                .filter(|(provider, model)| !blank(provider) && !blank(model))
                .ok_or_else(|| {
                    format!("{value:?} is not of the form provider/model, as in deepseek-official/deepseek-v4-pro")
                })?;
            request.model = Some(Model {
                provider: provider.to_owned(),
                model: model.to_owned(),
            });
            Ok(())
        },
    },
    Flag {
        name: "--attach",
        value: "<file>",
        set: |request, value| {
            request.attach.push(filled(value, "a file")?.into());
            Ok(())
        },
    },
    Flag {
        name: "--effort",
        value: "<level>",
        set: |request, value| {
            request.effort = Some(filled(value, "a level")?);
            Ok(())
        },
    },
    Flag {
        name: "--permission",
        value: "<mode>",
        set: |request, value| {
            let preset = Preset::named(value).ok_or_else(|| {
                format!("there is no mode {value:?}; take read-only, workspace-write or danger-full-access")
            })?;
            request.permission = Some(preset);
            Ok(())
        },
    },
    Flag {
        name: "--cwd",
        value: "<dir>",
        set: |request, value| {
            request.cwd = Some(filled(value, "a directory")?.into());
            Ok(())
        },
    },
    Flag {
        name: "--session-id",
        value: "<id>",
        set: |request, value| {
            let id = filled(value, "an id")?;
            if id == LAST {
                return Err(format!(
                    "{LAST:?} could not be resumed by its name; choose another id"
                ));
            }
            one_session(request)?;
            request.session = Which::Named(id);
            Ok(())
        },
    },
    Flag {
        name: "--resume",
        value: "<id|last>",
        set: |request, value| {
            let id = filled(value, "an id, or `last`")?;
            one_session(request)?;
            request.session = if id == LAST {
                Which::Last
            } else {
                Which::Resume(id)
            };
            Ok(())
        },
    },
    Flag {
        name: "--output",
        value: "<format>",
        set: |request, value| {
            request.output = match value {
                "text" => Format::Text,
                "json" => Format::Json,
                "stream-json" => Format::StreamJson,
                _ => {
                    return Err(format!(
                        "there is no format {value:?}; take text, json or stream-json"
                    ));
                }
            };
            Ok(())
        },
    },
    Flag {
        name: "--timeout",
        value: "<seconds>",
        set: |request, value| {
            let seconds = value.parse().ok().filter(|seconds| *seconds > 0.0);
            let duration = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
            request.timeout = Some(
                duration
                    .filter(|limit| !limit.is_zero())
                    .ok_or_else(|| format!("{value:?} is no number of seconds above 0"))?,
            );
            Ok(())
        },
    },
];

fn blank(text: &str) -> bool {
    text.trim().is_empty()
}

fn filled(value: &str, what: &str) -> Result<String, String> {
    if blank(value) {
        return Err(format!("it needs {what}"));
    }
    Ok(value.to_owned())
}

/// A run is of one session, so only one flag may say which.
fn one_session(request: &Request) -> Result<(), String> {
    match request.session {
        Which::New => Ok(()),
        _ => Err("one of --session-id and --resume may be given, and once".to_owned()),
    }
}

#[cfg(test)]
#[path = "arguments_tests.rs"]
mod tests;
