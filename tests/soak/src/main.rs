//! `dsh-soak CALLS SEED`: see the library.

use std::process::ExitCode;

use anyhow::{Context, Result};
use dsh_soak::soak;
use mock_provider::Protocol;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("dsh-soak: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut number = || -> Result<u64> {
        let text = arguments.next().context("usage: dsh-soak CALLS SEED")?;
        text.parse()
            .with_context(|| format!("{text:?} is no number"))
    };
    let (calls, seed) = (number()?, number()?);
    println!("{calls} requests, seed {seed}");
    let folder = tempfile::tempdir().context("making a folder for the sessions")?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()?;
    let tally = runtime.block_on(soak::run(&Protocol::ALL, calls, seed, folder.path()))?;
    println!("{tally}");
    Ok(())
}
