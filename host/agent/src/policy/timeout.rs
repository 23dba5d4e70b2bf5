//! A tool that declares how long one run may take is held to it
//! (spec/loop.md §7.2). The policy only sets the deadline; the pipeline asks the
//! body to end and waits for it, so a late success never slips through.

use async_trait::async_trait;
use dsh_session::{Json, Value};

use crate::dispatch::{Entry, EventContext, Listener, ListenerError, Subscription, Verdict};

/// Sets `deadlineMs` of a call to its tool's `timeoutMs`, unless it is sooner already.
#[derive(Clone, Copy, Debug, Default)]
pub struct TimeoutPolicy;

#[async_trait]
impl Listener for TimeoutPolicy {
    fn name(&self) -> &str {
        "timeout-policy"
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        vec![Subscription::all("tools/execute")]
    }

    async fn enter(
        &self,
        _event: &str,
        payload: &Json,
        _cx: &EventContext,
    ) -> Result<Entry, ListenerError> {
        let number = |key: &str| payload.get(key).and_then(Value::u64);
        let Some(own) = number("timeoutMs") else {
            return Ok(Entry::proceed());
        };
        if number("deadlineMs").is_some_and(|sooner| sooner <= own) {
            return Ok(Entry::proceed());
        }
        let bounded = Json::object(|object| {
            for (key, value) in payload
                .value()
                .entries()
                .filter(|(key, _)| !key.is("deadlineMs"))
            {
                object.value(&key.decode(), value);
            }
            object.u64("deadlineMs", own);
        });
        Ok(Entry {
            verdict: Verdict::Rewrite(bounded),
            carry: None,
        })
    }
}
