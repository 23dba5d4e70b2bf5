//! `dsh`: composes a profile, mounts its components and runs its app.
//!
//! This crate alone prints and decides exit codes. stdout carries the product
//! (help, version, a dump, the answer); everything else is one line on stderr
//! that starts with `dsh: ` (spec/cli.md §1.4). Exit codes: `docs/cli.md`.

#![forbid(unsafe_code)]

mod arguments;
mod attachments;
mod boot;
mod countdown;
mod credentials;
mod doctor;
mod embedded;
mod exit;
mod headless;
mod hint;
mod kv;
mod left_out;
mod listing;
mod live;
mod models;
mod open;
#[cfg(test)]
mod played_tests;
mod plugin;
mod projections;
mod regular;
mod report;
mod result;
mod route;
mod row_config;
mod row_lines;
mod run;
mod sessions;
mod signals;
mod stream;
mod titles;
mod unusable;
mod words;

use std::ffi::OsString;
use std::process::ExitCode;

use dsh_profile::launch::{self, Launch};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).peekable();
    if arguments
        .peek()
        .is_some_and(|first| first == dsh_sandbox::HELPER_ARGUMENT)
    {
        arguments.next();
        dsh_sandbox::landlock_exec_main(arguments.collect());
    }
    exit::code(start(arguments))
}

fn start(arguments: impl Iterator<Item = OsString>) -> Result<u8, exit::Failure> {
    let arguments = arguments
        .map(|argument| {
            argument.into_string().map_err(|raw| {
                exit::Failure::usage(format!("error: {} is not UTF-8", raw.to_string_lossy()))
            })
        })
        .collect::<Result<Vec<_>, _>>()?;
    let launch =
        launch::parse(arguments).map_err(|error| exit::Failure::usage(error.to_string()))?;
    match launch {
        Launch::Help => report::product(launch::HELP),
        Launch::Version => report::product(concat!(env!("CARGO_PKG_VERSION"), "\n")),
        Launch::DumpConfig {
            profile,
            patches,
            safe,
            strict,
        } => boot::dump(&profile, &patches, safe, strict),
        Launch::DumpDefault { profile } => boot::dump_default(&profile),
        Launch::Doctor(arguments) => doctor::main(&arguments),
        Launch::Models(arguments) => listing::main(&arguments),
        Launch::Sessions(arguments) => sessions::main(&arguments),
        Launch::Credentials(arguments) => credentials::main(&arguments),
        Launch::Plugin(arguments) => plugin::main(&arguments),
        Launch::Boot(boot) => headless::main(&boot),
    }
}
