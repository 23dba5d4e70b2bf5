//! What folding costs in components, beside the host's own folds: `host/agent/benches`.

use anyhow::Result;

use crate::{components, process};

/// Builds the components and measures. `--dev` takes the dev profile, whose
/// wasmtime is there already, with the crates between the two optimised.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    components::build()?;
    let mut cargo = process::cargo();
    cargo.args(["bench", "--quiet", "--locked"]);
    if arguments.iter().any(|argument| argument == "--dev") {
        cargo.args(["--profile", "dev"]);
        for member in ["dsh-plugin", "dsh-agent"] {
            let level = format!("profile.dev.package.{member}.opt-level=3");
            cargo.args(["--config", &level]);
        }
    }
    cargo.args(["--package", "dsh-agent", "--bench", "projections"]);
    process::run(&mut cargo)
}
