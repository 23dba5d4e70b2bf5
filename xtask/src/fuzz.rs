//! Fuzzing the session log and the adapters: the targets of `tests/fuzz` and `plugins/fuzz`, driven by libFuzzer, which has to be compiled, so a C++ compiler
//! has to be there. Where it is not, seeds are mutated blindly by the targets' own program, and that is said.
//!
//! The corpus grows in `target/fuzz/corpus`. What breaks a target goes to `target/fuzz/found`; kept in
//! `corpus/TARGET` of the target's crate, it is part of every test run.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cache, process, root};

/// Of `tests/fuzz`.
const LOG: [&str; 6] = ["frames", "lines", "normaliser", "surface", "repair", "lock"];
/// Of `plugins/fuzz`.
const ADAPTERS: [&str; 7] = [
    "sse",
    "json",
    "requests",
    "deepseek",
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
];
/// Seconds for each target when nothing is said.
const SECONDS: u64 = 60;
/// Longer inputs are slower and teach nothing that shorter ones do not.
const MAX_BYTES: usize = 8192;
/// What tells libFuzzer which code an input reached, on a stable compiler.
const COVERAGE: &str = "-Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4 \
    -Cllvm-args=-sanitizer-coverage-inline-8bit-counters \
    -Cllvm-args=-sanitizer-coverage-pc-table --cfg fuzzing";

/// `fuzz [TARGET] [--time SECONDS]`.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    let all = [&LOG[..], &ADAPTERS[..]].concat();
    let mut targets = all.clone();
    let mut seconds = SECONDS;
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--time" {
            let value = rest.next().context("--time wants a number of seconds")?;
            seconds = value
                .parse()
                .with_context(|| format!("--time wants a number of seconds, not {value:?}"))?;
        } else if let Some(name) = all.iter().find(|name| **name == argument) {
            targets = vec![name];
        } else {
            bail!(
                "there is no target `{argument}`; there are {}",
                all.join(", ")
            );
        }
    }
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    if Command::new(&compiler).arg("--version").output().is_err() {
        eprintln!(
            "xtask: no C++ compiler ({}), so seeds are mutated without guidance; install one, or set CXX",
            compiler.to_string_lossy()
        );
        return unguided(&targets, seconds);
    }
    guided(&targets, seconds)
}

fn guided(targets: &[&str], seconds: u64) -> Result<()> {
    let folder = cache::target().join("fuzz");
    // Named, so that build scripts are not instrumented.
    let host = process::output(Command::new("rustc").args(["--print", "host-tuple"]))?;
    let host = host.trim();
    process::run(
        process::cargo()
            .args(["build", "--release", "--locked", "--target", host])
            .args(["--manifest-path", "fuzz/Cargo.toml"])
            .arg("--target-dir")
            .arg(&folder)
            .env("RUSTFLAGS", COVERAGE),
    )?;
    let fuzzer = folder.join(host).join("release/fuzz");
    let found = folder.join("found");
    let mut broken = Vec::new();
    for target in targets {
        let corpus = folder.join("corpus").join(target);
        for dir in [&corpus, &found] {
            std::fs::create_dir_all(dir).with_context(|| format!("making {}", dir.display()))?;
        }
        let run = Command::new(&fuzzer)
            .arg(&corpus)
            .arg(format!("-max_total_time={seconds}"))
            .arg(format!("-max_len={MAX_BYTES}"))
            .args(["-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1"])
            .args(["-verbosity=1", "-close_fd_mask=0"])
            .arg(format!("-artifact_prefix={}/{target}-", found.display()))
            .env("DSH_FUZZ_TARGET", target)
            .env("DSH_FUZZ_SEEDS", &corpus)
            .status()
            .with_context(|| format!("starting {}", fuzzer.display()))?;
        if !run.success() {
            broken.push(*target);
        }
    }
    report(&broken, &found)
}

fn unguided(targets: &[&str], seconds: u64) -> Result<()> {
    let found = cache::target().join("fuzz/found");
    std::fs::create_dir_all(&found).with_context(|| format!("making {}", found.display()))?;
    process::run(process::cargo().args(["build", "--release", "--locked", "-p", "dsh-fuzz"]))?;
    process::run(
        process::cargo()
            .current_dir(root().join("plugins"))
            // A release build of the components aborts where it panics.
            .args(["build", "--locked", "-p", "adapter-fuzz"])
            .env("CARGO_TARGET_DIR", cache::target().join("wasm")),
    )?;
    let [of_log, of_adapters] = ["release/dsh-fuzz", "wasm/debug/adapter-fuzz"]
        .map(|program| std::path::absolute(root().join(cache::target()).join(program)));
    let (of_log, of_adapters) = (of_log?, of_adapters?);
    let mut broken = Vec::new();
    for target in targets {
        let program = if LOG.contains(target) {
            &of_log
        } else {
            &of_adapters
        };
        let run = Command::new(program)
            .args([target, seconds.to_string().as_str()])
            .current_dir(&found)
            .status()
            .with_context(|| format!("starting {}", program.display()))?;
        if !run.success() {
            broken.push(*target);
        }
    }
    report(&broken, &found)
}

fn report(broken: &[&str], found: &Path) -> Result<()> {
    if broken.is_empty() {
        return Ok(());
    }
    bail!(
        "broken: {}; the inputs are in {}, mend it and keep each as corpus/TARGET/NAME in tests/fuzz or plugins/fuzz",
        broken.join(", "),
        found.display()
    )
}
