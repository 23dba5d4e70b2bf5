//! `cargo xtask torture`: the store's torture (`tests/torture`) in a dose that a test run cannot take.
//!
//! It is a program of its own, built for release, that needs neither components nor the engine.

use anyhow::{Context, Result, bail};

use crate::process::{self, cargo};

/// Crash states and appends of one run.
const MILLION: u64 = 1_000_000;
/// Scripts that are looked at thinly beside, and how thinly.
const SCRIPTS: [&str; 2] = ["2000", "100"];

pub(crate) fn torture(states: u64, appends: u64, seed: u64) -> Result<()> {
    let call = |arguments: &[String]| {
        let mut command = cargo();
        command.args([
            "run",
            "--quiet",
            "--release",
            "--locked",
            "-p",
            "dsh-torture",
            "--",
        ]);
        process::run(command.args(arguments))
    };
    let text = |number: u64| number.to_string();
    let [scripts, one_in] = SCRIPTS.map(str::to_owned);
    call(&["states".to_owned(), text(seed), text(states)])?;
    call(&["states".to_owned(), text(seed + MILLION), scripts, one_in])?;
    call(&["rivals".to_owned(), text(seed), text(appends)])
}

/// Reads `--states N`, `--appends N` and `--seed N`.
pub(crate) fn read(arguments: &[String]) -> Result<[u64; 3]> {
    let mut found = [MILLION, MILLION, 1];
    let mut rest = arguments.iter();
    while let Some(name) = rest.next() {
        let at = ["--states", "--appends", "--seed"]
            .iter()
            .position(|known| known == name);
        let Some(at) = at else {
            bail!("torture knows --states, --appends and --seed, not {name:?}");
        };
        let value = rest
            .next()
            .with_context(|| format!("{name} needs a number"))?;
        found[at] = value.parse().with_context(|| format!("{name} {value}"))?;
    }
    Ok(found)
}

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [states, appends, seed] = read(arguments)?;
    torture(states, appends, seed)
}
