//! A projection in use: a pure fold of a log into a read model.
//!
//! It sees the events that it is given and its configuration, and nothing else:
//! whatever the row was granted, while it folds only `log`, `config` and `work`
//! may be called. So the same events give the same state, on whichever instance,
//! and a state may be stored: under the component's digest, its configuration,
//! and the version that its spec names.
//!
//! Keys fail apart: what one of them does well says nothing about another, and
//! three failures in a row at one put the row out of use.
//!
//! What is left of the machine is the bits of a NaN, which processors do not
//! agree on. The engine could make them one, for all components and at some cost
//! to each; states are therefore not to be carried from one kind of machine to
//! another.

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};

use crate::api::{JsonText, PluginError, ProjectionSpec};
use crate::call::CallContext;
use crate::capability::Phase;
use crate::contract::v0_1::ProjectionGuest;
use crate::error::CallError;
use crate::instance::{Call, Live};
use crate::mount::Shared;
use crate::warm::Warm;

/// A `projection` with a warm instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Projection {
    warm: Warm<ProjectionGuest>,
    shared: Arc<Shared>,
}

fn call<'a>(function: &'static str, ctx: &'a CallContext, key: &'a str) -> Call<'a> {
    Call {
        function,
        ctx,
        phase: Phase::Fold,
        timed: true,
        place: None,
        event: key,
    }
}

impl Projection {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            warm: Warm::new(Arc::clone(&shared)),
            shared,
        }
    }

    /// What it folds.
    #[must_use]
    pub fn specs(&self) -> &[ProjectionSpec] {
        self.shared.projections()
    }

    /// The next state; no state means the first. `accept` makes what the caller
    /// keeps of it, or says why it is no state.
    ///
    /// # Errors
    /// As every call: [`CallError`]; [`CallError::Nonsense`] for a state that was
    /// not accepted, which is a failure of the component's.
    pub async fn fold<T>(
        &self,
        ctx: &CallContext,
        key: &str,
        state: Option<JsonText>,
        events: Vec<JsonText>,
        accept: impl FnOnce(&str) -> Result<T, String> + Send,
    ) -> Result<T, CallError>
    where
        T: Send,
    {
        let name = key.to_owned();
        let body = |mut live: Live<ProjectionGuest>| async move {
            let state = live
                .guest
                .call_fold(&mut live.store, &name, state.as_ref(), &events)
                .await;
            (live, state.map(|state| state.map_err(Into::into)))
        };
        self.accepted(call("projection.fold", ctx, key), body, accept)
            .await
    }

    /// What is shown of a state; `accept` as for [`Projection::fold`].
    ///
    /// # Errors
    /// As [`Projection::fold`].
    pub async fn view<T>(
        &self,
        ctx: &CallContext,
        key: &str,
        state: JsonText,
        accept: impl FnOnce(&str) -> Result<T, String> + Send,
    ) -> Result<T, CallError>
    where
        T: Send,
    {
        let name = key.to_owned();
        let body = |mut live: Live<ProjectionGuest>| async move {
            let view = live.guest.call_view(&mut live.store, &name, &state).await;
            (live, view.map(|view| view.map_err(Into::into)))
        };
        self.accepted(call("projection.view", ctx, key), body, accept)
            .await
    }

    async fn accepted<T, Fut>(
        &self,
        call: Call<'_>,
        body: impl FnOnce(Live<ProjectionGuest>) -> Fut + Send + 'static,
        accept: impl FnOnce(&str) -> Result<T, String> + Send,
    ) -> Result<T, CallError>
    where
        T: Send,
        Fut: Future<
                Output = (
                    Live<ProjectionGuest>,
                    wasmtime::Result<Result<JsonText, PluginError>>,
                ),
            > + Send
            + 'static,
    {
        let (function, event) = (call.function, call.event);
        let kept = Mutex::new(None);
        let check = |text: &JsonText| match accept(text) {
            Ok(value) => {
                *kept.lock().unwrap_or_else(PoisonError::into_inner) = Some(value);
                Ok(())
            }
            Err(reason) => Err(CallError::Nonsense {
                row: self.shared.id().to_owned(),
                function,
                event: event.to_owned(),
                reason,
            }),
        };
        self.warm.call_checked(None, call, body, check).await?;
        let kept = kept.into_inner().unwrap_or_else(PoisonError::into_inner);
        // It was accepted, or there was an error.
        kept.ok_or_else(|| CallError::Gone {
            row: self.shared.id().to_owned(),
            function,
        })
    }
}
