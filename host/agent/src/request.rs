//! The request of an attempt: built from the surface, the header and nothing
//! else, and logged before it is sent (spec/loop.md §4).
//!
//! What a request carries and what the log says of it are compared once more
//! right before it goes out, by digest: that costs what is new, not what is
//! long. A difference is a defect of the host and ends the turn.

use std::sync::atomic::Ordering;

use dsh_model::{CallConfig, LlmFailure, ModelError, PreparedCall, Request, RetryPolicy};
use dsh_session::{Json, Kind, Messages, RequestHeader, Value};

use crate::config;
use crate::error::AgentError;
use crate::last_request::last_request;
use crate::log::Log;
use crate::step::Step;
use crate::turn::Stop;

/// A request that is ready.
pub(crate) struct Built {
    /// None where no adapter serves the provider: the attempt fails with that.
    pub(crate) call: Result<PreparedCall, LlmFailure>,
    pub(crate) request: Request,
    pub(crate) config: CallConfig,
    pub(crate) policy: RetryPolicy,
    header: RequestHeader,
    messages: Messages,
}

/// Builds the request, and logs header and context where they are news.
pub(crate) async fn build(step: &Step<'_>, system: &str) -> Result<Built, Stop> {
    let agent = step.agent;
    let messages = agent.log.messages()?;
    let config = select(step, seed(step)).await?;
    if config.provider.is_empty() || config.model.is_empty() {
        let message =
            "no model is selected; name one as provider/model, or set a default in the settings";
        return Err(Stop::Failed(LlmFailure::new("NO_MODEL", message)));
    }
    let context = agent.adapter_context(&config.provider, step.signal);
    let call = match agent.models.prepare(&context, config.clone()).await {
        Ok(call) => Ok(call),
        Err(error @ ModelError::NoAdapter { .. }) => Err(error.into_failure()),
        Err(error) => return Err(Stop::Failed(error.into_failure())),
    };
    step.check()?;
    let (config, defaults, window, policy) = match &call {
        Ok(call) => (
            call.config().clone(),
            call.adapter_defaults().to_json(),
            call.context_window(),
            call.retry_policy().clone(),
        ),
        Err(_) => (config, None, None, RetryPolicy::default()),
    };
    let tools = agent.tools.wire()?;
    let header = Json::object(|header| {
        header
            .json("config", &config::write(&config))
            .opt_json("adapterDefaults", defaults.as_ref());
        header.str("system", system);
        header.array("tools", |list| {
            for tool in &tools {
                list.json(tool);
            }
        });
    });
    let header = RequestHeader::canonical(header.value()).map_err(AgentError::from)?;
    log_header(step, &header)?;
    log_context(step, &config, window)?;
    let request = Request::of_surface(messages.clone())
        .system((!system.is_empty()).then(|| system.to_owned()))
        .tools(tools)
        .session(agent.identity.session_id.clone());
    Ok(Built {
        call,
        request,
        config,
        policy,
        header,
        messages,
    })
}

impl Built {
    pub(crate) fn header(&self) -> &RequestHeader {
        &self.header
    }

    pub(crate) fn messages(&self) -> &Messages {
        &self.messages
    }

    /// Whether the log still says what the request carries.
    pub(crate) fn check_against(&self, log: &Log) -> Result<(), Stop> {
        let header = log.read(dsh_session::Session::request_header);
        if log.digest()? == self.messages.digest()
            && header.is_some_and(|header| header.same(&self.header))
        {
            return Ok(());
        }
        let message = "the request and the log differ; something changed the conversation while the request was made";
        Err(Stop::Failed(LlmFailure::new("INVARIANT", message)))
    }
}

/// What the configuration starts from (spec/loop.md §4, item 1).
fn seed(step: &Step<'_>) -> CallConfig {
    let agent = step.agent;
    let options = &agent.config;
    let requested = agent.requested.load(Ordering::Acquire);
    let header = agent.log.read(if requested {
        dsh_session::Session::request_header
    } else {
        last_request
    });
    let logged = header.as_ref().and_then(|header| {
        let config = config::read(header.config()?)?;
        let defaulted = |field: &str| {
            let marker = header.json().value().path(&["adapterDefaults", field]);
            marker.and_then(Value::bool) == Some(true)
        };
        Some(CallConfig {
            reasoning_effort: config
                .reasoning_effort
                .filter(|_| !defaulted("reasoningEffort")),
            max_tokens: config.max_tokens.filter(|_| !defaulted("maxTokens")),
            ..config
        })
    });
    if requested && let Some(logged) = logged {
        return logged;
    }
    // An effort of an earlier run holds while the route is the same.
    let kept = logged
        .filter(|config| config.provider == options.provider && config.model == options.model);
    CallConfig {
        provider: options.provider.clone(),
        model: options.model.clone(),
        reasoning_effort: options
            .reasoning_effort
            .clone()
            .or(kept.and_then(|config| config.reasoning_effort)),
        max_tokens: options.max_tokens,
        ..CallConfig::default()
    }
}

/// Lets listeners choose another route or other parameters.
async fn select(step: &Step<'_>, config: CallConfig) -> Result<CallConfig, Stop> {
    let dispatch = &step.agent.dispatch;
    if !dispatch.listens("agent/request", None) {
        return Ok(config);
    }
    let payload = Json::object(|payload| {
        payload
            .u64("turn", step.turn)
            .u64("step", step.step)
            .json("config", &config::write(&config));
    });
    let context = step.context();
    let chosen = dispatch.waterfall(
        "agent/request",
        None,
        payload,
        &context,
        |payload| async move {
            Ok::<_, AgentError>(
                payload
                    .get("config")
                    .map_or_else(Json::null, Value::to_json),
            )
        },
    );
    let failed = |message: String| Stop::Failed(LlmFailure::new("LISTENER_FAILED", message));
    let chosen = step
        .unless_aborted(chosen)
        .await?
        .map_err(|error| failed(error.to_string()))?;
    config::read(chosen.value()).ok_or_else(|| {
        failed(
            "a listener of agent/request gave something that is no call configuration".to_owned(),
        )
    })
}

fn log_header(step: &Step<'_>, header: &RequestHeader) -> Result<(), Stop> {
    let agent = step.agent;
    let before = agent.log.read(dsh_session::Session::request_header);
    let first = !agent.requested.load(Ordering::Acquire);
    let reason = match &before {
        None => "initial",
        Some(_) if first => "resume",
        Some(before) if !before.same(header) => "change",
        Some(_) => return Ok(()),
    };
    agent.log.record(
        Kind::RequestHeader,
        Json::object(|data| {
            data.json("header", header.json()).str("reason", reason);
        }),
    )?;
    let system = |header: &RequestHeader| header.json().get("system").map(Value::to_json);
    if before.is_some_and(|before| system(&before) != system(header)) {
        agent.dispatch.notify("system-prompt/change", None, || {
            Json::object(|payload| {
                payload.u64("turn", step.turn).u64("step", step.step);
            })
        });
    }
    agent.requested.store(true, Ordering::Release);
    Ok(())
}

fn log_context(step: &Step<'_>, config: &CallConfig, window: Option<u64>) -> Result<(), Stop> {
    let log = &step.agent.log;
    #[allow(clippy::cast_precision_loss, reason = "windows are far below 2^53")]
    let known = log
        .read(dsh_session::Session::request_context)
        .is_some_and(|context| {
            *context.provider == *config.provider
                && *context.model == *config.model
                && context.context_window == window.map(|window| window as f64)
        });
    if known {
        return Ok(());
    }
    log.record(
        Kind::RequestContext,
        Json::object(|data| {
            data.str("provider", &config.provider)
                .str("model", &config.model);
            if let Some(window) = window {
                data.u64("contextWindow", window);
            }
        }),
    )?;
    Ok(())
}
