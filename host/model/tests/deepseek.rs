//! The recorded calls of `tests/conformance/llm/deepseek` through the component
//! `llm-deepseek`, the real client and a server that plays the recordings.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_http::{Allowed, Client, Origin, Reach};
use dsh_model::{
    BlockAssembler, CallConfig, CallContext, ComponentAdapter, Credentials, FinishReason, Gateway,
    LlmFailure, Models, Request, RouteGrant, Secret,
};
use dsh_plugin::{Component, Engine, EngineConfig, Grants, Limits, Row};
use dsh_session::{Draft, Header, Json, Kind, Messages, Session};
use mock_provider::{Answer, End, Mock};
use serde_json::{Value, json};

const USER_AGENT: &str = "dsh/test (+https://dsh.example)";

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Where the built components are.
fn components_dir() -> PathBuf {
    std::env::var_os("DSH_COMPONENTS")
        .map_or_else(|| workspace().join("target/components"), PathBuf::from)
}

fn read(path: &Path) -> Value {
    let text =
        fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_json::from_str(&text).unwrap()
}

fn normal(value: &Value) -> Json {
    Json::normalise(&value.to_string()).unwrap()
}

struct Key(String);

impl Credentials for Key {
    fn resolve(&self, reference: &str) -> Result<Option<Secret>, LlmFailure> {
        Ok((reference == "DEEPSEEK_API_KEY").then(|| Secret::new(&*self.0)))
    }
}

struct Case {
    name: String,
    request: Value,
    expected: Value,
    body: Vec<u8>,
}

fn cases() -> Vec<Case> {
    let root = workspace().join("tests/conformance/llm/deepseek");
    let mut cases: Vec<Case> = fs::read_dir(root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| Case {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            request: read(&path.join("request.json")),
            expected: read(&path.join("expected.json")),
            body: fs::read(path.join("response.sse")).unwrap_or_default(),
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// The recorded answer, cut as it was recorded or as `sizes` says.
fn answer(case: &Case, sizes: Option<&[usize]>) -> Answer {
    let response = &case.request["response"];
    let recorded: Vec<usize> = response["pieceBytes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|size| usize::try_from(size.as_u64().unwrap()).unwrap())
        .collect();
    let status = u16::try_from(response["status"].as_u64().unwrap_or(200)).unwrap();
    let mut answer = Answer::new(status, case.body.clone()).split(sizes.unwrap_or(&recorded));
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        answer = answer.header(name, value.as_str().unwrap());
    }
    answer.ending(match response["end"].as_str() {
        Some("destroy") => End::Cut,
        Some("stall") => End::Stall,
        _ => End::Clean,
    })
}

/// A surface with these messages: requests of the loop can be made of nothing else.
fn surface(messages: &[Json]) -> Messages {
    let mut session = Session::new(Header::new("s", 0)).unwrap();
    for message in messages {
        session
            .append(Draft::new(Kind::UserMessage, message.clone()).append(), 0)
            .unwrap();
    }
    session.messages().unwrap()
}

fn call_config(generate: &Value) -> CallConfig {
    let text = |key: &str| generate[key].as_str().map(String::from);
    CallConfig {
        provider: text("provider").unwrap(),
        model: text("model").unwrap(),
        reasoning_effort: text("reasoningEffort"),
        temperature: generate["temperature"].as_f64(),
        max_tokens: generate["maxTokens"]
            .as_u64()
            .map(|cap| u32::try_from(cap).unwrap()),
        stop: generate["stop"].as_array().map(|stop| {
            stop.iter()
                .map(|text| text.as_str().unwrap().to_owned())
                .collect()
        }),
        more: None,
    }
}

fn request(generate: &Value) -> Request {
    let list = |key: &str| -> Vec<Json> {
        generate[key]
            .as_array()
            .into_iter()
            .flatten()
            .map(normal)
            .collect()
    };
    let request = match generate["purpose"].as_str() {
        Some(purpose) => Request::auxiliary(purpose, list("messages")),
        None => Request::of_surface(surface(&list("messages"))),
    };
    let request = request
        .system(generate["system"].as_str().map(String::from))
        .tools(list("tools"));
    match generate["sessionId"].as_str() {
        Some(id) => request.session(id),
        None => request,
    }
}

/// Runs one case and returns the chunks and the requests that the server saw.
async fn run(
    engine: &Engine,
    component: &Arc<Component>,
    case: &Case,
    sizes: Option<&[usize]>,
) -> (Vec<Json>, Vec<mock_provider::Recorded>) {
    let mock = Mock::start(vec![answer(case, sizes)]);
    let config = case.request["config"]
        .to_string()
        .replace("{baseURL}", &mock.base_url());
    let grants = json!({"route": [{
        "provider": "deepseek-official",
        "origins": [mock.base_url()],
        "credential": "DEEPSEEK_API_KEY",
    }]});
    let row = Row {
        id: String::from("llm-deepseek"),
        component: Arc::clone(component),
        config,
        grants: Grants::parse(&grants).unwrap(),
        limits: Limits::of(component, &Value::Null).unwrap(),
    };
    let mounted = engine.mount(row).await.unwrap();
    let anonymous = case.request["anonymousUserId"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    let models = Models::new(Arc::new(Gateway {
        client: Client::new(),
        credentials: Box::new(Key(case.request["apiKey"].as_str().unwrap().to_owned())),
        pictures: Arc::new(dsh_model::NoPictures),
        user_agent: USER_AGENT.to_owned(),
        anonymous_user_id: Box::new(move || anonymous.clone()),
    }));
    let grant = RouteGrant {
        provider: String::from("deepseek-official"),
        origins: vec![Allowed {
            origin: Origin::parse(&mock.base_url()).unwrap(),
            reach: Reach::Named,
        }],
        credential: Some(String::from("DEEPSEEK_API_KEY")),
    };
    models
        .register(
            ComponentAdapter::new(&mounted).expect("it is an adapter"),
            &[grant],
        )
        .unwrap();

    let generate = &case.request["generate"];
    let abort_after = case.request["response"]["callerAbortsAfterChunk"].as_u64();
    let ctx = CallContext::default();
    let mut chunks = Vec::new();
    match models.prepare(&ctx, call_config(generate)).await {
        // Where nothing is left to stream, the refusal stands for the stream.
        Err(error) => chunks.push(FinishReason::Error(error.into_failure()).to_chunk()),
        Ok(call) => {
            let mut stream = call.stream(ctx.clone(), &request(generate));
            while let Some(chunk) = stream.next().await {
                chunks.push(chunk);
                if abort_after == Some(chunks.len() as u64) {
                    ctx.cancel.cancel();
                }
            }
        }
    }
    (chunks, mock.requests())
}

/// Takes texts that an adapter writes itself out of both sides: where a recording
/// has none, only codes and numbers count.
fn drop_free_texts(expected: &mut Value, got: &mut Value) {
    match (expected, got) {
        (Value::Object(expected), Value::Object(got)) => {
            if expected.get("code").is_some() && expected.get("message") == Some(&Value::Null) {
                let text = got.get("message").and_then(Value::as_str);
                assert!(
                    text.is_some_and(|text| !text.is_empty()),
                    "a failure has a message"
                );
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
            {
                let named = naming.rsplit(' ').next().unwrap();
                assert!(
                    got.starts_with(before) && got.ends_with(after) && got.contains(named),
                    "{got}"
                );
                got.clone_from(expected);
            }
        }
        _ => {}
    }
}

fn compare(what: &str, case: &str, mut expected: Value, mut got: Value) {
    drop_free_texts(&mut expected, &mut got);
    assert_eq!(got, expected, "{case}: {what}");
}

fn value(json: &Json) -> Value {
    serde_json::from_str(json.as_str()).unwrap()
}

fn check(case: &Case, chunks: &[Json], requests: &[mock_provider::Recorded]) {
    let got: Vec<Value> = chunks.iter().map(value).collect();
    compare(
        "chunks",
        &case.name,
        case.expected["chunks"].clone(),
        Value::Array(got),
    );

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
    compare(
        "assembled",
        &case.name,
        case.expected["assembled"].clone(),
        assembled,
    );

    let Some(http) = case.request.get("http") else {
        assert!(requests.is_empty(), "{}: nothing is sent", case.name);
        return;
    };
    let [request] = requests else {
        panic!("{}: {} requests instead of one", case.name, requests.len())
    };
    assert_eq!(http["method"], *request.method, "{}", case.name);
    assert_eq!(http["path"], *request.path, "{}", case.name);
    for (name, expected) in http["headers"].as_object().unwrap() {
        let expected = if name == "user-agent" {
            USER_AGENT
        } else {
            expected.as_str().unwrap()
        };
        assert_eq!(
            request.header(name),
            Some(expected),
            "{}: {name}",
            case.name
        );
    }
    let body = serde_json::from_slice(&request.body).unwrap();
    compare("body", &case.name, http["body"].clone(), body);
}

#[tokio::test]
async fn every_recorded_call_goes_and_comes_back_as_recorded() {
    let path = components_dir().join("llm-deepseek.wasm");
    assert!(
        path.exists(),
        "{} is missing: run cargo xtask plugins first",
        path.display()
    );
    let config = EngineConfig {
        cache_dir: None,
        host_version: String::from("test"),
        home: None,
    };
    let engine = Engine::new(config).unwrap();
    let component = engine.load_file(&path).await.unwrap();
    let cases = cases();
    assert!(cases.len() >= 27, "only {} cases were found", cases.len());
    for case in &cases {
        // As recorded, byte by byte, and in pieces that cut lines and characters anywhere.
        for sizes in [None, Some(&[1][..]), Some(&[5, 3, 11])] {
            let (chunks, requests) = run(&engine, &component, case, sizes).await;
            check(case, &chunks, &requests);
        }
    }
}
