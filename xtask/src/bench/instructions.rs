//! Instructions of the log's hot paths, counted by callgrind, so that a busy machine does not change them.
//!
//! The benches are a workspace of their own (`instructions/`); what drives valgrind is a command of the same version,
//! built once into the cache. Without valgrind there is nothing to count, which is said and is no failure.

use std::process::Command;

use anyhow::Result;

use crate::{cache, process};

/// The version of gungraun in `instructions/Cargo.toml`; library and runner have to be of one version.
const VERSION: &str = "0.20.0";

pub(super) fn run() -> Result<()> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        eprintln!("xtask: skipped, as there is no valgrind here to count instructions with");
        return Ok(());
    }
    let folder = cache::folder(&format!("gungraun-{VERSION}"))?;
    let runner = folder.join("bin/gungraun-runner");
    if !runner.exists() {
        process::run(
            process::cargo()
                .args(["install", "--quiet", "--locked", "gungraun-runner"])
                .args(["--version", VERSION, "--root"])
                .arg(&folder),
        )?;
    }
    process::run(
        process::cargo()
            .args(["bench", "--locked", "--manifest-path"])
            .arg("instructions/Cargo.toml")
            .arg("--target-dir")
            .arg(cache::target().join("instructions"))
            .env("GUNGRAUN_RUNNER", runner),
    )
}
