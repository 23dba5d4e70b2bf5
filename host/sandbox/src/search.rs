//! What `glob` and `grep` share: where a search starts, what ends it early, and
//! which entries it never looks at.
//!
//! Both are ripgrep as a library, bounded as upstream bounds the program: 30 s
//! and 20 MB of findings (spec/loop.md §15.2).

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::files::Files;
use crate::resolve::pin;

/// Names of version control's own directories, which nobody means to search.
const VCS: [&str; 6] = [".git", ".svn", ".hg", ".bzr", ".jj", ".sl"];

/// What a search may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bounds {
    pub(crate) time: Duration,
    /// Of findings, before they are cut to the limit.
    pub(crate) bytes: usize,
}

impl Bounds {
    pub(crate) const SHIPPED: Bounds = Bounds {
        time: Duration::from_secs(30),
        bytes: 20_000_000,
    };
}

/// Set by whoever gives up a search.
pub(crate) type Cancel = Arc<AtomicBool>;

/// Where a search starts.
pub(crate) struct Start {
    /// Canonical.
    pub(crate) at: PathBuf,
    /// Put before what is found below, as the caller named it.
    shown: PathBuf,
}

impl Start {
    pub(crate) fn new(files: &Files, path: Option<&str>) -> Result<Self, Error> {
        let asked = files.absolute(path.unwrap_or("."))?;
        let at = pin(&files.fence, &asked)?.path;
        Ok(Start {
            at,
            shown: path.map(PathBuf::from).unwrap_or_default(),
        })
    }

    /// A path that was found, as the caller would name it: relative to the
    /// working directory unless the search was told an absolute path.
    pub(crate) fn show(&self, found: &Path) -> String {
        let inside = found.strip_prefix(&self.at).unwrap_or(found);
        let shown = if inside.as_os_str().is_empty() {
            self.shown.clone()
        } else {
            self.shown.join(inside)
        };
        shown.to_string_lossy().into_owned()
    }
}

/// May an entry be looked at, and what is below it? Links are not followed on
/// the way, so its path is canonical.
pub(crate) fn admits(files: &Files, path: &Path) -> bool {
    let vcs = path
        .file_name()
        .is_some_and(|name| VCS.iter().any(|vcs| name == *vcs));
    !vcs && files.fence.may_read(path).is_ok()
}

/// The early end of a search, shared by its threads.
pub(crate) struct Watch {
    cancel: Cancel,
    until: Instant,
    bounds: Bounds,
    bytes: AtomicUsize,
}

impl Watch {
    pub(crate) fn new(bounds: Bounds, cancel: Cancel) -> Self {
        Watch {
            cancel,
            until: Instant::now() + bounds.time,
            bounds,
            bytes: AtomicUsize::new(0),
        }
    }

    /// Charges findings.
    pub(crate) fn charge(&self, bytes: usize) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Why the search is over, if it is.
    pub(crate) fn check(&self) -> Result<(), Error> {
        if self.cancel.load(Ordering::Relaxed) {
            return Err(Error::SearchAborted);
        }
        if self.bytes.load(Ordering::Relaxed) > self.bounds.bytes {
            return Err(Error::SearchOverflow(self.bounds.bytes));
        }
        if Instant::now() >= self.until {
            let seconds = self.bounds.time.as_secs();
            let what = format!("it took longer than {seconds} s; narrow the pattern or the path");
            return Err(Error::SearchFailed(what));
        }
        Ok(())
    }
}

/// A file that ends when the search is over, so that a large one cannot hold it.
pub(crate) struct Watched<'a, R>(pub(crate) R, pub(crate) &'a Watch);

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.1.check().is_err() {
            Err(io::Error::other("the search is over"))
        } else {
            self.0.read(buffer)
        }
    }
}

pub(crate) fn threads() -> usize {
    std::thread::available_parallelism()
        .map_or(1, usize::from)
        .min(4)
}
