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
    lines: RefCell<Vec<Line>>,
}

struct Line {
    text: String,
    /// Providers that the row is granted which it is about.
    providers: Vec<String>,
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
        self.served(what, Vec::new())
    }

    /// Notes what these providers cannot be called for.
    pub(crate) fn served(&self, what: impl Display, providers: Vec<String>) -> Result<(), Failure> {
        if self.strict {
            return Err(Failure::of(format_args!("{what} (--strict)")));
        }
        let text = what.to_string();
        self.lines.borrow_mut().push(Line { text, providers });
        Ok(())
    }

    /// Notes a row, and why it cannot be used.
    pub(crate) fn row(&self, row: &Row, reason: &str) -> Result<(), Failure> {
        let prefix = format!("row {}: ", row.id);
        let reason = reason.strip_prefix(&prefix).unwrap_or(reason);
        let what = format_args!("row {} is left out: {reason}", row.id);
        self.served(what, row.providers())
    }

    /// Reports what was noted, once.
    pub(crate) fn report(&self) {
        let lines = self.lines.take();
        lines.iter().for_each(|line| report::line(&line.text));
    }

    /// What was noted of rows that would serve this provider, as the reason why nothing
    /// does; none where there is no such row. The other lines stay to be reported.
    pub(crate) fn reason(&self, provider: &str) -> Option<String> {
        let lines = self.lines.take();
        let own = |line: &Line| line.providers.iter().any(|one| one == provider);
        let (own, others) = lines.into_iter().partition::<Vec<_>, _>(own);
        self.lines.replace(others);
        let own: Vec<String> = own.into_iter().map(|line| line.text).collect();
        (!own.is_empty()).then(|| own.join("; "))
    }
}

impl Drop for LeftOut {
    fn drop(&mut self) {
        self.report();
    }
}
