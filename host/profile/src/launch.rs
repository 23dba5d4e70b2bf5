//! The launcher's argument grammar (spec/cli.md §1.1), as a pure function.
//!
//! The launcher's flags come first. The first token that it does not know ends
//! them, and from there on everything belongs to the app, whatever it looks
//! like. One `--` is eaten at that place. `web` and `plugin` are sub-commands as
//! the first such token, unless that `--` stands before them. `sessions`, `credentials`,
//! `models` and `doctor`, which are ours, are such only as the very first word: after
//! `--profile` they are words of a task like any others.

use std::path::PathBuf;

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// Print [`HELP`] on stdout, exit 0.
    Help,
    /// Print the bare version on stdout, exit 0.
    Version,
    /// `dsh sessions …`: look at and mend what is stored; boots nothing. Its arguments as they stand.
    Sessions(Vec<String>),
    /// `dsh plugin …`: what is installed into a profile, and what it may do. Its arguments as they stand.
    Plugin(Vec<String>),
    /// `dsh credentials …`: keys of providers, by name. Its arguments as they stand.
    Credentials(Vec<String>),
    /// `dsh models …`: what can be called; boots nothing. Its arguments as they stand.
    Models(Vec<String>),
    /// `dsh doctor …`: says what is wrong; changes nothing. Its arguments as they stand.
    Doctor(Vec<String>),
    /// Boot a profile; its `args` go to the booted app as they stand.
    Boot(Boot),
    /// Print the composed tree (`--dump-config`).
    DumpConfig {
        /// The profile's name.
        profile: String,
        /// `--patch` files in order.
        patches: Vec<PathBuf>,
        /// Bundles alone.
        safe: bool,
        /// Whatever would be left out is fatal.
        strict: bool,
    },
    /// Print the bundle layers only (`--dump-default-config`).
    DumpDefault {
        /// The profile's name.
        profile: String,
    },
}

/// A boot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The profile's name, not empty.
    pub profile: String,
    /// `--patch` files in order.
    pub patches: Vec<PathBuf>,
    /// `--safe`: bundles alone. Never together with `--patch`.
    pub safe: bool,
    /// `--strict`: whatever would be left out is fatal.
    pub strict: bool,
    /// The app's arguments.
    pub args: Vec<String>,
}

/// A command line that means nothing. Displays as one line that starts with
/// `error: `; it goes to stderr, exit 1.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("error: {0}")]
pub struct UsageError(pub String);

/// The launcher's help.
pub const HELP: &str = "\
Usage: dsh [options] [args...]
       dsh sessions <command> [args...]
       dsh plugin <command> [args...]
       dsh credentials <command> [args...]
       dsh models [--profile <name>] [--json] [provider]
       dsh doctor [--profile <name>] [--json]

Boots a profile: composes its rows from bundles and patches, mounts them, and
hands everything after the launcher's own options to the booted app.

Arguments:
  args                     the app's arguments, from the first word that is no
                           launcher option; `--` in front protects them

Commands:
  sessions                 list, show, check, repair, fork, export and remove
                           stored sessions: dsh sessions --help
  plugin                   add, remove, update and list plugins, and decide what
                           they may do: dsh plugin --help
  credentials              keep, list and take out the keys of providers:
                           dsh credentials --help
  models                   list what can be called, and why what cannot be
                           called cannot: dsh models --help
  doctor                   look for what is wrong with this machine and dsh's
                           files, and say what to do: dsh doctor --help

Options:
  --profile <name>         the profile to boot; required
  --patch <path>           one more patch file, applied last; repeatable
  --dump-config            print the composed rows and who set them, do not boot
  --dump-default-config    print the bundles' rows only, do not boot
  --strict                 fail where a row would be reported and left out
  --safe                   the bundles alone, without your patches and plugins
  -V, --version            print the version
  -h, --help               print this help

Examples:
  dsh --profile headless \"run the tests and fix what fails\"
  dsh --profile headless --patch ./cheap-model.yml \"summarise README.md\"
  dsh --profile headless --help
  dsh --profile headless --dump-config
  dsh --profile headless --dump-default-config
  dsh --profile headless --safe \"say hello\"
  dsh sessions list
  dsh plugin add ./notes.wasm
";

#[derive(Default)]
struct Flags {
    profile: Option<String>,
    patches: Vec<PathBuf>,
    dump: bool,
    dump_default: bool,
    strict: bool,
    safe: bool,
}

impl Flags {
    fn any(&self) -> bool {
        self.profile.is_some()
            || !self.patches.is_empty()
            || self.dump
            || self.dump_default
            || self.strict
            || self.safe
    }
}

/// Reads the arguments after the program's name.
///
/// # Errors
/// One line that says what is wrong with them.
pub fn parse(args: impl IntoIterator<Item = String>) -> Result<Launch, UsageError> {
    let mut rest: Vec<String> = args.into_iter().collect();
    rest.reverse();
    let mut flags = Flags::default();
    if rest.last().is_some_and(|first| first == "sessions") {
        rest.pop();
        rest.reverse();
        return Ok(Launch::Sessions(rest));
    }
    if rest.last().is_some_and(|first| first == "credentials") {
        rest.pop();
        rest.reverse();
        return Ok(Launch::Credentials(rest));
    }
    if rest.last().is_some_and(|first| first == "models") {
        rest.pop();
        rest.reverse();
        return Ok(Launch::Models(rest));
    }
    if rest.last().is_some_and(|first| first == "doctor") {
        rest.pop();
        rest.reverse();
        return Ok(Launch::Doctor(rest));
    }
    while let Some(arg) = rest.pop() {
        let (name, attached) = match arg.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (arg.as_str(), None),
        };
        match (name, attached) {
            ("--profile", value) => {
                let name = take("--profile <name>", value, &mut rest)?;
                if name.trim().is_empty() {
                    return Err(usage("--profile needs a name"));
                }
                flags.profile = Some(name);
            }
            ("--patch", value) => {
                let path = take("--patch <path>", value, &mut rest)?;
                if path.is_empty() {
                    return Err(usage("--patch needs a path"));
                }
                flags.patches.push(path.into());
            }
            ("--dump-config", None) => flags.dump = true,
            ("--dump-default-config", None) => flags.dump_default = true,
            ("--strict", None) => flags.strict = true,
            ("--safe", None) => flags.safe = true,
            ("-V" | "--version", None) => return Ok(Launch::Version),
            ("-h" | "--help", None) if flags.profile.is_none() => return Ok(Launch::Help),
            ("--", None) => break,
            ("plugin", None) if !flags.any() => {
                rest.reverse();
                return Ok(Launch::Plugin(rest));
            }
            (command @ ("web" | "plugin"), None) => return Err(no_command(command, &flags)),
            _ => {
                rest.push(arg);
                break;
            }
        }
    }
    rest.reverse();
    finish(flags, rest)
}

fn finish(flags: Flags, args: Vec<String>) -> Result<Launch, UsageError> {
    let Some(profile) = flags.profile else {
        return Err(usage(
            "--profile <name> is required, for example: dsh --profile headless \"run the tests\"",
        ));
    };
    if flags.safe && !flags.patches.is_empty() {
        return Err(usage("--safe boots the bundles alone and takes no --patch"));
    }
    if flags.dump && flags.dump_default {
        return Err(usage(
            "--dump-config and --dump-default-config exclude each other",
        ));
    }
    if flags.dump_default && !flags.patches.is_empty() {
        return Err(usage(
            "--dump-default-config prints the bundles alone and takes no --patch",
        ));
    }
    if (flags.dump || flags.dump_default) && !args.is_empty() {
        let first = &args[0];
        return Err(usage(format!(
            "a dump boots nothing and takes no app arguments (found {first:?})"
        )));
    }
    let (patches, safe, strict) = (flags.patches, flags.safe, flags.strict);
    Ok(if flags.dump_default {
        Launch::DumpDefault { profile }
    } else if flags.dump {
        Launch::DumpConfig {
            profile,
            patches,
            safe,
            strict,
        }
    } else {
        Launch::Boot(Boot {
            profile,
            patches,
            safe,
            strict,
            args,
        })
    })
}

fn usage(message: impl Into<String>) -> UsageError {
    UsageError(message.into())
}

fn take(
    option: &str,
    attached: Option<String>,
    rest: &mut Vec<String>,
) -> Result<String, UsageError> {
    attached
        .or_else(|| rest.pop())
        .ok_or_else(|| usage(format!("option '{option}' argument missing")))
}

fn no_command(command: &str, flags: &Flags) -> UsageError {
    if !flags.any() {
        return usage(
            "this dsh has no web surface; run a task with: dsh --profile headless \"run the tests\"",
        );
    }
    let otherwise = if command == "plugin" {
        "write dsh plugin --profile NAME …, or "
    } else {
        ""
    };
    usage(format!(
        "{command} takes none of parent --profile, --patch, --dump-config, or --dump-default-config; \
         {otherwise}put -- before it where it is an argument of the app"
    ))
}

#[cfg(test)]
#[path = "launch_tests.rs"]
mod tests;
