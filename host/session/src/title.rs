//! Session titles: cleaning, cutting, the fallback. `spec/session.md` §10.4.

use crate::Event;

/// Removes terminal sequences, control and invisible characters, collapses white space, trims.
pub fn clean(text: &str) -> String {
    let _ = text;
    todo!()
}

/// [`clean`], cut to at most `max_bytes` of UTF-8.
pub fn normalise(text: &str, max_bytes: usize) -> String {
    let _ = (text, max_bytes);
    todo!()
}

/// The first `words` words of the cleaned text, cut to at most `max_bytes`.
pub fn fallback(text: &str, words: usize, max_bytes: usize) -> String {
    let _ = (text, words, max_bytes);
    todo!()
}

/// The text of a prompt that may title a session: a person's message with visible text, its text blocks joined by line
/// feeds; `None` for other events.
pub fn eligible_prompt(event: &Event) -> Option<String> {
    let _ = event;
    todo!()
}
