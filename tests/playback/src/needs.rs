//! What a recording needs of a build, and what of that there is none.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::recording::Recording;

/// Kinds of events that a run of this build writes. What is commented out comes
/// with its component.
const KINDS: [&str; 25] = [
    "agent/inbox/spliced",
    "approval/asked",
    "approval/decided",
    "approval/policy",
    "assistant/chunk",
    "assistant/message",
    "compaction/end",
    "compaction/prune",
    "compaction/start",
    "compaction/summary",
    // "llm/retry",
    // "llm/retry-started",
    "permission/preset",
    "request/context",
    "request/header",
    "sandbox/mode",
    "session/end-seed",
    "session/title",
    // "session/title-llm-request",
    "step/end",
    "step/start",
    "todo/write",
    "tool/call",
    "tool/result",
    "turn/end",
    "turn/start",
    "user/message",
    "dsh/row-quarantined",
];

/// Its tools.
const TOOLS: [&str; 8] = [
    "bash",
    "edit",
    "glob",
    "grep",
    "read",
    "skill",
    "todo_write",
    "write",
];

/// Where its messages come from; of `plugin`, the names of those.
const SOURCES: [&str; 4] = [
    "agent-instructions",
    "skill-catalog",
    "skill-invocation",
    "user",
];
const PLUGINS: [&str; 4] = [
    "@deepseek-ai/dsh-system-prompt",
    "compact",
    "dsh-session-title-llm",
    "repeat-tool-reminder",
];

/// Why it cannot be played, in words that sort together; nothing where it can be.
/// `earlier` are recordings that are listed before it.
#[must_use]
pub fn lacks(recording: &Recording, earlier: &[Recording]) -> Vec<String> {
    if let Some(twin) = recording.case.strip_suffix("-rawheader") {
        return vec![format!("a header that upstream opens: the twin of {twin}")];
    }
    if !recording.opens {
        return vec!["a log that upstream opens".to_owned()];
    }
    if recording.events.is_empty() {
        return vec!["events: it is empty".to_owned()];
    }
    let mut lacks = BTreeSet::new();
    if !recording.has("turn/start") {
        lacks.insert("a turn: it is a fragment".to_owned());
    }
    for event in &recording.events {
        if !KINDS.contains(&event.kind.as_str()) {
            lacks.insert(format!("event {}", event.kind));
        }
        if event.kind == "tool/call" {
            let name = event.data["name"].as_str().unwrap_or_default();
            if !TOOLS.contains(&name) && event.seq as usize >= recording.begin() {
                lacks.insert(format!("tool {name}"));
            }
        }
        if event.kind == "user/message" {
            lacks.extend(source(&event.data["source"]));
        }
        if event.kind == "request/header" {
            lacks.extend(route(&event.data));
        }
        if has_image(&event.data) {
            lacks.insert("images".to_owned());
        }
    }
    if recording.child {
        lacks.insert("subagents: it is a child's".to_owned());
    }
    lacks.extend(by_hand(recording));
    if lacks.is_empty()
        && let Some(twin) = earlier.iter().find(|other| same(other, recording))
    {
        lacks.insert(format!("events of its own: it is {}", twin.case));
    }
    lacks.into_iter().collect()
}

fn source(source: &Value) -> Option<String> {
    let kind = source["kind"].as_str().unwrap_or("none");
    if kind != "plugin" {
        return (!SOURCES.contains(&kind)).then(|| format!("source {kind}"));
    }
    let plugin = source["plugin"].as_str().unwrap_or("none");
    (!PLUGINS.contains(&plugin)).then(|| format!("source plugin {plugin}"))
}

/// Only one adapter is there to serve a model, under its own name.
fn route(header: &Value) -> Option<String> {
    let provider = header["header"]["config"]["provider"].as_str();
    let provider = provider.unwrap_or("none");
    if header["reason"] == "change" {
        return Some("a row that changes the request from step to step".to_owned());
    }
    (provider != "deepseek-official").then(|| format!("provider {provider}"))
}

fn has_image(data: &Value) -> bool {
    match data {
        Value::Object(members) => {
            members.get("type").is_some_and(|kind| kind == "image")
                || members.values().any(has_image)
        }
        Value::Array(items) => items.iter().any(has_image),
        _ => false,
    }
}

/// What no run wrote: an answer without what a provider said, a summary without
/// its compaction.
fn by_hand(recording: &Recording) -> Option<String> {
    let live = &recording.events[recording.begin()..];
    let unsaid = live
        .iter()
        .any(|event| event.kind == "assistant/message" && event.sources.is_empty());
    if unsaid {
        return Some("chunks: an answer in it was written by hand".to_owned());
    }
    let replaced = live
        .iter()
        .any(|event| event.kind == "user/message" && event.data["source"]["plugin"] == "compact");
    (replaced && !recording.has("compaction/start"))
        .then(|| "a compaction: a message in it was replaced by hand".to_owned())
}

fn same(one: &Recording, other: &Recording) -> bool {
    one.opens
        && !one.events.is_empty()
        && one.events.len() == other.events.len()
        && one.events.iter().zip(&other.events).all(|(a, b)| a == b)
}
