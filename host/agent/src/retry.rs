//! Whether a failed attempt is made again. Listeners of `agent/request-error`
//! decide; the host logs, waits and counts (spec/loop.md §2.3 item 5;
//! spec/llm.md §5). The counter is in the log and nowhere else.
//!
//! A listener answers `{kind: "retry", delayMs?}`. Without a delay the attempt
//! is made again at once and beside the count: something was changed that lets
//! it succeed, such as a compaction.

use std::time::Duration;

use dsh_model::{LlmFailure, RetryPolicy};
use dsh_session::{Event, Json, Kind, Value};

use crate::error::AgentError;
use crate::message::fresh_id;
use crate::step::Step;
use crate::turn::Stop;

/// The longest wait that is kept, in milliseconds; what a timer of upstream takes.
const MAX_DELAY_MS: f64 = 2_147_483_647.0;

/// Asks the listeners; true once it is time for another attempt. `spoke` says
/// that the failed one had said something by then.
pub(crate) async fn is_wanted(
    step: &Step<'_>,
    provider: &str,
    policy: &RetryPolicy,
    failure: &LlmFailure,
    spoke: bool,
) -> Result<bool, Stop> {
    let dispatch = &step.agent.dispatch;
    if !dispatch.listens("agent/request-error", None) {
        return Ok(false);
    }
    let chain = Chain::of(step, provider, policy);
    let payload = Json::object(|payload| {
        payload
            .u64("turn", step.turn)
            .u64("step", step.step)
            .str("provider", provider);
        payload
            .json("failure", &failure.to_json())
            .json("retryPolicy", &describe(policy))
            .u64("retries", chain.retries)
            .bool("spoke", spoke);
    });
    let context = step.context();
    let asked = dispatch.waterfall("agent/request-error", None, payload, &context, |_| async {
        Ok::<_, AgentError>(Json::null())
    });
    let answer = step.unless_aborted(asked).await?;
    let answer = answer
        .map_err(|error| Stop::Failed(LlmFailure::new("LISTENER_FAILED", error.to_string())))?;
    step.check()?;
    if answer.get("kind").and_then(Value::text).as_deref() != Some("retry") {
        return Ok(false);
    }
    if let Some(delay) = answer.get("delayMs").and_then(Value::f64) {
        wait(
            step,
            provider,
            policy,
            failure,
            delay.clamp(0.0, MAX_DELAY_MS),
        )
        .await?;
    }
    Ok(true)
}

/// The retries of a step under one policy, as the log has them.
struct Chain {
    retries: u64,
    /// One id a chain.
    id: Option<String>,
}

impl Chain {
    fn of(step: &Step<'_>, provider: &str, policy: &RetryPolicy) -> Self {
        let key = policy.key();
        let newest = step.agent.log.read(|session| {
            // Mostly there is none at all.
            session.last_of(&Kind::LlmRetry)?;
            let back = session.log().events_before(session.next_seq());
            let of_step = back
                .map_while(Result::ok)
                .take_while(|event| event.kind != Kind::StepStart);
            let mut retries = of_step.filter(|event| event.kind == Kind::LlmRetry);
            retries.find(|event| is_of_chain(event, step.turn, step.step, provider, &key))
        });
        let member = |name: &str| newest.as_ref().and_then(|event| event.data.get(name));
        Self {
            retries: member("retry").and_then(Value::u64).unwrap_or(0),
            id: member("retryId")
                .and_then(Value::text)
                .map(std::borrow::Cow::into_owned),
        }
    }
}

/// A number of `[0, 1)`, for the jitter of waits.
pub(crate) fn random() -> f64 {
    let (bits, _) = uuid::Uuid::new_v4().as_u64_pair();
    // The low half of them holds the version. 32 are plenty for a share of a wait.
    let bits = u32::try_from(bits >> 32).unwrap_or(0);
    f64::from(bits) / (f64::from(u32::MAX) + 1.0)
}

async fn wait(
    step: &Step<'_>,
    provider: &str,
    policy: &RetryPolicy,
    failure: &LlmFailure,
    delay_ms: f64,
) -> Result<(), Stop> {
    let log = &step.agent.log;
    let key = policy.key();
    // Anew: whoever was asked may have appended.
    let chain = Chain::of(step, provider, policy);
    let retry = chain.retries + 1;
    let id = chain.id.unwrap_or_else(fresh_id);
    log.record(
        Kind::LlmRetry,
        Json::object(|data| {
            data.str("retryId", &id)
                .u64("turn", step.turn)
                .u64("step", step.step)
                .str("provider", provider);
            data.str("mode", policy.mode())
                .str("policyKey", &key)
                .u64("retry", retry);
            if let RetryPolicy::Normal { max_retries, .. } = policy {
                data.u64("maxRetries", *max_retries);
            }
            data.f64("delayMs", delay_ms)
                .json("failure", &failure.to_json());
        }),
    )?;
    step.unless_aborted(tokio::time::sleep(Duration::from_secs_f64(
        delay_ms / 1000.0,
    )))
    .await?;
    log.record(
        Kind::LlmRetryStarted,
        Json::object(|data| {
            data.str("retryId", &id)
                .u64("turn", step.turn)
                .u64("step", step.step)
                .u64("retry", retry);
        }),
    )?;
    Ok(())
}

fn is_of_chain(event: &Event, turn: u64, step: u64, provider: &str, key: &str) -> bool {
    let number = |name: &str| event.data.get(name).and_then(Value::u64);
    let is = |name: &str, text: &str| {
        event
            .data
            .get(name)
            .and_then(Value::string)
            .is_some_and(|own| own.is(text))
    };
    number("turn") == Some(turn)
        && number("step") == Some(step)
        && is("provider", provider)
        && is("policyKey", key)
}

fn describe(policy: &RetryPolicy) -> Json {
    let backoff = policy.backoff();
    Json::object(|object| {
        object.str("mode", policy.mode()).str("key", &policy.key());
        if let RetryPolicy::Normal {
            max_retries,
            retryable_codes,
            ..
        } = policy
        {
            object.u64("maxRetries", *max_retries);
            object.array("retryableCodes", |codes| {
                for code in retryable_codes {
                    codes.str(code);
                }
            });
        }
        object.object("backoff", |object| {
            object.f64("initialDelayMs", backoff.initial_delay_ms);
            object
                .f64("maxDelayMs", backoff.max_delay_ms)
                .f64("jitterRatio", backoff.jitter_ratio);
        });
    })
}
