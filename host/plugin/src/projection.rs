//! A projection in use: a pure fold of a log into a read model.
//!
//! It sees the events that it is given and its configuration, and nothing else:
//! whatever the row was granted, while it folds only `log`, `config` and `work`
//! may be called. So the same events give the same state, on whichever instance,
//! and a state may be stored: under the component's digest, its configuration,
//! and the version that its spec names.
//!
//! What is left of the machine is the bits of a NaN, which processors do not
//! agree on. The engine could make them one, for all components and at some cost
//! to each; states are therefore not to be carried from one kind of machine to
//! another.

use std::sync::Arc;

use crate::api::{JsonText, ProjectionSpec};
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

fn call<'a>(function: &'static str, ctx: &'a CallContext) -> Call<'a> {
    Call {
        function,
        ctx,
        phase: Phase::Fold,
        timed: true,
        place: None,
        event: "",
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

    /// The next state; no state means the first.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn fold(
        &self,
        ctx: &CallContext,
        key: &str,
        state: Option<JsonText>,
        events: Vec<JsonText>,
    ) -> Result<JsonText, CallError> {
        let key = key.to_owned();
        let body = |mut live: Live<ProjectionGuest>| async move {
            let state = live
                .guest
                .call_fold(&mut live.store, &key, state.as_ref(), &events)
                .await;
            (live, state.map(|state| state.map_err(Into::into)))
        };
        let folded = self.warm.call(None, call("projection.fold", ctx), body);
        Ok(folded.await?.1)
    }

    /// What is shown of a state.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn view(
        &self,
        ctx: &CallContext,
        key: &str,
        state: JsonText,
    ) -> Result<JsonText, CallError> {
        let key = key.to_owned();
        let body = |mut live: Live<ProjectionGuest>| async move {
            let view = live.guest.call_view(&mut live.store, &key, &state).await;
            (live, view.map(|view| view.map_err(Into::into)))
        };
        let viewed = self.warm.call(None, call("projection.view", ctx), body);
        Ok(viewed.await?.1)
    }
}
