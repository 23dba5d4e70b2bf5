//! The rules by which our logs may differ from the recorded ones, each with its
//! reason. Beside them, always: times, the ids of messages, approvals, retries
//! and compactions (compared one to one), the text of the system prompt, and the
//! schemas of tools.

use serde_json::Value;

use crate::recording::{Recording, Told};

/// Two logs under comparison.
pub(crate) struct Pair<'a> {
    pub(crate) recording: &'a Recording,
    pub(crate) theirs: Vec<Told>,
    pub(crate) ours: Vec<Told>,
}

impl Pair<'_> {
    fn has(&self, kind: &str) -> bool {
        self.theirs.iter().any(|event| event.kind == kind)
    }

    /// Both logs, so that one walk changes them alike.
    fn both(&mut self) -> impl Iterator<Item = &mut Told> {
        self.theirs.iter_mut().chain(&mut self.ours)
    }

    fn drop_ours(&mut self, kinds: &[&str]) -> bool {
        let before = self.ours.len();
        self.ours
            .retain(|event| !kinds.contains(&event.kind.as_str()));
        self.ours.len() < before
    }
}

/// A rule of difference.
pub struct Rule {
    /// Its name, as the list has it.
    pub name: &'static str,
    /// What differs, and why.
    pub why: &'static str,
    /// Takes the difference out of both logs; whether there was one.
    pub(crate) apply: fn(&mut Pair<'_>) -> bool,
}

impl std::fmt::Debug for Rule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

/// What a comparison came to.
#[derive(Debug)]
pub struct Outcome {
    /// What is left of differences.
    pub differences: Vec<crate::Difference>,
    /// The rules that took others out, by name.
    pub rules: Vec<&'static str>,
}

/// All rules, in the order in which they are applied.
pub const RULES: [Rule; 11] = [
    Rule {
        name: "older-log",
        why: "recorded before the inbox and the route were logged, when a step began behind its \
              messages, a snapshot's source did not list its sections and a header had a message \
              prefix: what such a log cannot have is left out of ours",
        apply: older_log,
    },
    Rule {
        name: "surface-number",
        why: "the web surface numbers what a person sends; the headless command does not",
        apply: surface_number,
    },
    Rule {
        name: "own-kinds",
        why: "events of our own, which no reader of such logs has to know",
        apply: own_kinds,
    },
    Rule {
        name: "unpinned",
        why: "the headless command writes the permissions of a new session into its log, the ACP, \
              JSON-RPC and test hosts of the recordings did not",
        apply: unpinned,
    },
    Rule {
        name: "untold-model",
        why: "recordings were replayed by an adapter that knows nothing of its model; the DeepSeek \
              adapter fills in effort, output cap and context window",
        apply: untold_model,
    },
    Rule {
        name: "blocks-close-together",
        why: "the adapter of some recordings ended a block before it began the next, or left one \
              open that the output cap cut; DeepSeek's stream does not say where a block ends, so \
              all end together",
        apply: blocks_close_together,
    },
    Rule {
        name: "replay-state",
        why: "what an adapter of other protocols keeps of an answer to replay it; DeepSeek's needs none",
        apply: replay_state,
    },
    Rule {
        name: "own-words",
        why: "messages of plugins, and what the host says in place of a tool, are worded by us; \
              the recordings' words are also run through a substitution",
        apply: own_words,
    },
    Rule {
        name: "substituted-todos",
        why: "the substitution of letters went through the list that `todo_write` logged, and not \
              through its arguments; and what the tool says of it are our words",
        apply: substituted_todos,
    },
    Rule {
        name: "failure-facts",
        why: "a failure comes over HTTP here, with its status and the provider's words; the \
              recordings' adapters made theirs up",
        apply: failure_facts,
    },
    Rule {
        name: "one-route",
        why: "a recorded test had a route of its own for titles; here there is DeepSeek's",
        apply: one_route,
    },
];

fn older_log(pair: &mut Pair<'_>) -> bool {
    if !pair.recording.is_old() {
        return false;
    }
    pair.drop_ours(&["agent/inbox/spliced"]);
    if !pair.has("request/context") {
        pair.drop_ours(&["request/context"]);
    }
    for event in &mut pair.theirs {
        if let Some(header) = event.data.get_mut("header").and_then(Value::as_object_mut) {
            header.remove("messagePrefix");
        }
    }
    for event in pair.both() {
        if event.data["source"]["kind"] == "plugin"
            && let Some(source) = event.data["source"].as_object_mut()
        {
            source.remove("form");
            source.remove("sections");
        }
    }
    steps_begin_before_messages(&mut pair.theirs);
    true
}

/// Puts what came between two steps in the order of today: the step begins, then
/// its messages, then the title that is made of one.
fn steps_begin_before_messages(events: &mut [Told]) {
    let place = |event: &Told| match event.kind.as_str() {
        "step/start" => Some(0),
        "user/message" => Some(1),
        "session/title" => Some(2),
        _ => None,
    };
    for run in events.chunk_by_mut(|one, next| place(one).is_some() && place(next).is_some()) {
        run.sort_by_key(place);
    }
}

fn own_kinds(pair: &mut Pair<'_>) -> bool {
    let before = pair.ours.len();
    pair.ours.retain(|event| !event.kind.starts_with("dsh/"));
    pair.ours.len() < before
}

fn surface_number(pair: &mut Pair<'_>) -> bool {
    let mut found = false;
    for event in &mut pair.theirs {
        walk(&mut event.data, &mut |members| {
            if let Some(source) = members.get_mut("source").and_then(Value::as_object_mut) {
                found |= source.remove("rpcId").is_some();
            }
        });
    }
    found
}

fn unpinned(pair: &mut Pair<'_>) -> bool {
    !pair.has("permission/preset")
        && pair.drop_ours(&["permission/preset", "sandbox/mode", "approval/policy"])
}

fn untold_model(pair: &mut Pair<'_>) -> bool {
    let told = pair
        .theirs
        .iter()
        .any(|event| event.data["header"].get("adapterDefaults").is_some());
    let window = pair
        .theirs
        .iter()
        .any(|event| event.data.get("contextWindow").is_some());
    let mut found = false;
    for event in &mut pair.ours {
        if event.kind == "request/header" && !told {
            let header = event.data["header"].as_object_mut();
            let header = header.expect("a header is an object");
            let defaults = header.remove("adapterDefaults").unwrap_or_default();
            for name in defaults
                .as_object()
                .into_iter()
                .flat_map(|names| names.keys())
            {
                let config = header["config"].as_object_mut();
                config.expect("a config is an object").remove(name);
                found = true;
            }
        }
        if event.kind == "request/context"
            && !window
            && let Some(data) = event.data.as_object_mut()
        {
            found |= data.remove("contextWindow").is_some();
        }
    }
    found
}

/// Ends of blocks go behind all deltas of their attempt; those of blocks that the
/// recording left open go.
fn blocks_close_together(pair: &mut Pair<'_>) -> bool {
    let chunk = |event: &Told| {
        event.data["chunk"]["type"]
            .as_str()
            .unwrap_or("")
            .to_owned()
    };
    let mut found = false;
    let theirs = &mut pair.theirs;
    for at in (0..theirs.len()).rev() {
        let mut at = at;
        while at + 1 < theirs.len() && chunk(&theirs[at]) == "block-end" {
            let next = chunk(&theirs[at + 1]);
            if next != "block-start" && !next.ends_with("-delta") {
                break;
            }
            theirs.swap(at, at + 1);
            found = true;
            at += 1;
        }
    }
    let block = |event: &Told| {
        let of = |name: &str| event.data[name].clone();
        (of("turn"), of("step"), event.data["chunk"]["index"].clone())
    };
    let ended: Vec<_> = theirs
        .iter()
        .filter(|event| chunk(event) == "block-end")
        .map(block)
        .collect();
    let before = pair.ours.len();
    pair.ours
        .retain(|event| chunk(event) != "block-end" || ended.contains(&block(event)));
    found || pair.ours.len() < before
}

fn replay_state(pair: &mut Pair<'_>) -> bool {
    let mut found = false;
    for event in &mut pair.theirs {
        walk(&mut event.data, &mut |members| {
            found |= members.remove("replayState").is_some();
        });
    }
    found
}

/// A mask in the place of words.
const WORDS: &str = "…";

fn own_words(pair: &mut Pair<'_>) -> bool {
    let asked: Vec<Value> = pair
        .theirs
        .iter()
        .filter(|event| event.kind == "approval/asked")
        .map(|event| event.data["callId"].clone())
        .collect();
    let skills: Vec<Value> = pair
        .theirs
        .iter()
        .filter(|event| event.kind == "tool/call" && event.data["name"] == "skill")
        .map(|event| event.data["callId"].clone())
        .collect();
    let mut found = false;
    for event in pair.both() {
        if event.kind == "tool/result" {
            found |= hosts_words(event, &asked);
            let result = &mut event.data["message"]["content"][0];
            if skills.contains(&result["toolCallId"]) {
                result["content"][0]["text"] = WORDS.into();
            }
        }
        if event.kind == "session/title-llm-request" {
            event.data["system"] = WORDS.into();
            found = true;
        }
        walk(&mut event.data, &mut |members| {
            let kind = members
                .get("source")
                .and_then(|source| source["kind"].as_str());
            if kind.is_some_and(|kind| !["user", "model", "tool"].contains(&kind)) {
                mask_message(members);
                found = true;
            }
        });
    }
    found
}

/// What the host says where a call has no result of its tool's: its code tells
/// what, and a denial follows a question.
fn hosts_words(event: &mut Told, asked: &[Value]) -> bool {
    let code = event.data["error"]["code"].as_str();
    let (coded, aborted) = (
        code.is_some(),
        code.is_some_and(|code| code.starts_with("ABORTED")),
    );
    let result = &mut event.data["message"]["content"][0];
    if result["isError"] != true {
        return false;
    }
    let denied = !coded && asked.contains(&result["toolCallId"]);
    let text = &mut result["content"][0]["text"];
    let said = text.as_str().unwrap_or_default();
    // The first word, `Error:`, is the host's in each; the substitution kept its length.
    *text = match said.split_once(": ") {
        Some((_, rest)) if !aborted && !denied => rest.into(),
        _ => WORDS.into(),
    };
    true
}

fn mask_message(message: &mut serde_json::Map<String, Value>) {
    for block in message
        .get_mut("content")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        if block.get("text").is_some() {
            block["text"] = WORDS.into();
        }
    }
    let source = &mut message["source"];
    for section in source
        .get_mut("sections")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        section["text"] = WORDS.into();
    }
    // Of the words of a file, which were substituted.
    for change in source
        .get_mut("changes")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        change["digest"] = WORDS.into();
    }
    // `bash × 3`: the name was substituted as well.
    if let Some(summary) = source["summary"].as_str() {
        let count = summary.rsplit(' ').next().unwrap_or_default();
        source["summary"] = format!("{WORDS} {count}").into();
    }
}

fn substituted_todos(pair: &mut Pair<'_>) -> bool {
    let calls: Vec<Value> = pair
        .theirs
        .iter()
        .filter(|event| event.kind == "tool/call" && event.data["name"] == "todo_write")
        .map(|event| event.data["callId"].clone())
        .collect();
    for event in pair.both() {
        for todo in event
            .data
            .get_mut("todos")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            todo["content"] = WORDS.into();
        }
        let result = &event.data["message"]["content"][0];
        if event.kind == "tool/result" && calls.contains(&result["toolCallId"]) {
            event.data["message"]["content"][0]["content"][0]["text"] = WORDS.into();
        }
    }
    !calls.is_empty()
}

fn failure_facts(pair: &mut Pair<'_>) -> bool {
    let mut found = false;
    for event in pair.both() {
        for name in ["failure", "error"] {
            walk(&mut event.data, &mut |members| {
                let Some(failure) = members.get_mut(name).and_then(Value::as_object_mut) else {
                    return;
                };
                if failure.contains_key("message") {
                    failure.retain(|key, _| key == "code");
                    found = true;
                }
            });
        }
    }
    found
}

fn one_route(pair: &mut Pair<'_>) -> bool {
    let mut found = false;
    for event in pair.both() {
        if event.kind == "session/title-llm-request" {
            found |= event.data["route"]["provider"] == "title-replay";
            event.data["route"] = Value::Null;
        }
    }
    found
}

/// Every object of a value, the outer ones first.
pub(crate) fn walk(value: &mut Value, each: &mut impl FnMut(&mut serde_json::Map<String, Value>)) {
    match value {
        Value::Object(members) => {
            each(members);
            for inner in members.values_mut() {
                walk(inner, each);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, each)),
        _ => {}
    }
}
