//! What is known of a model, and what a call's configuration becomes by it. `spec/llm.md` §3.3, §3.4.

use dsh_plugin::api::CallConfig;
use dsh_session::{Json, Value};

use crate::error::ModelError;

/// A model, as its adapter describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// As the call names it.
    pub id: String,
    /// For people.
    pub name: String,
    /// Tokens that a request and its answer may have together.
    pub context_window: Option<u64>,
    /// What a message may hold; unknown means all.
    pub input_modalities: Option<Vec<String>>,
    /// The output cap of a call that has none.
    pub default_max_tokens: Option<u32>,
    /// Absent where the model takes no effort.
    pub reasoning: Option<Reasoning>,
}

/// How a model can be told to think.
#[derive(Debug, Clone, PartialEq)]
pub struct Reasoning {
    /// At least one, of different ids.
    pub efforts: Vec<Effort>,
    /// One of them.
    pub default_effort: Option<String>,
}

/// One way to think.
#[derive(Debug, Clone, PartialEq)]
pub struct Effort {
    /// What a call names.
    pub id: String,
    /// For people.
    pub name: String,
}

impl ModelInfo {
    /// Reads and checks what an adapter says.
    ///
    /// # Errors
    /// [`ModelError::InvalidModelInfo`] with the code of the part.
    pub fn parse(text: &str, route: &str, model: &str) -> Result<Self, ModelError> {
        let invalid = |code, reason: &str| ModelError::InvalidModelInfo {
            route: route.to_owned(),
            model: model.to_owned(),
            code,
            reason: reason.to_owned(),
        };
        let whole = |reason: &str| invalid("INVALID_MODEL_INFO", reason);
        let info = Json::normalise(text).map_err(|error| whole(&error.to_string()))?;
        if info
            .get("provider")
            .is_some_and(|provider| provider.text().as_deref() != Some(route))
        {
            return Err(whole("it is another provider's"));
        }
        if info.get("id").and_then(Value::text).as_deref() != Some(model) {
            return Err(whole("it is about another model"));
        }
        let name = name_of(info.value()).ok_or_else(|| whole("it has no name"))?;
        let context_window = match info.value().path(&["context", "contextWindow"]) {
            None if info
                .get("context")
                .is_some_and(|context| !context.is_null()) =>
            {
                return Err(invalid(
                    "INVALID_MODEL_CONTEXT",
                    "its context has no contextWindow",
                ));
            }
            None => None,
            Some(window) => Some(window.u64().filter(|window| *window > 0).ok_or_else(|| {
                invalid(
                    "INVALID_MODEL_CONTEXT",
                    "contextWindow is no whole number above 0",
                )
            })?),
        };
        let default_max_tokens = match info.get("defaultMaxTokens") {
            None => None,
            Some(cap) => {
                let cap = cap
                    .u64()
                    .and_then(|cap| u32::try_from(cap).ok())
                    .filter(|cap| *cap > 0);
                Some(cap.ok_or_else(|| {
                    invalid(
                        "INVALID_MODEL_MAX_TOKENS",
                        "defaultMaxTokens is no whole number from 1 to 2^32-1",
                    )
                })?)
            }
        };
        let input_modalities = match info.get("inputModalities") {
            None => None,
            Some(list) => Some(
                list.items()
                    .map(|item| item.text().map(std::borrow::Cow::into_owned))
                    .collect::<Option<Vec<String>>>()
                    .filter(|_| list.is_array())
                    .ok_or_else(|| whole("inputModalities is no list of texts"))?,
            ),
        };
        let reasoning = info
            .get("reasoning")
            .map(Reasoning::parse)
            .transpose()
            .map_err(|reason| invalid("INVALID_MODEL_REASONING", reason))?;
        let id = model.to_owned();
        Ok(Self {
            id,
            name,
            context_window,
            input_modalities,
            default_max_tokens,
            reasoning,
        })
    }

    /// Fills in and checks what depends on the model.
    ///
    /// # Errors
    /// [`ModelError::UnsupportedReasoningEffort`]: an effort is never bent to one that exists.
    pub fn resolve(&self, mut config: CallConfig) -> Result<CallConfig, ModelError> {
        config.max_tokens = config.max_tokens.or(self.default_max_tokens);
        let known = self
            .reasoning
            .as_ref()
            .map_or(&[][..], |reasoning| &reasoning.efforts);
        if let Some(reasoning) = &self.reasoning {
            config.reasoning_effort = config
                .reasoning_effort
                .or_else(|| reasoning.default_effort.clone());
        }
        match &config.reasoning_effort {
            Some(effort) if !known.iter().any(|one| one.id == *effort) => {
                Err(ModelError::UnsupportedReasoningEffort {
                    route: config.provider.clone(),
                    model: config.model.clone(),
                    effort: effort.clone(),
                    efforts: known.iter().map(|one| one.id.clone()).collect(),
                })
            }
            _ => Ok(config),
        }
    }

    /// Whether messages with images may be sent as they are.
    #[must_use]
    pub fn takes_images(&self) -> bool {
        self.input_modalities
            .as_ref()
            .is_none_or(|kinds| kinds.iter().any(|kind| kind == "image"))
    }
}

impl Reasoning {
    fn parse(value: Value<'_>) -> Result<Self, &'static str> {
        let mut efforts: Vec<Effort> = Vec::new();
        for effort in value.get("efforts").ok_or("it has no efforts")?.items() {
            let id = effort
                .get("id")
                .and_then(Value::text)
                .filter(|id| !id.is_empty());
            let id = id.ok_or("an effort has no id")?.into_owned();
            let name = name_of(effort).ok_or("an effort has no name")?;
            if efforts.iter().any(|known| known.id == id) {
                return Err("two efforts have the same id");
            }
            efforts.push(Effort { id, name });
        }
        if efforts.is_empty() {
            return Err("it has no efforts");
        }
        let default_effort = match value.get("defaultEffort") {
            None => None,
            Some(id) => {
                let id = id.text().unwrap_or_default().into_owned();
                if !efforts.iter().any(|known| known.id == id) {
                    return Err("its default is none of its efforts");
                }
                Some(id)
            }
        };
        Ok(Self {
            efforts,
            default_effort,
        })
    }
}

fn name_of(value: Value<'_>) -> Option<String> {
    let name = value.get("name").and_then(Value::text)?;
    (!name.trim().is_empty()).then(|| name.into_owned())
}

#[cfg(test)]
#[path = "info_tests.rs"]
mod tests;
