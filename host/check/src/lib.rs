//! What a check finds: a line for people, and how bad it is; and which of the
//! names that there are they may have meant ([`nearest()`]).
//!
//! Each crate that can say of this machine, or of the files in `$DSH_HOME`,
//! whether `dsh` will work with them has a `check` that gives [`Finding`]s. A
//! check changes nothing, makes nothing, prints nothing and waits for nobody; it
//! names what is sound too, so that a person sees what was looked at. `dsh
//! doctor` runs all of them at once and prints them.

#![forbid(unsafe_code)]

mod nearest;

pub use nearest::{did_you_mean, nearest};

use std::fmt;

/// How bad it is; the worst is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// As it should be.
    Ok,
    /// It works, and somebody should know something about it.
    Warning,
    /// Something does not work, or is not safe.
    Wrong,
}

impl Level {
    /// As it is printed.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warning => "warning",
            Self::Wrong => "wrong",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // With the width that a column asks for.
        f.pad(self.as_str())
    }
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How bad it is.
    pub level: Level,
    /// One line: what is so, of which file or row, and what to do where
    /// something is to be done. It never holds a secret.
    pub what: String,
}

impl Finding {
    /// It is as it should be.
    pub fn ok(what: impl fmt::Display) -> Self {
        Self::new(Level::Ok, what)
    }

    /// It works, but.
    pub fn warning(what: impl fmt::Display) -> Self {
        Self::new(Level::Warning, what)
    }

    /// It does not work, or is not safe.
    pub fn wrong(what: impl fmt::Display) -> Self {
        Self::new(Level::Wrong, what)
    }

    fn new(level: Level, what: impl fmt::Display) -> Self {
        Self {
            level,
            what: what.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_ordered_by_how_bad_they_are_and_fill_a_column() {
        assert!(Level::Ok < Level::Warning && Level::Warning < Level::Wrong);
        assert_eq!(format!("{:<8}|", Level::Ok), "ok      |");
    }
}
