//! The front matter of a skill: a small, strict part of YAML.
//!
//! Understood are scalars (plain, quoted, literal and folded blocks) under keys
//! of the first level; what is nested is passed over. There are no anchors,
//! aliases, tags and merges, so nothing grows that is not in the text, and a
//! text that needs more than this is refused with its line rather than guessed.

/// What a skill says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Front {
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) when_to_use: Option<String>,
    /// Whether the model may ask for it.
    pub(crate) model: bool,
    /// Whether a person may call it by `/name`.
    pub(crate) person: bool,
}

/// Reads the front matter at the start of `text`; also gives where the body begins.
pub(crate) fn read(text: &str) -> Result<(Front, usize), String> {
    let (lines, body) = fenced(text)?;
    let mut fields: Vec<(&str, String)> = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let (number, line) = lines[at];
        at += 1;
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        let bad = |what: &str| format!("line {number} of its front matter {what}");
        if line.starts_with([' ', '\t']) {
            return Err(bad("is indented below nothing"));
        }
        let (key, value) = entry(line).ok_or_else(|| bad("is no `key: value`"))?;
        let end = at
            + lines[at..]
                .iter()
                .take_while(|(_, line)| is_inside(line))
                .count();
        let more: Vec<&str> = lines[at..end].iter().map(|(_, line)| *line).collect();
        at = end;
        if !KEYS.contains(&key) {
            continue;
        }
        if fields.iter().any(|(other, _)| *other == key) {
            return Err(bad(&format!("gives `{key}` a second time")));
        }
        fields.push((key, scalar(value, &more).map_err(bad)?));
    }
    let take = |key: &str| {
        let field = fields.iter().find(|(name, _)| *name == key);
        field
            .map(|(_, value)| value.trim())
            .filter(|value| !value.is_empty())
    };
    let name = take("name").ok_or("its front matter has no `name`")?;
    if !is_name(name) {
        return Err(
            "its `name` is not made of small letters, digits and single hyphens, 64 at most"
                .to_owned(),
        );
    }
    let flag = |key: &str, default: bool| match take(key) {
        None => Ok(default),
        Some(value) => {
            boolean(value).ok_or_else(|| format!("its `{key}` is neither true nor false"))
        }
    };
    let front = Front {
        name: name.to_owned(),
        description: take("description")
            .ok_or("its front matter has no `description`")?
            .to_owned(),
        when_to_use: take("whenToUse").map(str::to_owned),
        model: !flag("disable-model-invocation", false)?,
        person: flag("user-invocable", true)?,
    };
    Ok((front, body))
}

const KEYS: [&str; 5] = [
    "name",
    "description",
    "whenToUse",
    "disable-model-invocation",
    "user-invocable",
];

const NO_START: &str = "it does not start with front matter (a line `---`)";

/// Numbered lines of a text.
type Lines<'a> = Vec<(usize, &'a str)>;

/// The numbered lines between the fences, and where what follows begins.
fn fenced(text: &str) -> Result<(Lines<'_>, usize), String> {
    let start = text.len() - text.trim_start_matches('\u{feff}').len();
    let mut at = start;
    let mut lines = Vec::new();
    for (index, line) in text[start..].split_inclusive('\n').enumerate() {
        at += line.len();
        let line = line.trim_end();
        if index == 0 {
            if line != "---" {
                return Err(NO_START.to_owned());
            }
        } else if line == "---" {
            return Ok((lines, at));
        } else {
            lines.push((index + 1, line));
        }
    }
    Err(if text.len() == start {
        NO_START.to_owned()
    } else {
        "its front matter does not end (a second line `---`)".to_owned()
    })
}

/// Whether a line belongs to the key above it.
fn is_inside(line: &str) -> bool {
    line.trim().is_empty() || line.starts_with([' ', '\t']) || line.starts_with("- ") || line == "-"
}

fn entry(line: &str) -> Option<(&str, &str)> {
    let (key, value) = line.split_once(':')?;
    let separated = value.is_empty() || value.starts_with([' ', '\t']);
    let key = key.trim_end().trim_matches(['"', '\'']);
    (separated && !key.is_empty()).then(|| (key, value.trim()))
}

/// The value of a key, with the lines below it.
fn scalar(value: &str, more: &[&str]) -> Result<String, &'static str> {
    match value.chars().next() {
        Some(style @ ('|' | '>')) => block(style, &value[1..], more),
        Some('"') => double_quoted(&joined(value, more)),
        Some('\'') => single_quoted(&joined(value, more)),
        Some('&' | '*' | '!' | '%' | '@' | '`' | '[' | ']' | '{' | '}') => {
            Err("is neither a plain nor a quoted text")
        }
        Some('#') | None => {
            if more.iter().any(|line| line.trim_start().starts_with("- ")) {
                return Err("is a list where a text was expected");
            }
            Ok(plain("", more))
        }
        Some(_) => Ok(plain(value, more)),
    }
}

/// A value and its continuations, folded into one line.
fn joined(value: &str, more: &[&str]) -> String {
    let lines = std::iter::once(value).chain(more.iter().copied());
    let lines = lines.map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

fn plain(value: &str, more: &[&str]) -> String {
    let uncommented = |line: &str| match line.find(" #") {
        Some(at) => line[..at].to_owned(),
        None => line.to_owned(),
    };
    let more: Vec<String> = more
        .iter()
        .filter(|line| !line.trim_start().starts_with('#'))
        .map(|line| uncommented(line))
        .collect();
    let more: Vec<&str> = more.iter().map(String::as_str).collect();
    joined(&uncommented(value), &more)
}

fn block(style: char, header: &str, more: &[&str]) -> Result<String, &'static str> {
    let header = header.split(" #").next().unwrap_or_default().trim();
    if !header.chars().all(|c| matches!(c, '-' | '+' | '1'..='9')) || header.len() > 2 {
        return Err("starts a block in a way that is not understood");
    }
    let said = more.iter().filter(|line| !line.trim().is_empty());
    let indent = said
        .map(|line| line.len() - line.trim_start().len())
        .min()
        .unwrap_or(0);
    let lines: Vec<&str> = more
        .iter()
        .map(|line| line.get(indent..).unwrap_or(""))
        .collect();
    if style == '|' {
        return Ok(lines.join("\n").trim_end().to_owned());
    }
    let mut folded = String::new();
    for line in lines {
        if line.is_empty() {
            folded.push('\n');
        } else {
            if !folded.is_empty() && !folded.ends_with('\n') {
                folded.push(' ');
            }
            folded.push_str(line);
        }
    }
    Ok(folded.trim_end().to_owned())
}

/// What may stand behind a closing quote.
fn only_comment(rest: &str) -> bool {
    rest.trim().is_empty() || rest.starts_with(' ') && rest.trim_start().starts_with('#')
}

fn single_quoted(text: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut rest = &text[1..];
    while let Some((before, after)) = rest.split_once('\'') {
        out.push_str(before);
        match after.strip_prefix('\'') {
            Some(after) => {
                out.push('\'');
                rest = after;
            }
            None if only_comment(after) => return Ok(out),
            None => return Err("has text behind its closing quote"),
        }
    }
    Err("has a quote that nothing closes")
}

fn double_quoted(text: &str) -> Result<String, &'static str> {
    let mut out = String::new();
    let mut chars = text[1..].chars();
    while let Some(c) = chars.next() {
        match c {
            '"' if only_comment(chars.as_str()) => return Ok(out),
            '"' => return Err("has text behind its closing quote"),
            '\\' => out.push(match chars.next() {
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('u') => unicode(&mut chars, 4)?,
                Some('x') => unicode(&mut chars, 2)?,
                Some(c @ ('"' | '\\' | '/' | ' ')) => c,
                _ => return Err("has an escape that is not understood"),
            }),
            c => out.push(c),
        }
    }
    Err("has a quote that nothing closes")
}

fn unicode(chars: &mut std::str::Chars<'_>, digits: usize) -> Result<char, &'static str> {
    let hex: String = chars.by_ref().take(digits).collect();
    let number = u32::from_str_radix(&hex, 16)
        .ok()
        .filter(|_| hex.len() == digits);
    number
        .and_then(char::from_u32)
        .ok_or("has an escape that is not understood")
}

fn boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

/// Kebab-case: what can be called by `/name`.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.split('-').all(|word| {
            !word.is_empty()
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        })
}

#[cfg(test)]
#[path = "front_tests.rs"]
mod tests;
