//! What components that only observe cost a step: the same scripted task of few
//! and of many steps, with none, ten and forty of them, in turn, in one run. A
//! step's cost is the difference of many and few by the number of steps between,
//! so that starting, mounting and ending fall out of it.
//!
//! *Told* takes all that a run only tells; *asked* also takes part, without a
//! word, in the waterfalls of steps and tools.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Result;
use serde_json::{Value, json};

use super::{Bench, timed};
use crate::{components, root, toolchain};

const RUNS: usize = 9;
const ROWS: [usize; 3] = [0, 10, 40];
const STEPS: [u32; 2] = [10, 210];

/// All that is only told, but for files and approvals, which this task has none of.
const TOLD: &[&str] = &[
    "agent/created",
    "agent/disposed",
    "agent/error",
    "agent/inbox/claimed",
    "agent/inbox/inserted",
    "agent/session-start",
    "agent/status",
    "fs/observed",
    "session/created",
    "session/disposed",
    "session/event",
    "tools/change",
    "tools/result",
];

const ASKED: &[&str] = &[
    "agent/pre-step",
    "agent/request",
    "tools/execute",
    "tools/post-execute",
    "tools/pre-execute",
];

/// Measures. `--dev` takes the dev profile: enough to see that it runs.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let dev = arguments.iter().any(|argument| argument == "--dev");
    let runs = if dev { 3 } else { RUNS };
    let guests = components::compile(
        &toolchain::find()?,
        &root().join("host/plugin/benches/guests"),
    )?;
    let watcher = guests.join("watcher.wasm");
    let bench = Bench::build(if dev { "dev" } else { "release" })?;
    println!("| components that only observe | goal | a step | more than none, round by round |");
    println!("| --- | --- | --- | --- |");
    for (name, events) in [("told", TOLD.to_vec()), ("asked", [TOLD, ASKED].concat())] {
        let mut patches = Vec::new();
        for count in ROWS {
            patches.push(bench.patches(name, count, &events, &watcher)?);
        }
        let mut steps: Vec<Vec<f64>> = vec![Vec::new(); ROWS.len()];
        for round in 0..=runs {
            for (of, patches) in steps.iter_mut().zip(&patches) {
                let [few, many] = patches;
                let (few, many) = (bench.task_with(few)?, bench.task_with(many)?);
                let step =
                    (many.as_secs_f64() - few.as_secs_f64()) / f64::from(STEPS[1] - STEPS[0]);
                // Once without counting: page cache, first use, machine code.
                if round > 0 {
                    of.push(step * 1000.0);
                }
            }
        }
        for ((index, count), goal) in ROWS.iter().enumerate().zip(["", "", "1 ms"]) {
            let more = steps[index]
                .iter()
                .zip(&steps[0])
                .map(|(with, none)| with - none);
            let (step, more) = (middle(steps[index].clone()), middle(more.collect()));
            println!("| {count} {name} | {goal} | {step:.3} ms | {more:.3} ms |");
        }
    }
    std::fs::remove_dir_all(&bench.folder)?;
    Ok(())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

impl Bench {
    /// Patch files for the task of few and of many steps, with so many rows.
    fn patches(
        &self,
        name: &str,
        count: usize,
        events: &[&str],
        watcher: &std::path::Path,
    ) -> Result<[PathBuf; 2]> {
        let row = |number: usize| {
            json!({
                "id": format!("watcher-{number}"),
                "component": watcher.to_string_lossy(),
                "config": {"events": events},
                "grants": {"observe": events},
            })
        };
        let rows: Vec<Value> = (0..count).map(row).collect();
        let patch = |steps: u32| -> Result<PathBuf> {
            let call = json!({"name": "read", "arguments": {"file_path": "a.txt"}});
            let script = json!([
                {"times": steps - 1, "text": "I look at the file once more.", "calls": [call]},
                {"text": "Done."},
            ]);
            let mut layers = vec![
                json!({"id": "agent-default-model", "config": {"provider": "scripted", "model": "script"}}),
                json!({"id": "llm-scripted", "config": {"script": script}}),
                json!({"id": "repeat-tool-reminder", "disabled": true}),
            ];
            if !rows.is_empty() {
                layers.push(json!({"insert": rows}));
            }
            let file = self.folder.join(format!("{name}-{count}-{steps}.yml"));
            std::fs::write(&file, Value::from(layers).to_string())?;
            Ok(file)
        };
        Ok([patch(STEPS[0])?, patch(STEPS[1])?])
    }

    fn task_with(&self, patch: &std::path::Path) -> Result<Duration> {
        std::fs::write(self.work.join("a.txt"), "alpha\n")?;
        let mut command = self.command(None);
        command
            .args(["--profile", "headless", "--patch"])
            .arg(patch);
        timed(command.arg("go"))
    }
}
