//! `cargo xtask litellm`: whole runs against a server of somebody else's.
//!
//! litellm's proxy translates what the test's mock provider says to the other protocols and back, so that an adapter meets
//! a stream that neither its author nor the conformance data made. It takes most of a minute and 0.8 GB to install, so it
//! is a step of its own, and its environment stays in the cache.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cache, components, process, root};

/// Of `tests/litellm/litellm.txt`.
const VERSION: &str = "1.108.7";

/// `litellm [--must]`: with it, not being able to install is a failure.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let must = match arguments {
        [] => false,
        [one] if one == "--must" => true,
        _ => bail!("litellm knows --must, not {arguments:?}"),
    };
    let python = match install() {
        Ok(python) => python,
        Err(error) if must => return Err(error),
        Err(error) => {
            eprintln!("xtask: skipped: whole runs against litellm {VERSION}: {error:#}");
            return Ok(());
        }
    };
    components::build()?;
    process::run(
        process::cargo()
            // Of the whole workspace, as cargo gives wasmtime other features otherwise and builds it anew.
            .args([
                "test",
                "--quiet",
                "--locked",
                "--workspace",
                "--test",
                "e2e",
            ])
            .args(["--", "--ignored", "litellm"])
            .env("DSH_TEST_LITELLM", python),
    )
}

/// Its Python, in an environment that has it.
fn install() -> Result<PathBuf> {
    let folder = cache::folder(&format!("litellm-{VERSION}"))?;
    let pins = ["litellm.txt", "others.txt"].map(|name| root().join("tests/litellm").join(name));
    let mut text = String::new();
    for pin in &pins {
        text +=
            &std::fs::read_to_string(pin).with_context(|| format!("reading {}", pin.display()))?;
    }
    // Written last, so an environment that is half there is made anew.
    let done = folder.join("installed");
    let python = folder.join("bin/python3");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == text) {
        return Ok(python);
    }
    eprintln!(
        "xtask: installing litellm {VERSION} into {}",
        folder.display()
    );
    process::run(
        Command::new("python3")
            .args(["-m", "venv", "--clear"])
            .arg(&folder),
    )?;
    let [litellm, others] = &pins;
    let pip = |hashes: &[&str], file: &PathBuf| {
        process::run(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet", "--no-deps"])
                .args(["--disable-pip-version-check", "--only-binary", ":all:"])
                .args(hashes)
                .arg("--requirement")
                .arg(file),
        )
    };
    pip(&["--require-hashes"], litellm)?;
    pip(&[], others)?;
    std::fs::write(&done, text).with_context(|| format!("writing {}", done.display()))?;
    Ok(python)
}
