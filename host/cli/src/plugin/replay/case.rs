//! A recorded call, read from its files (the shape of `tests/conformance/llm`). A pure function of their texts.
//!
//! What is wrong is told with the member that it is wrong in. Members that nobody knows are passed over with a line, as
//! recordings have notes of their own, and a misspelt one must not pass for an absent one in silence.

use dsh_http::{Bytes, Ending, Recording};
use dsh_model::CallConfig;
use dsh_session::{Json, Value};

use super::expected::members;

/// Stands for the server's address where the case has none. `.invalid` never resolves.
const NOWHERE: &str = "https://case.invalid";

/// Stands for the anonymous user where the case has none.
const NOBODY: &str = "00000000-0000-4000-8000-000000000000";

/// Protocols whose `config` is one provider's profile, and not the whole row's configuration.
const OF_ONE_PROVIDER: [&str; 3] = [
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
];

/// Of these, those whose base URL ends with a version.
const VERSIONED: [&str; 2] = ["openai-completions", "openai-responses"];

/// One call, as it is to be made.
#[derive(Debug)]
pub(super) struct Case {
    /// The route.
    pub(super) provider: String,
    /// The row's configuration, with the base URL in its place.
    pub(super) config: serde_json::Value,
    /// What `{baseURL}` stands for.
    pub(super) base: String,
    /// The credential, whatever the route calls it.
    pub(super) key: Option<String>,
    pub(super) anonymous: String,
    /// `GenerateOptions`.
    pub(super) generate: Json,
    /// The request that is expected.
    pub(super) http: Option<Json>,
    /// What comes back; none where the case has no answer.
    pub(super) response: Option<Shape>,
    /// Members that were passed over.
    pub(super) unknown: Vec<String>,
}

/// All of an answer but its bytes.
#[derive(Debug, Clone)]
pub(super) struct Shape {
    status: u16,
    headers: Vec<(String, String)>,
    pieces: Vec<usize>,
    ending: Ending,
    /// The caller gives up when it has had so many chunks.
    pub(super) abort_after: Option<u64>,
    /// The file of its bytes, beside the case.
    pub(super) body: Option<String>,
}

impl Case {
    /// Reads `request.json`.
    ///
    /// # Errors
    /// The member that is wrong, and why.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = Json::restore(text).map_err(|error| error.to_string())?;
        let top = Members::of(root.value(), "")?;
        let mut unknown = top.unknown(&[
            "description",
            "protocol",
            "provider",
            "baseURL",
            "config",
            "apiKey",
            "anonymousUserId",
            "generate",
            "http",
            "response",
        ]);
        let generate = Members::of(
            root.get("generate")
                .ok_or("`generate` is missing: the call that is to be made")?,
            "generate",
        )?;
        unknown.extend(generate.unknown(&[
            "provider",
            "model",
            "messages",
            "reasoningEffort",
            "system",
            "tools",
            "temperature",
            "maxTokens",
            "stop",
            "sessionId",
            "purpose",
        ]));
        check_generate(&generate)?;
        let provider = generate.text("provider")?.unwrap_or_default();
        if let Some(named) = top.text("provider")?
            && named != provider
        {
            return Err(format!(
                "`provider` is {named:?} and `generate.provider` is {provider:?}; a case has one"
            ));
        }
        let protocol = top.text("protocol")?.unwrap_or_default();
        let base = top.text("baseURL")?.unwrap_or_else(|| {
            let version = if VERSIONED.contains(&&*protocol) {
                "/v1"
            } else {
                ""
            };
            format!("{NOWHERE}{version}")
        });
        let config = match root.get("config") {
            None => "{}".to_owned(),
            Some(config) => Members::of(config, "config")?.value.as_str().to_owned(),
        };
        let quoted = serde_json::Value::from(base.as_str()).to_string();
        let config = config.replace("{baseURL}", quoted.trim_matches('"'));
        let config: serde_json::Value = serde_json::from_str(&config)
            .map_err(|_| "`config` holds half of a surrogate pair, or nests too deep".to_owned())?;
        let config = if OF_ONE_PROVIDER.contains(&&*protocol) {
            serde_json::json!({"providers": {provider.as_str(): config}})
        } else {
            config
        };
        let http = match root.get("http").filter(|http| !http.is_null()) {
            None => None,
            Some(http) => {
                let http = Members::of(http, "http")?;
                unknown.extend(http.unknown(&["method", "path", "url", "headers", "body"]));
                Some(http.value.to_json())
            }
        };
        let response = match root.get("response").filter(|response| !response.is_null()) {
            None => None,
            Some(response) => {
                let response = Members::of(response, "response")?;
                unknown.extend(response.unknown(&[
                    "status",
                    "headers",
                    "body",
                    "pieceBytes",
                    "end",
                    "callerAbortsAfterChunk",
                ]));
                Some(Shape::read(&response)?)
            }
        };
        Ok(Self {
            provider,
            config,
            base,
            key: top.text("apiKey")?,
            anonymous: top
                .text("anonymousUserId")?
                .unwrap_or_else(|| NOBODY.to_owned()),
            generate: generate.value.to_json(),
            http,
            response,
            unknown,
        })
    }

    /// The call's configuration.
    pub(super) fn call(&self) -> CallConfig {
        let text = |key: &str| {
            self.generate
                .get(key)
                .and_then(Value::text)
                .map(std::borrow::Cow::into_owned)
        };
        let stop = self.generate.get("stop").filter(|stop| stop.is_array());
        CallConfig {
            provider: text("provider").unwrap_or_default(),
            model: text("model").unwrap_or_default(),
            reasoning_effort: text("reasoningEffort"),
            temperature: self.generate.get("temperature").and_then(Value::f64),
            max_tokens: self
                .generate
                .get("maxTokens")
                .and_then(Value::u64)
                .and_then(|cap| u32::try_from(cap).ok()),
            stop: stop.map(|stop| {
                stop.items()
                    .filter_map(Value::text)
                    .map(std::borrow::Cow::into_owned)
                    .collect()
            }),
            more: None,
        }
    }

    /// A list of the call's.
    pub(super) fn list(&self, key: &str) -> Vec<Json> {
        let list = self.generate.get(key).into_iter().flat_map(Value::items);
        list.map(Value::to_json).collect()
    }

    /// A text of the call's.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.generate
            .get(key)
            .and_then(Value::text)
            .map(std::borrow::Cow::into_owned)
    }
}

impl Shape {
    /// An answer with nothing said of it.
    pub(super) fn usual() -> Self {
        Self {
            status: 200,
            headers: vec![("content-type".to_owned(), "text/event-stream".to_owned())],
            pieces: Vec::new(),
            ending: Ending::Clean,
            abort_after: None,
            body: None,
        }
    }

    fn read(response: &Members<'_>) -> Result<Self, String> {
        let status = match response.number("status")? {
            None => 200,
            Some(status @ 100..=999) => u16::try_from(status).unwrap_or(200),
            Some(status) => {
                return Err(format!(
                    "`response.status`: {status} is no status; it is 100 to 999"
                ));
            }
        };
        let mut headers = Vec::new();
        if let Some(node) = response.value.get("headers") {
            let node = Members::of(node, "response.headers")?;
            for name in members(node.value) {
                let value = node.text(&name)?.unwrap_or_default();
                headers.push((name.to_ascii_lowercase(), value));
            }
        }
        let mut pieces = Vec::new();
        for (at, size) in response.list("pieceBytes")?.into_iter().enumerate() {
            let size = size
                .u64()
                .filter(|size| *size > 0)
                .and_then(|size| usize::try_from(size).ok());
            pieces.push(size.ok_or_else(|| {
                format!("`response.pieceBytes[{at}]` is no number of bytes above 0")
            })?);
        }
        let ending = match response.text("end")?.as_deref() {
            None | Some("end") => Ending::Clean,
            Some("destroy") => Ending::Cut,
            Some("stall") => Ending::Stall,
            Some(other) => {
                return Err(format!(
                    "`response.end` is {other:?}; it is end, destroy or stall"
                ));
            }
        };
        let abort_after = response.number("callerAbortsAfterChunk")?;
        if abort_after == Some(0) {
            return Err(
                "`response.callerAbortsAfterChunk` is 0; chunks are counted from 1".to_owned(),
            );
        }
        Ok(Self {
            status,
            headers,
            pieces,
            ending,
            abort_after,
            body: response.text("body")?,
        })
    }

    /// The answer with these bytes, cut as it says, over and over.
    pub(super) fn with(&self, bytes: &[u8]) -> Recording {
        let mut sizes = self.pieces.iter().copied().cycle();
        let (mut pieces, mut rest) = (Vec::new(), bytes);
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(sizes.next().unwrap_or(rest.len()).min(rest.len()));
            pieces.push(Bytes::copy_from_slice(piece));
            rest = after;
        }
        Recording {
            status: self.status,
            headers: self.headers.clone(),
            pieces,
            ending: self.ending,
        }
    }
}

fn check_generate(generate: &Members<'_>) -> Result<(), String> {
    for key in ["provider", "model"] {
        if generate
            .text(key)?
            .is_none_or(|text| text.trim().is_empty())
        {
            return Err(format!("`generate.{key}` is missing or empty"));
        }
    }
    for key in ["reasoningEffort", "system", "sessionId", "purpose"] {
        generate.text(key)?;
    }
    if let Some(cap) = generate.number("maxTokens")?
        && u32::try_from(cap).is_err()
    {
        return Err(format!(
            "`generate.maxTokens`: {cap} is more than a call can ask for"
        ));
    }
    if generate
        .value
        .get("temperature")
        .is_some_and(|value| value.f64().is_none())
    {
        return Err("`generate.temperature` is no number".to_owned());
    }
    if generate.value.get("messages").is_none() {
        return Err("`generate.messages` is missing; it may be []".to_owned());
    }
    for key in ["messages", "tools"] {
        for (at, item) in generate.list(key)?.into_iter().enumerate() {
            if !item.is_object() {
                return Err(format!("`generate.{key}[{at}]` is no object"));
            }
        }
    }
    for (at, item) in generate.list("stop")?.into_iter().enumerate() {
        if !item.is_string() {
            return Err(format!("`generate.stop[{at}]` is no text"));
        }
    }
    Ok(())
}

/// An object with the name that it is told by.
struct Members<'a> {
    value: Value<'a>,
    name: &'static str,
}

impl<'a> Members<'a> {
    fn of(value: Value<'a>, name: &'static str) -> Result<Self, String> {
        if value.is_object() {
            Ok(Self { value, name })
        } else if name.is_empty() {
            Err("it is JSON and no object; a case is an object with `generate`".to_owned())
        } else {
            Err(format!("`{name}` is no object"))
        }
    }

    fn at(&self, key: &str) -> String {
        if self.name.is_empty() {
            format!("`{key}`")
        } else {
            format!("`{}.{key}`", self.name)
        }
    }

    fn present(&self, key: &str) -> Option<Value<'a>> {
        self.value.get(key).filter(|value| !value.is_null())
    }

    fn text(&self, key: &str) -> Result<Option<String>, String> {
        let Some(value) = self.present(key) else {
            return Ok(None);
        };
        let text = value
            .text()
            .ok_or_else(|| format!("{} is no text", self.at(key)))?;
        Ok(Some(text.into_owned()))
    }

    fn number(&self, key: &str) -> Result<Option<u64>, String> {
        let Some(value) = self.present(key) else {
            return Ok(None);
        };
        let number = value
            .u64()
            .ok_or_else(|| format!("{} is no whole number from 0 on", self.at(key)))?;
        Ok(Some(number))
    }

    fn list(&self, key: &str) -> Result<Vec<Value<'a>>, String> {
        match self.present(key) {
            None => Ok(Vec::new()),
            Some(value) if value.is_array() => Ok(value.items().collect()),
            Some(_) => Err(format!("{} is no list", self.at(key))),
        }
    }

    fn unknown(&self, known: &[&str]) -> Vec<String> {
        let names = members(self.value).into_iter();
        names
            .filter(|name| !known.contains(&&**name))
            .map(|name| self.at(&name))
            .collect()
    }
}

#[cfg(test)]
#[path = "case_tests.rs"]
mod tests;
