//! The budgets of components, beside plain wasmtime: `host/plugin/benches`.

use anyhow::Result;

use crate::{components, process, root, toolchain};

/// Builds the component that is measured, and measures. `--dev` takes the dev
/// profile, whose wasmtime is there already: enough to see that all of it runs.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let official = components::build()?;
    let guests = components::compile(
        &toolchain::find()?,
        &root().join("host/plugin/benches/guests"),
    )?;
    let mut cargo = process::cargo();
    cargo
        .args(["bench", "--quiet", "--locked"])
        .env("DSH_BENCH_COMPONENT", guests.join("measured.wasm"))
        .env("DSH_BENCH_ADAPTER", official.join("llm-deepseek.wasm"));
    if arguments.iter().any(|argument| argument == "--dev") {
        cargo
            .args(["--profile", "dev"])
            .args(["--config", "profile.dev.package.dsh-plugin.opt-level=3"]);
    }
    cargo.args(["--package", "dsh-plugin", "--bench", "plugins", "--"]);
    cargo.args(arguments.iter().filter(|argument| *argument != "--dev"));
    process::run(&mut cargo)
}
