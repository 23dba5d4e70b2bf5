//! A grant, in words for a person.
//!
//! A sentence without its subject each: `runs any program …`. Parameters are a
//! stranger's text: what is not plain is quoted, escaped and cut.

use serde_json::{Value, json};

use super::events;
use crate::grants::Grants;

/// Characters of a stranger's text that are shown.
const SHOWN: usize = 100;

/// Items of a list that are shown.
const ITEMS: usize = 20;

/// A stranger's text, so that it can be put into a sentence: as it is where it is
/// a plain name, path or address, else quoted with all that could deceive
/// escaped; cut where it is long.
#[must_use]
pub fn shown(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:@~+*".contains(c);
    if !text.is_empty() && text.len() <= SHOWN && text.chars().all(plain) {
        return text.to_owned();
    }
    let cut = text
        .char_indices()
        .nth(SHOWN)
        .map_or(text.len(), |(at, _)| at);
    let more = if cut < text.len() { "…" } else { "" };
    let mut escaped = String::new();
    for c in text[..cut].chars() {
        match c {
            '"' | '\\' => escaped.extend(['\\', c]),
            ' ' | '!'..='~' => escaped.push(c),
            // Letters of all scripts; spaces, marks and controls of none.
            _ if c.is_alphanumeric() => escaped.push(c),
            _ => escaped.extend(c.escape_unicode()),
        }
    }
    format!("\"{escaped}{more}\"")
}

/// `a`, `a and b`, `a, b and c`, each [`shown`].
pub(super) fn list<T: AsRef<str>>(items: &[T]) -> String {
    let mut words: Vec<String> = items
        .iter()
        .take(ITEMS)
        .map(|item| shown(item.as_ref()))
        .collect();
    if items.len() > ITEMS {
        words.push(format!("{} more", items.len() - ITEMS));
    }
    match words.split_last() {
        None => String::new(),
        Some((only, [])) => only.clone(),
        Some((last, rest)) => format!("{} and {last}", rest.join(", ")),
    }
}

/// A grant's parameters in their full shape, where they are of its shape at all.
pub(super) fn canonical(grant: &str, parameters: &Value) -> Value {
    let whole = json!({grant: parameters});
    match Grants::parse(&whole) {
        Ok(grants) => grants.to_value().remove(grant).unwrap_or_default(),
        Err(_) => parameters.clone(),
    }
}

/// The items of a list.
fn items(parameters: &Value) -> &[Value] {
    parameters.as_array().map_or(&[], Vec::as_slice)
}

/// The texts of a list.
pub(super) fn texts(parameters: &Value) -> Vec<String> {
    items(parameters)
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

/// Whether a grant of `process` allows every program.
fn any_program(parameters: &Value) -> bool {
    parameters == "shell"
}

/// Whether a grant of `workspace` allows changing files.
pub(super) fn writes(parameters: &Value) -> bool {
    parameters.get("write") == Some(&Value::Bool(true))
}

/// Whether a folder is granted to be changed.
fn folder_writes(folder: &Value) -> bool {
    folder.get("mode").is_some_and(|mode| mode == "rw")
}

/// How dangerous a grant is; the smaller, the more.
pub(super) fn rank(grant: &str, parameters: &Value) -> u8 {
    match grant {
        "approval" => 0,
        "process" => 1,
        "workspace" if writes(parameters) => 2,
        "dir" if items(parameters).iter().any(folder_writes) => 2,
        "decide" => 3,
        "prompt.complete" => 4,
        "route" | "secret" => 5,
        "http" => 6,
        "llm" | "agents" | "jobs" => 7,
        "inbox" => 8,
        "session" | "observe" => 9,
        "workspace" | "dir" | "env" => 10,
        "people" => 11,
        "journal" => 12,
        "tool-names" => 13,
        "attachments" | "pictures" | "kv" | "spill" => 14,
        "clock" | "random" => 15,
        // It is not known what it does.
        _ => 1,
    }
}

/// What a grant with these parameters lets a component do: a sentence without its
/// subject each.
#[must_use]
pub fn in_words(grant: &str, parameters: &Value) -> Vec<String> {
    let parameters = &canonical(grant, parameters);
    if matches!(parameters, Value::Null | Value::Bool(false)) {
        return vec![];
    }
    let quota = |what: &str| match parameters.get("quota").map(size) {
        Some(quota) => what.replace("{}", &format!("up to {quota} of ")),
        None => what.replace("{}", ""),
    };
    let said = match grant {
        "clock" => "reads the time of day, and waits".to_owned(),
        "random" => "makes random numbers".to_owned(),
        "session" => {
            "reads your whole session: prompts, answers, tool calls and their results".to_owned()
        }
        "spill" => quota("keeps {}large outputs in files that the model can read"),
        "kv" => return vec![kv(parameters)],
        "attachments" => quota("reads the attachments of a session, and adds {}its own"),
        "pictures" => "has pictures of a session made smaller, without seeing them".to_owned(),
        "people" => "asks you questions".to_owned(),
        "inbox" => return vec![inbox(parameters)],
        "llm" => match parameters.get("tokens") {
            Some(tokens) => format!("asks models at your expense, up to {tokens} tokens a session"),
            None => "asks models at your expense".to_owned(),
        },
        "agents" => "starts agents of its own, at your expense".to_owned(),
        "jobs" => "runs work in the background".to_owned(),
        "prompt.complete" => "replaces the whole system prompt".to_owned(),
        "approval" => "answers approvals in your place (decides approval/request)".to_owned(),
        "workspace" => return workspace(parameters),
        "process" => return vec![process(parameters)],
        "journal" => return vec![journal(parameters)],
        "http" => match texts(parameters).as_slice() {
            [] => "sends requests, but names no host yet, so that it can reach none".to_owned(),
            hosts => format!("sends requests to {}", list(hosts)),
        },
        "route" => return items(parameters).iter().map(route).collect(),
        "secret" => match items(parameters) {
            [] => "uses credentials, but names none yet".to_owned(),
            secrets => return secrets.iter().map(secret).collect(),
        },
        "observe" => return listens(&texts(parameters), watching),
        "decide" => return listens(&texts(parameters), deciding),
        "tool-names" => match texts(parameters).as_slice() {
            [] => "adds tools for the model to call".to_owned(),
            [one] => format!("adds the tool {} for the model to call", shown(one)),
            names => format!("adds the tools {} for the model to call", list(names)),
        },
        "dir" => return items(parameters).iter().map(folder).collect(),
        "env" => match texts(parameters).as_slice() {
            [] => "reads environment variables, but names none yet".to_owned(),
            names => format!("reads the environment variables {}", list(names)),
        },
        _ => format!(
            "something that this dsh has no words for: {} {}",
            shown(grant),
            shown(&parameters.to_string())
        ),
    };
    vec![said]
}

/// Bytes, in words.
pub(super) fn size(bytes: &Value) -> String {
    let Some(bytes) = bytes.as_u64() else {
        return shown(&bytes.to_string());
    };
    let units = [(30, "GiB"), (20, "MiB"), (10, "KiB")];
    match units.iter().find(|(power, _)| bytes >> power > 0) {
        Some((power, unit)) if bytes % (1 << power) == 0 => format!("{} {unit}", bytes >> power),
        Some((10, _)) | None => format!("{bytes} bytes"),
        Some((power, unit)) => format!("about {} {unit}", bytes >> power),
    }
}

fn member<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

fn kv(parameters: &Value) -> String {
    let quota = parameters.get("quota").map(size).unwrap_or_default();
    let scopes = texts(parameters.get("scopes").unwrap_or(&Value::Null));
    let scopes: Vec<&str> = scopes
        .iter()
        .map(|scope| match scope.as_str() {
            "profile" => "for good",
            "project" => "for each folder",
            "session" => "for each session",
            other => other,
        })
        .collect();
    format!(
        "keeps up to {quota} of data of its own ({})",
        scopes.join(", ")
    )
}

fn inbox(parameters: &Value) -> String {
    let said = "puts messages in front of the model, marked as its own";
    match parameters.get("wake").and_then(Value::as_u64) {
        None | Some(0) => said.to_owned(),
        Some(1) => format!("{said}, and starts the model with one when it is idle"),
        Some(times) => {
            format!(
                "{said}, and starts the model with them when it is idle, {times} times in a row"
            )
        }
    }
}

fn workspace(parameters: &Value) -> Vec<String> {
    let roots = texts(parameters.get("read").unwrap_or(&Value::Null));
    let here = "the folder where you start dsh";
    let places: Vec<String> = roots
        .iter()
        .map(|root| match root.as_str() {
            "." => here.to_owned(),
            other => shown(other),
        })
        .collect();
    let places = places.join(" and ");
    let mut said = Vec::new();
    if writes(parameters) {
        let places = if roots.is_empty() { here } else { &places };
        said.push(format!(
            "changes files in {places} (as far as the sandbox mode allows)"
        ));
    }
    said.push(if roots.is_empty() {
        "reads any file that you can read".to_owned()
    } else {
        format!("reads files in {places}")
    });
    said
}

fn process(parameters: &Value) -> String {
    if any_program(parameters) {
        return "runs any program (under the sandbox of your mode)".to_owned();
    }
    match texts(parameters).as_slice() {
        [] => "runs programs, but names none yet, so that it can run none".to_owned(),
        programs => format!(
            "runs {} with any arguments (under the sandbox of your mode)",
            list(programs)
        ),
    }
}

fn journal(parameters: &Value) -> String {
    match texts(parameters).as_slice() {
        [] => "appends records of its own to your sessions, beside what the model sees".to_owned(),
        kinds => format!(
            "appends {} to your sessions, beside what the model sees",
            list(kinds)
        ),
    }
}

fn route(route: &Value) -> String {
    let provider = shown(member(route, "provider").unwrap_or_default());
    let origins = texts(route.get("origins").unwrap_or(&Value::Null));
    let credential = member(route, "credential").map(shown);
    match (origins.as_slice(), credential) {
        ([], None) => format!("answers as the models of {provider}, and sends nothing"),
        ([], Some(credential)) => format!(
            "may send your conversations with {credential}, but names no address yet (models of {provider})"
        ),
        (origins, None) => format!(
            "may send your conversations to {} (models of {provider})",
            list(origins)
        ),
        (origins, Some(credential)) => format!(
            "may send your conversations to {} with {credential} (models of {provider})",
            list(origins)
        ),
    }
}

fn secret(secret: &Value) -> String {
    let part = |name| shown(member(secret, name).unwrap_or_default());
    format!(
        "has the credential {} sent to {} in the header {}, without seeing it",
        part("name"),
        part("host"),
        part("header")
    )
}

fn folder(folder: &Value) -> String {
    let path = shown(member(folder, "path").unwrap_or_default());
    if folder_writes(folder) {
        format!("reads and changes everything in the folder {path}, whatever the sandbox mode is")
    } else {
        format!("reads everything in the folder {path}")
    }
}

fn listens(events: &[String], say: fn(&str) -> String) -> Vec<String> {
    let mut said: Vec<String> = events.iter().take(ITEMS).map(|event| say(event)).collect();
    if events.len() > ITEMS {
        said.push(format!("and so for {} more events", events.len() - ITEMS));
    }
    said
}

fn watching(name: &str) -> String {
    match events::event(name) {
        Some(event) => format!("sees {} (watches {name})", event.tells),
        None => unknown("watches", name),
    }
}

fn deciding(name: &str) -> String {
    match events::event(name) {
        Some(event) => match event.lets {
            Some(lets) => format!("sees {}, and may {lets} (decides {name})", event.tells),
            None => format!("sees {} (watches {name})", event.tells),
        },
        None => unknown("decides", name),
    }
}

fn unknown(verb: &str, name: &str) -> String {
    format!(
        "{verb} the event {}, which this dsh does not have",
        shown(name)
    )
}
