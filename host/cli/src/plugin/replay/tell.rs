//! What was played, in the shapes of the recordings, and as text.

use dsh_session::{Json, Value};

use super::case::Case;
use super::play::{Played, Sent, assembled};
use crate::plugin::text::shown;

/// Characters of a chunk on its line.
const LINE: usize = 160;

/// `{http?, chunks, assembled}`.
pub(super) fn whole(case: &Case, played: &Played) -> Json {
    Json::object(|o| {
        if let Some(first) = played.requests.first() {
            o.json("http", &http(case, first));
        }
        if played.requests.len() > 1 {
            o.array("further", |list| {
                for request in &played.requests[1..] {
                    list.json(&http(case, request));
                }
            });
        }
        o.array("chunks", |list| {
            for chunk in &played.chunks {
                list.json(chunk);
            }
        });
        o.json("assembled", &assembled(&played.chunks));
    })
}

/// A request; its body is JSON where it is JSON, else a text.
fn http(case: &Case, request: &Sent) -> Json {
    let body = String::from_utf8_lossy(&request.body);
    Json::object(|o| {
        o.str("method", &request.method);
        o.str("path", path(&request.url));
        o.str("url", &url(case, request));
        o.object("headers", |headers| {
            // A name that stands twice is one header with both values.
            for (at, (name, _)) in request.headers.iter().enumerate() {
                if request.headers[..at]
                    .iter()
                    .all(|(before, _)| before != name)
                {
                    let same = request.headers[at..]
                        .iter()
                        .filter(|(other, _)| other == name);
                    let values: Vec<&str> = same.map(|(_, value)| &**value).collect();
                    headers.str(name, &values.join(", "));
                }
            }
        });
        match Json::restore(&body) {
            Ok(body) => o.json("body", &body),
            Err(_) => o.str("body", &body),
        };
    })
}

/// What stands behind the host.
fn path(url: &str) -> &str {
    let behind = url.find("://").map_or(0, |at| at + 3);
    url[behind..]
        .find('/')
        .map_or("/", |at| &url[behind + at..])
}

/// With `{baseURL}` where the case has it.
fn url(case: &Case, request: &Sent) -> String {
    match request.url.strip_prefix(&case.base) {
        Some(rest) => format!("{{baseURL}}{rest}"),
        None => request.url.clone(),
    }
}

/// For people.
pub(super) fn text(what: &str, case: &Case, played: &Played) -> String {
    let mut text = format!(
        "{what}, {}/{}\n\n",
        shown(&case.provider, 80),
        shown(&case.call().model, 80)
    );
    if played.requests.is_empty() {
        text += "no request was made\n";
    }
    for request in &played.requests {
        text += &format!(
            "{} {}\n",
            shown(&request.method, 20),
            shown(&url(case, request), 400)
        );
        for (name, value) in &request.headers {
            let value = match &case.key {
                Some(key) => value.replace(key.as_str(), "[apiKey]"),
                None => value.clone(),
            };
            text += &format!("  {}: {}\n", shown(name, 80), shown(&value, 200));
        }
        text += &body(request);
    }
    let plural = if played.chunks.len() == 1 { "" } else { "s" };
    text += &format!("\n{} chunk{plural}\n", played.chunks.len());
    for chunk in &played.chunks {
        text += &format!("  {}\n", shown(chunk.as_str(), LINE));
    }
    let assembled = assembled(&played.chunks);
    text += "\nassembled\n";
    for block in assembled.get("blocks").into_iter().flat_map(Value::items) {
        text += &format!("  {}\n", shown(block.as_str(), LINE));
    }
    for key in ["finish", "usage", "replayState"] {
        if let Some(value) = assembled.get(key) {
            text += &format!("  {key}: {}\n", shown(value.as_str(), 4 * LINE));
        }
    }
    text
}

/// A request's body, laid out where it is JSON.
fn body(request: &Sent) -> String {
    let tree = serde_json::from_slice::<serde_json::Value>(&request.body);
    let Ok(laid_out) = tree.and_then(|tree| serde_json::to_string_pretty(&tree)) else {
        return format!(
            "  {}\n",
            shown(&String::from_utf8_lossy(&request.body), 4000)
        );
    };
    // A line a line; a text of a case may be as long as it likes.
    let lines = laid_out.lines().map(|line| {
        let indent = line.len() - line.trim_start().len();
        format!("  {}{}\n", " ".repeat(indent), shown(line, 400))
    });
    lines.collect()
}
