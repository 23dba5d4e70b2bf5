//! `cargo xtask …`: what a checkout can do beyond plain cargo.
//!
//! A component has to exist before the host that embeds it is compiled, and on
//! some machines the standard library for Wasm has to be built before that.
//! The commands here put those steps in order, so that a fresh checkout needs
//! one of them and nothing by hand.

#![forbid(unsafe_code)]

mod bench;
mod cache;
mod components;
mod demo;
mod events;
mod fuzz;
mod guests;
mod litellm;
mod process;
mod soak;
mod tests;
mod toolchain;
mod torture;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
cargo xtask COMMAND

  plugins          build the official components into target/components
  guests           build the test guests (Rust, C, JavaScript, Python) into target/guests
  events           write docs/events from the table of events in host/agent/src/dispatch
  demo             build everything and play a headless task with the offline model
  test [ARGS]      build everything and run all tests; ARGS go to cargo test
  bench [NAME]     build release binaries and measure; prints the rows of BENCHMARKS.md;
                   `bench instructions` counts those of the log's hot paths under valgrind,
                   `bench plugins [--quick] [P1 …]` measures components beside plain wasmtime,
                   `bench projections [--dev]` folds in components beside the host's own folds,
                   `bench models [--dev]` takes chunks and builds requests with each adapter,
                   `bench plugins-start` starts with none, twelve and forty plugins installed,
                   `bench rows [--dev]` with the rows of the bundles, all, the needed, one,
                   `bench dispatch [--dev]` runs steps beside none, ten and forty that observe
  fuzz [TARGET] [--time SECONDS]
                   fuzz the session log (frames, lines, normaliser, surface, repair), the
                   profile's lock (lock), and the adapters (sse, json, requests, deepseek,
                   openai-completions, openai-responses, anthropic-messages), 60 s each
  torture [--states N] [--appends N] [--seed N]
                   recover sessions from a million crash states, let rivals append a million times
  soak [REQUESTS] [SEED]
                   converse with every adapter while the provider resets, stalls, refuses and
                   babbles, 1,000 requests long; every session is sound afterwards
  litellm [--must] install litellm's proxy (0.8 GB, into the cache) and run against it with
                   every protocol; says that it skipped where it cannot be installed
  toolchain        say how Rust is compiled for Wasm here, and stop
";

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let command = arguments.next();
    let rest: Vec<String> = arguments.collect();
    let done = match command.as_deref() {
        Some("plugins") => components::build().map(drop),
        Some("guests") => components::build().and_then(|_| guests::build()),
        Some("events") => events::write(),
        Some("demo") => demo::play(),
        Some("test") => tests::run(&rest),
        Some("bench") => bench::run(&rest),
        Some("fuzz") => fuzz::run(&rest),
        Some("torture") => torture::run(&rest),
        Some("litellm") => litellm::run(&rest),
        Some("soak") => soak::run(&rest),
        Some("toolchain") => toolchain::find().map(|found| println!("{}", found.describe())),
        Some("help" | "-h" | "--help") | None => {
            print!("{HELP}");
            Ok(())
        }
        Some(other) => unknown(other),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn unknown(command: &str) -> Result<()> {
    bail!("there is no command `{command}`; `cargo xtask help` lists them")
}

/// The root of the checkout: cargo's own word where it runs this, since
/// checkouts may share a target directory.
fn root() -> PathBuf {
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR");
    let folder = manifest.map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from);
    folder
        .parent()
        .expect("xtask lies in the checkout")
        .to_owned()
}
