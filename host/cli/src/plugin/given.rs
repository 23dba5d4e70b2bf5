//! What `--grant` and `dsh plugin grant` say: a grant's name with its parameters, as JSON or in a simple form.
//!
//! | written | means |
//! | --- | --- |
//! | `clock` | `true` |
//! | `http=https://a,https://b` | a list; given twice, the lists are joined |
//! | `process=shell`, `process=git,rg` | `"shell"`, a list |
//! | `workspace=read`, `workspace=write` | `true`, `{"write": true}` |
//! | `kv=1MiB` (`spill`, `attachments`) | `{"quota": "1MiB"}` |
//! | `inbox=3` | `{"wake": 3}`; `llm=5000`: `{"tokens": 5000}` |
//! | `dir=/data:ro` | `[{"path": "/data", "mode": "ro"}]` |
//! | `route={"provider": …}` | JSON, as it stands |
//!
//! A pure function of the words; whether the result is a grant is for `dsh_plugin::Grants` to say.

use serde_json::{Map, Value, json};

use super::text::shown;

/// Reads several, in order; lists under one name are joined.
pub(super) fn grants<'a>(
    written: impl IntoIterator<Item = &'a str>,
) -> Result<Map<String, Value>, String> {
    let mut all = Map::new();
    for text in written {
        let (name, value) = grant(text)?;
        match (all.get_mut(&name), value) {
            (Some(Value::Array(list)), Value::Array(more)) => {
                for item in more {
                    if !list.contains(&item) {
                        list.push(item);
                    }
                }
            }
            (_, value) => {
                all.insert(name, value);
            }
        }
    }
    Ok(all)
}

/// Reads one.
fn grant(text: &str) -> Result<(String, Value), String> {
    let (name, parameters) = match text.split_once('=') {
        Some((name, parameters)) => (name.trim(), Some(parameters.trim())),
        None => (text.trim(), None),
    };
    let sound = !name.is_empty()
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || matches!(byte, b'-' | b'.'));
    if !sound {
        return Err(format!(
            "{text:?} is no grant: write NAME or NAME=PARAMETERS, for example clock or http=https://api.example"
        ));
    }
    let value = match parameters {
        None => Value::Bool(true),
        Some("") => {
            return Err(format!(
                "{name}= has nothing behind it; leave the `=` out, or say what"
            ));
        }
        Some(parameters) if json_like(parameters) => serde_json::from_str(parameters)
            .map_err(|error| format!("the parameters of {name} are not JSON: {error}"))?,
        Some(parameters) => simple(name, parameters)?,
    };
    if matches!(value, Value::Bool(false) | Value::Null) {
        return Err(format!(
            "{name}={value} grants nothing; leave it out, or take it back with dsh plugin revoke"
        ));
    }
    Ok((name.to_owned(), value))
}

fn json_like(text: &str) -> bool {
    text.starts_with(['{', '[', '"']) || matches!(text, "true" | "false")
}

fn simple(name: &str, text: &str) -> Result<Value, String> {
    let list = || {
        Value::from(
            text.split(',')
                .map(str::trim)
                .filter(|item| !item.is_empty())
                .collect::<Vec<_>>(),
        )
    };
    let number = || {
        text.parse::<u64>()
            .map_err(|_| format!("{name}={text}: write a number, or JSON"))
    };
    Ok(match (name, text) {
        ("process", "shell") => json!("shell"),
        ("workspace", "read") => json!(true),
        ("workspace", "write") => json!({"write": true}),
        ("workspace", _) => {
            return Err(format!(
                "workspace={text}: write workspace=read, workspace=write, or JSON"
            ));
        }
        ("process" | "http" | "journal" | "observe" | "decide" | "env" | "tool-names", _) => list(),
        ("kv" | "spill" | "attachments", _) => json!({"quota": text}),
        ("inbox", _) => json!({"wake": number()?}),
        ("llm", _) => json!({"tokens": number()?}),
        ("dir", _) => {
            let one = |item: &str| match item.rsplit_once(':') {
                Some((path, mode @ ("ro" | "rw"))) => Ok(json!({"path": path, "mode": mode})),
                _ => Err(format!("dir={item}: write dir=PATH:ro or dir=PATH:rw")),
            };
            Value::Array(text.split(',').map(one).collect::<Result<_, _>>()?)
        }
        _ => {
            return Err(format!(
                "{name}={text}: its parameters are written as JSON, for example {name}='{{…}}'"
            ));
        }
    })
}

/// A grant as `--grant` takes it, for a line that a person can copy.
pub(super) fn written(name: &str, parameters: &Value) -> String {
    let text = match (name, parameters) {
        (_, Value::Bool(true)) => return shown(name, WRITTEN),
        ("workspace", Value::Object(members))
            if *members == *json!({"write": true}).as_object().unwrap_or(&Map::new()) =>
        {
            "write".to_owned()
        }
        ("process", Value::String(text)) => text.clone(),
        (
            "process" | "http" | "journal" | "observe" | "decide" | "env" | "tool-names",
            Value::Array(items),
        ) if !items.is_empty()
            && items.iter().all(|item| {
                item.as_str()
                    .is_some_and(|text| !text.is_empty() && !text.contains(','))
            }) =>
        {
            items
                .iter()
                .filter_map(Value::as_str)
                .collect::<Vec<_>>()
                .join(",")
        }
        _ => parameters.to_string(),
    };
    // What a manifest wants is a stranger's text, and stands before the question.
    shown(&quoted(&format!("{name}={text}")), WRITTEN)
}

/// Characters of a grant that are shown.
const WRITTEN: usize = 1000;

/// For a shell.
pub(super) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn simple_forms_mean_what_a_person_expects() {
        for (text, value) in [
            ("clock", json!(true)),
            (
                "http=https://a.example,https://b.example:8443/x",
                json!(["https://a.example", "https://b.example:8443/x"]),
            ),
            ("process=shell", json!("shell")),
            ("process=git, rg", json!(["git", "rg"])),
            ("workspace=read", json!(true)),
            ("workspace=write", json!({"write": true})),
            ("workspace={\"read\":[\"src\"]}", json!({"read": ["src"]})),
            ("kv=1MiB", json!({"quota": "1MiB"})),
            ("inbox=3", json!({"wake": 3})),
            ("llm=5000", json!({"tokens": 5000})),
            ("dir=/data:ro", json!([{"path": "/data", "mode": "ro"}])),
            (
                "observe=turn/start,turn/end",
                json!(["turn/start", "turn/end"]),
            ),
            ("prompt.complete", json!(true)),
            ("env=LANG", json!(["LANG"])),
            ("route={\"provider\":\"x\"}", json!({"provider": "x"})),
        ] {
            assert_eq!(grant(text).map(|(_, value)| value), Ok(value), "{text}");
        }
    }

    #[test]
    fn what_means_nothing_says_how_it_is_written() {
        for (text, part) in [
            ("", "is no grant"),
            ("Clock", "is no grant"),
            ("a b", "is no grant"),
            ("http=", "nothing behind it"),
            ("http=[", "not JSON"),
            ("clock=false", "grants nothing"),
            ("inbox=x", "a number"),
            ("workspace=all", "workspace=write"),
            ("dir=/data", "dir=PATH:ro"),
            ("route=x", "JSON"),
        ] {
            let error = grant(text).unwrap_err();
            assert!(
                error.contains(part) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }

    #[test]
    fn what_a_stranger_wants_does_not_speak_to_the_terminal() {
        for value in [
            json!(["\u{1b}[2J\r"]),
            json!([{"path": "\u{202e}\u{9b}"}]),
            json!("\n"),
        ] {
            for name in ["env", "dir", "process"] {
                let text = written(name, &value);
                let bad = |c: char| c.is_control() || c == '\u{202e}';
                assert!(!text.contains(bad), "{text:?}");
            }
        }
        assert!(written("env", &json!(vec!["A"; 20_000])).len() < 1100);
    }

    #[test]
    fn lists_of_one_grant_are_joined_and_anything_else_is_replaced() {
        let all = grants([
            "http=https://a",
            "clock",
            "http=https://b,https://a",
            "kv=1MiB",
            "kv=2MiB",
        ])
        .unwrap();
        assert_eq!(
            Value::Object(all),
            json!({"http": ["https://a", "https://b"], "clock": true, "kv": {"quota": "2MiB"}})
        );
    }

    #[test]
    fn what_is_written_is_read_as_what_it_was() {
        for (name, value) in [
            ("clock", json!(true)),
            ("workspace", json!({"write": true})),
            ("workspace", json!({"read": ["a b"]})),
            ("process", json!("shell")),
            ("http", json!(["https://a", "https://b"])),
            ("route", json!([{"provider": "it's"}])),
        ] {
            let text = written(name, &value);
            let unquoted = text
                .strip_prefix('\'')
                .and_then(|text| text.strip_suffix('\''))
                .map_or(text.clone(), |text| text.replace("'\\''", "'"));
            assert_eq!(grant(&unquoted), Ok((name.to_owned(), value)), "{text}");
        }
    }
}
