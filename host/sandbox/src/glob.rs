//! Paths by pattern, as `rg --files --glob P --sort=modified --no-ignore --hidden`
//! without version control's directories (spec/loop.md §15.2).
//!
//! A pattern is matched below the search's start and, as the program would do
//! it, below the working directory; a path that either admits is found.

use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

use ignore::overrides::{Override, OverrideBuilder};
use ignore::{WalkBuilder, WalkState};

use crate::error::Error;
use crate::files::Files;
use crate::search::{Bounds, Cancel, Start, Watch, admits, threads};
use dsh_plugin::port::Paths;

impl Files {
    pub(crate) fn glob(
        &self,
        pattern: &str,
        path: Option<&str>,
        limit: u32,
        bounds: Bounds,
        cancel: Cancel,
    ) -> Result<Paths, Error> {
        let start = Start::new(self, path)?;
        let globs = Globs::new(pattern, &[&start.at, &self.fence.root])?;
        let watch = Watch::new(bounds, cancel);
        let found: Mutex<Vec<(SystemTime, PathBuf)>> = Mutex::default();

        let mut walk = WalkBuilder::new(&start.at);
        walk.standard_filters(false).threads(threads());
        walk.build_parallel().run(|| {
            Box::new(|entry| {
                if watch.check().is_err() {
                    return WalkState::Quit;
                }
                // Directories that cannot be read are left out, as the program does.
                let Ok(entry) = entry else {
                    return WalkState::Continue;
                };
                if entry.depth() > 0 && !admits(self, entry.path()) {
                    return WalkState::Skip;
                }
                if entry.file_type().is_some_and(|kind| kind.is_file()) && globs.admit(entry.path())
                {
                    let changed = entry.metadata().ok().and_then(|meta| meta.modified().ok());
                    watch.charge(entry.path().as_os_str().len() + 1);
                    let found = &mut found.lock().unwrap_or_else(PoisonError::into_inner);
                    found.push((changed.unwrap_or(SystemTime::UNIX_EPOCH), entry.into_path()));
                }
                WalkState::Continue
            })
        });
        watch.check()?;

        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable();
        let total = u32::try_from(found.len()).unwrap_or(u32::MAX);
        let paths = found
            .iter()
            .take(limit as usize)
            .map(|(_, path)| start.show(path))
            .collect();
        Ok(Paths { paths, total })
    }
}

/// One pattern, seen from several directories.
struct Globs {
    seen: Vec<Override>,
    /// `!pattern` names what is left out.
    negative: bool,
}

impl Globs {
    fn new(pattern: &str, from: &[&PathBuf]) -> Result<Self, Error> {
        let invalid = |error: ignore::Error| Error::InvalidPattern {
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        };
        let mut seen = Vec::new();
        for dir in from {
            // Models like to write absolute patterns; a leading slash means the
            // search's start otherwise.
            let prefix = format!("{}/", dir.display());
            let local = pattern
                .strip_prefix(&prefix)
                .map_or_else(|| pattern.to_owned(), |rest| format!("/{rest}"));
            let mut builder = OverrideBuilder::new(dir);
            builder.add(&local).map_err(invalid)?;
            seen.push(builder.build().map_err(invalid)?);
        }
        Ok(Globs {
            seen,
            negative: pattern.starts_with('!'),
        })
    }

    fn admit(&self, path: &std::path::Path) -> bool {
        let admits = |globs: &Override| !globs.matched(path, false).is_ignore();
        if self.negative {
            self.seen.iter().all(admits)
        } else {
            self.seen.iter().any(admits)
        }
    }
}

#[cfg(test)]
#[path = "glob_tests.rs"]
mod tests;
