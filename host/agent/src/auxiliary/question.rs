//! From a question to a prompt: the route, the prefix, the messages.

use std::collections::HashSet;

use dsh_model::CallConfig;
use dsh_plugin::api::{PluginError, code};
use dsh_plugin::port::Question;
use dsh_session::{Json, Seq, Value};

use crate::config;
use crate::log::Log;
use crate::message::fresh_id;

/// What a call asks, with everything that is the host's to add.
pub(crate) struct Prompt {
    pub(crate) purpose: String,
    /// Before the adapter's defaults.
    pub(crate) config: CallConfig,
    pub(crate) system: Option<String>,
    pub(crate) tools: Vec<Json>,
    /// The session's own, then those that follow.
    pub(crate) prefix: Vec<Json>,
    /// Drafts that became messages.
    pub(crate) messages: Vec<Json>,
    pub(crate) timeout_ms: Option<u32>,
}

impl Prompt {
    /// Puts it together over a log. `route` is what is asked where the session
    /// has made no request yet; `source` is whom the messages are marked with.
    ///
    /// # Errors
    /// `INVALID` for what is none of its shape, `STALE` for a prefix that is not
    /// on the surface, `UNAVAILABLE` where there is no route or no header.
    pub(crate) fn new(
        question: Question,
        log: &Log,
        route: &(String, String),
        source: &str,
    ) -> Result<Self, PluginError> {
        let header = log.read(dsh_session::Session::request_header);
        let asked = member("config", &question.config)?;
        let last = header.as_ref().and_then(|header| {
            let config = header.config()?;
            let text = |key: &str| config.get(key)?.text();
            Some((text("provider")?.into_owned(), text("model")?.into_owned()))
        });
        let config = lay_over(last.as_ref().unwrap_or(route), &asked)?;
        let messages = question.messages.iter();
        let messages = messages
            .map(|draft| self::draft(draft, source))
            .collect::<Result<_, _>>()?;
        let (mut system, mut tools, mut prefix) = (question.system, Vec::new(), Vec::new());
        if let Some((first, last)) = question.prefix {
            let Some(header) = header else {
                let message = "the session has made no request yet, so there is nothing to go on from; ask without a prefix";
                return Err(PluginError::new(code::UNAVAILABLE, message));
            };
            system = header.system().map(|text| text.decode().into_owned());
            let listed = header.tools().into_iter().flat_map(Value::items);
            tools = listed.map(Value::to_json).collect();
            prefix = stretch(log, first, last)?;
        }
        Ok(Self {
            purpose: question.purpose,
            config,
            system,
            tools,
            prefix,
            messages,
            timeout_ms: question.timeout_ms,
        })
    }
}

fn member(name: &str, text: &str) -> Result<Json, PluginError> {
    let json = Json::normalise(text).ok();
    json.filter(|json| json.value().is_object())
        .ok_or_else(|| invalid(format!("`{name}` of a question must be a JSON object")))
}

fn invalid(message: String) -> PluginError {
    PluginError::new(code::INVALID, message)
}

/// The members that were asked for, over a route.
fn lay_over(route: &(String, String), asked: &Json) -> Result<CallConfig, PluginError> {
    let laid = Json::object(|config| {
        for (key, own) in [("provider", &route.0), ("model", &route.1)] {
            if asked.get(key).is_none() {
                config.str(key, own);
            }
        }
        for (key, value) in asked.value().entries() {
            config.value(&key.decode(), value);
        }
    });
    let config = config::read(laid.value()).ok_or_else(|| {
        invalid(format!(
            "{asked} is no call configuration: a member of it is not of its kind"
        ))
    })?;
    if config.provider.is_empty() || config.model.is_empty() {
        let message = "no model is selected and the session has made no request yet; name `provider` and `model` in the question's config";
        return Err(PluginError::new(code::UNAVAILABLE, message));
    }
    Ok(config)
}

/// The messages of the surface's nodes from one to another.
fn stretch(log: &Log, first: u32, last: u32) -> Result<Vec<Json>, PluginError> {
    let nodes: Option<HashSet<Seq>> = log.read(|session| {
        let nodes = session.surface().nodes();
        let at = |seq: u32| nodes.iter().position(|node| *node == Seq(u64::from(seq)));
        let stretch = nodes.get(at(first)?..=at(last)?)?;
        (!stretch.is_empty()).then(|| stretch.iter().copied().collect())
    });
    let nodes = nodes.ok_or_else(|| {
        PluginError::new(
            code::STALE,
            format!(
                "{first} to {last} is no stretch of the surface; look at `session.surface` again"
            ),
        )
    })?;
    let messages = log
        .messages()
        .map_err(|error| PluginError::new(code::UNAVAILABLE, error.to_string()))?;
    let within = messages
        .iter()
        .filter(|message| nodes.contains(&message.seq()));
    Ok(within.map(|message| message.value().to_json()).collect())
}

/// A draft `{role, content}` as a message: what a component says is marked as
/// its own, whatever role it is put into.
fn draft(text: &str, source: &str) -> Result<Json, PluginError> {
    let draft = Json::normalise(text).ok();
    let role = draft.as_ref().and_then(|draft| draft.get("role"));
    let role = role.map_or(Some("user".into()), Value::text);
    let content = draft.as_ref().and_then(|draft| draft.get("content"));
    let content = content.filter(|content| content.is_array());
    let spoken = |block: Value<'_>| {
        let kind = block.get("type").and_then(Value::string);
        kind.is_some_and(|kind| kind.is("text") || kind.is("image"))
    };
    match (role.as_deref(), content) {
        (Some(role @ ("user" | "assistant")), Some(content)) if content.items().all(spoken) => {
            Ok(Json::object(|message| {
                message.value("content", content);
                message.object("source", |by| {
                    by.str("kind", "plugin").str("plugin", source);
                });
                message.str("role", role).str("id", &fresh_id());
            }))
        }
        _ => Err(invalid(
            "a message of a question is {role: user or assistant, content: text and image blocks}"
                .to_owned(),
        )),
    }
}
