//! All tests: what they need is built first, so that none has to skip for it.

use std::process::Command;

use anyhow::Result;

use crate::{cache, components, guests, process, root, toolchain};

/// Runs the tests of the components natively, then those of the host.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    components::build()?;
    guests::build()?;
    third_way()?;
    process::run(
        process::cargo()
            .current_dir(root().join("plugins"))
            .args(["test", "--quiet", "--locked"])
            .env("CARGO_TARGET_DIR", cache::target().join("wasm")),
    )?;
    let rust_guests = cache::target()
        .join(toolchain::find()?.folder())
        .join(toolchain::TARGET)
        .join("release");
    process::run(
        process::cargo()
            .args(["test", "--quiet", "--locked", "--workspace"])
            .args(arguments)
            .env("DSH_TEST_GUESTS", rust_guests),
    )
}

/// A machine without a downloadable target gets the same components: those that
/// Debian's compiler makes are taken by the host's engine.
fn third_way() -> Result<()> {
    let skipped =
        |reason: &str| eprintln!("xtask: skipped: components by Debian's compiler: {reason}");
    if !toolchain::has_apt() {
        skipped("needs apt-get and root");
        return Ok(());
    }
    if let Err(error) = toolchain::install_debian() {
        skipped(&format!("{error:#}"));
        return Ok(());
    }
    let toolchain = toolchain::debian()?;
    let release = components::compile(&toolchain, &root().join("plugins"))?;
    let code = root().join("target/debian.cwasm");
    process::run(
        Command::new(components::compiler())
            .arg(release.join("tool_todo.wasm"))
            .arg(&code),
    )?;
    std::fs::remove_file(&code)?;
    Ok(())
}
