//! What a row says through `log`, as far as a person hears of it: warnings of the
//! profile's own rows, each once a run, as a line on stderr.
//!
//! A row of the bundles, or one that a person wrote, warns of something that it
//! left out and that a person can mend. What an installed plugin would say there
//! is a stranger's text in a line of `dsh`'s, so it is not shown; and what is less
//! than a warning is for who works on a component. An error is not repeated here:
//! the host says of a call that failed what the component said last.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};

use dsh_plugin::port::{Level, Log};
use dsh_sandbox::Refusal;

use crate::boot::Mount;
use crate::report;

/// Lines of a run. Who has more to say says the same thing of many files.
const MAX: usize = 100;

/// The lines of a run's rows.
pub(crate) struct RowLines {
    /// Rows that no plugin brought.
    own: HashSet<String>,
    told: Mutex<HashSet<String>>,
}

impl RowLines {
    pub(crate) fn of(mounts: &[Mount]) -> Self {
        let own = mounts.iter().filter(|mount| mount.row.plugin.is_none());
        Self::new(own.map(|mount| mount.row.id.clone()))
    }

    fn new(own: impl Iterator<Item = String>) -> Self {
        Self {
            own: own.collect(),
            told: Mutex::default(),
        }
    }

    /// The line that a person is to read, if this is one.
    fn line(&self, row: &str, level: Level, message: &str) -> Option<String> {
        if level != Level::Warn || !self.own.contains(row) {
            return None;
        }
        // What a person's own grant keeps from a row is no news to them.
        if message.contains(&Refusal::NotGranted.to_string()) {
            return None;
        }
        let line = format!("row {row}: {message}");
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.len() > MAX || !told.insert(line.clone()) {
            return None;
        }
        if told.len() > MAX {
            return Some(format!(
                "rows have more than {MAX} warnings; the others are not shown"
            ));
        }
        Some(line)
    }
}

impl Log for RowLines {
    fn write(&self, row: &str, level: Level, message: &str) {
        if let Some(line) = self.line(row, level, message) {
            report::line(line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_of_own_rows_are_told_once_and_nothing_else_is() {
        let lines = RowLines::new(["skills".to_owned()].into_iter());
        let told = |row, level, message| lines.line(row, level, message);
        assert_eq!(
            told("skills", Level::Warn, "a is left out").as_deref(),
            Some("row skills: a is left out")
        );
        assert_eq!(told("skills", Level::Warn, "a is left out"), None);
        assert_eq!(told("acme:x", Level::Warn, "dsh: all is well"), None);
        let narrowed = format!("a is left out: a: {}", Refusal::NotGranted);
        assert_eq!(told("skills", Level::Warn, &narrowed), None);
        for level in [Level::Trace, Level::Debug, Level::Info, Level::Error] {
            assert_eq!(told("skills", level, "b"), None);
        }
    }

    #[test]
    fn there_is_an_end_to_warnings_and_it_is_said_once() {
        let lines = RowLines::new(["r".to_owned()].into_iter());
        let told = |n: usize| lines.line("r", Level::Warn, &n.to_string());
        assert!((0..MAX).all(|n| told(n).is_some()));
        assert!(told(MAX).unwrap().contains("more than 100"));
        assert_eq!(told(MAX + 1), None);
    }
}
