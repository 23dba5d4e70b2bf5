//! Texts from files and paths inside of messages for the model: whatever stands
//! in them, they end no frame that the harness put around them, and a name stays
//! on its line.

/// `text` with the closing tags of these frames made harmless.
pub fn unclosed(text: &str, frames: &[&str]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find("</") {
        let (before, tag) = rest.split_at(at + 1);
        out.push_str(before);
        let name = &tag.as_bytes()[1..];
        let closes = frames.iter().any(|frame| {
            name.get(..frame.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(frame.as_bytes()))
        });
        if closes {
            out.push('\\');
        }
        rest = tag;
    }
    out.push_str(rest);
    out
}

/// A name or a sentence on one line: no controls, no marks that turn or hide
/// text, one space between words.
pub fn one_line(text: &str) -> String {
    let spaced: String = text
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .filter(|c| !hides(*c))
        .collect();
    spaced.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Marks of direction, joiners and the like, which show nothing of their own.
fn hides(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{e0000}'..='\u{e007f}')
}

/// The longest start of `text` with at most `max` bytes.
pub fn start(text: &str, max: usize) -> &str {
    let mut end = max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_is_closed_by_nobody_else() {
        let frames = ["system-reminder", "x"];
        for (text, expected) in [
            ("a </system-reminder> b", "a <\\/system-reminder> b"),
            ("</SYSTEM-Reminder\n>", "<\\/SYSTEM-Reminder\n>"),
            ("</p></x></", "</p><\\/x></"),
            ("<</x", "<<\\/x"),
            ("</é", "</é"),
        ] {
            assert_eq!(unclosed(text, &frames), expected);
        }
    }

    #[test]
    fn a_name_stays_on_its_line() {
        assert_eq!(one_line(" a\n\tb\u{202e}c\u{0}d\u{e0041} "), "a bc d");
    }

    #[test]
    fn a_start_ends_between_characters() {
        assert_eq!(start("aé", 2), "a");
        assert_eq!(start("aé", 9), "aé");
    }
}
