//! A recorded case, and what the server and the harness make of it.

use std::fs;
use std::path::{Path, PathBuf};

use dsh_model::{CallConfig, Request};
use dsh_session::{Draft, Header, Json, Kind, Messages, Session};
use mock_provider::{Answer, End};
use serde_json::{Value, json};

use crate::llm_differences::Differences;

/// Idle times of the data are some 70 ms; a machine that is busy needs more for a
/// response's first bytes alone.
const SLOWER: u64 = 20;

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/conformance/llm")
}

pub(crate) struct Case {
    /// `PROTOCOL/CASE`.
    pub(crate) name: String,
    pub(crate) protocol: String,
    pub(crate) request: Value,
    /// What has to be so here, the `http` of the request with it.
    pub(crate) expected: Value,
    pub(crate) body: Vec<u8>,
}

/// The cases of one protocol, in order, with the differences laid over them.
pub(crate) fn cases(protocol: &str, differences: &Differences) -> Vec<Case> {
    let read = |path: PathBuf| -> Value {
        let text =
            fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap()
    };
    let mut cases: Vec<Case> = fs::read_dir(root().join(protocol))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| {
            let name = format!("{protocol}/{}", path.file_name().unwrap().display());
            let request = read(path.join("request.json"));
            let mut expected = read(path.join("expected.json"));
            if let Some(http) = request.get("http") {
                expected["http"] = http.clone();
            }
            differences.apply(&name, &mut expected).unwrap();
            Case {
                name,
                protocol: protocol.to_owned(),
                request,
                expected,
                body: fs::read(path.join("response.sse")).unwrap_or_default(),
            }
        })
        .collect();
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

impl Case {
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.request[key].as_str()
    }

    pub(crate) fn provider(&self) -> &str {
        self.request["generate"]["provider"].as_str().unwrap()
    }

    /// The reference of its credential.
    pub(crate) fn credential(&self) -> &str {
        self.request["config"]["apiKeyEnv"]
            .as_str()
            .unwrap_or("DEEPSEEK_API_KEY")
    }

    /// The row's configuration: of DeepSeek the case's own; of the others the case has the
    /// profile of its provider.
    pub(crate) fn config(&self, base_url: &str) -> String {
        let mut config = self.request["config"].clone();
        if let Some(idle) = config["streamIdleTimeoutMs"].as_u64() {
            config["streamIdleTimeoutMs"] = json!(idle * SLOWER);
        }
        let config = if self.protocol == "deepseek" {
            config
        } else {
            json!({"providers": {self.provider(): config}})
        };
        let version = if self.protocol.starts_with("openai") {
            "/v1"
        } else {
            ""
        };
        config
            .to_string()
            .replace("{baseURL}", &format!("{base_url}{version}"))
    }

    /// After which chunk the caller gives up.
    pub(crate) fn abort_after(&self) -> Option<u64> {
        self.request["response"]["callerAbortsAfterChunk"].as_u64()
    }

    /// The recorded answer, cut as it was recorded or as `sizes` says.
    pub(crate) fn answer(&self, sizes: Option<&[usize]>) -> Answer {
        let response = &self.request["response"];
        let recorded: Vec<usize> = response["pieceBytes"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|size| usize::try_from(size.as_u64().unwrap()).unwrap())
            .collect();
        let status = u16::try_from(response["status"].as_u64().unwrap_or(200)).unwrap();
        let mut answer = Answer::new(status, self.body.clone()).split(sizes.unwrap_or(&recorded));
        for (name, value) in response["headers"].as_object().into_iter().flatten() {
            answer = answer.header(name, value.as_str().unwrap());
        }
        answer.ending(match response["end"].as_str() {
            Some("destroy") => End::Cut,
            Some("stall") => End::Stall,
            _ => End::Clean,
        })
    }

    pub(crate) fn call_config(&self) -> CallConfig {
        let generate = &self.request["generate"];
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

    /// The request as the loop makes it: of a surface, unless it has a purpose of its own.
    pub(crate) fn generate(&self) -> Request {
        let generate = &self.request["generate"];
        let list = |key: &str| -> Vec<Json> {
            let items = generate[key].as_array().into_iter().flatten();
            items
                .map(|item| Json::normalise(&item.to_string()).unwrap())
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
