//! `.env` files, as Node's own reader has them: `NAME=value` lines with an
//! optional `export`, values bare or quoted by `'`, `"` or a backtick; quoted
//! ones may run over lines, and only `"` knows `\n`. A line that is none of it
//! is skipped, later settings win.

use std::collections::BTreeMap;

pub(super) fn parse(text: &str) -> BTreeMap<String, String> {
    let text = text
        .strip_prefix('\u{feff}')
        .unwrap_or(text)
        .replace("\r\n", "\n");
    let mut variables = BTreeMap::new();
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let line_end = rest.find('\n').unwrap_or(rest.len());
        let line = &rest[..line_end];
        let mut next = rest.get(line_end + 1..).unwrap_or("");
        let trimmed = line.trim_start();
        if let Some(at) = trimmed.find('=').filter(|_| !trimmed.starts_with('#')) {
            let name = trimmed[..at].trim();
            let name = name.strip_prefix("export ").map_or(name, str::trim_start);
            let value_start = (line.len() - trimmed.len()) + at + 1;
            if is_name(name) {
                let value = rest[value_start..].trim_start_matches([' ', '\t']);
                match quoted(value) {
                    Some((inner, after)) => {
                        variables.insert(name.to_owned(), inner);
                        next = after.find('\n').map_or("", |end| &after[end + 1..]);
                    }
                    None => {
                        variables.insert(name.to_owned(), bare(&line[value_start..]));
                    }
                }
            }
        }
        rest = next;
    }
    variables
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && name
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'.' | b'-'))
}

/// The inside of a quoted value and what follows it; none where it is not closed.
fn quoted(value: &str) -> Option<(String, &str)> {
    let quote = value
        .chars()
        .next()
        .filter(|c| matches!(c, '\'' | '"' | '`'))?;
    let inner = &value[1..];
    let end = inner.find(quote)?;
    let text = &inner[..end];
    let text = if quote == '"' {
        text.replace("\\n", "\n")
    } else {
        text.to_owned()
    };
    Some((text, &inner[end + 1..]))
}

fn bare(value: &str) -> String {
    value.split('#').next().unwrap_or("").trim().to_owned()
}
