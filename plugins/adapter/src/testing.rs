//! The recorded cases of `tests/conformance/llm`, played natively: for the tests
//! of each adapter. The test plays the host's part: it sends nothing, feeds the
//! recorded body in the recorded pieces and in others, and makes the last chunk
//! where the adapter leaves that to it. Where we differ on purpose is in
//! `tests/conformance/llm-differences.toml`.

#[path = "../../../tests/conformance/llm_differences.rs"]
#[allow(dead_code, reason = "each reader of the file takes what it needs")]
mod differences;

use std::path::{Path, PathBuf};

use guest_support::types::{CallConfig, GenerateRequest, HttpRequest, Part};
use guest_support::{Error, error};
use serde_json::{Value, json};

use crate::bindings::exports::dsh::plugin::llm_adapter::{Action, EndCause};
use crate::component::Adapter;
use crate::{Picture, Pictures, Protocol};
use differences::Differences;

/// Where the mock server of the recordings was.
const SERVER: &str = "http://mock.test";

/// A recorded call.
pub struct Case {
    /// Its folder's name.
    pub name: String,
    /// `request.json`, the server's address put in.
    pub recorded: Value,
    /// `expected.json` with `http` beside it, as we have them.
    pub expected: Value,
    /// `response.sse`.
    pub body: Vec<u8>,
}

/// What plays a case: one attempt of a fresh instance.
pub trait Player {
    /// An instance with the case's configuration.
    fn load(case: &Case) -> Self;
    /// Prepares and opens the call, and gives the request that it sends.
    fn open(&mut self, request: GenerateRequest) -> Result<HttpRequest, Error>;
    /// As the contract's.
    fn head(&mut self, status: u16, headers: Vec<(String, String)>);
    /// As the contract's.
    fn body(&mut self, data: &[u8]) -> Vec<String>;
    /// As the contract's.
    fn end(&mut self, cause: EndCause) -> Vec<String>;
}

/// A protocol on the shared frame.
pub struct Framed<P> {
    adapter: Adapter<P>,
    attempt: u32,
}

impl<P: Protocol> Player for Framed<P> {
    fn load(case: &Case) -> Self {
        let provider = case.recorded["provider"].as_str().expect("a provider");
        let config = json!({"providers": {provider: case.recorded["config"]}});
        Self {
            adapter: Adapter::new(&config.to_string()).expect("a configuration"),
            attempt: 0,
        }
    }

    fn open(&mut self, mut request: GenerateRequest) -> Result<HttpRequest, Error> {
        request.config = self.adapter.prepare(request.config)?.config;
        self.attempt = self.adapter.open(&request, &mut Drawn)?;
        match self.adapter.next(self.attempt)? {
            Action::Send(request) => Ok(request),
            _ => panic!("the adapter asks for a request first"),
        }
    }

    fn head(&mut self, status: u16, headers: Vec<(String, String)>) {
        self.adapter.head(self.attempt, status, headers);
    }

    fn body(&mut self, data: &[u8]) -> Vec<String> {
        self.adapter.body(self.attempt, data)
    }

    fn end(&mut self, cause: EndCause) -> Vec<String> {
        let chunks = self.adapter.end(self.attempt, &cause);
        assert!(matches!(self.adapter.next(self.attempt), Ok(Action::Done)));
        self.adapter.close(self.attempt);
        chunks
    }
}

/// Pictures that are named by what was asked for, a hundred bytes each.
#[derive(Debug, Default)]
pub struct Drawn;

impl Pictures for Drawn {
    fn render(
        &mut self,
        attachment: &str,
        max_pixels: Option<u32>,
        max_bytes: Option<u32>,
    ) -> Result<Picture, Error> {
        Ok(Picture {
            id: format!("{attachment}/{max_pixels:?}/{max_bytes:?}"),
            media_type: "image/png".to_owned(),
            bytes: 100,
            width: 10,
            height: 20,
            alpha: false,
        })
    }
}

/// What was written to the host's log since this was last asked.
pub fn warnings() -> Vec<String> {
    crate::component::WARNINGS.take()
}

/// Every route of the protocol's catalogue can be read, and all of its models.
pub fn the_catalogue_is_sound<P: Protocol>() {
    let catalogue = guest_support::json::Json::parse(P::CATALOGUE).expect("JSON");
    let routes: Vec<_> = catalogue.members().collect();
    assert!(!routes.is_empty(), "there are routes");
    let lines = crate::profile::Catalogue::new(P::CATALOGUE);
    for (name, json) in routes {
        // As its line has it, which is where it is looked up.
        let found = lines.route(name);
        assert_eq!(found, Some(json), "{name}");
        let config = json!({"providers": {name: {}}}).to_string();
        let routes = Adapter::<P>::new(&config)
            .expect("a configuration")
            .list_routes();
        let route: Value = serde_json::from_str(&routes[0]).expect("JSON");
        assert_eq!(route.get("problem"), None, "{name}");
        assert!(route["credential"].is_string(), "{name}");
        assert!(
            !route["models"].as_array().expect("models").is_empty(),
            "{name}"
        );
    }
}

/// All cases of a protocol: at least `count`, so that a folder that is gone fails.
pub fn cases(api: &str, count: usize) -> Vec<Case> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/llm");
    let differences = Differences::beside(&root);
    let mut folders: Vec<PathBuf> = std::fs::read_dir(root.join(api))
        .expect("the cases' folder")
        .map(|entry| entry.expect("a folder").path())
        .collect();
    folders.sort();
    assert!(folders.len() >= count, "{api} has {} cases", folders.len());
    let case = |folder: &PathBuf| {
        let name = folder.file_name().expect("a name").to_string_lossy();
        let mut recorded = json_file(&folder.join("request.json"));
        let mut expected = json_file(&folder.join("expected.json"));
        if let Some(http) = recorded.get("http") {
            expected["http"] = http.clone();
        }
        differences
            .apply(&format!("{api}/{name}"), &mut expected)
            .unwrap_or_else(|why| panic!("{why}"));
        let versioned = recorded
            .pointer("/http/path")
            .and_then(Value::as_str)
            .is_some_and(|path| path.starts_with("/v1/"))
            && api != "anthropic-messages";
        let server = format!("{SERVER}{}", if versioned { "/v1" } else { "" });
        let config = recorded["config"].to_string();
        recorded["config"] =
            serde_json::from_str(&config.replace("{baseURL}", &server)).expect("a configuration");
        Case {
            name: name.into_owned(),
            recorded,
            expected,
            body: std::fs::read(folder.join("response.sse")).expect("a body"),
        }
    };
    folders.iter().map(case).collect()
}

fn json_file(path: &Path) -> Value {
    let bytes = std::fs::read(path).unwrap_or_else(|why| panic!("{}: {why}", path.display()));
    serde_json::from_slice(&bytes).unwrap_or_else(|why| panic!("{}: {why}", path.display()))
}

/// The request that a case's options make; pictures are gone where the host would
/// take them out, as `text_only` says.
pub fn generate(options: &Value) -> GenerateRequest {
    let text = |value: &Value| value.as_str().map(str::to_owned);
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
            provider: text(&options["provider"]).expect("a provider"),
            model: text(&options["model"]).expect("a model"),
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

/// Every request is as recorded: method, path, the recorded headers, the body.
pub fn requests_are_as_recorded<P: Player>(cases: &[Case]) {
    for case in cases {
        let Some(http) = case.expected.get("http") else {
            continue;
        };
        let name = &case.name;
        let request = P::load(case)
            .open(generate(&case.recorded["generate"]))
            .unwrap_or_else(|error| panic!("{name}: {error:?}"));
        assert_eq!(request.method, http["method"].as_str().unwrap(), "{name}");
        let path = request.url.strip_prefix(SERVER);
        assert_eq!(path, http["path"].as_str(), "{name}");
        assert_eq!(body_of(&request), http["body"], "{name}");
        for (key, value) in http["headers"].as_object().unwrap() {
            let ours = request.headers.iter().find(|(name, _)| name == key);
            let ours = ours.map(|(_, value)| value.as_str());
            let key_text = case.recorded["apiKey"].as_str().unwrap_or_default();
            let is_as_recorded = match ours {
                Some("{user-agent}") => key == "user-agent" && value.is_string(),
                Some("{anonymous-user-id}") => *value == case.recorded["anonymousUserId"],
                Some(ours) => *value == ours.replace("{credential}", key_text),
                None => false,
            };
            assert!(is_as_recorded, "{name}: {key}: {ours:?}, not {value}");
        }
    }
}

/// A request's body; a picture is its id in brackets.
pub fn body_of(request: &HttpRequest) -> Value {
    let mut body = Vec::new();
    for part in &request.body {
        match part {
            Part::Bytes(bytes) => body.extend_from_slice(bytes),
            Part::Picture(id) | Part::PictureBase64(id) => {
                body.extend_from_slice(format!("<{id}>").as_bytes());
            }
        }
    }
    serde_json::from_slice(&body).expect("the body is JSON")
}

/// Every case's chunks are as recorded, in the recorded pieces and in pieces of 1,
/// 7 and 64 bytes.
pub fn chunks_are_as_recorded<P: Player>(cases: &[Case]) {
    for case in cases {
        let cuts = [
            case.pieces(),
            case.body.chunks(1).collect(),
            case.body.chunks(7).collect(),
            case.body.chunks(64).collect(),
        ];
        let expected = &case.expected["chunks"];
        for (cut, pieces) in cuts.iter().enumerate() {
            let chunks = without_authored_messages(case.play::<P>(pieces), expected);
            assert_eq!(&Value::Array(chunks), expected, "{}, cut {cut}", case.name);
        }
    }
}

impl Case {
    /// The body, as it was written.
    pub fn pieces(&self) -> Vec<&[u8]> {
        let sizes = self.recorded["response"]["pieceBytes"].as_array();
        let mut rest = &self.body[..];
        let mut pieces = Vec::new();
        for size in sizes.into_iter().flatten() {
            let size = size.as_u64().unwrap_or(0) as usize;
            let (piece, after) = rest.split_at(size.min(rest.len()));
            pieces.push(piece);
            rest = after;
        }
        pieces.push(rest);
        pieces
    }

    /// The chunks that the loop would see of a body that arrives in `pieces`.
    pub fn play<P: Player>(&self, pieces: &[&[u8]]) -> Vec<Value> {
        let mut player = P::load(self);
        if let Err(error) = player.open(generate(&self.recorded["generate"])) {
            return vec![failed(&error.code, "error")];
        }
        let response = &self.recorded["response"];
        let headers = response["headers"].as_object().into_iter().flatten();
        player.head(
            response["status"].as_u64().expect("a status") as u16,
            headers
                .map(|(name, value)| (name.clone(), value.as_str().unwrap_or_default().to_owned()))
                .collect(),
        );
        let mut chunks = Vec::new();
        let mut take = |texts: Vec<String>| {
            chunks.extend(texts.iter().map(|text| {
                serde_json::from_str::<Value>(text).unwrap_or_else(|_| panic!("{text}"))
            }));
            chunks
                .last()
                .is_some_and(|chunk: &Value| chunk["type"] == "finish")
        };
        if !pieces.iter().any(|piece| take(player.body(piece))) {
            let broken = |code: &str| EndCause::Failed(error(code, "it broke off"));
            let aborts = response.get("callerAbortsAfterChunk").is_some();
            let (cause, made) = match response["end"].as_str().expect("an end") {
                _ if aborts => (EndCause::Aborted, failed("ABORTED", "aborted")),
                "end" => (EndCause::Complete, failed("STREAM_CLOSED", "error")),
                "destroy" => (broken("TRANSPORT"), failed("TRANSPORT", "error")),
                _ => (broken("TIMEOUT"), failed("TIMEOUT", "error")),
            };
            if !take(player.end(cause)) {
                chunks.push(made);
            }
        }
        chunks
    }
}

fn failed(code: &str, kind: &str) -> Value {
    json!({"type": "finish", "reason": {"kind": kind, "failure": {"message": null, "code": code}}})
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
