//! What a person is told: the product on stdout, and beside it, on stderr, a
//! line for each thing that is not as it should be.

use std::io::Write;

use crate::exit::Failure;

/// Writes the product; 0 when it was taken.
pub(crate) fn product(text: &str) -> Result<u8, Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| Failure::of(format_args!("cannot write to stdout: {error}")))?;
    Ok(0)
}

/// One line, whatever it holds: a control character becomes a space, so that one
/// thing stays one line and nothing of a provider's speaks to the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// One line on stderr.
pub(crate) fn line(what: impl std::fmt::Display) {
    let text = plain(&what.to_string());
    // Nothing can be said about a stderr that is gone.
    let _ = writeln!(std::io::stderr(), "dsh: {text}");
}
