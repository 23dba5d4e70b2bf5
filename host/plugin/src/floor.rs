//! What start-up cannot do without, for benchmarks to compare with: wasmtime's
//! own work, and nothing of this crate's.

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
