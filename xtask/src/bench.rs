//! Placeholder until the benchmarks are written below.
use anyhow::Result;
pub(crate) fn run(_: &[String]) -> Result<()> { Ok(()) }
