//! `guest-bindings WIT_DIR WORLD OUT_DIR`: C bindings of one world of the contract.
//!
//! The command-line generator is minutes of compiling for a page of work, and
//! committed bindings would go stale without a sound; this makes them anew at
//! each build of the C guest.

use std::path::Path;

use anyhow::{Context, Result, bail};
use wit_bindgen_core::{Files, wit_parser::Resolve};

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [wit, world, out] = arguments.as_slice() else {
        bail!("usage: guest-bindings WIT_DIR WORLD OUT_DIR");
    };
    let mut resolve = Resolve::default();
    let (package, _) = resolve
        .push_dir(Path::new(wit))
        .with_context(|| format!("reading the contract in {wit}"))?;
    let world = resolve
        .select_world(&[package], Some(world))
        .with_context(|| format!("looking for the world {world} in {wit}"))?;
    let mut files = Files::default();
    wit_bindgen_c::Opts::default()
        .build()
        .generate(&mut resolve, world, &mut files)
        .context("generating C bindings")?;
    for (name, content) in files.iter() {
        let path = Path::new(out).join(name);
        std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
