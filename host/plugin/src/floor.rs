//! What cannot be done without, for benchmarks to compare with: wasmtime's own
//! work with this crate's configuration, and nothing else of this crate's.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::aot;
use crate::code::{self, Trusted};
use crate::engine;

/// Makes an engine and loads files that `dsh-aot` wrote. It trusts them: it is
/// for files that the benchmark has just made.
///
/// # Errors
/// A file that cannot be read, or that is of another engine.
pub fn load(files: &[impl AsRef<Path>]) -> io::Result<()> {
    let engine = engine::wasmtime_engine().map_err(io::Error::other)?;
    for file in files {
        let packed = std::fs::read(file)?;
        let code = packed.get(aot::HEAD..).unwrap_or_default();
        let component = code::load(&engine, &Trusted::Bytes(code))
            .map_err(|error| io::Error::other(format!("{error:#}")))?;
        std::hint::black_box(component);
    }
    Ok(())
}

/// The engine as this crate configures it, or without the checks by which its
/// components are interrupted.
///
/// # Errors
/// The machine cannot run it.
pub fn engine(interrupted: bool) -> wasmtime::Result<wasmtime::Engine> {
    let mut config = engine::config();
    config.epoch_interruption(interrupted);
    wasmtime::Engine::new(&config)
}

/// Maps machine code that the benchmark has just made.
///
/// # Errors
/// A file that cannot be mapped, or that is of another engine.
pub fn map(
    engine: &wasmtime::Engine,
    file: &Path,
) -> wasmtime::Result<wasmtime::component::Component> {
    code::load(engine, &Trusted::File(&File::open(file)?))
}
