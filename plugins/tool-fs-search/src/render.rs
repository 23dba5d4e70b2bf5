//! How what was found reads.

use guest_support::json::{Object, array, quote};

use crate::bindings::dsh::plugin::workspace::{Found, Matches, Paths};

/// Paths of one answer.
const SHOWN_PATHS: usize = 100;

/// Matches of one answer.
const SHOWN_MATCHES: usize = 250;

/// Bytes of a line that matched.
const LINE: usize = 2000;

/// A text for the model, and `{meta}` for people's views.
pub(crate) struct Answer {
    pub(crate) text: String,
    pub(crate) more: String,
}

/// `keep` stores a text under a name and says where.
pub(crate) fn paths(found: &Paths, keep: impl FnOnce(&str, &str) -> Option<String>) -> Answer {
    let shown = &found.paths[..found.paths.len().min(SHOWN_PATHS)];
    let more = more(
        "paths",
        shown.iter().map(|path| quote(path)),
        shown.len(),
        found.total,
    );
    if shown.is_empty() {
        return Answer {
            text: "No files found".to_owned(),
            more,
        };
    }
    let mut text = shown.join("\n");
    if found.total as usize > shown.len() {
        let at = keep("glob-results.txt", &found.paths.join("\n"));
        let recovery = recovery(at.as_deref(), found.paths.len(), found.total, "paths");
        text.push_str(&format!(
            "\n\n(Showing {} of {} paths. {recovery})",
            shown.len(),
            found.total
        ));
    }
    Answer { text, more }
}

pub(crate) fn matches(found: &Matches, keep: impl FnOnce(&str, &str) -> Option<String>) -> Answer {
    let shown = &found.matches[..found.matches.len().min(SHOWN_MATCHES)];
    let fact = |found: &Found| {
        let fact = Object::new()
            .string("path", &found.path)
            .number("line", found.line.into());
        fact.string("text", cut(&found.text)).build()
    };
    let more = more("matches", shown.iter().map(fact), shown.len(), found.total);
    if shown.is_empty() {
        return Answer {
            text: "No matches found".to_owned(),
            more,
        };
    }
    let capped = found.total as usize > shown.len();
    let mut text = match found.total {
        1 => "Found 1 match".to_owned(),
        total if capped => format!("Found {} of {total} matches", shown.len()),
        total => format!("Found {total} matches"),
    };
    text.push_str("\n\n");
    text.push_str(&by_file(shown));
    if capped {
        let at = keep("grep-results.txt", &by_file(&found.matches));
        let recovery = recovery(at.as_deref(), found.matches.len(), found.total, "matches");
        text.push_str(&format!("\n\n({recovery})"));
    }
    Answer { text, more }
}

/// Matches grouped by file, in the order in which files first appear.
fn by_file(found: &[Found]) -> String {
    let mut groups: Vec<(&str, String)> = Vec::new();
    for found in found {
        // Matches of a file follow each other, so the last group is the likely one.
        let at = groups
            .iter()
            .rposition(|(path, _)| *path == found.path)
            .unwrap_or_else(|| {
                groups.push((&found.path, found.path.clone()));
                groups.len() - 1
            });
        groups[at]
            .1
            .push_str(&format!("\nLine {}: {}", found.line, cut(&found.text)));
    }
    let groups: Vec<_> = groups.into_iter().map(|(_, text)| text).collect();
    groups.join("\n\n")
}

/// What to do about the rest.
fn recovery(at: Option<&str>, kept: usize, total: u32, what: &str) -> String {
    match at {
        Some(at) if kept < total as usize => {
            format!(
                "The first {kept} {what} are stored at: {at}. Narrow the search, or read that file in parts."
            )
        }
        Some(at) => format!(
            "All {what} are stored at: {at}. Read that file in parts, or narrow the search."
        ),
        None => format!("The other {what} could not be saved; narrow the search to see them."),
    }
}

fn cut(line: &str) -> &str {
    &line[..line.floor_char_boundary(LINE)]
}

/// `{meta: {shape, <shape>, truncated, total}}`.
fn more(shape: &str, items: impl Iterator<Item = String>, shown: usize, total: u32) -> String {
    let meta = Object::new()
        .string("shape", shape)
        .raw(shape, &array(items))
        .raw(
            "truncated",
            if total as usize > shown {
                "true"
            } else {
                "false"
            },
        )
        .number("total", total.into());
    Object::new().raw("meta", &meta.build()).build()
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
