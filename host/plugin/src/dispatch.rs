//! A listener in use.
//!
//! Being told and deciding are two grants. A row that was granted to watch an
//! event and answers as if it decided has failed: its answer is not looked at,
//! its instance is dropped, and three times in a row puts it out of use.

use std::sync::Arc;

use crate::api::{Entry, JsonText, Verdict};
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
    shared: Arc<Shared>,
}

fn call<'a>(function: &'static str, ctx: &'a CallContext, event: &'a str) -> Call<'a> {
    Call {
        function,
        ctx,
        phase: Phase::Work,
        timed: true,
        place: None,
        event,
    }
}

impl Dispatch {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            warm: Warm::new(Arc::clone(&shared)),
            shared,
        }
    }

    /// Whether the row was granted to decide this event, rather than to watch it.
    #[must_use]
    pub fn may_decide(&self, event: &str) -> bool {
        self.shared.linked.row.grants.may_decide(event)
    }

    /// A check that an answer changes nothing where the row may not decide.
    fn only_watches<T>(
        &self,
        function: &'static str,
        event: &str,
        changes: impl FnOnce(&T) -> bool,
    ) -> impl FnOnce(&T) -> Result<(), CallError> {
        let refused = (!self.may_decide(event)).then(|| CallError::Undecided {
            row: self.shared.id().to_owned(),
            function,
            event: event.to_owned(),
        });
        move |answer| match refused {
            Some(refused) if changes(answer) => Err(refused),
            _ => Ok(()),
        }
    }

    /// Tells what happened. From inside of a call of this very instance, it is
    /// told when that is over, and nobody waits for it.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn notify(
        &self,
        ctx: &CallContext,
        event: &str,
        payloads: Vec<JsonText>,
    ) -> Result<(), CallError> {
        if self.warm.is_on_the_stack() {
            let (listener, ctx, event) = (self.clone(), ctx.clone(), event.to_owned());
            // A task of its own is inside of nothing.
            tokio::spawn(async move { listener.notify_now(&ctx, &event, payloads).await });
            return Ok(());
        }
        self.notify_now(ctx, event, payloads).await
    }

    async fn notify_now(
        &self,
        ctx: &CallContext,
        event: &str,
        payloads: Vec<JsonText>,
    ) -> Result<(), CallError> {
        let name = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let done = live
                .guest
                .call_notify(&mut live.store, &name, &payloads)
                .await;
            (live, done.map(Ok))
        };
        self.warm
            .call(None, call("dispatch.notify", ctx, event), body)
            .await?;
        Ok(())
    }

    /// Asks for a decision.
    ///
    /// # Errors
    /// As every call: [`CallError`]; [`CallError::Undecided`] where it answers
    /// and may only watch.
    pub async fn decide(
        &self,
        ctx: &CallContext,
        event: &str,
        payload: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        let function = "dispatch.decide";
        let check = self.only_watches(function, event, Option::is_some);
        let name = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let decided = live
                .guest
                .call_decide(&mut live.store, &name, &payload)
                .await;
            (live, decided.map(|decided| decided.map_err(Into::into)))
        };
        Ok(self
            .warm
            .call_checked(None, call(function, ctx, event), body, check)
            .await?
            .1)
    }

    /// On the way in.
    ///
    /// # Errors
    /// As every call: [`CallError`]; [`CallError::Undecided`] where it rewrites
    /// or settles and may only watch.
    pub async fn enter(
        &self,
        ctx: &CallContext,
        event: &str,
        payload: JsonText,
    ) -> Result<Entry, CallError> {
        let function = "dispatch.enter";
        let check = self.only_watches(function, event, |entry: &Entry| {
            entry.verdict != Verdict::Proceed
        });
        let name = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let entry = live
                .guest
                .call_enter(&mut live.store, &name, &payload)
                .await;
            (
                live,
                entry.map(|entry| entry.map(Into::into).map_err(Into::into)),
            )
        };
        Ok(self
            .warm
            .call_checked(None, call(function, ctx, event), body, check)
            .await?
            .1)
    }

    /// On the way out.
    ///
    /// # Errors
    /// As every call: [`CallError`]; [`CallError::Undecided`] where it changes
    /// the outcome and may only watch.
    pub async fn leave(
        &self,
        ctx: &CallContext,
        event: &str,
        carry: String,
        outcome: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        let function = "dispatch.leave";
        let check = self.only_watches(function, event, Option::is_some);
        let name = event.to_owned();
        let body = |mut live: Live<DispatchGuest>| async move {
            let left = live
                .guest
                .call_leave(&mut live.store, &name, &carry, &outcome)
                .await;
            (live, left.map(|left| left.map_err(Into::into)))
        };
        Ok(self
            .warm
            .call_checked(None, call(function, ctx, event), body, check)
            .await?
            .1)
    }
}
