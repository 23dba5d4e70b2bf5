//! Where what is slow to make is kept between checkouts.

use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::root;

/// `$DSH_CI_CACHE`, else `~/.cache/dsh-ci`, with `name` below it; made if missing.
pub(crate) fn folder(name: &str) -> Result<PathBuf> {
    let base = match std::env::var_os("DSH_CI_CACHE").filter(|value| !value.is_empty()) {
        Some(named) => PathBuf::from(named),
        None => PathBuf::from(std::env::var_os("HOME").context(
            "neither DSH_CI_CACHE nor HOME is set; set one, so that there is a place for the cache",
        )?)
        .join(".cache/dsh-ci"),
    };
    let folder = base.join(name);
    std::fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
    Ok(folder)
}

/// The host workspace's target directory.
pub(crate) fn target() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root().join("target"), PathBuf::from)
}
