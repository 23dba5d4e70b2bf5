//! Lines by regular expression, as `rg` finds them by default: ignore files are
//! respected, hidden files are left out unless `files` names them, a file with
//! a NUL in it is left at that point, a file that is named itself is searched
//! whatever it is. Findings are sorted by path, where the program's order
//! depends on its threads.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use grep_matcher::LineTerminator;
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, Sink, SinkMatch};
use ignore::overrides::OverrideBuilder;
use ignore::{WalkBuilder, WalkState};
use rustix::fs::{FileType, Mode, OFlags};

use crate::error::Error;
use crate::files::Files;
use crate::resolve::linked_secrets;
use crate::search::{Bounds, Cancel, Start, Watch, Watched, admits, threads};
use dsh_plugin::port::{Found, Matches};

/// Bytes of a line that is shown.
const MAX_LINE: usize = 2000;

/// Bytes of a line that is held while it is searched; a file with a longer one
/// is left there.
const MAX_HELD: usize = 64 << 20;

/// What the program's JSON spends on a finding beside path and line, roughly.
const RECORD: usize = 150;

impl Files {
    pub(crate) fn grep(
        &self,
        pattern: &str,
        path: Option<&str>,
        files: Option<&str>,
        limit: u32,
        bounds: Bounds,
        cancel: Cancel,
    ) -> Result<Matches, Error> {
        let matcher = matcher(pattern)?;
        let start = Start::new(self, path)?;
        let mut walk = WalkBuilder::new(&start.at);
        walk.threads(threads())
            .current_dir(&self.fence.root)
            .add_custom_ignore_filename(".rgignore");
        if let Some(files) = files {
            let invalid = |error: ignore::Error| Error::InvalidPattern {
                pattern: files.to_owned(),
                reason: error.to_string(),
            };
            let mut globs = OverrideBuilder::new(&start.at);
            globs.add(files).map_err(invalid)?;
            walk.overrides(globs.build().map_err(invalid)?);
        }

        let watch = Watch::new(bounds, cancel);
        let secrets = linked_secrets(&self.fence.home);
        let found: Mutex<Vec<(PathBuf, Vec<Line>)>> = Mutex::default();
        walk.build_parallel().run(|| {
            let mut searcher = searcher();
            let (matcher, watch, secrets, found) = (&matcher, &watch, &secrets, &found);
            Box::new(move |entry| {
                if watch.check().is_err() {
                    return WalkState::Quit;
                }
                let Ok(entry) = entry else {
                    return WalkState::Continue;
                };
                if entry.depth() > 0 && !admits(self, entry.path()) {
                    return WalkState::Skip;
                }
                let Some(file) = open(entry.path(), secrets) else {
                    return WalkState::Continue;
                };
                searcher.set_binary_detection(match entry.depth() {
                    0 => BinaryDetection::convert(0),
                    _ => BinaryDetection::quit(0),
                });
                let mut lines = Lines {
                    path: entry.path(),
                    watch,
                    lines: Vec::new(),
                };
                // A file that fails half way keeps what was found in it.
                let _ = searcher.search_reader(matcher, Watched(file, watch), &mut lines);
                let lines = lines.lines;
                if !lines.is_empty() {
                    found
                        .lock()
                        .unwrap_or_else(PoisonError::into_inner)
                        .push((entry.into_path(), lines));
                }
                WalkState::Continue
            })
        });
        watch.check()?;

        let mut found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let total = found.iter().map(|(_, lines)| lines.len()).sum::<usize>();
        let matches = found
            .into_iter()
            .flat_map(|(path, lines)| {
                let path = start.show(&path);
                lines.into_iter().map(move |line| Found {
                    path: path.clone(),
                    line: line.number,
                    text: line.text,
                })
            })
            .take(limit as usize)
            .collect();
        Ok(Matches {
            matches,
            total: u32::try_from(total).unwrap_or(u32::MAX),
        })
    }
}

fn matcher(pattern: &str) -> Result<RegexMatcher, Error> {
    RegexMatcherBuilder::new()
        .multi_line(true)
        .line_terminator(Some(b'\n'))
        .ban_byte(Some(0))
        .build(pattern)
        .map_err(|error| Error::InvalidPattern {
            pattern: pattern.to_owned(),
            reason: error.to_string(),
        })
}

fn searcher() -> Searcher {
    SearcherBuilder::new()
        .line_terminator(LineTerminator::byte(b'\n'))
        .line_number(true)
        .heap_limit(Some(MAX_HELD))
        .build()
}

/// Opens what the walk found if it still is a regular file and no secret's
/// other name.
fn open(path: &Path, secrets: &[(u64, u64)]) -> Option<File> {
    let flags =
        OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    // A look first: opening a device can have an effect.
    let stat = rustix::fs::lstat(path).ok()?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return None;
    }
    let fd = rustix::fs::open(path, flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    let regular = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
    (regular && !secrets.contains(&(stat.st_dev, stat.st_ino))).then(|| File::from(fd))
}

struct Line {
    number: u32,
    text: String,
}

struct Lines<'a> {
    path: &'a Path,
    watch: &'a Watch,
    lines: Vec<Line>,
}

impl Sink for Lines<'_> {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> io::Result<bool> {
        let bytes = found.bytes();
        self.watch
            .charge(self.path.as_os_str().len() + bytes.len() + RECORD);
        let number = found
            .line_number()
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(u32::MAX);
        self.lines.push(Line {
            number,
            text: shown(bytes),
        });
        Ok(self.watch.check().is_ok())
    }
}

/// A line without its end, as UTF-8 of at most [`MAX_LINE`] bytes.
fn shown(line: &[u8]) -> String {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    // A little more than is kept, so that the cut falls on a whole character.
    let head = &line[..line.len().min(MAX_LINE + 4)];
    let mut text = String::from_utf8_lossy(head).into_owned();
    if text.len() > MAX_LINE {
        let end = (0..=MAX_LINE)
            .rev()
            .find(|at| text.is_char_boundary(*at))
            .unwrap_or(0);
        text.truncate(end);
    }
    text
}

#[cfg(test)]
#[path = "grep_tests.rs"]
mod tests;
