//! A headless task from start to end, without a key or a network: the model is
//! the embedded one that plays a script, everything else is what a real run has.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use crate::{cache, components, process, root};

const TASK: &str = "Fix the greeting in hello.txt and check it";

/// Builds `dsh` and plays the demo in a folder of its own below `target`.
pub(crate) fn play() -> Result<()> {
    components::build()?;
    process::run(process::cargo().args(["build", "--quiet", "--locked", "--workspace", "--bins"]))?;
    let folder = root().join("target/demo");
    let _ = std::fs::remove_dir_all(&folder);
    let (home, work) = (folder.join("home"), folder.join("work"));
    std::fs::create_dir_all(&home)?;
    std::fs::create_dir_all(&work)?;
    std::fs::write(work.join("hello.txt"), "Helo, world\n")?;
    let patch = folder.join("demo.yml");
    std::fs::write(&patch, patch_text(&root().join("tests/demo/script.json")))?;

    println!("The task: {TASK}");
    println!("Before:   hello.txt holds {:?}", read(&work)?);
    let answer = process::output(
        Command::new(cache::target().join("debug/dsh"))
            .args(["--profile", "headless", "--patch"])
            .arg(&patch)
            .arg(TASK)
            .current_dir(&work)
            .env("DSH_HOME", &home),
    )?;
    println!("Answer:   {}", answer.trim_end());
    println!("After:    hello.txt holds {:?}", read(&work)?);
    println!("The log:  {}", log(&home.join("sessions"))?.display());
    Ok(())
}

/// Sets the scripted model as the default one.
fn patch_text(script: &Path) -> String {
    format!(
        "- id: agent-default-model\n  config:\n    provider: scripted\n    model: script\n\
         - id: llm-scripted\n  config:\n    scriptFile: {}\n",
        serde_json::Value::from(script.to_string_lossy().as_ref())
    )
}

fn read(work: &Path) -> Result<String> {
    std::fs::read_to_string(work.join("hello.txt")).context("reading hello.txt of the demo")
}

fn log(folder: &Path) -> Result<PathBuf> {
    process::files(folder)?
        .into_iter()
        .find(|path| path.ends_with("session.jsonl.zstd"))
        .with_context(|| format!("the run left no log below {}", folder.display()))
}
