//! The recorded cases of `tests/conformance/llm/deepseek`, each with the cuts of
//! its recording and with others. The test plays the host's part: it sends
//! nothing, feeds the recorded body, and makes the last chunk where the adapter
//! leaves that to it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::*;
use guest_support::types::Part;

fn cases() -> Vec<(String, PathBuf)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/llm/deepseek");
    let mut cases: Vec<_> = std::fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .collect();
    cases.sort();
    assert!(cases.len() >= 27, "the cases are there");
    cases
}

fn json_file(path: &Path) -> Value {
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// A fresh instance for a recorded request.
fn load(recorded: &Value) {
    let settings = Settings::read(&recorded["config"].to_string()).unwrap();
    STATE.set(State {
        settings: Some(settings),
        attempts: Slots::default(),
    });
}

fn text(value: &Value) -> Option<String> {
    value.as_str().map(str::to_owned)
}

fn generate(options: &Value) -> GenerateRequest {
    let list = |name: &str| {
        options[name]
            .as_array()
            .into_iter()
            .flatten()
            .map(ToString::to_string)
            .collect()
    };
    GenerateRequest {
        config: CallConfig {
            provider: text(&options["provider"]).unwrap(),
            model: text(&options["model"]).unwrap(),
            reasoning_effort: text(&options["reasoningEffort"]),
            temperature: options["temperature"].as_f64(),
            max_tokens: options["maxTokens"].as_u64().map(|cap| cap as u32),
            stop: options["stop"]
                .as_array()
                .map(|stop| stop.iter().filter_map(text).collect()),
            more: None,
        },
        purpose: text(&options["purpose"]),
        system: text(&options["system"]),
        messages: list("messages"),
        tools: list("tools"),
        session_id: text(&options["sessionId"]),
        more: None,
    }
}

/// Pictures as the host hands them to a model that reads text.
fn without_pictures(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(without_pictures),
        Value::Object(members) if members.get("type") == Some(&json!("image")) => {
            *value = json!({"type": "text", "text": "{{text-only image placeholder naming sha256:01234567}}"});
        }
        Value::Object(members) => members.values_mut().for_each(without_pictures),
        _ => {}
    }
}

/// Prepares and opens the recorded call.
fn open(recorded: &Value) -> Result<u32, Error> {
    let mut options = recorded["generate"].clone();
    without_pictures(&mut options);
    let mut request = generate(&options);
    request.config = Component::prepare(request.config)?.config;
    Component::open(request)
}

fn sent(attempt: u32) -> HttpRequest {
    match Component::next(attempt).unwrap() {
        Action::Send(request) => request,
        _ => panic!("the adapter asks for a request first"),
    }
}

fn failed(code: &str, kind: &str) -> Value {
    json!({"type": "finish", "reason": {"kind": kind, "failure": {"message": null, "code": code}}})
}

/// The chunks that the loop would see of a body that arrives in `pieces`.
fn play(recorded: &Value, pieces: &[&[u8]]) -> Vec<Value> {
    load(recorded);
    let attempt = match open(recorded) {
        Ok(attempt) => attempt,
        Err(error) => return vec![failed(&error.code, "error")],
    };
    sent(attempt);
    let response = &recorded["response"];
    let headers = response["headers"].as_object().unwrap();
    let headers = headers
        .iter()
        .map(|(name, value)| (name.clone(), text(value).unwrap()))
        .collect();
    Component::head(
        attempt,
        response["status"].as_u64().unwrap() as u16,
        headers,
    );
    let mut chunks = Vec::new();
    let mut take = |texts: Vec<String>| {
        chunks.extend(
            texts
                .iter()
                .map(|text| serde_json::from_str::<Value>(text).expect(text)),
        );
        chunks
            .last()
            .is_some_and(|chunk: &Value| chunk["type"] == "finish")
    };
    let over = pieces
        .iter()
        .any(|piece| take(Component::body(attempt, piece.to_vec())));
    if !over {
        let failure = guest_support::error("TRANSPORT", "reset");
        let (cause, made) = match response["end"].as_str().unwrap() {
            "end" => (EndCause::Complete, failed("TRANSPORT", "error")),
            "destroy" => (EndCause::Failed(failure), failed("TRANSPORT", "error")),
            _ => (EndCause::Aborted, failed("ABORTED", "aborted")),
        };
        if !take(Component::end(attempt, cause)) {
            chunks.push(made);
        }
    }
    assert!(matches!(Component::next(attempt).unwrap(), Action::Done));
    Component::close(attempt);
    chunks
}

/// As the data's README says: an authored message is not compared.
fn without_authored_messages(mut chunks: Vec<Value>, expected: &Value) -> Vec<Value> {
    let authored = "/reason/failure/message";
    for (chunk, expected) in chunks.iter_mut().zip(expected.as_array().unwrap()) {
        if expected.pointer(authored) == Some(&Value::Null)
            && let Some(message) = chunk.pointer_mut(authored)
        {
            *message = Value::Null;
        }
    }
    chunks
}

#[test]
fn requests_are_as_recorded() {
    for (name, path) in cases() {
        let recorded = json_file(&path.join("request.json"));
        let Some(http) = recorded.get("http") else {
            continue;
        };
        load(&recorded);
        let request = sent(open(&recorded).unwrap());
        assert_eq!(
            (request.method.as_str(), request.url.as_str()),
            ("POST", "{baseURL}/chat/completions"),
            "{name}"
        );
        let [Part::Bytes(body)] = &request.body[..] else {
            panic!("{name}: one piece")
        };
        let body: Value = serde_json::from_slice(body).unwrap();
        assert_eq!(body, http["body"], "{name}");
        let expected = http["headers"].as_object().unwrap();
        assert_eq!(request.headers.len(), expected.len(), "{name}");
        for (key, value) in &request.headers {
            let key_is_put_in = match value.as_str() {
                "{user-agent}" => expected[key].is_string(),
                "{anonymous-user-id}" => expected[key] == recorded["anonymousUserId"],
                other => {
                    expected[key]
                        == other.replace("{credential}", recorded["apiKey"].as_str().unwrap())
                }
            };
            assert!(key_is_put_in, "{name}: {key}: {value}");
        }
    }
}

#[test]
fn chunks_are_as_recorded_however_the_body_is_cut() {
    for (name, path) in cases() {
        let recorded = json_file(&path.join("request.json"));
        let expected = &json_file(&path.join("expected.json"))["chunks"];
        let body = std::fs::read(path.join("response.sse")).unwrap();
        let recorded_cut = || {
            let sizes = recorded["response"]["pieceBytes"]
                .as_array()
                .into_iter()
                .flatten();
            let mut rest = &body[..];
            let mut pieces = Vec::new();
            for size in sizes {
                let (piece, after) =
                    rest.split_at((size.as_u64().unwrap() as usize).min(rest.len()));
                pieces.push(piece);
                rest = after;
            }
            pieces.push(rest);
            pieces
        };
        let cuts = [
            recorded_cut(),
            body.chunks(1).collect(),
            body.chunks(7).collect(),
            body.chunks(64).collect(),
        ];
        for (cut, pieces) in cuts.iter().enumerate() {
            let chunks = without_authored_messages(play(&recorded, pieces), expected);
            assert_eq!(&Value::Array(chunks), expected, "{name}, cut {cut}");
        }
    }
}
