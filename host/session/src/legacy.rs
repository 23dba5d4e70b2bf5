//! Upgrades of older event shapes, in memory; a file is never rewritten for them. `spec/session.md` §3.1.
//!
//! An older shape is taken only when it is exactly what an older program wrote. What is half old and half new is left
//! alone, and the shape check refuses it.

use std::sync::Arc;

use crate::{Event, Json, Kind, SurfaceOp, Value};

/// The older kind of a message that steered a running turn; it was a surface event.
pub(crate) const STEERING: &str = "steering/message";

/// What became of an event.
pub(crate) enum Upgrade {
    /// It has today's shape, or one that is not for this module to judge.
    Same,
    /// It was upgraded.
    To(Event),
    /// It has an older shape, but not exactly.
    Malformed(&'static str),
}

/// Upgrades one event. `earlier` are the events before it, upgraded already.
pub(crate) fn upgrade(event: &Event, session: &str, earlier: &[Arc<Event>]) -> Upgrade {
    let data = event.data.value();
    match &event.kind {
        Kind::TurnStart => turn_start(event, data),
        Kind::TurnEnd => turn_end(event, data),
        Kind::Foreign(name) if **name == *STEERING => steering(event, data, session),
        Kind::UserMessage => user(event, data, session),
        Kind::AssistantMessage => assistant(event, data, session),
        Kind::ToolResult => tool(event, data, session, earlier),
        _ => Upgrade::Same,
    }
}

/// Whether an object has exactly these members; those with a `?` are optional.
fn exactly(value: Value<'_>, members: &[&str]) -> bool {
    let named = |member: &&str, key: &crate::JStr<'_>| key.is(member.trim_end_matches('?'));
    value.is_object()
        && value
            .entries()
            .all(|(key, _)| members.iter().any(|member| named(member, &key)))
        && members
            .iter()
            .filter(|m| !m.ends_with('?'))
            .all(|m| value.get(m).is_some())
}

fn at_least(value: Option<Value<'_>>, least: u64) -> bool {
    value
        .and_then(Value::u64)
        .is_some_and(|number| number >= least)
}

fn is_string(value: Option<Value<'_>>) -> bool {
    value.and_then(Value::string).is_some()
}

fn legacy_id(session: &str, event: &Event) -> String {
    format!("legacy-message:{session}:{}", event.seq)
}

fn turn_start(event: &Event, data: Value<'_>) -> Upgrade {
    if !data.is_object() {
        return Upgrade::Malformed("turn/start");
    }
    let Some(trigger) = data.get("trigger") else {
        return Upgrade::Same;
    };
    let kind = trigger.get("kind").and_then(Value::string);
    let sound = exactly(data, &["turn", "trigger"])
        && at_least(data.get("turn"), 1)
        && kind.is_some_and(|kind| !kind.is_empty());
    let Some(turn) = data.get("turn").filter(|_| sound) else {
        return Upgrade::Malformed("turn/start");
    };
    let data = Json::object(|o| {
        o.value("turn", turn);
    });
    Upgrade::To(event.upgraded(Kind::TurnStart, data))
}

fn turn_end(event: &Event, data: Value<'_>) -> Upgrade {
    const MALFORMED: Upgrade = Upgrade::Malformed("turn/end");
    let sound = exactly(data, &["turn", "reason"]) && at_least(data.get("turn"), 1);
    let (Some(turn), Some(reason)) = (data.get("turn").filter(|_| sound), data.get("reason"))
    else {
        return MALFORMED;
    };
    let Some(kind) = reason.get("kind").and_then(Value::text) else {
        return MALFORMED;
    };
    let bare = exactly(reason, &["kind"]);
    let new = match &*kind {
        "completed" | "blocked" | "max-tokens" | "interrupted" if bare => return Upgrade::Same,
        "completed" | "blocked" | "max-tokens" | "interrupted" => return MALFORMED,
        "aborted" if reason.get("reason").is_some() => return Upgrade::Same,
        "aborted" if bare => aborted("legacy"),
        "disposed" if bare => aborted("disposed"),
        "aborted" | "disposed" => return MALFORMED,
        "error" if reason.get("error").is_some() => return Upgrade::Same,
        "error" => match failure(reason) {
            Some(failure) => Json::object(|o| {
                o.str("kind", "error").json("error", &failure);
            }),
            None => return MALFORMED,
        },
        _ => return Upgrade::Same,
    };
    let data = Json::object(|o| {
        o.value("turn", turn).json("reason", &new);
    });
    Upgrade::To(event.upgraded(Kind::TurnEnd, data))
}

fn aborted(reason: &str) -> Json {
    Json::object(|o| {
        o.str("kind", "aborted").object("reason", |o| {
            o.str("kind", reason);
        });
    })
}

/// The failure of an older error reason: `{kind, step, failure}` or `{kind, step, message, code?}`.
fn failure(reason: Value<'_>) -> Option<Json> {
    if !at_least(reason.get("step"), 0) {
        return None;
    }
    if exactly(reason, &["kind", "step", "failure"]) {
        let failure = reason.get("failure")?;
        let number = |key| failure.get(key).is_none_or(Value::is_number);
        let sound = exactly(
            failure,
            &[
                "message",
                "code",
                "status?",
                "providerRetryAfterMs?",
                "requestId?",
            ],
        ) && is_string(failure.get("message"))
            && is_string(failure.get("code"))
            && number("status")
            && number("providerRetryAfterMs")
            && (failure.get("requestId").is_none() || is_string(failure.get("requestId")));
        return sound.then(|| failure.to_json());
    }
    let (message, code) = (reason.get("message"), reason.get("code"));
    let sound = exactly(reason, &["kind", "step", "message", "code?"])
        && is_string(message)
        && (code.is_none() || is_string(code));
    let message = message.filter(|_| sound)?;
    Some(Json::object(|o| {
        o.value("message", message);
        match code {
            Some(code) => o.value("code", code),
            None => o.str("code", "UNKNOWN"),
        };
    }))
}

fn steering(event: &Event, data: Value<'_>, session: &str) -> Upgrade {
    if exactly(data, &["turn", "message"])
        && let Some(message) = data.get("message")
    {
        return Upgrade::To(event.upgraded(Kind::UserMessage, message.to_json()));
    }
    if exactly(data, &["turn", "content", "source"])
        && let (Some(content), Some(source)) = (data.get("content"), data.get("source"))
    {
        let data = Json::object(|o| {
            o.value("content", content).value("source", source);
            o.str("id", &legacy_id(session, event)).str("role", "user");
        });
        return Upgrade::To(event.upgraded(Kind::UserMessage, data));
    }
    Upgrade::Malformed(STEERING)
}

/// Whether an object has all of `present` and none of `absent`.
fn has(data: Value<'_>, present: &[&str], absent: &[&str]) -> bool {
    present.iter().all(|key| data.get(key).is_some())
        && absent.iter().all(|key| data.get(key).is_none())
}

fn user(event: &Event, data: Value<'_>, session: &str) -> Upgrade {
    if !has(data, &["content", "source"], &["id", "role", "message"]) {
        return Upgrade::Same;
    }
    let data = Json::object(|o| {
        for (key, value) in data.entries() {
            o.value(&key.decode(), value);
        }
        o.str("id", &legacy_id(session, event)).str("role", "user");
    });
    Upgrade::To(event.upgraded(Kind::UserMessage, data))
}

fn assistant(event: &Event, data: Value<'_>, session: &str) -> Upgrade {
    if !has(data, &["content", "provenance"], &["message"]) {
        return Upgrade::Same;
    }
    let new = Json::object(|o| {
        for (key, value) in data.entries() {
            if !key.is("content") && !key.is("provenance") {
                o.value(&key.decode(), value);
            }
        }
        o.object("message", |o| {
            o.str("id", &legacy_id(session, event))
                .str("role", "assistant");
            if let Some(content) = data.get("content") {
                o.value("content", content);
            }
            o.object("source", |o| {
                // A `kind` that stands in the provenance keeps its place and loses its value.
                let mut placed = false;
                for (key, value) in data.get("provenance").into_iter().flat_map(Value::entries) {
                    if key.is("kind") {
                        o.str("kind", "model");
                        placed = true;
                    } else {
                        o.value(&key.decode(), value);
                    }
                }
                if !placed {
                    o.str("kind", "model");
                }
            });
        });
    });
    Upgrade::To(event.upgraded(Kind::AssistantMessage, new))
}

fn tool(event: &Event, data: Value<'_>, session: &str, earlier: &[Arc<Event>]) -> Upgrade {
    if !has(data, &["callId", "content", "isError"], &["message"]) {
        return Upgrade::Same;
    }
    let replaced = match event.surface_op {
        Some(SurfaceOp::Replace { start, .. }) => usize::try_from(start.0)
            .ok()
            .and_then(|index| earlier.get(index)),
        _ => None,
    };
    let replaced_id = replaced.and_then(|old| {
        let message = crate::message::of(&old.kind, old.data.value())?;
        Some(message.get("id")?.text()?.into_owned())
    });
    let id = replaced_id.unwrap_or_else(|| legacy_id(session, event));
    let moved = ["callId", "content", "isError"];
    let get = |key: &str| data.get(key).map_or_else(Json::null, Value::to_json);
    let new = Json::object(|o| {
        for (key, value) in data.entries() {
            if !moved.iter().any(|name| key.is(name)) {
                o.value(&key.decode(), value);
            }
        }
        o.object("message", |o| {
            o.str("id", &id).str("role", "user");
            o.array("content", |a| {
                a.object(|o| {
                    o.str("type", "tool-result")
                        .json("toolCallId", &get("callId"));
                    o.json("content", &get("content"))
                        .json("isError", &get("isError"));
                });
            });
            o.object("source", |o| {
                o.str("kind", "tool").json("callId", &get("callId"));
            });
        });
    });
    Upgrade::To(event.upgraded(Kind::ToolResult, new))
}
