//! How far long work is, on stderr: one line that is written over on a terminal, and lines of their own where
//! `--progress` asks for them elsewhere. Nothing of it ever goes to stdout.

use std::cell::RefCell;
use std::future::Future;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use super::text::size;

/// Where it goes.
pub(super) struct Progress {
    how: How,
    /// Whether a line stands on the terminal that has no end yet.
    open: RefCell<bool>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    Silent,
    /// A line each.
    Lines,
    /// One line, written over.
    Terminal,
}

impl Progress {
    /// For this process's stderr; `asked` is `--progress`.
    pub(super) fn new(asked: bool) -> Self {
        let how = if std::io::stderr().is_terminal() {
            How::Terminal
        } else if asked {
            How::Lines
        } else {
            How::Silent
        };
        Self {
            how,
            open: RefCell::new(false),
        }
    }

    /// What is done now; `text` is made fit for a terminal by who calls.
    pub(super) fn say(&self, text: &str) {
        let mut stderr = std::io::stderr();
        // Nothing can be said about a stderr that is gone.
        let _ = match self.how {
            How::Silent => Ok(()),
            How::Lines => writeln!(stderr, "dsh: {text}"),
            How::Terminal => {
                self.open.replace(true);
                write!(stderr, "\r{text}\x1b[K").and_then(|()| stderr.flush())
            }
        };
    }

    /// Takes the line off the terminal, before anything else is said there.
    pub(super) fn clear(&self) {
        if self.open.replace(false) {
            let mut stderr = std::io::stderr();
            let _ = write!(stderr, "\r\x1b[K").and_then(|()| stderr.flush());
        }
    }

    /// Counts bytes of something.
    pub(super) fn meter<'a>(&'a self, what: &'a str, total: Option<u64>) -> Meter<'a> {
        Meter {
            progress: self,
            what,
            total,
            done: 0,
            said: 0,
            at: Instant::now(),
        }
    }

    /// Waits for `work`, and says after each second that it goes on.
    pub(super) async fn during<T>(&self, what: &str, work: impl Future<Output = T>) -> T {
        self.say(&format!("{what} …"));
        if self.how == How::Silent {
            return work.await;
        }
        let started = Instant::now();
        let mut second = tokio::time::interval(Duration::from_secs(1));
        second.tick().await;
        tokio::pin!(work);
        loop {
            tokio::select! {
                result = &mut work => {
                    self.clear();
                    return result;
                }
                _ = second.tick() => self.say(&format!("{what} … {} s", started.elapsed().as_secs())),
            }
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Bytes that arrive.
pub(super) struct Meter<'a> {
    progress: &'a Progress,
    what: &'a str,
    total: Option<u64>,
    done: u64,
    said: u64,
    at: Instant,
}

impl Meter<'_> {
    /// So many more.
    pub(super) fn add(&mut self, bytes: u64) {
        self.done += bytes;
        let due = match self.progress.how {
            How::Silent => false,
            How::Lines => {
                self.done - self.said
                    >= self
                        .total
                        .map_or(1 << 20, |total| (total / 10).max(1 << 20))
            }
            How::Terminal => self.said == 0 || self.at.elapsed() >= Duration::from_millis(100),
        };
        if due {
            (self.said, self.at) = (self.done, Instant::now());
            let total = self.total.map(|total| format!(" of {}", size(total)));
            self.progress.say(&format!(
                "{}: {}{}",
                self.what,
                size(self.done),
                total.unwrap_or_default()
            ));
        }
    }
}
