//! What a stranger wrote, made fit for a terminal.
//!
//! Names, descriptions and whatever else came with a plugin are data: nothing of it may move the cursor, colour a line,
//! name a window, or turn the order in which a line is read. Each such character is shown as its number.

use crate::report::harmless;

/// One line of a stranger's text, at most `max` characters.
pub(super) fn shown(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len().min(max));
    let mut count = 0;
    for c in text.trim().chars() {
        if count >= max {
            out.push('…');
            break;
        }
        if harmless(c) {
            out.push(c);
            count += 1;
        } else {
            let escaped = c.escape_unicode().to_string();
            count += escaped.len();
            out.push_str(&escaped);
        }
    }
    out
}

/// A value on one line, as JSON that a stranger cannot break out of.
pub(super) fn json(value: &serde_json::Value, max: usize) -> String {
    shown(&value.to_string(), max)
}

/// A value as one line of output. What would speak to a terminal stands in texts alone, where JSON has another way to
/// write it.
pub(super) fn json_line(value: &serde_json::Value) -> String {
    json_text(&value.to_string())
}

/// The same of a JSON text on one line.
pub(super) fn json_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 1);
    for c in text.chars() {
        if harmless(c) {
            out.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                out += &format!("\\u{unit:04x}");
            }
        }
    }
    out.push('\n');
    out
}

/// A number of bytes, for people.
pub(super) fn size(bytes: u64) -> String {
    dsh_store::report::size(bytes)
}

/// `a`, `a and b`, `a, b and c`.
pub(super) fn list<T: AsRef<str>>(items: &[T]) -> String {
    match items {
        [] => String::new(),
        [one] => one.as_ref().to_owned(),
        [first @ .., last] => {
            let first: Vec<&str> = first.iter().map(AsRef::as_ref).collect();
            format!("{} and {}", first.join(", "), last.as_ref())
        }
    }
}

/// The first twelve digits of a digest, which is enough to tell two apart.
pub(super) fn short(digest: &str) -> &str {
    digest.get(..12).unwrap_or(digest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_speak_to_the_terminal_is_shown_as_its_number() {
        for (text, says) in [
            ("plain ünï 中文", "plain ünï 中文"),
            ("\x1b[31mred", "\\u{1b}[31mred"),
            ("\x1b]0;title\x07", "\\u{1b}]0;title\\u{7}"),
            ("a\nb\tc", "a\\u{a}b\\u{9}c"),
            ("\u{202e}live", "\\u{202e}live"),
            ("\u{2066}x\u{2069}", "\\u{2066}x\\u{2069}"),
            ("zero\u{200b}width", "zero\\u{200b}width"),
            ("\u{9b}31m", "\\u{9b}31m"),
        ] {
            assert_eq!(shown(text, 80), says, "{text:?}");
        }
    }

    #[test]
    fn json_keeps_every_text_and_shows_none_of_it_to_the_terminal() {
        let value = serde_json::json!({"a": "x\u{202e}\u{9b}31m\u{e0041}\u{1b}", "ü": 1});
        let line = json_line(&value);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&line).unwrap(),
            value
        );
        assert!(line.trim_end().chars().all(harmless), "{line}");
    }

    #[test]
    fn a_long_text_is_cut_and_says_so() {
        assert_eq!(shown(&"x".repeat(100), 10), "xxxxxxxxxx…");
        assert!(shown(&"\x1b".repeat(1000), 10).len() < 30);
    }

    #[test]
    fn lists_read_as_a_person_writes_them() {
        assert_eq!(list::<&str>(&[]), "");
        assert_eq!(list(&["a"]), "a");
        assert_eq!(list(&["a", "b", "c"]), "a, b and c");
    }
}
