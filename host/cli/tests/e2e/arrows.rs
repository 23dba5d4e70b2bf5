//! The house's rules that a compiler does not know: which crate may know which,
//! who may name wasmtime and reqwest, and who may print.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::support::root;

/// Each host crate, and all that it may depend on of ours. Another arrow needs
/// a reason, and a line here.
const ARROWS: &[(&str, &[&str])] = &[
    ("dsh-check", &[]),
    ("dsh-session", &[]),
    ("dsh-http", &["dsh-check"]),
    ("dsh-picture", &[]),
    ("dsh-profile", &["dsh-check"]),
    ("dsh-store", &["dsh-check", "dsh-session"]),
    ("dsh-plugin", &["dsh-check", "dsh-session", "dsh-http"]),
    ("dsh-sandbox", &["dsh-check", "dsh-session", "dsh-plugin"]),
    (
        "dsh-model",
        &["dsh-check", "dsh-session", "dsh-http", "dsh-plugin"],
    ),
    (
        "dsh-agent",
        &[
            "dsh-check",
            "dsh-session",
            "dsh-store",
            "dsh-http",
            "dsh-plugin",
            "dsh-sandbox",
            "dsh-model",
        ],
    ),
    (
        "dsh",
        &[
            "dsh-check",
            "dsh-session",
            "dsh-store",
            "dsh-http",
            "dsh-plugin",
            "dsh-sandbox",
            "dsh-model",
            "dsh-picture",
            "dsh-agent",
            "dsh-profile",
        ],
    ),
];

/// Crates that one crate alone may name, by the beginning of their names.
const ALONE: &[(&str, &str)] = &[
    ("wasmtime", "dsh-plugin"),
    ("reqwest", "dsh-http"),
    ("hyper", "dsh-http"),
    ("rustls", "dsh-http"),
    ("zstd", "dsh-store"),
    ("image", "dsh-picture"),
    ("landlock", "dsh-sandbox"),
    ("anyhow", "dsh"),
];

/// Files that speak for a process of their own.
const HELPERS: &[&str] = &["host/sandbox/src/helper.rs"];

struct Crate {
    name: String,
    folder: PathBuf,
    /// Names of what it is built with, without what only its tests need.
    dependencies: Vec<String>,
}

fn crates() -> Vec<Crate> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--no-deps",
            "--offline",
            "--locked",
        ])
        .current_dir(root())
        .output()
        .expect("cargo starts");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap().iter();
    let all = packages.map(|package| {
        let manifest = Path::new(package["manifest_path"].as_str().unwrap());
        let dependencies = package["dependencies"].as_array().unwrap().iter();
        Crate {
            name: package["name"].as_str().unwrap().to_owned(),
            folder: manifest.parent().unwrap().to_owned(),
            dependencies: dependencies
                .filter(|dependency| dependency["kind"] != "dev")
                .map(|dependency| dependency["name"].as_str().unwrap().to_owned())
                .collect(),
        }
    });
    let host = root().join("host");
    all.filter(|one| one.folder.starts_with(&host)).collect()
}

#[test]
fn dependencies_run_one_way() {
    let crates = crates();
    let mut names: Vec<&str> = crates.iter().map(|one| one.name.as_str()).collect();
    let mut known: Vec<&str> = ARROWS.iter().map(|(name, _)| *name).collect();
    names.sort_unstable();
    known.sort_unstable();
    assert_eq!(names, known, "the host's crates are those of the plan");
    for one in &crates {
        let (_, may) = ARROWS.iter().find(|(name, _)| *name == one.name).unwrap();
        for dependency in one.dependencies.iter().map(String::as_str) {
            assert!(
                !known.contains(&dependency) || may.contains(&dependency),
                "{} depends on {dependency}; the plan has no such arrow",
                one.name
            );
        }
    }
}

#[test]
fn what_one_crate_wraps_no_other_names() {
    for one in crates() {
        for (start, owner) in ALONE {
            let found: Vec<_> = one
                .dependencies
                .iter()
                .filter(|dependency| dependency.starts_with(start))
                .collect();
            assert!(
                found.is_empty() || one.name == *owner,
                "{} depends on {found:?}; {owner} wraps it",
                one.name
            );
        }
    }
}

#[test]
fn the_command_alone_prints() {
    for one in crates().into_iter().filter(|one| one.name != "dsh") {
        for (file, text) in sources(&one.folder.join("src")) {
            let relative = file.strip_prefix(root()).unwrap().to_owned();
            if HELPERS.iter().any(|helper| relative == Path::new(helper)) {
                continue;
            }
            for (line, number) in text.lines().zip(1..) {
                let prints = ["println!", "print!(", "dbg!("]
                    .iter()
                    .any(|word| line.contains(word));
                let comment = line.trim_start().starts_with("//");
                assert!(
                    !prints || comment,
                    "{}:{number} prints: {line}",
                    relative.display()
                );
            }
        }
    }
}

/// The one module that may hold unsafe code: it loads machine code.
const UNSAFE: &str = "host/plugin/src/code.rs";

#[test]
fn unsafe_code_is_in_the_one_module_that_loads_machine_code() {
    let mut found = Vec::new();
    for folder in ["host", "xtask"] {
        for (file, text) in all_sources(&root().join(folder)) {
            let relative = file.strip_prefix(root()).unwrap();
            // The test components run inside of a component's own walls.
            if relative.starts_with("host/plugin/tests/guests") || file.ends_with("arrows.rs") {
                continue;
            }
            let allows = text.contains("allow(unsafe_code)");
            let unsafe_code = text
                .lines()
                .map(str::trim_start)
                .filter(|line| !line.starts_with("//"))
                .any(|line| line.contains("unsafe {") || line.contains("unsafe fn"));
            if allows || unsafe_code {
                found.push(relative.to_owned());
            }
        }
    }
    assert_eq!(found, [Path::new(UNSAFE)]);
    for one in crates() {
        let library = one.folder.join("src/lib.rs");
        let front = if library.exists() {
            library
        } else {
            one.folder.join("src/main.rs")
        };
        let text = std::fs::read_to_string(front).unwrap();
        assert!(
            text.contains("#![forbid(unsafe_code)]") || one.name == "dsh-plugin",
            "{} must forbid unsafe code",
            one.name
        );
    }
}

/// Every Rust file below a folder, tests too.
fn all_sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                found.push((path, text));
            }
        }
    }
    found
}

/// The sources of a library, without its tests and its side programs.
fn sources(folder: &Path) -> Vec<(PathBuf, String)> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() && !["bin", "tests", "conformance"].contains(&name.as_str()) {
                open.push(path);
            } else if name.ends_with(".rs") && !is_test(&name) {
                let text = std::fs::read_to_string(&path).unwrap();
                let end = text.find("#[cfg(test)]\nmod ").unwrap_or(text.len());
                found.push((path, text[..end].to_owned()));
            }
        }
    }
    found
}

fn is_test(name: &str) -> bool {
    ["tests.rs", "testing.rs"]
        .iter()
        .any(|end| name.ends_with(end))
}
