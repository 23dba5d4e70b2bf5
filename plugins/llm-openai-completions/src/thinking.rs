//! How thinking is asked for: each format's members (spec/llm.md §7.6). A model
//! that does not think is told nothing, but for a chat template's own settings.

use adapter_support::Model;
use adapter_support::profile::Off;
use guest_support::json::{Json, Object, quote};

use crate::dialect::Dialect;

/// Appends what asks the model to think at `effort`, or not to think.
pub(crate) fn ask(body: Object, model: &Model, dialect: &Dialect, effort: Option<&str>) -> Object {
    if dialect.thinking == "chat-template" {
        return match kwargs(model, effort) {
            Some(kwargs) => body.raw("chat_template_kwargs", &kwargs),
            None => body,
        };
    }
    if !model.reasons() {
        return body;
    }
    let on = effort.is_some();
    let spelling = effort.map(|effort| quote(model.spelling(effort)));
    let effort_member = |body: Object| {
        body.maybe(
            "reasoning_effort",
            spelling.as_deref().filter(|_| dialect.reasoning_effort),
        )
    };
    match dialect.thinking {
        "deepseek" => {
            let kind = match (on, model.off()) {
                (true, _) => Some(r#"{"type":"enabled"}"#),
                (false, Off::Unsupported) => None,
                (false, _) => Some(r#"{"type":"disabled"}"#),
            };
            effort_member(body.maybe("thinking", kind))
        }
        "openrouter" => {
            let effort = spelling.or_else(|| off_word(model));
            let reasoning = effort.map(|effort| Object::new().raw("effort", &effort).build());
            body.maybe("reasoning", reasoning.as_deref())
        }
        "together" => {
            let reasoning = Object::new().raw("enabled", if on { "true" } else { "false" });
            effort_member(body.raw("reasoning", &reasoning.build()))
        }
        "zai" => effort_member(body.raw(
            "thinking",
            if on {
                r#"{"type":"enabled","clear_thinking":false}"#
            } else {
                r#"{"type":"disabled"}"#
            },
        )),
        "qwen" => body.raw("enable_thinking", if on { "true" } else { "false" }),
        "qwen-chat-template" => {
            let kwargs = Object::new()
                .raw("enable_thinking", if on { "true" } else { "false" })
                .raw("preserve_thinking", "true");
            body.raw("chat_template_kwargs", &kwargs.build())
        }
        "string-thinking" => {
            let thinking = spelling.or_else(|| off_word(model));
            body.maybe("thinking", thinking.as_deref())
        }
        "ant-ling" => {
            let mapped = effort.and_then(|effort| model.mapped(effort)).map(quote);
            let reasoning = mapped.map(|effort| Object::new().raw("effort", &effort).build());
            body.maybe("reasoning", reasoning.as_deref())
        }
        _ => match (effort, model.off()) {
            (None, Off::Word(word)) if dialect.reasoning_effort => {
                body.string("reasoning_effort", word)
            }
            _ => effort_member(body),
        },
    }
}

/// The word that says not to think, where the model can be told.
fn off_word(model: &Model) -> Option<String> {
    match model.off() {
        Off::Unsupported => None,
        Off::Silent => Some(quote("none")),
        Off::Word(word) => Some(quote(word)),
    }
}

/// `chatTemplateKwargs` as they were written; `{"$var": "thinking.enabled"}` and
/// `{"$var": "thinking.effort"}` stand for what the call asks for, and are left
/// out where `omitWhenOff` says so or there is nothing to say.
fn kwargs(model: &Model, effort: Option<&str>) -> Option<String> {
    let written = Json::parse(model.compat.raw("chatTemplateKwargs")?)?;
    let mut out = Object::new();
    let mut some = false;
    for (name, value) in written.members() {
        let variable = value.get("$var").and_then(Json::string);
        let value = match variable.as_deref() {
            None => Some(value.raw().to_owned()),
            Some(_)
                if effort.is_none()
                    && value.get("omitWhenOff").and_then(Json::bool) == Some(true) =>
            {
                None
            }
            Some("thinking.enabled") => Some(effort.is_some().to_string()),
            Some("thinking.effort") => match effort {
                Some(effort) => Some(quote(model.spelling(effort))),
                None => match model.off() {
                    Off::Word(word) => Some(quote(word)),
                    _ => None,
                },
            },
            Some(_) => Some(value.raw().to_owned()),
        };
        if let Some(value) = value {
            some = true;
            out = out.raw(name, &value);
        }
    }
    some.then(|| out.build())
}
