//! What installed plugins cost a start: from exec to the first provider request
//! with none, twelve and forty of them, in turn, in the same run.

use std::fs;
use std::process::Stdio;

use anyhow::Result;
use serde_json::json;

use super::{Bench, milliseconds, spread};
use crate::{components, process, root, toolchain};

const RUNS: usize = 31;

/// How many are installed, and what they may cost.
const HOMES: [(usize, &str); 3] = [(0, ""), (12, "5 ms"), (40, "10 ms")];

/// Installs and measures. `--dev` takes the dev profile: enough to see that it runs.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let dev = arguments.iter().any(|argument| argument == "--dev");
    let guests = components::compile(
        &toolchain::find()?,
        &root().join("host/plugin/benches/guests"),
    )?;
    let small = fs::read(guests.join("small.wasm"))?;
    let bench = Bench::build(if dev { "dev" } else { "release" })?;
    for (count, _) in HOMES {
        install(&bench, count, &small)?;
        // Once without counting: page cache, first use of the profile.
        bench.first_request_at(&home(count))?;
    }
    let mut times = HOMES.map(|_| Vec::new());
    for _ in 0..RUNS {
        for (times, (count, _)) in times.iter_mut().zip(HOMES) {
            times.push(bench.first_request_at(&home(count))?);
        }
    }
    println!(
        "| exec to first provider request | goal | median | min | max | more than none, run by run |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (of, (count, goal)) in times.iter().zip(HOMES) {
        let more = of
            .iter()
            .zip(&times[0])
            .map(|(with, none)| with.saturating_sub(*none));
        let [more, ..] = spread(more.collect()).map(milliseconds);
        let [median, min, max] = spread(of.clone()).map(milliseconds);
        println!("| {count} plugins installed | {goal} | {median} | {min} | {max} | {more} |");
    }
    fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

fn home(count: usize) -> String {
    format!("home-{count}")
}

/// Installs as many, each another component to the host: another name, another
/// digest, another tool.
fn install(bench: &Bench, count: usize, small: &[u8]) -> Result<()> {
    for number in 1..=count {
        let name = format!("small-{number}");
        let manifest = json!({
            "plugin": {"name": format!("bench:{name}"), "version": "0.1.0"},
            "rows": [{"id": name, "config": {"name": name}}],
        });
        let mut component = small.to_vec();
        components::append_section(
            &mut component,
            "dsh:manifest",
            manifest.to_string().as_bytes(),
        );
        let file = bench.folder.join(format!("{name}.wasm"));
        fs::write(&file, component)?;
        process::run(
            bench
                .command_at(&home(count), None)
                .args(["plugin", "add", "--yes"])
                .arg(&file)
                .stderr(Stdio::null()),
        )?;
    }
    Ok(())
}
