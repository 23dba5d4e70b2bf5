//! What came out against what was recorded.

use dsh_model::BlockAssembler;
use dsh_session::Json;
use mock_provider::Recorded;
use serde_json::{Value, json};

use crate::USER_AGENT;
use crate::case::Case;

/// Chunks, the message that they make, and the request that was sent.
pub(crate) fn check(case: &Case, chunks: &[Json], requests: &[Recorded]) -> Result<(), String> {
    let got = Value::Array(chunks.iter().map(value).collect());
    same("chunks", &case.expected["chunks"], got)?;

    let mut assembler = BlockAssembler::new();
    chunks.iter().for_each(|chunk| assembler.push(chunk));
    let list = |blocks: &[Json]| Value::Array(blocks.iter().map(value).collect());
    let mut assembled = json!({
        "blocks": list(&assembler.blocks()),
        "finish": value(&assembler.finish().to_json()),
        "interruptedBlocks": list(&assembler.interrupted_blocks()),
    });
    if let Some(usage) = assembler.usage() {
        assembled["usage"] = value(usage);
    }
    if let Some(state) = assembler.replay_state() {
        assembled["replayState"] = value(&state);
    }
    same("assembled", &case.expected["assembled"], assembled)?;
    sent(case.expected.get("http"), requests)
}

fn sent(http: Option<&Value>, requests: &[Recorded]) -> Result<(), String> {
    let (http, request) = match (http, requests) {
        (None, []) => return Ok(()),
        (Some(http), [request]) => (http, request),
        _ => return Err(format!("{} requests were sent", requests.len())),
    };
    same("method", &http["method"], json!(request.method))?;
    same("path", &http["path"], json!(request.path))?;
    for (name, expected) in http["headers"].as_object().into_iter().flatten() {
        // The product of a recording is upstream.
        let ours = json!(USER_AGENT);
        let expected = if name == "user-agent" {
            &ours
        } else {
            expected
        };
        let got = request
            .header(name)
            .map_or(Value::Null, |value| json!(value));
        same(&format!("header {name}"), expected, got)?;
    }
    let body = serde_json::from_slice(&request.body)
        .map_err(|error| format!("the body is no JSON: {error}: {}", request.text()))?;
    same("body", &http["body"], body)
}

fn same(what: &str, expected: &Value, mut got: Value) -> Result<(), String> {
    let mut expected = expected.clone();
    drop_free_texts(&mut expected, &mut got);
    if got == expected {
        return Ok(());
    }
    let (at, expected, got) = first_difference(String::new(), &expected, &got);
    Err(format!(
        "{what}{at}\n    recorded: {}\n    here:     {}",
        shown(expected),
        shown(got)
    ))
}

fn shown(value: Option<&Value>) -> String {
    value.map_or_else(|| String::from("nothing"), Value::to_string)
}

/// The first place where two values differ, and what stands there.
fn first_difference<'a>(
    at: String,
    expected: &'a Value,
    got: &'a Value,
) -> (String, Option<&'a Value>, Option<&'a Value>) {
    let keys: Vec<String> = match (expected, got) {
        (Value::Object(a), Value::Object(b)) => a.keys().chain(b.keys()).cloned().collect(),
        (Value::Array(a), Value::Array(b)) => {
            (0..a.len().max(b.len())).map(|at| at.to_string()).collect()
        }
        _ => return (at, Some(expected), Some(got)),
    };
    for key in keys {
        let place = format!("/{}", key.replace('~', "~0").replace('/', "~1"));
        match (expected.pointer(&place), got.pointer(&place)) {
            (Some(a), Some(b)) if a == b => {}
            (Some(a), Some(b)) => return first_difference(at + &place, a, b),
            (a, b) => return (at + &place, a, b),
        }
    }
    (at, Some(expected), Some(got))
}

/// Takes texts that an adapter writes itself out of both sides: where a recording
/// has none, only codes and numbers count.
fn drop_free_texts(expected: &mut Value, got: &mut Value) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            let text = got.get("message").and_then(Value::as_str);
            if expected.contains_key("code")
                && expected.get("message") == Some(&Value::Null)
                && text.is_some_and(|text| !text.is_empty())
            {
                got.insert(String::from("message"), Value::Null);
            }
            for (key, expected) in expected {
                if let Some(got) = got.get_mut(key) {
                    drop_free_texts(expected, got);
                }
            }
        }
        (Value::Array(expected), Value::Array(got)) => {
            for (expected, got) in expected.iter_mut().zip(got) {
                drop_free_texts(expected, got);
            }
        }
        // Our own words stand where the recording names what they must name.
        (Value::String(expected), Value::String(got)) => {
            if let Some((before, rest)) = expected.split_once("{{")
                && let Some((naming, after)) = rest.split_once("}}")
                && let Some(named) = naming.rsplit(' ').next()
                && got.starts_with(before)
                && got.ends_with(after)
                // A text that is fixed but not quoted names nothing.
                && (got.contains(named) || !naming.contains(" naming "))
            {
                got.clone_from(expected);
            }
        }
        _ => {}
    }
}

fn value(json: &Json) -> Value {
    serde_json::from_str(json.as_str()).unwrap()
}
