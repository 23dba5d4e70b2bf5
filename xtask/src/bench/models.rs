//! What model calls cost, beside plain serde_json: `tests/soak/benches`.

use anyhow::Result;

use crate::{components, process};

/// Builds the components and measures. `--dev` takes the dev profile, whose
/// wasmtime is there already, with the crates between optimised.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    components::build()?;
    let mut cargo = process::cargo();
    cargo.args(["bench", "--quiet", "--locked"]);
    if arguments.iter().any(|argument| argument == "--dev") {
        cargo.args(["--profile", "dev"]);
        for member in [
            "dsh-plugin",
            "dsh-http",
            "dsh-model",
            "dsh-agent",
            "dsh-soak",
        ] {
            let level = format!("profile.dev.package.{member}.opt-level=3");
            cargo.args(["--config", &level]);
        }
    }
    cargo.args(["--package", "dsh-soak", "--bench", "models"]);
    process::run(&mut cargo)
}
