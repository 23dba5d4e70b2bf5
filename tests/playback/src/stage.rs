//! How a recording is put on: which rows of the profile it had, which of its
//! tools are played by what they gave, and what a person did.

use serde_json::{Map, Value, json};

use crate::recording::{Recording, Told};

/// How a recording comes into a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// One task of the command, in a new session or in a stored one.
    Command,
    /// A person who stays: several prompts of one process, or one who gives up.
    Person,
}

/// What a person said, and when they gave up.
#[derive(Clone, Debug)]
pub struct Prompt {
    /// Their words.
    pub text: String,
    /// When they gave the turn up.
    pub cancel: Option<When>,
}

/// The last thing that happened by itself before a turn was given up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum When {
    /// The answer had come so far: so many chunks.
    Chunks(usize),
    /// A call's body was at work, and never came back: the player made this file.
    Working(&'static str),
}

/// All that a driver needs.
#[derive(Clone, Debug)]
pub struct Stage {
    /// The door.
    pub door: Door,
    /// A patch of the profile, in JSON, which is YAML.
    pub patch: Value,
    /// What a person said, one after another.
    pub prompts: Vec<Prompt>,
    /// `provider/model`.
    pub model: String,
    /// The preset of permissions.
    pub permission: &'static str,
    /// Files of the working directory, by path.
    pub files: Vec<(String, String)>,
    /// Lines of the stored session that the run takes up, header first; none for a new one.
    pub stored: Vec<String>,
}

/// Puts a recording on. `player` is the component of fixed tools.
#[must_use]
pub fn stage(recording: &Recording, player: &str) -> Stage {
    let prompts = prompts(recording);
    let person = prompts.len() > 1 || prompts.iter().any(|prompt| prompt.cancel.is_some());
    let asks = recording.has("approval/asked");
    let begin = recording.begin();
    Stage {
        door: if person { Door::Person } else { Door::Command },
        patch: patch(recording, player),
        prompts,
        model: model(recording),
        permission: preset(recording, asks),
        files: files(recording),
        stored: if begin > 0 {
            // The marker is written by whoever takes it up.
            recording.lines[..=begin].to_vec()
        } else {
            Vec::new()
        },
    }
}

fn live(recording: &Recording) -> &[Told] {
    &recording.events[recording.begin()..]
}

fn prompts(recording: &Recording) -> Vec<Prompt> {
    let mut prompts: Vec<Prompt> = Vec::new();
    for (at, event) in live(recording).iter().enumerate() {
        if event.kind == "user/message" && event.source() == Some("user") {
            let blocks = event.data["content"].as_array();
            let texts = blocks
                .into_iter()
                .flatten()
                .filter_map(|block| block["text"].as_str());
            prompts.push(Prompt {
                text: texts.collect(),
                cancel: None,
            });
        }
        let aborted = event.kind == "turn/end" && event.data["reason"]["kind"] == "aborted";
        if let (true, Some(prompt)) = (aborted, prompts.last_mut()) {
            prompt.cancel = Some(given_up_behind(&live(recording)[..at]));
        }
    }
    prompts
}

fn given_up_behind(before: &[Told]) -> When {
    let aborted = before
        .iter()
        .any(|event| event.data["error"]["code"] == "ABORTED");
    if aborted {
        return When::Working(WORKING);
    }
    let chunks = before
        .iter()
        .filter(|event| event.kind == "assistant/chunk");
    When::Chunks(chunks.count())
}

/// What the player makes before it waits.
const WORKING: &str = "working";

fn model(recording: &Recording) -> String {
    let header = live(recording)
        .iter()
        .find(|event| event.kind == "request/header");
    let config = header.map_or(&Value::Null, |event| &event.data["header"]["config"]);
    let part = |name: &str| config[name].as_str().unwrap_or_default();
    format!("{}/{}", part("provider"), part("model"))
}

fn preset(recording: &Recording, asks: bool) -> &'static str {
    let told = recording.of("permission/preset").next();
    match told.and_then(|event| event.data["preset"].as_str()) {
        Some("workspace-write") => "workspace-write",
        Some("read-only") => "read-only",
        // Full access asks nobody.
        None if asks => "workspace-write",
        _ => "danger-full-access",
    }
}

/// The tools that give what they gave. The others are the real ones: they write
/// to the log, or what they say depends on it.
const FIXED: [&str; 6] = ["bash", "edit", "glob", "grep", "read", "write"];

/// What its adapter was set up with, where that shows: the effort that it took
/// where nobody asked for one, and how much the model holds.
fn adapter(recording: &Recording) -> Map<String, Value> {
    let mut config = Map::new();
    let header = live(recording)
        .iter()
        .find(|event| event.kind == "request/header");
    let header = header.map_or(&Value::Null, |event| &event.data["header"]);
    if header["adapterDefaults"]["reasoningEffort"] == true {
        config.insert(
            "reasoningEffort".into(),
            header["config"]["reasoningEffort"].clone(),
        );
    }
    let context = live(recording)
        .iter()
        .find(|event| event.kind == "request/context");
    if let Some(window) = context.and_then(|event| event.data["contextWindow"].as_u64()) {
        let model = &header["config"]["model"];
        config.insert(
            "models".into(),
            json!([{"id": model, "contextWindow": window}]),
        );
    }
    if let Some(retry) = recording.of("llm/retry").next() {
        config.insert("retryPolicy".into(), retry_policy(&retry.data["policyKey"]));
    }
    config
}

/// The policy that a retry names by its key, `[mode, maxRetries, codes, initial, max, jitter]`.
fn retry_policy(key: &Value) -> Value {
    let key: Value = serde_json::from_str(key.as_str().unwrap_or_default()).unwrap_or_default();
    json!({
        "mode": key[0],
        "maxRetries": key[1],
        "retryableCodes": key[2],
        "backoff": {"initialDelayMs": key[3], "maxDelayMs": key[4], "jitterRatio": key[5]},
    })
}

/// Titles by a model, as it asked for them; most recordings did not.
fn titles(recording: &Recording) -> Value {
    let Some(asked) = recording.of("session/title-llm-request").next() else {
        return json!({"id": "session-title-llm", "disabled": true});
    };
    let mut config = json!({"maxOutputTokens": asked.data["maxTokens"]});
    let route = &asked.data["route"];
    let header = recording.of("request/header").next();
    let own = header.map_or(&Value::Null, |header| &header.data["header"]["config"]);
    if route["model"] != own["model"] {
        config["provider"] = own["provider"].clone();
        config["model"] = route["model"].clone();
    }
    json!({"id": "session-title-llm", "config": config})
}

fn lists_skills(recording: &Recording) -> bool {
    recording
        .of("user/message")
        .any(|event| event.source() == Some("skill-catalog"))
}

/// Rows that a recording's host had or had not, and the player in place of tools.
fn patch(recording: &Recording, player: &str) -> Value {
    let snapshot = recording
        .of("user/message")
        .any(|event| event.data["source"]["plugin"] == "@deepseek-ai/dsh-system-prompt");
    let off = |id: &str| json!({"id": id, "disabled": true});
    let mut patch = vec![
        off("tool-bash"),
        off("tool-fs"),
        off("tool-fs-search"),
        json!({"id": "system-prompt", "config": {"includeRuntimeContext": snapshot}}),
    ];
    patch.push(titles(recording));
    if !lists_skills(recording) {
        patch.push(off("skill-filesystem"));
    }
    if !recording.has("session/title") {
        patch.push(off("session-title"));
    }
    let adapter = adapter(recording);
    if !adapter.is_empty() {
        patch.push(json!({"id": "llm-deepseek", "config": adapter}));
    }
    if let Some(summary) = recording.of("compaction/summary").next() {
        let config = json!({"maxTokens": summary.data["maxTokens"]});
        patch.push(json!({"id": "compaction-basic", "config": config}));
    }
    let row = json!({
        "id": "player",
        "component": player,
        "config": {"tools": FIXED, "results": results(recording)},
        "grants": {
            "clock": true,
            "workspace": {"write": true},
            "session": true,
            "decide": ["tools/pre-execute"],
            "approval": true,
            "tool-names": FIXED,
        },
    });
    patch.push(json!({"insert": [row]}));
    Value::Array(patch)
}

/// What each call gave, by its id.
fn results(recording: &Recording) -> Map<String, Value> {
    let mut results = Map::new();
    for (at, event) in live(recording).iter().enumerate() {
        if event.kind == "tool/result" {
            let call = event.data["message"]["source"]["callId"].as_str();
            let call = call.unwrap_or_default().to_owned();
            results.insert(call.clone(), result(recording, at, event, &call));
        }
    }
    results
}

fn result(recording: &Recording, at: usize, event: &Told, call: &str) -> Value {
    let block = &event.data["message"]["content"][0];
    let mut result = json!({"content": block["content"]});
    let code = event.data["error"]["code"].as_str();
    if let Some(code) = code {
        let text = block["content"][0]["text"].as_str().unwrap_or_default();
        let message = text.split_once(": ").map_or(text, |(_, rest)| rest);
        result["error"] = json!({"code": code, "message": message});
    } else if block["isError"] == true {
        result["isError"] = true.into();
    }
    if code == Some("ABORTED") {
        result["wait"] = WORKING.into();
    }
    if let Some(meta) = event.data.get("meta") {
        result["meta"] = meta.clone();
    }
    // A call that began before this one ended overlapped it.
    let before = &live(recording)[..at];
    let last = before.iter().rfind(|event| event.kind == "tool/call");
    let last = last.and_then(|event| event.data["callId"].as_str());
    if let Some(last) = last.filter(|last| *last != call) {
        result["after"] = last.into();
    }
    let asked = live(recording)
        .iter()
        .position(|event| event.kind == "approval/asked" && event.data["callId"] == call);
    if let Some(asked) = asked {
        let of = |at: usize, name: &str| live(recording)[at].data[name].clone();
        result["ask"] = of(asked, "reason");
        result["answer"] = of(asked + 1, "outcome");
    }
    result
}

/// What lay in the workspace, as far as messages tell: skills by what the catalogue
/// says of them, and files of instructions, whose words are not told.
fn files(recording: &Recording) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for message in live(recording)
        .iter()
        .filter(|event| event.kind == "user/message")
    {
        let source = &message.data["source"];
        for entry in source["entries"].as_array().into_iter().flatten() {
            let part = |name: &str| entry[name].as_str().unwrap_or_default();
            let (name, description) = (part("name"), &entry["description"]);
            files.push((
                format!(".dsh/skills/{name}/SKILL.md"),
                format!("---\nname: {name}\ndescription: {description}\n---\nDo it well.\n"),
            ));
        }
        for change in source["changes"].as_array().into_iter().flatten() {
            let path = change["path"].as_str().unwrap_or_default();
            files.push((path.to_owned(), format!("What {path} asks for.\n")));
        }
    }
    files
}
