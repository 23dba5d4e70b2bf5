//! All tests: what they need is built first, so that none has to skip for it.

use anyhow::Result;

use crate::{cache, components, guests, process, root};

/// Runs the tests of the components natively, then those of the host.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    components::build()?;
    guests::build()?;
    process::run(
        process::cargo()
            .current_dir(root().join("plugins"))
            .args(["test", "--quiet", "--locked"])
            .env("CARGO_TARGET_DIR", cache::target().join("wasm")),
    )?;
    process::run(
        process::cargo()
            .args(["test", "--quiet", "--locked", "--workspace"])
            .args(arguments),
    )
}
