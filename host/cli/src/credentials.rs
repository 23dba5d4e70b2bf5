//! `dsh credentials …`: keys by name, kept, listed and taken out; and credentials for model routes.
//!
//! A value comes from a terminal that does not show it, or from standard input, and never from the command line, where
//! the shell's history and every other process would have it. It goes into `.credentials.yaml` and nowhere else: no
//! command prints a value, its length, or a part of it.

mod list;
mod set;
mod typed;

use dsh_model::{Credentials, LlmFailure};
use dsh_profile::{CredentialFile, CredentialStore, Environment, Source};

use crate::arguments::usage;
use crate::boot::Place;
use crate::exit::Failure;
use crate::report;
use crate::words::{Flag, Read, Words, options, read};

/// The store as the model layer asks for it: anew for each request.
pub(crate) struct FromStore(pub(crate) CredentialStore);

impl Credentials for FromStore {
    fn resolve(&self, reference: &str) -> Result<Option<dsh_model::Secret>, LlmFailure> {
        match self.0.resolve(reference) {
            Ok(found) => Ok(found.map(|(secret, _)| dsh_model::Secret::new(secret.expose()))),
            Err(error) => Err(LlmFailure::new("INVALID_CREDENTIAL", error.to_string())),
        }
    }
}

/// Where each layer is, for people.
pub(crate) fn place_of(source: Source, place: &Place) -> String {
    let home = place.home.path();
    match source {
        Source::Process => "the environment".to_owned(),
        Source::File => home.join(".credentials.yaml").display().to_string(),
        Source::ProjectEnv => place.cwd.join(".env").display().to_string(),
        Source::UserEnv => home.join(".env").display().to_string(),
    }
}

const LIST: [Flag; 2] = [
    Flag {
        name: "--profile",
        value: "name",
        help: "whose routes are looked at; headless without it",
    },
    Flag {
        name: "--json",
        value: "",
        help: "print one JSON object\n(docs/schema/credentials-list.schema.json)",
    },
];

const HELP: &str = "\
Usage: dsh credentials set NAME
       dsh credentials list [--json] [--profile <name>]
       dsh credentials unset NAME

Keys of model providers, by the names that configuration calls them by.

Commands:
  set NAME    keep a value in $DSH_HOME/.credentials.yaml (mode 0600). It is typed
              on the terminal, which does not show it, or read from standard
              input as one line; a value on the command line is refused, as the
              shell would remember it
  list        the names that are known or wanted: where each has a value, which
              place wins, which routes want it, what is missing. No value is shown
  unset NAME  take a value out of that file

A name is looked up at each request, and the first that is not empty is taken:
the environment, .credentials.yaml, .env of the working directory, $DSH_HOME/.env.

Examples:
  dsh credentials set DEEPSEEK_API_KEY
  pass show openai | dsh credentials set OPENAI_API_KEY
  dsh credentials list

Exit codes: 0 done; 1 refused or failed; 130 interrupted.
";

/// Runs `dsh credentials` with the words that follow it.
pub(crate) fn main(arguments: &[String]) -> Result<u8, Failure> {
    let Some((verb, rest)) = arguments.split_first() else {
        return Err(usage(
            "dsh credentials needs a command: set NAME, list, or unset NAME (--help says more)",
        ));
    };
    let flags: &[Flag] = match verb.as_str() {
        "-h" | "--help" => return report::product(HELP),
        "list" => &LIST,
        "set" | "unset" => &[],
        other => {
            return Err(usage(format_args!(
                "dsh credentials has no command {other:?}; it has set, list and unset"
            )));
        }
    };
    let words = match read(flags, rest) {
        Ok(Read::Help) if flags.is_empty() => return report::product(HELP),
        Ok(Read::Help) => return report::product(&format!("{HELP}\n{}", options(flags))),
        Ok(Read::Words(words)) => words,
        Err(why) => return Err(usage(format_args!("dsh credentials {verb}: {why}"))),
    };
    match verb.as_str() {
        "list" => list::run(&Place::find(None)?, &words),
        "set" => set::run(&Place::find(None)?, &name("set", &words)?),
        _ => set::unset(&Place::find(None)?, &name("unset", &words)?),
    }
}

/// The one name. What stands behind it is a value that must not be repeated.
fn name(verb: &str, words: &Words) -> Result<String, Failure> {
    match &words.arguments[..] {
        [name] if name.contains('=') => Err(on_the_command_line(
            name.split('=').next().unwrap_or_default(),
        )),
        [name] => Ok(name.clone()),
        [] => Err(usage(format_args!(
            "dsh credentials {verb}: it needs a name, as in dsh credentials {verb} DEEPSEEK_API_KEY"
        ))),
        [name, ..] if verb == "set" => Err(on_the_command_line(name)),
        _ => Err(usage(format_args!(
            "dsh credentials {verb}: one name at a time"
        ))),
    }
}

fn on_the_command_line(name: &str) -> Failure {
    usage(format_args!(
        "dsh credentials set: a value is not taken from the command line, where the shell's history and other \
         processes see it; run dsh credentials set {name}, and type it, or give it on standard input. Consider the \
         key that was written here as known, and have it replaced"
    ))
}

/// What both commands that change the file work on.
fn file(place: &Place) -> Result<(CredentialFile, Environment), Failure> {
    let env = Environment::process(std::env::vars_os())
        .with_files(&place.cwd, place.home.path())
        .map_err(Failure::of)?;
    Ok((CredentialFile::at(&place.home, env.clone()), env))
}
