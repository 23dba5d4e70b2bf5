//! A listener in use.

use std::sync::Arc;

use crate::api::{Entry, JsonText};
use crate::call::CallContext;
use crate::capability::Phase;
use crate::contract::v0_1::DispatchGuest;
use crate::error::CallError;
use crate::instance::{Call, Live};
use crate::mount::Shared;
use crate::warm::Warm;

/// A `dispatch` with a warm instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Dispatch {
    warm: Warm<DispatchGuest>,
}

fn call<'a>(function: &'static str, ctx: &'a CallContext) -> Call<'a> {
    Call {
        function,
        ctx,
        phase: Phase::Work,
        timed: true,
    }
}

impl Dispatch {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            warm: Warm::new(shared),
        }
    }

    /// Tells what happened.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn notify(
        &self,
        ctx: &CallContext,
        event: &str,
        payloads: Vec<JsonText>,
    ) -> Result<(), CallError> {
        let event = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let done = live
                .guest
                .call_notify(&mut live.store, &event, &payloads)
                .await;
            (live, done.map(Ok))
        };
        self.warm
            .call(None, call("dispatch.notify", ctx), body)
            .await?;
        Ok(())
    }

    /// Asks for a decision.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn decide(
        &self,
        ctx: &CallContext,
        event: &str,
        payload: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        let event = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let decided = live
                .guest
                .call_decide(&mut live.store, &event, &payload)
                .await;
            (live, decided.map(|decided| decided.map_err(Into::into)))
        };
        Ok(self
            .warm
            .call(None, call("dispatch.decide", ctx), body)
            .await?
            .1)
    }

    /// On the way in.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn enter(
        &self,
        ctx: &CallContext,
        event: &str,
        payload: JsonText,
    ) -> Result<Entry, CallError> {
        let event = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let entry = live
                .guest
                .call_enter(&mut live.store, &event, &payload)
                .await;
            (
                live,
                entry.map(|entry| entry.map(Into::into).map_err(Into::into)),
            )
        };
        Ok(self
            .warm
            .call(None, call("dispatch.enter", ctx), body)
            .await?
            .1)
    }

    /// On the way out.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn leave(
        &self,
        ctx: &CallContext,
        event: &str,
        carry: String,
        outcome: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        let event = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let left = live
                .guest
                .call_leave(&mut live.store, &event, &carry, &outcome)
                .await;
            (live, left.map(|left| left.map_err(Into::into)))
        };
        Ok(self
            .warm
            .call(None, call("dispatch.leave", ctx), body)
            .await?
            .1)
    }
}
