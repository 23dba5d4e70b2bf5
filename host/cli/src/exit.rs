//! How the process ends.

use std::fmt;
use std::process::ExitCode;

/// Why it ends with 1: a line for stderr.
#[derive(Debug)]
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

    /// Says it on stderr.
    pub(crate) fn report(&self) {
        eprintln!("{}", self.0.replace(['\n', '\r'], " "));
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
