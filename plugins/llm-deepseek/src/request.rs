//! The request: neutral messages as DeepSeek's chat completions want them
//! (spec/llm.md §6.2, §6.3). Texts go from message to body escaped as they stand,
//! so that half of a surrogate pair or broken arguments arrive as they were.

use guest_support::json::{Json, Object, array, quote};
use guest_support::types::{GenerateRequest, HttpRequest, Part};
use guest_support::{Error, error};

use crate::settings::Settings;

const NO_OUTPUT: &str = "(no output)";

/// The HTTP request of one attempt.
pub(crate) fn build(settings: &Settings, request: &GenerateRequest) -> Result<HttpRequest, Error> {
    let mut headers = vec![
        ("authorization", "Bearer {credential}"),
        ("content-type", "application/json"),
        ("accept", "text/event-stream"),
        ("user-agent", "{user-agent}"),
        ("x-deepseek-harness-user-id", "{anonymous-user-id}"),
    ];
    if let Some(session) = &request.session_id {
        headers.push(("x-deepseek-harness-session-id", session));
    }
    if request.purpose.as_deref() == Some("compaction") {
        headers.push(("x-deepseek-harness-compact", "1"));
    }
    Ok(HttpRequest {
        method: "POST".to_owned(),
        url: format!("{}/chat/completions", settings.base_url),
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        body: vec![Part::Bytes(body(settings, request)?.into_bytes())],
        timeout_ms: None,
    })
}

fn body(settings: &Settings, request: &GenerateRequest) -> Result<String, Error> {
    let config = &request.config;
    let mut messages = Vec::with_capacity(request.messages.len() + 1);
    if let Some(system) = &request.system {
        messages.push(role("system").string("content", system).build());
    }
    for (at, message) in request.messages.iter().enumerate() {
        let message = Json::parse(message)
            .ok_or_else(|| error("INVALID", format!("message {at} is not JSON")))?;
        translate(message, &mut messages)?;
    }
    let (thinking, effort) = thinking(settings, request)?;
    let stop = config
        .stop
        .as_ref()
        .map(|stop| array(stop.iter().map(|text| quote(text))));
    let temperature = config
        .temperature
        .filter(|temperature| temperature.is_finite());
    Ok(Object::new()
        .string("model", &config.model)
        .raw("messages", &array(&messages))
        .raw("stream", "true")
        .raw("stream_options", "{\"include_usage\":true}")
        .maybe(
            "thinking",
            thinking
                .map(|kind| Object::new().string("type", kind).build())
                .as_deref(),
        )
        .maybe("reasoning_effort", effort.map(quote).as_deref())
        .maybe("tools", tools(&request.tools)?.as_deref())
        .maybe(
            "temperature",
            temperature
                .map(|temperature| temperature.to_string())
                .as_deref(),
        )
        .maybe(
            "max_tokens",
            config.max_tokens.map(|cap| cap.to_string()).as_deref(),
        )
        .maybe("stop", stop.as_deref())
        .build())
}

/// The `thinking` type and the effort that go with a request. A title is never
/// worth thinking about.
fn thinking<'a>(
    settings: &'a Settings,
    request: &'a GenerateRequest,
) -> Result<(Option<&'a str>, Option<&'a str>), Error> {
    if request.purpose.as_deref() == Some("session-title") {
        return Ok((Some("disabled"), None));
    }
    let effort = request
        .config
        .reasoning_effort
        .as_deref()
        .or(settings.effort.as_deref());
    match effort {
        Some(effort) => {
            settings.check_effort(effort)?;
            Ok(if effort == "off" {
                (Some("disabled"), None)
            } else {
                (Some("enabled"), Some(effort))
            })
        }
        None => Ok((settings.thinking.as_deref(), None)),
    }
}

fn tools(tools: &[String]) -> Result<Option<String>, Error> {
    let mut schemas = Vec::with_capacity(tools.len());
    for (at, tool) in tools.iter().enumerate() {
        let tool =
            Json::parse(tool).ok_or_else(|| error("INVALID", format!("tool {at} is not JSON")))?;
        let mut function = Object::new();
        for name in ["name", "description", "parameters"] {
            function = function.maybe(name, tool.some(name).map(Json::raw));
        }
        schemas.push(
            Object::new()
                .string("type", "function")
                .raw("function", &function.build())
                .build(),
        );
    }
    Ok((!schemas.is_empty()).then(|| array(schemas)))
}

/// Appends what one neutral message becomes.
fn translate(message: Json<'_>, out: &mut Vec<String>) -> Result<(), Error> {
    let parts = Parts::of(message)?;
    match message.get("role").and_then(Json::escaped) {
        Some("user") => {
            if !parts.text.is_empty() || parts.results.is_empty() {
                out.push(role("user").escaped("content", &parts.text).build());
            }
            out.extend(parts.results);
        }
        Some("assistant") => {
            let mut assistant = role("assistant").escaped("content", &parts.text);
            if !parts.reasoning.is_empty() {
                assistant = assistant.escaped("reasoning_content", &parts.reasoning);
            }
            if !parts.calls.is_empty() {
                assistant = assistant.raw("tool_calls", &array(parts.calls));
            }
            out.push(assistant.build());
        }
        _ => out.push(role("system").escaped("content", &parts.text).build()),
    }
    Ok(())
}

/// A message's blocks by kind; texts of one kind are joined, escaped as they stand.
#[derive(Default)]
struct Parts {
    text: String,
    reasoning: String,
    calls: Vec<String>,
    /// Messages of their own.
    results: Vec<String>,
}

impl Parts {
    fn of(message: Json<'_>) -> Result<Self, Error> {
        let mut parts = Self::default();
        for block in message.get("content").into_iter().flat_map(Json::items) {
            match block.get("type").and_then(Json::escaped) {
                Some("text") => parts.text.push_str(member(block, "text")),
                Some("reasoning") => parts.reasoning.push_str(member(block, "text")),
                Some("tool-call") => parts.calls.push(call(block)),
                Some("tool-result") => {
                    let content = Self::of(block)?.text;
                    let content = if content.is_empty() {
                        NO_OUTPUT
                    } else {
                        &content
                    };
                    let result = role("tool").escaped("tool_call_id", member(block, "toolCallId"));
                    parts
                        .results
                        .push(result.escaped("content", content).build());
                }
                Some("image") => {
                    let message = "this adapter sends no pictures yet: take a model of another provider, or leave them out";
                    return Err(error("UNSUPPORTED_CONTENT", message));
                }
                _ => {}
            }
        }
        Ok(parts)
    }
}

fn call(block: Json<'_>) -> String {
    let function = Object::new()
        .escaped("name", member(block, "name"))
        .escaped("arguments", member(block, "arguments"))
        .build();
    Object::new()
        .escaped("id", member(block, "id"))
        .string("type", "function")
        .raw("function", &function)
        .build()
}

fn role(role: &str) -> Object {
    Object::new().string("role", role)
}

/// A text member, escaped; empty where there is none.
fn member<'a>(of: Json<'a>, name: &str) -> &'a str {
    of.get(name).and_then(Json::escaped).unwrap_or("")
}
