//! Embeds the official components, each as Wasm and as the machine code that
//! `cargo xtask plugins` made of it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    // Asked when it runs: checkouts that share a target directory share this program.
    let manifest = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo says where the crate is");
    let root = Path::new(&manifest).join("../..");
    let folder = root.join("target/components");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut components: Vec<PathBuf> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "wasm")
        })
        .collect();
    components.sort();
    if components.is_empty() {
        println!(
            "cargo::error=there are no components in {}; run `cargo xtask plugins` first",
            folder.display()
        );
        return;
    }
    let mut table = String::from("&[\n");
    for wasm in &components {
        let code = wasm.with_extension("cwasm");
        println!("cargo::rerun-if-changed={}", wasm.display());
        println!("cargo::rerun-if-changed={}", code.display());
        let name = wasm.file_stem().unwrap_or_default().to_string_lossy();
        let code = if code.exists() {
            format!("include_bytes!({code:?})")
        } else {
            "&[]".to_owned()
        };
        let _ = writeln!(
            table,
            "    Embedded {{ name: {name:?}, wasm: include_bytes!({wasm:?}), code: {code} }},"
        );
    }
    table.push(']');
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    std::fs::write(out.join("components.rs"), table).expect("the table of components is written");
}
