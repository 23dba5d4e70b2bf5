//! A way to compile Rust for `wasm32-unknown-unknown`, found in an order in
//! which each step is bounded and the first that works is taken:
//!
//! 1. the target is installed;
//! 2. rustup fetches it within a minute;
//! 3. Debian's `rustc-web` and `rust-web-src`, a compiler and its sources that
//!    always match: the standard library is built from them once and kept in a
//!    sysroot of its own, named by compiler and source, after which every build
//!    is ordinary cargo;
//! 4. otherwise it says what to install.
//!
//! `DSH_WASM_TOOLCHAIN=installed|rustup|debian` takes one way and no other.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::{cache, process};

pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// How guests are compiled here.
pub(crate) struct Toolchain {
    way: &'static str,
    /// A compiler other than cargo's own.
    rustc: Option<PathBuf>,
    /// Where `wasm-component-ld` and `rust-lld` are, when that compiler has none.
    tools: Option<PathBuf>,
}

impl Toolchain {
    pub(crate) fn describe(&self) -> String {
        format!("Rust for Wasm: {}", self.way)
    }

    /// The target directory's part that this compiler's code goes to.
    pub(crate) fn folder(&self) -> &'static str {
        if self.rustc.is_some() {
            "wasm-debian"
        } else {
            "wasm"
        }
    }

    /// Makes `command`, a cargo, compile guests with this.
    pub(crate) fn apply(&self, command: &mut Command) {
        if let Some(rustc) = &self.rustc {
            command.env("RUSTC", rustc);
        }
        if let Some(tools) = &self.tools {
            let mut path = vec![tools.clone()];
            path.extend(std::env::split_paths(
                &std::env::var_os("PATH").unwrap_or_default(),
            ));
            if let Ok(path) = std::env::join_paths(path) {
                command.env("PATH", path);
            }
        }
    }
}

/// Takes the first way that works.
pub(crate) fn find() -> Result<Toolchain> {
    let only = std::env::var("DSH_WASM_TOOLCHAIN").ok();
    let may = |way: &str| only.as_deref().is_none_or(|only| only == way);
    if may("installed") && installed() {
        return Ok(Toolchain {
            way: "the installed target",
            rustc: None,
            tools: None,
        });
    }
    if may("rustup") && rustup() && installed() {
        return Ok(Toolchain {
            way: "the target that rustup added",
            rustc: None,
            tools: None,
        });
    }
    if may("debian") {
        match debian() {
            Ok(found) => return Ok(found),
            Err(error) => eprintln!("xtask: Debian's compiler is no way here: {error:#}"),
        }
    }
    bail!(
        "no way to compile Rust for {TARGET}; install one: `rustup target add {TARGET}`, \
         or on Debian `apt-get install rustc-web rust-web-src`"
    )
}

fn installed() -> bool {
    let Ok(folder) = process::output(Command::new("rustc").args([
        "--print",
        "target-libdir",
        "--target",
        TARGET,
    ])) else {
        return false;
    };
    std::fs::read_dir(folder.trim()).is_ok_and(|mut entries| entries.next().is_some())
}

fn rustup() -> bool {
    process::succeeds_within(
        Command::new("rustup").args(["target", "add", TARGET]),
        Duration::from_secs(60),
    )
}

const DEBIAN_RUSTC: &str = "/usr/bin/rustc";

/// Whether this machine can have Debian's compiler: apt, and the right to use it.
pub(crate) fn has_apt() -> bool {
    process::exists("apt-get")
        && process::output(Command::new("id").arg("-u")).is_ok_and(|id| id.trim() == "0")
}

/// Brings Debian's compiler and its sources, unless they are there.
pub(crate) fn install_debian() -> Result<()> {
    if source().is_some() {
        return Ok(());
    }
    let apt = |arguments: &[&str]| {
        process::succeeds_within(
            Command::new("apt-get")
                .args(arguments)
                .env("DEBIAN_FRONTEND", "noninteractive"),
            Duration::from_secs(300),
        )
    };
    let install = [
        "install",
        "-y",
        "--no-install-recommends",
        "rustc-web",
        "rust-web-src",
    ];
    let brought = apt(&install) || (apt(&["update"]) && apt(&install));
    if !brought {
        bail!("`apt-get install rustc-web rust-web-src` did not succeed");
    }
    Ok(())
}

/// The way by Debian's packages.
pub(crate) fn debian() -> Result<Toolchain> {
    install_debian()?;
    let source = source().context("rust-web-src is installed, but its library is not found")?;
    let version = process::output(Command::new(DEBIAN_RUSTC).arg("-vV"))?;
    let sysroot = sysroot(&version, &source)?;
    Ok(Toolchain {
        way: "Debian's compiler, with a standard library built from its sources",
        rustc: Some(wrapper(&sysroot)?),
        tools: Some(rustup_tools()?),
    })
}

fn source() -> Option<PathBuf> {
    let folder = process::output(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"])).ok()?;
    let library = Path::new(folder.trim()).join("lib/rustlib/src/rust/library");
    std::fs::canonicalize(library)
        .ok()
        .filter(|path| path.is_dir())
}

/// The folder of `wasm-component-ld` in the toolchain that runs this.
pub(crate) fn rustup_tools() -> Result<PathBuf> {
    let libdir = process::output(Command::new("rustc").args(["--print", "target-libdir"]))?;
    let tools = Path::new(libdir.trim()).with_file_name("bin");
    if !tools.join("wasm-component-ld").exists() {
        bail!(
            "{} has no wasm-component-ld; install a toolchain by rustup",
            tools.display()
        );
    }
    Ok(tools)
}

fn wrapper(sysroot: &Path) -> Result<PathBuf> {
    let path = sysroot.join("rustc");
    let script = format!(
        "#!/bin/sh\nexec {DEBIAN_RUSTC} --sysroot '{}' \"$@\"\n",
        sysroot.display()
    );
    process::write_if_new(&path, script.as_bytes())?;
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode)?;
    Ok(path)
}

/// The sysroot with a standard library for the target, built if it is missing.
fn sysroot(version: &str, source: &Path) -> Result<PathBuf> {
    let release = field(version, "release")?;
    let commit = field(version, "commit-hash").unwrap_or("none");
    let name = format!("sysroot-{release}-{}", &commit[..commit.len().min(9)]);
    let finished = cache::folder("std")?.join(&name);
    if finished.join("complete").exists() {
        return Ok(finished);
    }
    // Built beside and renamed, so that an interrupted build leaves nothing half.
    let work = cache::folder("std")?.join(format!("{name}.{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&work);
    let host = field(version, "host")?;
    let debian = process::output(Command::new(DEBIAN_RUSTC).args(["--print", "sysroot"]))?;
    let rustlib = work.join("lib/rustlib");
    std::fs::create_dir_all(rustlib.join("src/rust"))?;
    std::os::unix::fs::symlink(
        Path::new(debian.trim()).join("lib/rustlib").join(host),
        rustlib.join(host),
    )?;
    std::os::unix::fs::symlink(source, rustlib.join("src/rust/library"))?;

    let empty = work.join("empty");
    std::fs::create_dir_all(empty.join("src"))?;
    std::fs::write(
        empty.join("Cargo.toml"),
        "[package]\nname = \"empty\"\nversion = \"0.0.0\"\nedition = \"2021\"\n[workspace]\n",
    )?;
    std::fs::write(empty.join("src/lib.rs"), "#![no_std]\n")?;
    process::run(
        Command::new("cargo")
            .args(["build", "--quiet", "--release", "--target", TARGET])
            .args(["-Z", "build-std=std,panic_abort"])
            .current_dir(&empty)
            .env("RUSTC", wrapper(&work)?)
            .env("RUSTC_BOOTSTRAP", "1")
            // Without bitcode no guest could be linked with `lto`.
            .env("RUSTFLAGS", "-C embed-bitcode=yes")
            .env("CARGO_TARGET_DIR", work.join("target")),
    )
    .context("building the standard library for Wasm")?;

    let built = work.join("target").join(TARGET).join("release/deps");
    let library = rustlib.join(TARGET).join("lib");
    std::fs::create_dir_all(&library)?;
    for entry in std::fs::read_dir(&built)? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if name.starts_with("lib") && !name.starts_with("libempty") && !name.ends_with(".d") {
            std::fs::copy(&path, library.join(&name))?;
        }
    }
    std::fs::remove_dir_all(work.join("target"))?;
    std::fs::remove_dir_all(&empty)?;
    std::fs::write(work.join("complete"), b"")?;
    if std::fs::rename(&work, &finished).is_err() && !finished.join("complete").exists() {
        bail!("{} could not be put in place", finished.display());
    }
    wrapper(&finished)?;
    Ok(finished)
}

fn field<'a>(version: &'a str, name: &str) -> Result<&'a str> {
    version
        .lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
        .with_context(|| format!("`rustc -vV` does not tell its {name}"))
}
