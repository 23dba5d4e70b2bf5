//! The official components: compiled for Wasm, given their manifest, and
//! precompiled, into `target/components`, from where the host embeds them.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::toolchain::{self, Toolchain};
use crate::{cache, process, root};

/// Builds all of them and returns the folder that they are in.
pub(crate) fn build() -> Result<PathBuf> {
    let toolchain = toolchain::find()?;
    eprintln!("xtask: {}", toolchain.describe());
    let out = root().join("target/components");
    collect(&toolchain, &root().join("plugins"), &out)?;
    precompile(&out)?;
    Ok(out)
}

/// Compiles a guest workspace, and returns where its components are.
pub(crate) fn compile(toolchain: &Toolchain, workspace: &Path) -> Result<PathBuf> {
    let target = cache::target().join(toolchain.folder());
    let mut cargo = process::cargo();
    cargo
        .current_dir(workspace)
        .args([
            "build",
            "--quiet",
            "--release",
            "--locked",
            "--target",
            toolchain::TARGET,
        ])
        .env("CARGO_TARGET_DIR", &target);
    toolchain.apply(&mut cargo);
    process::run(&mut cargo)?;
    Ok(target.join(toolchain::TARGET).join("release"))
}

/// Compiles a guest workspace, and writes each of its components with its
/// manifest to `out`. What `out` has beside them is removed.
pub(crate) fn collect(toolchain: &Toolchain, workspace: &Path, out: &Path) -> Result<()> {
    let release = compile(toolchain, workspace)?;
    std::fs::create_dir_all(out)?;
    let mut names = Vec::new();
    for entry in std::fs::read_dir(workspace)? {
        let folder = entry?.path();
        let manifest = folder.join("plugin.toml");
        if !manifest.exists() {
            continue;
        }
        let name = folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let built = release.join(format!("{}.wasm", name.replace('-', "_")));
        let mut component = std::fs::read(&built)
            .with_context(|| format!("reading the component that {name} was built to"))?;
        append_section(&mut component, "dsh:manifest", &manifest_json(&manifest)?);
        process::write_if_new(&out.join(format!("{name}.wasm")), &component)?;
        names.push(name);
    }
    for entry in std::fs::read_dir(out)? {
        let path = entry?.path();
        let stem = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if !names.contains(&stem) {
            std::fs::remove_file(&path)?;
        }
    }
    Ok(())
}

/// Makes machine code of each component in `out`, by the host's own engine. A
/// dev build of it gives the same code as a release build.
fn precompile(out: &Path) -> Result<()> {
    let mut cargo = process::cargo();
    // All of the workspace but the binary that embeds what is made here: with
    // fewer packages, dependencies would get other features and be built twice.
    cargo.args([
        "build",
        "--quiet",
        "--locked",
        "--workspace",
        "--exclude",
        "dsh",
        // It needs the agent, which nobody waits for here, and asks for no features.
        "--exclude",
        "dsh-soak",
        "--bins",
    ]);
    process::run(&mut cargo)?;
    let compiler = compiler();
    for entry in std::fs::read_dir(out)? {
        let component = entry?.path();
        if component
            .extension()
            .is_some_and(|extension| extension == "wasm")
        {
            let code = component.with_extension("cwasm");
            if process::up_to_date(&code, &[&component, &compiler]) {
                continue;
            }
            process::run(Command::new(&compiler).arg(&component).arg(&code))?;
        }
    }
    Ok(())
}

/// The program that makes machine code of a component, once [`build`] has run.
pub(crate) fn compiler() -> PathBuf {
    cache::target().join("debug/dsh-aot")
}

/// `plugin.toml` as JSON, with the schema that it names in its place.
fn manifest_json(path: &Path) -> Result<Vec<u8>> {
    let text = std::fs::read_to_string(path)?;
    let mut manifest: Value =
        toml::from_str(&text).with_context(|| format!("reading {}", path.display()))?;
    if let Some(schema) = manifest.pointer_mut("/config/schema") {
        let Some(name) = schema.as_str() else {
            bail!("{}: config.schema must name a file", path.display());
        };
        let file = path.with_file_name(name);
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("reading {}", file.display()))?;
        *schema =
            serde_json::from_str(&text).with_context(|| format!("reading {}", file.display()))?;
    }
    Ok(serde_json::to_vec(&manifest)?)
}

/// Appends a custom section to a Wasm binary.
pub(crate) fn append_section(binary: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut body = Vec::new();
    push_leb128(&mut body, name.len());
    body.extend_from_slice(name.as_bytes());
    body.extend_from_slice(content);
    binary.push(0);
    push_leb128(binary, body.len());
    binary.extend_from_slice(&body);
}

fn push_leb128(out: &mut Vec<u8>, mut value: usize) {
    loop {
        let byte = u8::try_from(value & 0x7f).expect("seven bits");
        value >>= 7;
        if value == 0 {
            out.push(byte);
            return;
        }
        out.push(byte | 0x80);
    }
}
