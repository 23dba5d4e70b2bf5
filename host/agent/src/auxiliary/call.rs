//! One auxiliary call, to its end.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use dsh_model::{BlockAssembler, FinishReason, LlmFailure, Models, Request};
use dsh_plugin::api::{PluginError, code};
use dsh_plugin::port::Answer;
use dsh_session::{Json, estimate};
use tokio_util::sync::CancellationToken;

use super::question::Prompt;
use crate::config;
use crate::log::Log;
use crate::ports::CallIdentity;
use crate::retry::random;
use crate::tools::CallScope;

/// What a call came to, and what it cost: also one that failed.
pub(super) struct Called {
    pub(super) result: Result<Answer, PluginError>,
    /// The provider's counts of the last attempt.
    pub(super) usage: Option<Json>,
    /// Of all attempts together; by the host's own measure where the provider
    /// gave no count.
    pub(super) tokens: u64,
}

/// What a call runs on.
#[derive(Clone)]
pub(super) struct Line {
    pub(super) log: Arc<Log>,
    pub(super) models: Arc<Models>,
    /// For whom adapters are called. They ask no models themselves.
    pub(super) identity: Arc<CallIdentity>,
}

impl Line {
    /// Runs the call to its end, which comes early once it is given up or its
    /// time is over.
    pub(super) async fn call(&self, prompt: &Prompt, cancel: &CancellationToken) -> Called {
        let limit = prompt.timeout_ms.map(u64::from).map(Duration::from_millis);
        let over = async {
            match limit {
                None => std::future::pending().await,
                Some(limit) => tokio::time::sleep(limit).await,
            }
        };
        let mut attempts = pin!(self.attempts(prompt, cancel));
        tokio::select! {
            biased;
            called = &mut attempts => called,
            () = over => {
                // It ends by itself now, and tells what it has cost.
                cancel.cancel();
                let mut called = attempts.await;
                if called.result.is_err() {
                    let ms = limit.unwrap_or_default().as_millis();
                    let message = format!("no answer within {ms} ms");
                    called.result = Err(PluginError::new(code::TIMEOUT, message));
                }
                called
            }
        }
    }

    /// Attempts until one answers, or the route's policy says that it is enough.
    async fn attempts(&self, prompt: &Prompt, cancel: &CancellationToken) -> Called {
        let mut called = Called {
            result: Err(PluginError::cancelled()),
            usage: None,
            tokens: 0,
        };
        let mut retry = 0;
        loop {
            // Before every attempt: what is asked may be logged while another ran.
            if let Err(error) = self.log.barrier().await {
                called.result = Err(PluginError::new(error.code(), error.to_string()));
                return called;
            }
            let (failure, delay) = match self.attempt(prompt, cancel, &mut called).await {
                Ok(answer) => {
                    called.result = Ok(answer);
                    return called;
                }
                Err(Failed { failure, policy }) => {
                    retry += 1;
                    let delay = policy.and_then(|policy| policy.delay(&failure, retry, random()));
                    (failure, delay)
                }
            };
            called.result = Err(refused(&failure));
            let Some(delay) = delay.filter(|_| !cancel.is_cancelled()) else {
                return called;
            };
            tokio::select! {
                biased;
                () = cancel.cancelled() => return called,
                () = tokio::time::sleep(Duration::from_secs_f64(delay / 1000.0)) => {}
            }
        }
    }

    async fn attempt(
        &self,
        prompt: &Prompt,
        cancel: &CancellationToken,
        called: &mut Called,
    ) -> Result<Answer, Failed> {
        let scope = CallScope {
            cancel: cancel.child_token(),
            time_ms: self
                .log
                .read(|session| session.last().map_or(0, |event| event.time)),
        };
        let context = self
            .identity
            .context(&prompt.config.provider, "auxiliary", &scope);
        let call = self
            .models
            .prepare(&context, prompt.config.clone())
            .await
            .map_err(|error| Failed {
                failure: error.into_failure(),
                policy: None,
            })?;
        let policy = call.retry_policy().clone();
        let config = config::write(call.config());
        let messages = prompt.prefix.iter().chain(&prompt.messages);
        let request = Request::auxiliary(&prompt.purpose, messages.cloned().collect())
            .system(prompt.system.clone())
            .tools(prompt.tools.clone())
            .session(self.identity.session_id.clone());
        let mut stream = call.stream(context, &request);
        let mut assembler = BlockAssembler::new();
        while let Some(chunk) = stream.next().await {
            assembler.push(&chunk);
        }
        let content = assembler.blocks();
        called.usage = assembler.usage().cloned();
        called.tokens = called.tokens.saturating_add(match assembler.token_usage() {
            Some(usage) => usage.billed_input().saturating_add(usage.output),
            // Nothing was said: a provider that refuses charges nothing.
            None if content.is_empty() => 0,
            None => estimated(prompt, &content),
        });
        match assembler.finish() {
            FinishReason::Error(failure) => Err(Failed {
                failure,
                policy: Some(policy),
            }),
            FinishReason::Aborted(failure) => Err(Failed {
                failure,
                policy: None,
            }),
            finish => Ok(Answer {
                content: content.iter().map(text).collect(),
                finish: text(&finish.to_json()),
                usage: called.usage.as_ref().map(text),
                config: text(&config),
            }),
        }
    }
}

struct Failed {
    failure: LlmFailure,
    /// None where another attempt could not end otherwise.
    policy: Option<dsh_model::RetryPolicy>,
}

fn text(json: &Json) -> String {
    json.as_str().to_owned()
}

/// What the host's own measure says of a request and its answer.
fn estimated(prompt: &Prompt, answer: &[Json]) -> u64 {
    let list = Json::array(|list| {
        for block in answer {
            list.json(block);
        }
    });
    let messages = prompt.prefix.iter().chain(&prompt.messages);
    let asked: u64 = messages
        .map(|message| estimate::message(message.value()))
        .sum();
    let system = prompt.system.as_deref().unwrap_or_default();
    let texts = std::iter::once(system).chain(prompt.tools.iter().map(Json::as_str));
    let texts: u64 = texts
        .map(|text| estimate::units(text.encode_utf16().count()))
        .sum();
    asked + texts + estimate::content(list.value())
}

/// A failed model call, as an import answers it.
pub(super) fn refused(failure: &LlmFailure) -> PluginError {
    let details = Json::object(|details| {
        if let Some(status) = failure.status {
            details.u64("status", u64::from(status));
        }
        if let Some(wait) = failure.provider_retry_after_ms {
            details.f64("providerRetryAfterMs", wait);
        }
        details.opt_str("requestId", failure.request_id.as_deref());
    });
    PluginError {
        code: failure.code.clone(),
        message: failure.message.clone(),
        details: (details != Json::empty_object()).then(|| text(&details)),
    }
}
