//! Request header and request context: what a model request carries besides its messages. `spec/session.md` §4.

use std::sync::Arc;

use crate::{Error, Event, JStr, Json, Kind, Value};

/// A request header in canonical form: `{config, adapterDefaults?, system?, tools?}`.
#[derive(Clone, Debug)]
pub struct RequestHeader {
    text: Json,
}

const CONFIG: [&str; 6] = [
    "provider",
    "model",
    "reasoningEffort",
    "temperature",
    "maxTokens",
    "stop",
];
const DEFAULTS: [&str; 2] = ["reasoningEffort", "maxTokens"];

impl RequestHeader {
    /// Canonicalises a header object: key order fixed, empty `system` and `tools`, markers that are not true, and
    /// unknown members dropped.
    ///
    /// # Errors
    /// [`Error::RequestHeaderShape`] when it is not an object.
    pub fn canonical(header: Value<'_>) -> Result<RequestHeader, Error> {
        if !header.is_object() {
            let what = "is not an object";
            return Err(Error::RequestHeaderShape {
                subject: "request header".to_owned(),
                what,
            });
        }
        let text = Json::object(|o| {
            if let Some(config) = header.get("config") {
                o.value("config", config);
            }
            let marked =
                |key| header.path(&["adapterDefaults", key]).and_then(Value::bool) == Some(true);
            if DEFAULTS.into_iter().any(marked) {
                o.object("adapterDefaults", |o| {
                    for key in DEFAULTS.into_iter().filter(|key| marked(key)) {
                        o.bool(key, true);
                    }
                });
            }
            if let Some(system) = header
                .get("system")
                .filter(|system| system.as_str() != "\"\"")
            {
                o.value("system", system);
            }
            if let Some(tools) = header.get("tools").filter(|tools| tools.as_str() != "[]") {
                o.value("tools", tools);
            }
        });
        Ok(RequestHeader { text })
    }

    /// The canonical text.
    pub fn json(&self) -> &Json {
        &self.text
    }

    /// `config`: `{provider, model, reasoningEffort?, temperature?, maxTokens?, stop?}`.
    pub fn config(&self) -> Option<Value<'_>> {
        self.text.get("config")
    }

    /// The system text.
    pub fn system(&self) -> Option<JStr<'_>> {
        self.text.get("system").and_then(Value::string)
    }

    /// The tool list.
    pub fn tools(&self) -> Option<Value<'_>> {
        self.text.get("tools")
    }

    /// Equality as §4 defines it: config field by field, markers, system, tools by text.
    pub fn same(&self, other: &RequestHeader) -> bool {
        let (a, b) = (self.text.value(), other.text.value());
        let field = |key| match (a.path(&["config", key]), b.path(&["config", key])) {
            (Some(a), Some(b)) => a.same(b),
            (a, b) => a == b,
        };
        CONFIG.into_iter().all(field)
            && ["adapterDefaults", "system", "tools"]
                .into_iter()
                .all(|key| a.get(key) == b.get(key))
    }
}

/// Where requests go and how much the model takes.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestContext {
    /// The provider's name.
    pub provider: Arc<str>,
    /// The model's name.
    pub model: Arc<str>,
    /// Tokens the model can take, when known.
    pub context_window: Option<f64>,
}

impl RequestContext {
    /// The data of its event.
    pub fn data(&self) -> Json {
        Json::object(|o| {
            o.str("provider", &self.provider).str("model", &self.model);
            if let Some(window) = self.context_window {
                o.f64("contextWindow", window);
            }
        })
    }

    /// Reads the data of a `request/context` event; what is missing reads as empty.
    pub fn read(data: Value<'_>) -> RequestContext {
        let text = |key| {
            data.get(key)
                .and_then(Value::text)
                .unwrap_or_default()
                .into()
        };
        RequestContext {
            provider: text("provider"),
            model: text("model"),
            context_window: data.get("contextWindow").and_then(Value::f64),
        }
    }
}

/// What the header of a stored `request/header` lacks; nothing for other kinds.
pub(crate) fn fault(event: &Event) -> Option<&'static str> {
    if event.kind != Kind::RequestHeader {
        return None;
    }
    let filled = |value: Option<Value<'_>>| {
        value
            .and_then(Value::string)
            .is_some_and(|text| !text.is_empty())
    };
    let header = event.data.get("header");
    let config = header
        .and_then(|header| header.get("config"))
        .filter(|config| config.is_object());
    let Some(config) = config.filter(|c| filled(c.get("provider")) && filled(c.get("model")))
    else {
        return Some("needs a config that names provider and model");
    };
    let effort = config.get("reasoningEffort");
    if effort.is_some() && !filled(effort) {
        return Some("has an empty reasoningEffort");
    }
    let defaults = header.and_then(|header| header.get("adapterDefaults"))?;
    let sound = defaults.is_object()
        && defaults.entries().all(|(key, mark)| {
            DEFAULTS.into_iter().any(|name| key.is(name))
                && mark.bool() == Some(true)
                && config.get(&key.decode()).is_some()
        });
    (!sound).then_some("has adapterDefaults that mark no present config field")
}
