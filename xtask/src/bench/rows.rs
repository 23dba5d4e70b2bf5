//! What the rows of the bundles cost a start: from exec to the first provider
//! request with all of them, with those that a run cannot do without, and with
//! the adapter alone, in turn, in the same run.

use std::fs;
use std::time::Duration;

use anyhow::{Result, bail};
use serde_json::json;

use super::{Bench, milliseconds, spread};

const RUNS: usize = 31;

/// Models, prompt and tools: what the bundles had before policies, compaction,
/// titles, views and context were components too.
const NEEDED: [&str; 7] = [
    "llm-deepseek",
    "llm-scripted",
    "system-prompt",
    "tool-bash",
    "tool-fs",
    "tool-fs-search",
    "tool-todo",
];

/// Measures. `--dev` takes the dev profile: enough to see that it runs.
pub(super) fn run(arguments: &[String]) -> Result<()> {
    let dev = arguments.iter().any(|argument| argument == "--dev");
    let bench = Bench::build(if dev { "dev" } else { "release" })?;
    let rows = mounted(&bench)?;
    let alone: Vec<&str> = vec!["llm-deepseek"];
    let needed: Vec<&str> = NEEDED.to_vec();
    let all: Vec<&str> = rows.iter().map(String::as_str).collect();
    let kept = [alone, needed, all];
    let patches = kept.iter().map(|kept| patch(&bench, &rows, kept));
    let patches = patches.collect::<Result<Vec<_>>>()?;
    let mut times: Vec<Vec<Duration>> = vec![Vec::new(); kept.len()];
    for run in 0..=RUNS {
        for (times, patch) in times.iter_mut().zip(&patches) {
            let time = bench.first_request_with(&["--patch", patch])?;
            // Once without counting: page cache, first use of the profile.
            if run > 0 {
                times.push(time);
            }
        }
    }
    let counts = [1, NEEDED.len(), rows.len()];
    println!("| exec to first provider request | goal | median | min | max | a row more |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for (at, (kept, of)) in kept.iter().zip(&times).enumerate() {
        let [median, min, max] = spread(of.clone()).map(milliseconds);
        let goal = if at == 2 {
            "25 ms with 12 rows, 40 ms with 40"
        } else {
            ""
        };
        let more = match at.checked_sub(1) {
            None => String::new(),
            Some(fewer) => {
                let rows = u32::try_from(kept.len() - counts[fewer])?;
                let more = of.iter().zip(&times[fewer]);
                let more = more.map(|(with, without)| with.saturating_sub(*without) / rows);
                let [more, ..] = spread(more.collect());
                format!("{:.2} ms", more.as_secs_f64() * 1000.0)
            }
        };
        println!(
            "| {} component rows | {goal} | {median} | {min} | {max} | {more} |",
            kept.len()
        );
    }
    fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

/// The rows that mount a component, by the composed profile.
fn mounted(bench: &Bench) -> Result<Vec<String>> {
    let output = bench
        .command(None)
        .args(["--profile", "headless", "--dump-config"])
        .stdout(std::process::Stdio::piped())
        .output()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let (mut rows, mut id, mut off) = (Vec::new(), "", false);
    for line in text.lines().map(|line| line.trim_start_matches([' ', '-'])) {
        if let Some(of) = line.strip_prefix("id: ") {
            (id, off) = (of, false);
        }
        off |= line == "disabled: true";
        if line.starts_with("component: ") && !off {
            rows.push(id.to_owned());
        }
    }
    if NEEDED
        .iter()
        .any(|needed| !rows.iter().any(|row| row == needed))
    {
        bail!("the composed profile lacks rows that a run needs: {rows:?}");
    }
    Ok(rows)
}

/// A patch that disables what is not kept.
fn patch(bench: &Bench, rows: &[String], kept: &[&str]) -> Result<String> {
    let off = rows.iter().filter(|row| !kept.contains(&row.as_str()));
    let off: Vec<_> = off
        .map(|row| json!({"id": row, "disabled": true}))
        .collect();
    let file = bench.folder.join(format!("keep-{}.yml", kept.len()));
    fs::write(&file, serde_json::to_string(&off)?)?;
    Ok(file.to_string_lossy().into_owned())
}
