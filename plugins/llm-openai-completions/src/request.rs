//! The request: an entry of the history becomes one or more messages
//! ([`crate::messages`]), thinking is asked for in the server's own words
//! ([`crate::thinking`]), and the members stand in the order of spec/llm.md §7.6.

use adapter_support::profile::Cache;
use adapter_support::{
    Call, Entry, Error, HttpRequest, Model, Pictures, Profile, body, error, url,
};
use guest_support::json::{Json, Object, array, quote};

use crate::dialect::Dialect;
use crate::messages::{self, Message};
use crate::thinking;

/// Code points of the session's id that a cache key may have.
const CACHE_KEY: usize = 64;

pub(crate) fn build(
    profile: &Profile,
    model: &Model,
    call: &Call<'_>,
    history: &[Entry<'_>],
    pictures: &mut dyn Pictures,
) -> Result<HttpRequest, Error> {
    let dialect = Dialect::of(profile, model);
    let mut headers = Vec::new();
    if profile.credential.is_some() {
        headers.push(("authorization", "Bearer {credential}"));
    }
    headers.push(("content-type", "application/json"));
    headers.push(("accept", "application/json"));
    let json = json(profile, model, &dialect, call, history, pictures)?;
    Ok(HttpRequest {
        method: "POST".to_owned(),
        url: url(model.base_url(profile), "/chat/completions"),
        headers: headers
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        body: body::parts(json),
        timeout_ms: None,
    })
}

fn json(
    profile: &Profile,
    model: &Model,
    dialect: &Dialect,
    call: &Call<'_>,
    history: &[Entry<'_>],
    pictures: &mut dyn Pictures,
) -> Result<String, Error> {
    let request = call.request;
    let mut messages = Vec::with_capacity(history.len() + 1);
    if let Some(system) = request
        .system
        .as_deref()
        .filter(|system| !system.is_empty())
    {
        let role = if model.reasons() && dialect.developer_role {
            "developer"
        } else {
            "system"
        };
        messages.push(Message::text(role, &adapter_support::escaped(system)));
    }
    messages::translate(history, profile, model, dialect, pictures, &mut messages)?;
    let mut tools = tools(&request.tools, dialect)?;
    if dialect.cache_control && profile.cache != Cache::None {
        let long = profile.cache == Cache::Long && dialect.long_cache;
        mark(&mut messages, &mut tools, long);
    }
    let has_tool_traffic = || {
        history.iter().any(|entry| match entry {
            Entry::Result { .. } => true,
            Entry::Assistant(assistant) => assistant.calls() > 0,
            Entry::User { .. } => false,
        })
    };
    let tools = if !tools.is_empty() || has_tool_traffic() {
        Some(array(&tools))
    } else {
        None
    };
    let long = profile.cache == Cache::Long && dialect.long_cache;
    let key = request
        .session_id
        .as_deref()
        .filter(|_| long || (dialect.openai && profile.cache != Cache::None))
        .map(|id| quote(&id.chars().take(CACHE_KEY).collect::<String>()));
    let temperature = request
        .config
        .temperature
        .filter(|temperature| temperature.is_finite())
        .map(|temperature| temperature.to_string());
    let messages = messages.into_iter().map(Message::build);
    let object = Object::new()
        .string("model", &model.id)
        .raw("messages", &array(messages))
        .raw("stream", "true")
        .maybe("prompt_cache_key", key.as_deref())
        .maybe("prompt_cache_retention", long.then_some("\"24h\""))
        .maybe(
            "stream_options",
            dialect
                .usage_in_streaming
                .then_some("{\"include_usage\":true}"),
        )
        .maybe("store", dialect.store.then_some("false"))
        .number(dialect.max_tokens_field, call.cap.into())
        .maybe("temperature", temperature.as_deref())
        .maybe("tools", tools.as_deref());
    Ok(thinking::ask(object, model, dialect, call.effort).build())
}

fn tools(tools: &[String], dialect: &Dialect) -> Result<Vec<String>, Error> {
    let tool = |(at, tool): (usize, &String)| {
        let tool =
            Json::parse(tool).ok_or_else(|| error("INVALID", format!("tool {at} is not JSON")))?;
        let mut function = Object::new();
        for name in ["name", "description", "parameters"] {
            function = function.maybe(name, tool.some(name).map(Json::raw));
        }
        let function = function.maybe("strict", dialect.strict.then_some("false"));
        Ok(Object::new()
            .string("type", "function")
            .raw("function", &function.build())
            .build())
    };
    tools.iter().enumerate().map(tool).collect()
}

/// Marks what an Anthropic model behind the server is to keep: the system prompt,
/// the last tool, the last thing that was said.
fn mark(messages: &mut [Message], tools: &mut [String], long: bool) {
    let marker = if long {
        r#"{"type":"ephemeral","ttl":"1h"}"#
    } else {
        r#"{"type":"ephemeral"}"#
    };
    if let Some(first) = messages
        .first_mut()
        .filter(|message| matches!(message.role, "system" | "developer"))
    {
        first.mark(marker);
    }
    let said = messages
        .iter_mut()
        .rev()
        .filter(|message| matches!(message.role, "user" | "assistant"));
    for message in said {
        if message.mark(marker) {
            break;
        }
    }
    if let Some(tool) = tools.last_mut() {
        tool.pop();
        tool.push_str(",\"cache_control\":");
        tool.push_str(marker);
        tool.push('}');
    }
}
