//! A listener in use.
//!
//! Being told and deciding are two grants. A row that was granted to watch an
//! event and answers as if it decided has failed: its answer is not looked at,
//! its instance is dropped, and three times in a row puts it out of use. So has
//! one that answers what makes no sense, which whoever raises the event says
//! ([`Sense`]).

use std::sync::Arc;

use crate::api::{Entry, JsonText, Verdict};
use crate::call::CallContext;
use crate::capability::Phase;
use crate::contract::v0_1::DispatchGuest;
use crate::error::CallError;
use crate::instance::{Call, Live};
use crate::mount::Shared;
use crate::warm::Warm;

/// What whoever raises events can make use of. Nonsense is a failure of the
/// component's: reasons are a line, for people.
pub trait Sense: Send + Sync {
    /// On the way in; a rewrite or a result of a waterfall.
    ///
    /// # Errors
    /// What is wrong with it.
    fn verdict(&self, event: &str, verdict: &Verdict) -> Result<(), String>;
    /// On the way out; another outcome.
    ///
    /// # Errors
    /// What is wrong with it.
    fn outcome(&self, event: &str, outcome: &str) -> Result<(), String>;
    /// An answer to an event that asks.
    ///
    /// # Errors
    /// What is wrong with it.
    fn decision(&self, event: &str, answer: &str) -> Result<(), String>;
}

/// A `dispatch` with a warm instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Dispatch {
    warm: Warm<DispatchGuest>,
    shared: Arc<Shared>,
    sense: Option<Arc<dyn Sense>>,
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
            sense: None,
        }
    }

    /// The same listener, whose answers have to make sense.
    #[must_use]
    pub fn with_sense(self, sense: Arc<dyn Sense>) -> Self {
        Self {
            sense: Some(sense),
            ..self
        }
    }

    /// Whether the row was granted to decide this event, rather than to watch it.
    #[must_use]
    pub fn may_decide(&self, event: &str) -> bool {
        self.shared.linked.row.grants.may_decide(event)
    }

    /// Whether the caller is inside of a call of this very instance.
    #[must_use]
    pub fn is_entered(&self) -> bool {
        self.warm.is_on_the_stack()
    }

    /// A check that an answer changes nothing where the row may not decide, and
    /// that it makes sense to who asked.
    fn check<'a, T>(
        &'a self,
        function: &'static str,
        event: &'a str,
        changes: impl FnOnce(&T) -> bool,
        makes_sense: impl FnOnce(&dyn Sense, &T) -> Result<(), String>,
    ) -> impl FnOnce(&T) -> Result<(), CallError> {
        let row = move || self.shared.id().to_owned();
        move |answer| {
            if !self.may_decide(event) && changes(answer) {
                return Err(CallError::Undecided {
                    row: row(),
                    function,
                    event: event.to_owned(),
                });
            }
            let sense = self.sense.as_deref();
            let answered = sense.map_or(Ok(()), |sense| makes_sense(sense, answer));
            answered.map_err(|reason| CallError::Nonsense {
                row: row(),
                function,
                event: event.to_owned(),
                reason,
            })
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
    /// and may only watch, [`CallError::Nonsense`] where the answer makes no sense.
    pub async fn decide(
        &self,
        ctx: &CallContext,
        event: &str,
        payload: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        let function = "dispatch.decide";
        let check = self.check(function, event, Option::is_some, |sense, answer| {
            answer
                .as_deref()
                .map_or(Ok(()), |answer| sense.decision(event, answer))
        });
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
    /// or settles and may only watch, [`CallError::Nonsense`] where what
    /// it made makes no sense.
    pub async fn enter(
        &self,
        ctx: &CallContext,
        event: &str,
        payload: JsonText,
    ) -> Result<Entry, CallError> {
        let function = "dispatch.enter";
        let changes = |entry: &Entry| entry.verdict != Verdict::Proceed;
        let check = self.check(function, event, changes, |sense, entry| {
            sense.verdict(event, &entry.verdict)
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
    /// the outcome and may only watch, [`CallError::Nonsense`] where what
    /// it made of it makes no sense.
    pub async fn leave(
        &self,
        ctx: &CallContext,
        event: &str,
        carry: String,
        outcome: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        let function = "dispatch.leave";
        let check = self.check(function, event, Option::is_some, |sense, outcome| {
            outcome
                .as_deref()
                .map_or(Ok(()), |outcome| sense.outcome(event, outcome))
        });
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
