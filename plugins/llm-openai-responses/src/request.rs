//! The request: the whole conversation as items (spec/llm.md §7.7). Texts go from
//! message to body escaped as they stand.
//!
//! A tool's pictures stand in its own result: `output` may be a list of the parts
//! that a user's message has, and OpenAI's server, Ollama and the gateways take it.
//! A result without pictures stays the plain text that every server takes.

use adapter_support::history::{Assistant, Block, Piece};
use adapter_support::profile::{Cache, Off};
use adapter_support::{Call, Entry, HttpRequest, Model, Pictures, Profile, body, error};
use guest_support::Error;
use guest_support::json::{Json, Object, array, escape, quote, unescape};

use crate::event::compact;
use crate::ids::{message_id, read_signature, split_id};

/// The least that the protocol lets an answer be capped at.
const MIN_CAP: u32 = 16;
/// Characters of a prompt cache's key.
const MAX_CACHE_KEY: usize = 64;
/// Characters kept of an error's body.
const MAX_ERROR: usize = 8_000;

/// The HTTP request of one attempt.
pub(crate) fn build(
    profile: &Profile,
    model: &Model,
    call: &Call<'_>,
    history: &[Entry<'_>],
    pictures: &mut dyn Pictures,
) -> Result<HttpRequest, Error> {
    let base = model.base_url(profile);
    // A session's name is how the provider finds its cache.
    let session = call
        .request
        .session_id
        .as_deref()
        .filter(|session| !session.is_empty() && profile.cache != Cache::None);
    let text = Writer {
        profile,
        model,
        pictures,
    }
    .body(call, history, session)?;
    Ok(HttpRequest {
        method: "POST".to_owned(),
        url: adapter_support::url(base, "/responses"),
        headers: headers(profile, base, session),
        body: body::parts(text),
        timeout_ms: profile.timeout_ms,
    })
}

fn headers(profile: &Profile, base: &str, session: Option<&str>) -> Vec<(String, String)> {
    let mut headers = vec![
        ("content-type", "application/json"),
        ("accept", "application/json"),
    ];
    if profile.credential.is_some() {
        headers.push(("authorization", "Bearer {credential}"));
    }
    let visible = |text: &&str| text.bytes().all(|byte| byte.is_ascii_graphic());
    if let Some(session) = session.filter(visible) {
        if is_host(base, "openrouter.ai") {
            headers.push(("x-session-id", session));
        } else {
            headers.push(("session_id", session));
            headers.push(("x-client-request-id", session));
        }
    }
    headers
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect()
}

/// Whether a URL's host is this one or below it.
fn is_host(url: &str, host: &str) -> bool {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let name = authority.rsplit('@').next().unwrap_or_default();
    let name = name.split(':').next().unwrap_or_default();
    let name = name.to_ascii_lowercase();
    name.strip_suffix(host)
        .is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

struct Writer<'a> {
    profile: &'a Profile,
    model: &'a Model,
    pictures: &'a mut dyn Pictures,
}

impl Writer<'_> {
    fn flag(&self, name: &str) -> Option<bool> {
        self.model.compat.flag(name)
    }

    fn body(
        &mut self,
        call: &Call<'_>,
        history: &[Entry<'_>],
        session: Option<&str>,
    ) -> Result<String, Error> {
        let request = call.request;
        let input = self.input(request.system.as_deref(), history)?;
        let key = session.map(|session| {
            let end = session.char_indices().nth(MAX_CACHE_KEY);
            quote(&session[..end.map_or(session.len(), |(at, _)| at)])
        });
        let long = self.profile.cache == Cache::Long
            && self.flag("supportsLongCacheRetention") != Some(false);
        let temperature = request
            .config
            .temperature
            .filter(|temperature| temperature.is_finite())
            .map(|temperature| temperature.to_string());
        let thinks = call.effort.filter(|_| self.model.reasons());
        Ok(Object::new()
            .string("model", &self.model.id)
            .raw("input", &input)
            .raw("stream", "true")
            .maybe("prompt_cache_key", key.as_deref())
            .maybe("prompt_cache_retention", long.then_some("\"24h\""))
            .raw("store", "false")
            .number("max_output_tokens", call.cap.max(MIN_CAP).into())
            .maybe("temperature", temperature.as_deref())
            .maybe("tools", self.tools(&request.tools)?.as_deref())
            .maybe("reasoning", self.reasoning(thinks).as_deref())
            .maybe(
                "include",
                thinks.map(|_| "[\"reasoning.encrypted_content\"]"),
            )
            .build())
    }

    fn reasoning(&self, effort: Option<&str>) -> Option<String> {
        if !self.model.reasons() {
            return None;
        }
        let told = match effort {
            Some(level) => Object::new()
                .string("effort", self.model.spelling(level))
                .string("summary", "auto"),
            None => Object::new().string(
                "effort",
                match self.model.off() {
                    Off::Unsupported => return None,
                    Off::Silent => "none",
                    Off::Word(word) => word,
                },
            ),
        };
        Some(told.build())
    }

    /// The tools. OpenAI's server holds a function strictly to its schema unless it
    /// is told not to, and changes schemas for that; others need not know the
    /// member.
    fn tools(&self, tools: &[String]) -> Result<Option<String>, Error> {
        let base = self.model.base_url(self.profile);
        let strict = self
            .flag("supportsStrictMode")
            .unwrap_or_else(|| is_host(base, "api.openai.com"));
        let mut out = Vec::with_capacity(tools.len());
        for (at, tool) in tools.iter().enumerate() {
            let tool = Json::parse(tool)
                .ok_or_else(|| error("INVALID", format!("tool {at} is not JSON")))?;
            let mut function = Object::new().string("type", "function");
            for name in ["name", "description", "parameters"] {
                function = function.maybe(name, tool.some(name).map(Json::raw));
            }
            let strict = strict.then_some("false");
            out.push(function.maybe("strict", strict).build());
        }
        Ok((!out.is_empty()).then(|| array(out)))
    }

    fn input(&mut self, system: Option<&str>, history: &[Entry<'_>]) -> Result<String, Error> {
        let mut items = Items::default();
        if let Some(system) = system.filter(|system| !system.is_empty()) {
            let developer =
                self.model.reasons() && self.flag("supportsDeveloperRole") != Some(false);
            let role = if developer { "developer" } else { "system" };
            let system = Object::new().string("role", role).string("content", system);
            items.push(&system.build());
        }
        for (at, entry) in history.iter().enumerate() {
            match entry {
                Entry::User { parts } => {
                    let content = self.parts(parts)?;
                    let user = Object::new()
                        .string("role", "user")
                        .raw("content", &content);
                    items.push(&user.build());
                }
                Entry::Assistant(assistant) => said(assistant, at, &mut items),
                Entry::Result { call_id, parts, .. } => {
                    let output = if parts.iter().any(|part| matches!(part, Piece::Image(_))) {
                        self.parts(parts)?
                    } else {
                        plain(parts)
                    };
                    let (call_id, _) = split_id(call_id);
                    let result = Object::new()
                        .string("type", "function_call_output")
                        .escaped("call_id", call_id)
                        .raw("output", &output);
                    items.push(&result.build());
                }
            }
        }
        Ok(items.build())
    }

    /// Texts and pictures as a list of parts.
    fn parts(&mut self, parts: &[Piece<'_>]) -> Result<String, Error> {
        let mut out = Vec::with_capacity(parts.len());
        for part in parts {
            out.push(match part {
                Piece::Text(text) => Object::new()
                    .string("type", "input_text")
                    .escaped("text", text)
                    .build(),
                Piece::Image(image) => {
                    let bounds = self.profile.pictures;
                    let picture = self.pictures.render(
                        &image.attachment,
                        Some(bounds.pixels),
                        Some(bounds.bytes),
                    )?;
                    let mut url = "data:".to_owned();
                    escape(&picture.media_type, &mut url);
                    url.push_str(";base64,");
                    url.push_str(&body::picture(&picture.id));
                    Object::new()
                        .string("type", "input_image")
                        .string("detail", "auto")
                        .escaped("image_url", &url)
                        .build()
                }
            });
        }
        Ok(array(out))
    }
}

/// The list of items, written as it grows.
#[derive(Default)]
struct Items(String);

impl Items {
    fn push(&mut self, item: &str) {
        self.0.push(if self.0.is_empty() { '[' } else { ',' });
        self.0.push_str(item);
    }

    fn build(mut self) -> String {
        if self.0.is_empty() {
            self.0.push('[');
        }
        self.0.push(']');
        self.0
    }
}

/// A result's text, as a JSON string.
fn plain(parts: &[Piece<'_>]) -> String {
    let mut out = "\"".to_owned();
    for part in parts {
        if let Piece::Text(text) = part {
            out.push_str(text);
        }
    }
    out.push('"');
    out
}

/// The items of what a model said; `at` is its place in the history.
fn said(assistant: &Assistant<'_>, at: usize, items: &mut Items) {
    let mut texts = 0;
    for block in &assistant.blocks {
        match block {
            Block::Thinking {
                signature: Some(signature),
                ..
            } => {
                let item = unescape(signature);
                if is_reasoning(&item) {
                    items.push(&item);
                }
            }
            // Without its item the provider cannot take it back.
            Block::Thinking { .. } => {}
            Block::Text { text, signature } => {
                let (id, phase) = signature
                    .as_deref()
                    .and_then(read_signature)
                    .unwrap_or_default();
                // An item of the provider's own goes back even if it is empty.
                if text.is_empty() && id.is_empty() {
                    continue;
                }
                let id = message_id(&id, at, texts);
                texts += 1;
                let part = Object::new()
                    .string("type", "output_text")
                    .escaped("text", text)
                    .raw("annotations", "[]")
                    .build();
                let message = Object::new()
                    .string("type", "message")
                    .string("role", "assistant")
                    .raw("content", &array([part]))
                    .string("status", "completed")
                    .string("id", &id);
                let message = match phase {
                    Some(phase) => message.string("phase", &phase),
                    None => message,
                };
                items.push(&message.build());
            }
            Block::Call {
                id,
                name,
                arguments,
                ..
            } => {
                let (call_id, item_id) = split_id(id);
                // Another model's has gone with `foreign_call_id`.
                let item_id = item_id
                    .filter(|id| id.starts_with("fc_"))
                    .map(|id| format!("\"{id}\""));
                let call = Object::new()
                    .string("type", "function_call")
                    .maybe("id", item_id.as_deref())
                    .escaped("call_id", call_id)
                    .escaped("name", name)
                    .string("arguments", arguments);
                items.push(&call.build());
            }
        }
    }
}

/// Whether a stored signature is an item that can go back as it is.
fn is_reasoning(item: &str) -> bool {
    Json::parse(item)
        .and_then(|item| item.get("type")?.string())
        .is_some_and(|kind| kind == "reasoning")
}

/// The text of an answer other than 2xx.
pub(crate) fn error_text(status: u16, body: &str) -> String {
    let told = match Json::parse(body) {
        Some(json) => compact(json.some("error").unwrap_or(json).raw()),
        None if body.trim().is_empty() => format!("{status} status code (no body)"),
        None => body.trim().to_owned(),
    };
    let told: String = told.chars().take(MAX_ERROR).collect();
    format!("OpenAI API error ({status}): {told}")
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
