//! A provider as one adapter serves it.

use std::time::Duration;

use dsh_session::{Json, Value};

use crate::error::ModelError;
use crate::retry::RetryPolicy;

/// How long a provider may be silent unless its adapter says otherwise.
const IDLE_TIMEOUT_MS: u64 = 300_000;
/// What a timer takes.
const MAX_TIMEOUT_MS: u64 = 2_147_483_647;

/// What an adapter's `list-routes` says of one provider.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// What a call's `provider` names; never empty.
    pub provider: String,
    /// For people; never empty.
    pub name: String,
    /// Where its requests go, as the adapter is configured.
    pub base_url: Option<String>,
    /// The credential that it wants, by reference.
    pub credential: Option<String>,
    /// How long it may be silent.
    pub idle_timeout: Duration,
    /// Captured when the route is registered.
    pub retry_policy: RetryPolicy,
    /// `{id, name, description?}`, advisory: other models may be served too.
    pub models: Vec<Json>,
    /// The protocol that it speaks, for people.
    pub api: Option<String>,
    /// Why it cannot be called, where that is so: a configuration that is wrong costs
    /// its route alone, which stays known so that whoever asks for it is told.
    pub problem: Option<String>,
}

impl Route {
    /// Reads one entry of `list-routes`.
    ///
    /// # Errors
    /// [`ModelError::InvalidAdapter`].
    pub fn parse(text: &str) -> Result<Self, ModelError> {
        let invalid = |what: String| ModelError::InvalidAdapter(what);
        let route =
            Json::normalise(text).map_err(|error| invalid(format!("a route is {error}")))?;
        let text = |key: &str| -> Result<Option<String>, ModelError> {
            match route
                .get(key)
                .filter(|member| !member.is_null())
                .map(Value::text)
            {
                None => Ok(None),
                Some(Some(text)) if !text.trim().is_empty() => Ok(Some(text.into_owned())),
                Some(_) => Err(invalid(format!("a route's {key} is no text or is empty"))),
            }
        };
        let provider =
            text("provider")?.ok_or_else(|| invalid(String::from("a route has no provider")))?;
        let name = text("name")?.unwrap_or_else(|| provider.clone());
        let idle = match route.get("idleTimeoutMs") {
            None => IDLE_TIMEOUT_MS,
            Some(number) => number
                .u64()
                .filter(|ms| (1..=MAX_TIMEOUT_MS).contains(ms))
                .ok_or_else(|| {
                    invalid(format!(
                        "{provider}: idleTimeoutMs is no number from 1 to {MAX_TIMEOUT_MS}"
                    ))
                })?,
        };
        let retry_policy = match route.get("retryPolicy").filter(|policy| !policy.is_null()) {
            None => RetryPolicy::default(),
            Some(policy) => RetryPolicy::parse(policy)
                .map_err(|what| invalid(format!("{provider}: retryPolicy {what}")))?,
        };
        let models = route
            .get("models")
            .map(|models| models.items().map(Value::to_json).collect())
            .unwrap_or_default();
        Ok(Self {
            base_url: text("baseURL")?,
            credential: text("credential")?,
            idle_timeout: Duration::from_millis(idle),
            api: text("api")?,
            problem: text("problem")?,
            provider,
            name,
            retry_policy,
            models,
        })
    }

    /// Its models, checked (`spec/llm.md` §3.2): unique ids, names, texts.
    ///
    /// # Errors
    /// [`ModelError::InvalidCatalog`].
    pub fn catalog(&self) -> Result<&[Json], ModelError> {
        let invalid = |reason: &str| ModelError::InvalidCatalog {
            route: self.provider.clone(),
            reason: reason.to_owned(),
        };
        let mut ids: Vec<String> = Vec::new();
        for model in &self.models {
            let text = |key| {
                model
                    .get(key)
                    .map(|member| member.text().unwrap_or_default())
            };
            if text("provider").is_some_and(|provider| *provider != *self.provider) {
                return Err(invalid("a model is another provider's"));
            }
            let id = text("id")
                .filter(|id| !id.is_empty())
                .ok_or_else(|| invalid("a model has no id"))?;
            if ids.iter().any(|known| **known == *id) {
                return Err(invalid("two models have the same id"));
            }
            if text("name").is_some_and(|name| name.is_empty()) {
                return Err(invalid("a model has an empty name"));
            }
            if model
                .get("description")
                .is_some_and(|text| text.string().is_none())
            {
                return Err(invalid("a model's description is no text"));
            }
            ids.push(id.into_owned());
        }
        Ok(&self.models)
    }
}

#[cfg(test)]
#[path = "route_tests.rs"]
mod tests;
