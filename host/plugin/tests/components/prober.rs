//! Where a guest of the tests is. Tests of other crates take this file by its path.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The component `prober`.
#[allow(dead_code, reason = "each that takes this file mounts its own")]
pub(crate) fn file(plugin: &Path) -> PathBuf {
    named(plugin, "prober")
}

/// A component of these: taken from `$DSH_TEST_GUESTS` where that is set, else
/// built with cargo. `plugin` is the folder of `dsh-plugin`.
pub(crate) fn named(plugin: &Path, name: &str) -> PathBuf {
    let folder = match std::env::var_os("DSH_TEST_GUESTS") {
        Some(dir) => PathBuf::from(dir),
        None => build(&plugin.join("tests/guests")),
    };
    folder.join(format!("{name}.wasm"))
}

fn build(project: &Path) -> PathBuf {
    let target =
        std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| project.join("target"), PathBuf::from);
    // Where `cargo xtask` builds components; not the target itself, whose lock
    // the cargo that runs this test may hold.
    let target = target.join("wasm");
    let status = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args([
            "build",
            "--quiet",
            "--locked",
            "--release",
            "--target",
            "wasm32-unknown-unknown",
            "--target-dir",
        ])
        .arg(&target)
        .env_remove("CARGO_ENCODED_RUSTFLAGS")
        .current_dir(project)
        .status()
        .expect("cargo starts");
    assert!(
        status.success(),
        "the test guests do not build: is the target wasm32-unknown-unknown installed? Else name a directory with them in DSH_TEST_GUESTS"
    );
    target.join("wasm32-unknown-unknown/release")
}
