//! What was left out of a run, by a line each.
//!
//! The lines are held until the run is put together: then they are reported, or
//! they are the reason why it cannot be. Whatever else ends the start, they are
//! told before it.

use std::cell::RefCell;
use std::fmt::Display;

use dsh_profile::Row;

use crate::exit::Failure;
use crate::report;

pub(crate) struct LeftOut {
    strict: bool,
    lines: RefCell<Vec<String>>,
}

impl LeftOut {
    pub(crate) fn new(strict: bool) -> Self {
        Self {
            strict,
            lines: RefCell::default(),
        }
    }

    /// Notes it; with `--strict`, fails with it.
    pub(crate) fn note(&self, what: impl Display) -> Result<(), Failure> {
        if self.strict {
            return Err(Failure::of(format_args!("{what} (--strict)")));
        }
        self.lines.borrow_mut().push(what.to_string());
        Ok(())
    }

    /// Notes a row, and why it cannot be used.
    pub(crate) fn row(&self, row: &Row, reason: &str) -> Result<(), Failure> {
        let prefix = format!("row {}: ", row.id);
        let reason = reason.strip_prefix(&prefix).unwrap_or(reason);
        self.note(format_args!("row {} is left out: {reason}", row.id))
    }

    /// Reports what was noted, once.
    pub(crate) fn report(&self) {
        self.lines.take().iter().for_each(report::line);
    }

    /// What was noted, as the reason of something else; none where nothing was.
    pub(crate) fn reason(&self) -> Option<String> {
        let lines = self.lines.take();
        (!lines.is_empty()).then(|| lines.join("; "))
    }
}

impl Drop for LeftOut {
    fn drop(&mut self) {
        self.report();
    }
}
