//! Session titles: cleaning, cutting, the fallback, and when which is due. `spec/session.md` §10.4.
//!
//! A title is shown in terminals and lists, so nothing that moves a cursor, hides or reorders text may survive in it.

mod rules;

pub use rules::{Generation, Prompt, Proposal, Request, Titles, rename};

use crate::{Event, Kind, Value};

/// Bytes of UTF-8 that an accepted title may have.
pub const MAX_BYTES: usize = 80;
/// Bytes of UTF-8 that a fallback title may have.
pub const FALLBACK_BYTES: usize = 40;
/// Words that a fallback title may have.
pub const FALLBACK_WORDS: usize = 5;

/// How long titles may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Words of a fallback title.
    pub fallback_words: usize,
    /// Bytes of UTF-8 of a fallback title; not more than `max_bytes`.
    pub fallback_bytes: usize,
    /// Bytes of UTF-8 of any other title.
    pub max_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            fallback_words: FALLBACK_WORDS,
            fallback_bytes: FALLBACK_BYTES,
            max_bytes: MAX_BYTES,
        }
    }
}

const ESC: char = '\u{1b}';

/// Removes terminal sequences, control and invisible characters, and keeps line feeds and tabs: what of a text may
/// reach a terminal. A carriage return ends a line, since it would let one text overwrite another.
pub fn printable(text: &str) -> String {
    let plain = |character: char| !is_hidden(character) && character != '\r';
    if text.chars().all(plain) {
        return text.to_owned();
    }
    let mut out = String::with_capacity(text.len());
    let mut after_return = false;
    for character in without_sequences(text) {
        match character {
            '\r' => out.push('\n'),
            '\n' if after_return => {}
            hidden if is_hidden(hidden) => {}
            shown => out.push(shown),
        }
        after_return = character == '\r';
    }
    out
}

fn without_sequences(text: &str) -> Vec<char> {
    let mut chars: Vec<char> = text.chars().collect();
    for sequence in [
        operating_system_command,
        control_sequence,
        two_character_escape,
    ] {
        chars = without(&chars, sequence);
    }
    chars
}

/// Removes terminal sequences, control and invisible characters, collapses white space, trims.
pub fn clean(text: &str) -> String {
    let chars = without_sequences(text);
    let mut out = String::with_capacity(text.len());
    let mut space = false;
    for character in chars {
        if is_hidden(character) {
            continue;
        }
        if is_space(character) {
            space = true;
            continue;
        }
        if space && !out.is_empty() {
            out.push(' ');
        }
        space = false;
        out.push(character);
    }
    out
}

/// Leaves out every sequence that `length` finds at a position.
fn without(chars: &[char], length: fn(&[char]) -> usize) -> Vec<char> {
    let mut out = Vec::with_capacity(chars.len());
    let mut at = 0;
    while let Some(character) = chars.get(at) {
        match length(&chars[at..]) {
            0 => {
                out.push(*character);
                at += 1;
            }
            found => at += found,
        }
    }
    out
}

/// `ESC ]` or U+009D, up to BEL, `ESC \` or the end.
fn operating_system_command(chars: &[char]) -> usize {
    let head = match chars {
        [ESC, ']', ..] => 2,
        ['\u{9d}', ..] => 1,
        _ => return 0,
    };
    let body = &chars[head..];
    let end = body
        .iter()
        .enumerate()
        .find_map(|(at, character)| match character {
            '\u{7}' => Some(at + 1),
            &ESC if body.get(at + 1) == Some(&'\\') => Some(at + 2),
            _ => None,
        });
    head + end.unwrap_or(body.len())
}

/// `ESC [` or U+009B, parameter bytes, intermediate bytes, one final byte.
fn control_sequence(chars: &[char]) -> usize {
    let head = match chars {
        [ESC, '[', ..] => 2,
        ['\u{9b}', ..] => 1,
        _ => return 0,
    };
    let run = |from: usize, range: std::ops::RangeInclusive<char>| {
        from + chars[from..]
            .iter()
            .take_while(|character| range.contains(character))
            .count()
    };
    let end = run(run(head, '\u{30}'..='\u{3f}'), '\u{20}'..='\u{2f}');
    match chars.get(end) {
        Some('\u{40}'..='\u{7e}') => end + 1,
        _ => 0,
    }
}

fn two_character_escape(chars: &[char]) -> usize {
    if matches!(chars, [ESC, '\u{40}'..='\u{5f}', ..]) {
        2
    } else {
        0
    }
}

/// Controls other than tab, line feed and carriage return; zero-width, directional and other format characters.
fn is_hidden(character: char) -> bool {
    matches!(
        character,
        '\u{0}'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{7f}'..='\u{9f}'
            | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}'
    )
}

fn is_space(character: char) -> bool {
    character.is_whitespace()
}

/// The longest prefix of whole characters within `max_bytes` of UTF-8.
pub fn cut(text: &str, max_bytes: usize) -> &str {
    &text[..text.floor_char_boundary(max_bytes)]
}

/// [`clean`], cut to at most `max_bytes`.
pub fn normalise(text: &str, max_bytes: usize) -> String {
    cut(&clean(text), max_bytes).trim_end().to_owned()
}

/// The first `words` words of the cleaned text, cut to at most `max_bytes`.
pub fn fallback(text: &str, words: usize, max_bytes: usize) -> String {
    let clean = clean(text);
    let first: Vec<&str> = clean.split(' ').take(words).collect();
    cut(&first.join(" "), max_bytes).trim_end().to_owned()
}

/// The text of a prompt that may title a session: a person's message with visible text, its text blocks joined by line
/// feeds; `None` for other events.
pub fn eligible_prompt(event: &Event) -> Option<String> {
    let data = event.data.value();
    let by_person = data
        .path(&["source", "kind"])
        .is_some_and(|kind| kind.is("user"));
    if event.kind != Kind::UserMessage || !by_person {
        return None;
    }
    let blocks = data.get("content").into_iter().flat_map(Value::items);
    let texts = blocks.filter(|block| block.get("type").is_some_and(|tag| tag.is("text")));
    let texts: Vec<_> = texts
        .filter_map(|block| block.get("text")?.text())
        .collect();
    let text = texts.join("\n");
    (!clean(&text).is_empty()).then_some(text)
}

#[cfg(test)]
mod printable_tests {
    use super::printable;

    #[test]
    fn lines_and_tabs_stay_and_nothing_speaks_to_the_terminal() {
        assert_eq!(printable("a\tb\n\nc"), "a\tb\n\nc");
        assert_eq!(printable("one\r\ntwo\rthree"), "one\ntwo\nthree");
        for spoken in [
            "\u{1b}[31mred\u{1b}[0m",
            "\u{9b}31mred",
            "\u{1b}]0;title\u{7}red",
            "\u{1b}]8;;http://x\u{1b}\\red",
            "\u{1b}cred",
            "re\u{8}d",
            "\u{202e}red\u{200b}",
            "\u{1b}\u{1b}[2Jred",
            "red\u{7f}\0",
        ] {
            let shown = printable(spoken);
            assert!(
                shown.ends_with("red") || shown == "red",
                "{spoken:?} {shown:?}"
            );
            assert!(!shown.chars().any(char::is_control), "{spoken:?} {shown:?}");
        }
    }
}
