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

/// Neither a control, nor one of the marks that turn or hide what stands beside them.
pub(crate) fn harmless(c: char) -> bool {
    !(c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}'))
}

/// One line, whatever it holds: what is not harmless becomes a space, so that one
/// thing stays one line and nothing of a provider's speaks to the terminal.
pub(crate) fn plain(text: &str) -> String {
    text.replace(|c| !harmless(c), " ")
}

/// One line on stderr.
pub(crate) fn line(what: impl std::fmt::Display) {
    let text = plain(&what.to_string());
    // Nothing can be said about a stderr that is gone.
    let _ = writeln!(std::io::stderr(), "dsh: {text}");
}

#[cfg(test)]
mod tests {
    #[test]
    fn nothing_of_a_line_turns_hides_or_commands() {
        let said = "a\u{202e}b\u{1b}[2J\u{200b}c\r\n\u{2066}d é 漢";
        assert_eq!(super::plain(said), "a b [2J c   d é 漢");
    }
}
