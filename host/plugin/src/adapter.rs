//! A model adapter in use.

use std::sync::Arc;

use crate::api::{Action, CallConfig, EndCause, GenerateRequest, JsonText, Prepared};
use crate::call::CallContext;
use crate::capability::Phase;
use crate::contract::v0_1::AdapterGuest;
use crate::error::CallError;
use crate::instance::{Call, Live};
use crate::mount::Shared;
use crate::warm::Warm;

/// One provider attempt of an [`Adapter`], on the instance that opened it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Attempt {
    generation: u64,
    handle: u32,
}

/// An `llm-adapter` with a warm instance of its own. Calls wait for each other,
/// so several attempts may be open at once. After a failure the next `prepare`
/// or `open` gets a new instance; attempts of the old one answer
/// [`CallError::Gone`]. Cheap to clone; all clones share the instance.
#[derive(Clone)]
pub struct Adapter {
    warm: Warm<AdapterGuest>,
}

fn call<'a>(function: &'static str, ctx: &'a CallContext) -> Call<'a> {
    Call {
        function,
        ctx,
        phase: Phase::Translate,
        timed: true,
        place: None,
        event: "",
    }
}

impl Adapter {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            warm: Warm::new(shared),
        }
    }

    /// The call with the adapter's defaults filled in.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn prepare(
        &self,
        ctx: &CallContext,
        config: CallConfig,
    ) -> Result<Prepared, CallError> {
        let how = call("llm-adapter.prepare", ctx);
        let body = |mut live: Live<AdapterGuest>| async move {
            let prepared = live
                .guest
                .call_prepare(&mut live.store, &config.into())
                .await;
            (
                live,
                prepared.map(|prepared| prepared.map(Into::into).map_err(Into::into)),
            )
        };
        Ok(self.warm.call(None, how, body).await?.1)
    }

    /// Opens one provider attempt.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn open(
        &self,
        ctx: &CallContext,
        request: GenerateRequest,
    ) -> Result<Attempt, CallError> {
        let how = call("llm-adapter.open", ctx);
        let body = |mut live: Live<AdapterGuest>| async move {
            let opened = live.guest.call_open(&mut live.store, &request.into()).await;
            (live, opened.map(|opened| opened.map_err(Into::into)))
        };
        let (generation, handle) = self.warm.call(None, how, body).await?;
        Ok(Attempt { generation, handle })
    }

    /// What the host is to do next; after `open`, each `end` and each `emit`.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn next(&self, ctx: &CallContext, attempt: Attempt) -> Result<Action, CallError> {
        let how = call("llm-adapter.next", ctx);
        let body = move |mut live: Live<AdapterGuest>| async move {
            let action = live.guest.call_next(&mut live.store, attempt.handle).await;
            (
                live,
                action.map(|action| action.map(Into::into).map_err(Into::into)),
            )
        };
        Ok(self.warm.call(Some(attempt.generation), how, body).await?.1)
    }

    /// The response's head.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn head(
        &self,
        ctx: &CallContext,
        attempt: Attempt,
        status: u16,
        headers: Vec<(String, String)>,
    ) -> Result<(), CallError> {
        let how = call("llm-adapter.head", ctx);
        let body = move |mut live: Live<AdapterGuest>| async move {
            let done = live
                .guest
                .call_head(&mut live.store, attempt.handle, status, &headers)
                .await;
            (live, done.map(Ok))
        };
        self.warm.call(Some(attempt.generation), how, body).await?;
        Ok(())
    }

    /// Bytes as they arrived; returns the stream chunks that they complete.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn body(
        &self,
        ctx: &CallContext,
        attempt: Attempt,
        data: &[u8],
    ) -> Result<Vec<JsonText>, CallError> {
        let how = call("llm-adapter.body", ctx);
        let data = data.to_vec();
        let body = move |mut live: Live<AdapterGuest>| async move {
            let chunks = live
                .guest
                .call_body(&mut live.store, attempt.handle, &data)
                .await;
            (live, chunks.map(Ok))
        };
        Ok(self.warm.call(Some(attempt.generation), how, body).await?.1)
    }

    /// The request is over; returns its last chunks.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn end(
        &self,
        ctx: &CallContext,
        attempt: Attempt,
        cause: EndCause,
    ) -> Result<Vec<JsonText>, CallError> {
        let how = call("llm-adapter.end", ctx);
        let body = move |mut live: Live<AdapterGuest>| async move {
            let chunks = live
                .guest
                .call_end(&mut live.store, attempt.handle, &cause.into())
                .await;
            (live, chunks.map(Ok))
        };
        Ok(self.warm.call(Some(attempt.generation), how, body).await?.1)
    }

    /// Gives the attempt's handle back. Nothing happens if its instance is gone.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn close(&self, ctx: &CallContext, attempt: Attempt) -> Result<(), CallError> {
        let how = call("llm-adapter.close", ctx);
        let body = move |mut live: Live<AdapterGuest>| async move {
            let done = live.guest.call_close(&mut live.store, attempt.handle).await;
            (live, done.map(Ok))
        };
        match self.warm.call(Some(attempt.generation), how, body).await {
            Ok(_) | Err(CallError::Gone { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }
}
