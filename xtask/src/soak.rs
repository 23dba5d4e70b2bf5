//! `cargo xtask soak [REQUESTS] [SEED]`: conversations with every adapter in all weathers (`tests/soak`), in a dose that a
//! test run cannot take.

use anyhow::{Context, Result, bail};

use crate::{components, process};

/// Requests of one soak.
const THOUSAND: u64 = 1000;

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let [requests, seed] = read(arguments)?;
    components::build()?;
    let mut cargo = process::cargo();
    cargo.args(["run", "--quiet", "--locked", "-p", "dsh-soak", "--"]);
    process::run(cargo.args([requests, seed].map(|number| number.to_string())))
}

/// Without a seed each soak is another; it prints the one it took.
fn read(arguments: &[String]) -> Result<[u64; 2]> {
    if let Some(more) = arguments.get(2) {
        bail!("soak takes a number of requests and a seed, and not {more:?} beside");
    }
    let number = |at: usize, otherwise: u64| -> Result<u64> {
        let text = arguments.get(at);
        let read = text.map(|text| {
            text.parse()
                .with_context(|| format!("{text:?} is no number"))
        });
        read.unwrap_or(Ok(otherwise))
    };
    Ok([
        number(0, THOUSAND)?,
        number(1, u64::from(std::process::id()))?,
    ])
}
