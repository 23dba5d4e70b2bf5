//! How the process ends.

use std::fmt;
use std::process::ExitCode;

/// Why it ends with 1: a line for stderr.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Failure(String);

impl Failure {
    /// A command line that means nothing; its text says `error: ` itself.
    pub(crate) fn usage(line: String) -> Self {
        Self(line)
    }

    /// Anything else.
    #[allow(
        clippy::needless_pass_by_value,
        reason = "errors are handed over by map_err"
    )]
    pub(crate) fn of(what: impl fmt::Display) -> Self {
        Self(format!("dsh: {what}"))
    }

    /// Without what a line on stderr starts with.
    pub(crate) fn message(&self) -> &str {
        self.0.strip_prefix("dsh: ").unwrap_or(&self.0)
    }

    /// Says it on stderr.
    pub(crate) fn report(&self) {
        eprintln!("{}", crate::report::plain(&self.0));
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Turns the end of `main` into what the system sees, and says why on stderr.
pub(crate) fn code(end: Result<u8, Failure>) -> ExitCode {
    end.map_or_else(
        |failure| {
            failure.report();
            ExitCode::FAILURE
        },
        ExitCode::from,
    )
}
