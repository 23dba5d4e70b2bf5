//! What of the cache goes, and when.
//!
//! Only when a component was compiled, which is when the cache grows, or when a
//! person changes what is installed. An entry goes
//!
//! - after a week without use if it is of another engine: another version of
//!   dsh, or another processor;
//! - after a month without use in any case;
//! - the longest unused first, while all of them are more than a gibibyte.
//!
//! What a process that is gone left half written goes as well. Other files of the
//! folder are not the cache's, and stay.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::{Cache, KEY_FILE};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const OTHER_ENGINE: Duration = DAY.saturating_mul(7);
const UNUSED: Duration = DAY.saturating_mul(30);
const ALL: u64 = 1 << 30;

/// A file of the cache's, by its name.
#[derive(Debug, PartialEq, Eq)]
enum Kind {
    /// Machine code, of this engine or of another.
    Code { ours: bool },
    /// What a component offers.
    Offer,
    /// Being written by this process.
    Partial { process: u32 },
}

/// An entry as the rules see it.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Kept {
    path: PathBuf,
    bytes: u64,
    unused: Duration,
    other_engine: bool,
}

impl Cache {
    /// Removes what nobody used for long, and what others left half written. A
    /// file that cannot be removed stays.
    pub(crate) fn sweep(&self, fingerprint: &str) {
        let now = SystemTime::now();
        let Ok(files) = fs::read_dir(&self.dir) else {
            return;
        };
        let mut kept = Vec::new();
        for file in files.flatten() {
            let name = file.file_name();
            let Some(kind) = name.to_str().and_then(|name| kind(name, fingerprint)) else {
                continue;
            };
            let Ok(meta) = file.metadata() else {
                continue;
            };
            let unused = meta
                .modified()
                .ok()
                .and_then(|then| now.duration_since(then).ok())
                .unwrap_or_default();
            match kind {
                Kind::Partial { process } => {
                    // Another may have taken the number since.
                    if unused > DAY || !lives(process) {
                        let _ = fs::remove_file(file.path());
                    }
                }
                Kind::Code { .. } | Kind::Offer => kept.push(Kept {
                    path: file.path(),
                    bytes: meta.len(),
                    unused,
                    other_engine: kind == Kind::Code { ours: false },
                }),
            }
        }
        for path in gone(kept) {
            let _ = fs::remove_file(path);
        }
    }
}

/// Which of these go.
fn gone(mut kept: Vec<Kept>) -> Vec<PathBuf> {
    kept.sort_by_key(|entry| entry.unused);
    let mut all = 0_u64;
    kept.into_iter()
        .filter(|entry| {
            all = all.saturating_add(entry.bytes);
            all > ALL
                || entry.unused > UNUSED
                || (entry.other_engine && entry.unused > OTHER_ENGINE)
        })
        .map(|entry| entry.path)
        .collect()
}

fn kind(name: &str, fingerprint: &str) -> Option<Kind> {
    if let Some(partial) = name.strip_prefix('.') {
        let (rest, _) = partial.rsplit_once('.')?;
        let (of, process) = rest.rsplit_once('.')?;
        let process = process.parse().ok()?;
        let ours = of == KEY_FILE || kind(of, fingerprint).is_some();
        return ours.then_some(Kind::Partial { process });
    }
    let (stem, extension) = name.rsplit_once('.')?;
    match extension {
        "offer" => hex(stem, 64).then_some(Kind::Offer),
        "cwasm" => {
            let (digest, engine) = stem.split_once('-')?;
            (hex(digest, 64) && hex(engine, 32)).then(|| Kind::Code {
                ours: fingerprint.starts_with(engine),
            })
        }
        _ => None,
    }
}

fn hex(text: &str, length: usize) -> bool {
    text.len() == length
        && text
            .bytes()
            .all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
}

/// Whether a process of this number runs.
fn lives(process: u32) -> bool {
    // Where it cannot be told, a day decides.
    !Path::new("/proc/self").exists() || Path::new("/proc").join(process.to_string()).exists()
}

#[cfg(test)]
#[path = "sweep_tests.rs"]
mod tests;
