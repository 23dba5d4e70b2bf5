//! The request: neutral messages as DeepSeek's chat completions want them
//! (spec/llm.md §6.2, §6.3). Texts go from message to body escaped as they stand,
//! so that half of a surrogate pair or broken arguments arrive as they were.

use adapter_support::Pictures;
use adapter_support::body::parts;
use guest_support::json::{Json, Object, array, quote};
use guest_support::types::{GenerateRequest, HttpRequest};
use guest_support::{Error, error};

use crate::images::{self, Shown};
use crate::settings::Settings;

const NO_OUTPUT: &str = "(no output)";

/// Stands before the pictures that tools gave, which no tool's answer can hold.
const OF_TOOLS: &str = "Images of the tool results above, in their order:";

/// The HTTP request of one attempt.
pub(crate) fn build(
    settings: &Settings,
    request: &GenerateRequest,
    pictures: &mut dyn Pictures,
) -> Result<HttpRequest, Error> {
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
        url: adapter_support::url(&settings.base_url, "/chat/completions"),
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        body: parts(body(settings, request, pictures)?),
        timeout_ms: None,
    })
}

fn body(
    settings: &Settings,
    request: &GenerateRequest,
    pictures: &mut dyn Pictures,
) -> Result<String, Error> {
    let config = &request.config;
    let messages = messages(settings, request, pictures)?;
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

fn messages(
    settings: &Settings,
    request: &GenerateRequest,
    pictures: &mut dyn Pictures,
) -> Result<Vec<String>, Error> {
    let mut neutral = Vec::with_capacity(request.messages.len());
    for (at, message) in request.messages.iter().enumerate() {
        let message = Json::parse(message);
        neutral.push(message.ok_or_else(|| error("INVALID", format!("message {at} is not JSON")))?);
    }
    let mut images =
        images::shown(&neutral, settings, &request.config.model, pictures)?.into_iter();
    let mut out = Messages {
        done: Vec::with_capacity(neutral.len() + 1),
        of_tools: Vec::new(),
    };
    if let Some(system) = &request.system {
        out.push(role("system").string("content", system).build());
    }
    for message in neutral {
        out.translate(message, &mut images);
    }
    Ok(out.finish())
}

/// The messages as DeepSeek takes them.
struct Messages {
    done: Vec<String>,
    /// Pictures of the tool results since the last other message.
    of_tools: Vec<String>,
}

impl Messages {
    /// Appends what one neutral message becomes.
    fn translate(&mut self, message: Json<'_>, images: &mut dyn Iterator<Item = Shown>) {
        let blocks = Blocks::of(message, images);
        match message.get("role").and_then(Json::escaped) {
            Some("user") => {
                let said = blocks.content;
                if !said.text.is_empty() || blocks.results.is_empty() {
                    self.push(said.put(role("user")).build());
                }
                for (result, pictures) in blocks.results {
                    self.done.push(result);
                    self.of_tools.extend(pictures);
                }
            }
            Some("assistant") => {
                let mut assistant = role("assistant").escaped("content", &blocks.content.text);
                if !blocks.reasoning.is_empty() {
                    assistant = assistant.escaped("reasoning_content", &blocks.reasoning);
                }
                if !blocks.calls.is_empty() {
                    assistant = assistant.raw("tool_calls", &array(blocks.calls));
                }
                self.push(assistant.build());
            }
            _ => self.push(
                role("system")
                    .escaped("content", &blocks.content.text)
                    .build(),
            ),
        }
    }

    /// Appends a message that no tool answered, behind what tools showed.
    fn push(&mut self, message: String) {
        self.flush();
        self.done.push(message);
    }

    fn flush(&mut self) {
        if self.of_tools.is_empty() {
            return;
        }
        let mut content = vec![text_part(OF_TOOLS)];
        content.append(&mut self.of_tools);
        self.done
            .push(role("user").raw("content", &array(content)).build());
    }

    fn finish(mut self) -> Vec<String> {
        self.flush();
        self.done
    }
}

/// Texts and pictures in their order; texts escaped as they stand.
#[derive(Default)]
struct Content {
    /// All texts joined, those that stand before a picture or for one with them.
    text: String,
    parts: Vec<String>,
    /// The pictures alone.
    pictures: Vec<String>,
}

impl Content {
    fn text(&mut self, text: &str) {
        if !text.is_empty() {
            self.text.push_str(text);
            self.parts.push(text_part(text));
        }
    }

    fn image(&mut self, image: Shown) {
        match image {
            Shown::Note(note) => self.text(&note),
            Shown::Picture { handle, part } => {
                let line = if self.parts.is_empty() { "" } else { "\\n" };
                self.text(&format!("{line}{handle}"));
                self.parts.push(part.clone());
                self.pictures.push(part);
            }
        }
    }

    /// The member `content`: a list only where there is a picture.
    fn put(&self, message: Object) -> Object {
        if self.pictures.is_empty() {
            message.escaped("content", &self.text)
        } else {
            message.raw("content", &array(&self.parts))
        }
    }
}

/// A part of a content list; the text is escaped.
fn text_part(text: &str) -> String {
    Object::new()
        .string("type", "text")
        .escaped("text", text)
        .build()
}

/// A message's blocks by kind; texts of one kind are joined, escaped as they stand.
#[derive(Default)]
struct Blocks {
    content: Content,
    reasoning: String,
    calls: Vec<String>,
    /// Messages of their own, and the pictures that they cannot hold.
    results: Vec<(String, Vec<String>)>,
}

impl Blocks {
    /// Takes the next of `images` for each picture, in document order.
    fn of(message: Json<'_>, images: &mut dyn Iterator<Item = Shown>) -> Self {
        let mut blocks = Self::default();
        for block in message.get("content").into_iter().flat_map(Json::items) {
            match block.get("type").and_then(Json::escaped) {
                Some("text") => blocks.content.text(member(block, "text")),
                Some("reasoning") => blocks.reasoning.push_str(member(block, "text")),
                Some("tool-call") => blocks.calls.push(call(block)),
                Some("tool-result") => {
                    let content = Self::of(block, images).content;
                    let text = if content.text.is_empty() {
                        NO_OUTPUT
                    } else {
                        &content.text
                    };
                    let result = role("tool").escaped("tool_call_id", member(block, "toolCallId"));
                    let result = result.escaped("content", text).build();
                    blocks.results.push((result, content.pictures));
                }
                Some("image") => {
                    if let Some(image) = images.next() {
                        blocks.content.image(image);
                    }
                }
                _ => {}
            }
        }
        blocks
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
