//! What the members of a configuration have to be, as a table, checked over nodes
//! so that a fault has its line.
//!
//! One table serves `settings.yaml`, where the first fault stops the boot with
//! its file and line, and a row's config, where it costs what it is about. A
//! member that no table knows is left to who reads the configuration, unless it
//! looks like one that is known: then it is a slip, and said.

use crate::yaml::{Fault, Kind, Map, Node};
use dsh_check::nearest;

/// What a value has to be.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Rule {
    /// Whatever it is, somebody else looks at it.
    Any,
    /// A text that is not empty.
    Text,
    /// A text that may be empty.
    Line,
    /// The name of an environment variable.
    Name,
    /// An address to send to: `http` or `https`, and no credentials in it.
    Url,
    /// A whole number above 0.
    Count,
    /// One of these.
    Choice(&'static [&'static str]),
    /// A list of these.
    Choices(&'static [&'static str]),
    /// A mapping whose members are what the table says.
    Map(Table),
    /// A mapping of any keys to values of this rule.
    Each(&'static Rule),
    /// A list of these.
    List(&'static Rule),
    /// A mapping, whatever is in it, that has no empty member.
    Switches,
    /// `false`, or a mapping of levels to a spelling or to null.
    Efforts(&'static [&'static str]),
}

/// The members of a mapping that are known.
pub(crate) type Table = &'static [(&'static str, Rule)];

/// The first thing that is wrong with a value, `at` being its name.
pub(crate) fn check(at: &str, node: &Node, rule: Rule) -> Result<(), Fault> {
    let wrong = |wanted: &str| Err(fault(node, format!("`{at}` must be {wanted}")));
    let text = node.as_str().filter(|text| !text.trim().is_empty());
    match rule {
        Rule::Any => Ok(()),
        Rule::Text if text.is_some() => Ok(()),
        Rule::Text => wrong("a string that is not empty"),
        Rule::Line if node.as_str().is_some() => Ok(()),
        Rule::Line => wrong("a string"),
        Rule::Name if text.is_some_and(is_name) => Ok(()),
        Rule::Name => wrong(
            "the name of a variable (letters, digits and _, not starting with a digit); \
             a key itself does not stand in a configuration",
        ),
        Rule::Url => match text {
            None => wrong("an address like https://api.example.com/v1"),
            Some(url) => url_fault(url).map_or(Ok(()), |what| {
                // A password may stand in it.
                Err(fault(node, format!("`{at}` {what}")))
            }),
        },
        Rule::Count => match &node.kind {
            Kind::Number(n) if n.as_u64().is_some_and(|n| n > 0) => Ok(()),
            _ => wrong("a whole number above 0"),
        },
        Rule::Choice(known) => match text {
            Some(text) if known.contains(&text) => Ok(()),
            _ => wrong(&format!(
                "one of {}{}",
                known.join(", "),
                meant(text, known)
            )),
        },
        Rule::Choices(known) => {
            let Kind::Seq(items) = &node.kind else {
                return wrong(&format!("a list of {}", known.join(", ")));
            };
            items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| check(&format!("{at}[{i}]"), item, Rule::Choice(known)))
        }
        Rule::Map(table) => members(at, node, table),
        Rule::Each(rule) => mapping(at, node)?
            .0
            .iter()
            .try_for_each(|(key, node)| check(&format!("{at}.{key}"), node, *rule)),
        Rule::List(rule) => {
            let Kind::Seq(items) = &node.kind else {
                return wrong(&format!("a list, this is {}", node.noun()));
            };
            items
                .iter()
                .enumerate()
                .try_for_each(|(i, item)| check(&format!("{at}[{i}]"), item, *rule))
        }
        Rule::Switches => {
            let empty = |(_, node): &&(String, Node)| matches!(node.kind, Kind::Null);
            match mapping(at, node)?.0.iter().find(empty) {
                Some((key, node)) => Err(fault(
                    node,
                    format!("`{at}.{key}` has no value; set it, or take it out"),
                )),
                None => Ok(()),
            }
        }
        Rule::Efforts(levels) => efforts(at, node, levels),
    }
}

fn members(at: &str, node: &Node, table: Table) -> Result<(), Fault> {
    // A key alone, with nothing behind it, is an empty mapping to whoever wrote it.
    if matches!(node.kind, Kind::Null) {
        return Ok(());
    }
    for (key, node) in &mapping(at, node)?.0 {
        match table.iter().find(|(known, _)| known == key) {
            Some((_, rule)) => check(&format!("{at}.{key}"), node, *rule)?,
            None => {
                let known = table.iter().map(|(known, _)| *known);
                if let Some(meant) = slip(key, known) {
                    return Err(fault(
                        node,
                        format!("`{at}` has no member `{key}`; did you mean `{meant}`?"),
                    ));
                }
            }
        }
    }
    Ok(())
}

fn efforts(at: &str, node: &Node, levels: &[&str]) -> Result<(), Fault> {
    let wanted = || {
        format!(
            "`{at}` must be false, or a mapping of {} to the provider's spelling",
            levels.join(", ")
        )
    };
    let map = match &node.kind {
        Kind::Bool(false) => return Ok(()),
        Kind::Map(map) => map,
        _ => return Err(fault(node, wanted())),
    };
    for (level, spelling) in &map.0 {
        if !levels.contains(&level.as_str()) {
            let meant = meant(Some(level), levels);
            let message = format!(
                "`{at}` knows no level `{level}`, only {}{meant}",
                levels.join(", ")
            );
            return Err(fault(spelling, message));
        }
        match &spelling.kind {
            Kind::String(text) if !text.trim().is_empty() => {}
            Kind::Null if level == "off" => {}
            _ => {
                let null = if level == "off" {
                    ", or null to send nothing"
                } else {
                    ""
                };
                let message = format!("`{at}.{level}` must be the provider's spelling of it{null}");
                return Err(fault(spelling, message));
            }
        }
    }
    if map.0.iter().all(|(level, _)| level == "off") {
        return Err(fault(
            node,
            format!(
                "`{at}` must name a level beside off; write false for a model that does not reason"
            ),
        ));
    }
    Ok(())
}

pub(crate) fn mapping<'a>(at: &str, node: &'a Node) -> Result<&'a Map, Fault> {
    match &node.kind {
        Kind::Map(map) => Ok(map),
        _ => Err(fault(
            node,
            format!("`{at}` must be a mapping, this is {}", node.noun()),
        )),
    }
}

/// The known name that a name is a slip of: but for case and marks it is the
/// same, or a letter is wrong. Nearer than a guess has to be, as it is refused.
fn slip<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let bare = |name: &str| -> String {
        let letters = name.chars().filter(char::is_ascii_alphanumeric);
        letters.map(|c| c.to_ascii_lowercase()).collect()
    };
    let known: Vec<&str> = known.collect();
    let same = known.iter().find(|name| bare(name) == bare(key));
    let near = || nearest(key, known.iter().copied()).into_iter().next();
    same.copied()
        .or_else(|| near().filter(|name| key.len() > 3 && key.len().abs_diff(name.len()) <= 2))
}

fn meant(text: Option<&str>, known: &[&str]) -> String {
    text.map(|text| dsh_check::did_you_mean(text, known.iter().copied()))
        .unwrap_or_default()
}

fn is_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && letters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

/// What is wrong with an address. It is not repeated: a password may stand in it.
pub(crate) fn url_fault(url: &str) -> Option<&'static str> {
    if url.trim() != url || url.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Some("has a space or a line end in it; take it out");
    }
    let Some((scheme, rest)) = url.split_once("://") else {
        return Some("has no scheme; it must be an address like https://api.example.com/v1");
    };
    if !["http", "https"].contains(&scheme.to_ascii_lowercase().as_str()) {
        return Some("must begin with https:// or http://");
    }
    let authority = rest.split(['/', '?', '#', '\\']).next().unwrap_or_default();
    if authority.contains('@') {
        return Some(
            "has a user or a password in it; take it out, and name a credential in apiKeyEnv",
        );
    }
    if authority.is_empty() || authority.starts_with(':') {
        return Some("names no host; it must be an address like https://api.example.com/v1");
    }
    None
}

pub(crate) fn fault(node: &Node, message: impl Into<String>) -> Fault {
    Fault {
        line: node.line,
        message: message.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_https_or_http_with_a_host_and_without_credentials() {
        for good in [
            "https://api.example.com",
            "http://127.0.0.1:8080/v1",
            "HTTPS://x",
            "http://[::1]:1",
        ] {
            assert_eq!(url_fault(good), None, "{good}");
        }
        for (bad, what) in [
            ("api.example.com/v1", "no scheme"),
            ("ftp://x", "begin with"),
            ("file:///etc/passwd", "begin with"),
            ("https://me:secret@x/v1", "password"),
            ("https://x/v1 ", "space"),
            ("https://x\n/v1", "line end"),
            ("https:///v1", "no host"),
            ("http://:8080", "no host"),
        ] {
            let found = url_fault(bad).unwrap_or("nothing");
            assert!(found.contains(what), "{bad:?}: {found}");
            assert!(!found.contains("secret"));
        }
    }

    #[test]
    fn a_slip_is_told_from_a_member_of_another_version() {
        let known = || ["baseURL", "apiKeyEnv", "models", "api"].into_iter();
        for (key, wanted) in [
            ("baseUrl", Some("baseURL")),
            ("base_url", Some("baseURL")),
            ("apikeyenv", Some("apiKeyEnv")),
            ("model", Some("models")),
            ("pricing", None),
            ("app", None),
            ("x", None),
        ] {
            assert_eq!(slip(key, known()), wanted, "{key}");
        }
    }
}
