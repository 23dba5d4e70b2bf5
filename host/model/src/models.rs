//! The routes of an agent, and calls prepared for them. `spec/llm.md` §3.
//!
//! A [`Models`] belongs to one agent, because adapter instances do; it is cheap
//! to make, and what is costly (the client, credentials) is shared behind its
//! [`Gateway`]. A prepared call is consumed by its one use, so the configuration
//! that was prepared is the one that runs.

use std::borrow::Cow;
use std::sync::Arc;

use async_trait::async_trait;
use dsh_check::did_you_mean;
use dsh_plugin::CallContext;
use dsh_plugin::api::CallConfig;
use dsh_session::{Json, Value};

use crate::adapter::Adapter;
use crate::error::ModelError;
use crate::exchange::LlmStream;
use crate::failure::LlmFailure;
use crate::history::View;
use crate::info::ModelInfo;
use crate::outgoing::{Gateway, RouteGrant};
use crate::registration::{Entries, Registration};
use crate::request::Request;
use crate::retry::RetryPolicy;
use crate::route::Route;

/// A provider that can be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Provider {
    /// What a call names.
    pub id: String,
    /// For people.
    pub name: String,
}

/// Which fields of a prepared configuration are the adapter's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdapterDefaults {
    /// `reasoningEffort` was absent.
    pub reasoning_effort: bool,
    /// `maxTokens` was absent.
    pub max_tokens: bool,
}

impl AdapterDefaults {
    /// `{reasoningEffort?: true, maxTokens?: true}`; none where there is nothing to say.
    #[must_use]
    pub fn to_json(self) -> Option<Json> {
        (self != Self::default()).then(|| {
            Json::object(|o| {
                if self.reasoning_effort {
                    o.bool("reasoningEffort", true);
                }
                if self.max_tokens {
                    o.bool("maxTokens", true);
                }
            })
        })
    }
}

/// The routes of one agent.
pub struct Models {
    gateway: Arc<Gateway>,
    entries: Arc<Entries>,
    refresh: Option<Arc<dyn Refresh>>,
}

/// Brings the routes up to date before a call is prepared: what a person changed
/// meanwhile counts for the next request, and no stream that runs is touched.
#[async_trait]
pub trait Refresh: Send + Sync {
    /// Called for every call; has to be cheap where nothing changed.
    async fn refresh(&self);
}

/// A route with who serves it and where it may go.
pub(crate) struct Entry {
    pub(crate) route: Route,
    pub(crate) grant: Option<RouteGrant>,
    pub(crate) adapter: Arc<dyn Adapter>,
    /// Of the registration that it belongs to.
    pub(crate) registration: u64,
}

impl Models {
    /// No routes yet.
    #[must_use]
    pub fn new(gateway: Arc<Gateway>) -> Self {
        Self {
            gateway,
            entries: Arc::default(),
            refresh: None,
        }
    }

    /// With somebody who keeps the routes up to date.
    #[must_use]
    pub fn refreshed_by(mut self, refresh: Arc<dyn Refresh>) -> Self {
        self.refresh = Some(refresh);
        self
    }

    /// Adds all routes of an adapter, or none. A route without a grant can be
    /// prepared, and its exchanges are refused with the grant that is missing. The
    /// registration changes what was added; dropping it changes nothing.
    ///
    /// # Errors
    /// [`ModelError::InvalidAdapter`], [`ModelError::DuplicateAdapter`].
    pub fn register(
        &self,
        adapter: impl Adapter + 'static,
        grants: &[RouteGrant],
    ) -> Result<Registration, ModelError> {
        let adapter: Arc<dyn Adapter> = Arc::new(adapter);
        self.entries.add(&adapter, grants)
    }

    /// A registration without routes yet, whose place in the order is taken.
    #[must_use]
    pub fn place(&self) -> Registration {
        self.entries.place()
    }

    /// The providers, in order of registration.
    #[must_use]
    pub fn providers(&self) -> Vec<Provider> {
        self.entries()
            .iter()
            .map(|entry| Provider {
                id: entry.route.provider.clone(),
                name: entry.route.name.clone(),
            })
            .collect()
    }

    /// The routes, in order of registration.
    #[must_use]
    pub fn routes(&self) -> Vec<Route> {
        self.entries()
            .iter()
            .map(|entry| entry.route.clone())
            .collect()
    }

    /// The models that a provider lists; others may be served too.
    ///
    /// # Errors
    /// [`ModelError::NoAdapter`], [`ModelError::InvalidCatalog`].
    pub fn list_models(&self, provider: &str) -> Result<Vec<Json>, ModelError> {
        Ok(self.find(provider)?.route.catalog()?.to_vec())
    }

    /// Completes a call's configuration.
    ///
    /// # Errors
    /// [`ModelError`]; `NO_ADAPTER` where nobody serves the provider.
    pub async fn prepare(
        &self,
        ctx: &CallContext,
        config: CallConfig,
    ) -> Result<PreparedCall, ModelError> {
        if let Some(refresh) = &self.refresh {
            refresh.refresh().await;
        }
        let entry = self.find(&config.provider)?;
        if let Some(problem) = &entry.route.problem {
            return Err(ModelError::InvalidConfig {
                route: config.provider,
                problem: problem.clone(),
            });
        }
        if ctx.cancel.is_cancelled() {
            return Err(LlmFailure::aborted().into());
        }
        let prepared = entry
            .adapter
            .prepare(ctx, config.clone())
            .await
            .map_err(|failure| {
                if ctx.cancel.is_cancelled() {
                    return LlmFailure::aborted();
                }
                match failure.code.as_str() {
                    UNKNOWN_MODEL => with_others(failure, &config, &self.entries()),
                    _ => failure,
                }
            })?;
        if let Some(field) = changed(&config, &prepared.config) {
            return Err(ModelError::InvalidPreparedCall {
                route: config.provider,
                field,
            });
        }
        let info = ModelInfo::parse(&prepared.model, &config.provider, &config.model)?;
        let complete = info.resolve(prepared.config)?;
        let adapter_defaults = AdapterDefaults {
            reasoning_effort: config.reasoning_effort.is_none()
                && complete.reasoning_effort.is_some(),
            max_tokens: config.max_tokens.is_none() && complete.max_tokens.is_some(),
        };
        let entries = self.entries();
        let own = entries
            .iter()
            .filter(|other| Arc::ptr_eq(&other.adapter, &entry.adapter));
        let own_routes = own.map(|other| other.route.provider.clone()).collect();
        Ok(PreparedCall {
            view: View {
                own_routes,
                images: info.takes_images(),
            },
            gateway: Arc::clone(&self.gateway),
            config: complete,
            adapter_defaults,
            info,
            entry,
        })
    }

    fn entries(&self) -> Vec<Arc<Entry>> {
        self.entries.all()
    }

    fn find(&self, provider: &str) -> Result<Arc<Entry>, ModelError> {
        let entries = self.entries();
        entries
            .iter()
            .find(|entry| entry.route.provider == provider)
            .cloned()
            .ok_or_else(|| ModelError::NoAdapter {
                route: provider.to_owned(),
                known: entries
                    .iter()
                    .map(|entry| entry.route.provider.clone())
                    .collect(),
            })
    }
}

/// An adapter that serves what it lists and nothing else says so with this code.
const UNKNOWN_MODEL: &str = "UNKNOWN_MODEL";

/// An adapter's refusal of a model, with those that may have been meant: its own by
/// their names, and the providers that have one of this name.
fn with_others(mut failure: LlmFailure, config: &CallConfig, entries: &[Arc<Entry>]) -> LlmFailure {
    let ids = |entry: &Entry| -> Vec<String> {
        let models = entry.route.models.iter();
        let id = |model: &Json| model.get("id").and_then(Value::text).map(Cow::into_owned);
        models.filter_map(id).collect()
    };
    let mut elsewhere = Vec::new();
    for entry in entries {
        let provider = &entry.route.provider;
        let ids = ids(entry);
        if *provider == config.provider {
            let hint = did_you_mean(&config.model, ids.iter().map(String::as_str));
            failure.message = failure.message.trim_end_matches('.').to_owned() + &hint;
        } else if ids.contains(&config.model) {
            elsewhere.push(format!("{provider}/{}", config.model));
        }
    }
    if !elsewhere.is_empty() {
        failure.message += &format!("; there is {}", elsewhere.join(", "));
    }
    failure.message += "; `dsh models` lists what there is";
    failure
}

/// The field that was changed though it was set, or is not the adapter's to fill in.
fn changed(asked: &CallConfig, got: &CallConfig) -> Option<&'static str> {
    let same = [
        ("provider", asked.provider == got.provider),
        ("model", asked.model == got.model),
        (
            "reasoningEffort",
            asked.reasoning_effort.is_none() || asked.reasoning_effort == got.reasoning_effort,
        ),
        ("temperature", asked.temperature == got.temperature),
        (
            "maxTokens",
            asked.max_tokens.is_none() || asked.max_tokens == got.max_tokens,
        ),
        ("stop", asked.stop == got.stop),
        ("more", asked.more == got.more),
    ];
    same.into_iter()
        .find_map(|(field, same)| (!same).then_some(field))
}

/// A call that is ready; used once.
pub struct PreparedCall {
    entry: Arc<Entry>,
    gateway: Arc<Gateway>,
    view: View,
    config: CallConfig,
    adapter_defaults: AdapterDefaults,
    info: ModelInfo,
}

impl PreparedCall {
    /// The complete configuration, which is what will run.
    #[must_use]
    pub fn config(&self) -> &CallConfig {
        &self.config
    }

    /// Which of it was filled in.
    #[must_use]
    pub fn adapter_defaults(&self) -> AdapterDefaults {
        self.adapter_defaults
    }

    /// The policy of the route, as registered.
    #[must_use]
    pub fn retry_policy(&self) -> &RetryPolicy {
        &self.entry.route.retry_policy
    }

    /// What is known of the model.
    #[must_use]
    pub fn model(&self) -> &ModelInfo {
        &self.info
    }

    /// The model's context window in tokens, where it is known.
    #[must_use]
    pub fn context_window(&self) -> Option<u64> {
        self.info.context_window
    }

    /// One attempt. Nothing happens before the first chunk is asked for;
    /// cancelling `ctx.cancel` ends it with an `aborted` finish.
    #[must_use]
    pub fn stream(self, ctx: CallContext, request: &Request) -> LlmStream {
        let request = dsh_plugin::api::GenerateRequest {
            purpose: request.purpose().map(String::from),
            system: request.system.clone(),
            messages: request.messages(|message| self.view.of(message)),
            tools: request
                .tools
                .iter()
                .map(|tool| tool.as_str().to_owned())
                .collect(),
            session_id: request.session_id.clone(),
            more: self.gateway.credential_tag(self.entry.grant.as_ref()),
            config: self.config,
        };
        LlmStream::new(self.entry, self.gateway, ctx, request)
    }
}

impl std::fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedCall")
            .field("config", &self.config)
            .field("adapter_defaults", &self.adapter_defaults)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "models_tests.rs"]
mod tests;
