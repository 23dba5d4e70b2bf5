//! What a stored log says, for people and for programs: the object of `dsh sessions inspect --json`, transcripts,
//! dates.
//!
//! Everything here is a pure function of what the store read; nothing is printed and no file is touched. JSON is
//! written with the log's own writers, because texts of a log may hold half surrogate pairs and numbers that common
//! writers refuse or change. What people read is another matter: a log holds what models and tools said, so every
//! piece of it goes through [`dsh_session::title::printable`] first.

mod compacted;
mod inspect;
mod time;
mod transcript;

pub use compacted::{Compactions, Mark};
pub use inspect::{damage_json, error_json, inspect_json, wire_class, wire_stage};
pub use time::{age, date};
pub use transcript::{Style, Transcript};

/// A size for people: `312 B`, `4.1 KiB`, `2.0 GiB`.
pub fn size(bytes: u64) -> String {
    let mut scaled = bytes as f64;
    let mut unit = 0;
    while scaled >= 1023.95 && unit < 4 {
        scaled /= 1024.0;
        unit += 1;
    }
    match unit {
        0 => format!("{bytes} B"),
        _ => format!("{scaled:.1} {}iB", ["K", "M", "G", "T"][unit - 1]),
    }
}

/// One line of a text of the log, at most `max` characters, for a table or a message.
pub fn line(text: &str, max: usize) -> String {
    let clean = dsh_session::title::clean(text);
    match clean.char_indices().nth(max) {
        None => clean,
        Some(_) => {
            let kept: String = clean.chars().take(max.saturating_sub(1)).collect();
            format!("{}…", kept.trim_end())
        }
    }
}

#[cfg(test)]
#[path = "report/tests.rs"]
mod tests;
