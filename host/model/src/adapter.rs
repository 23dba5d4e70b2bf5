//! What an adapter is to the host: `wit/plugin.wit`, interface `llm-adapter`.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::CallContext;
use dsh_plugin::api::{Action, CallConfig, EndCause, GenerateRequest, JsonText, Prepared};

use crate::failure::LlmFailure;

/// Translates between the harness and a provider's protocol.
#[async_trait]
pub trait Adapter: Send + Sync {
    /// The routes that it serves as configured: `{provider, name, baseURL?,
    /// credential?, idleTimeoutMs?, retryPolicy?, models?}`, a JSON text each.
    fn list_routes(&self) -> Vec<JsonText>;

    /// The call with the adapter's defaults filled in.
    ///
    /// # Errors
    /// The adapter's refusal, or how it broke.
    async fn prepare(&self, ctx: &CallContext, config: CallConfig) -> Result<Prepared, LlmFailure>;

    /// Opens one provider attempt; it never retries.
    ///
    /// # Errors
    /// The adapter's refusal, or how it broke.
    async fn open(
        &self,
        ctx: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure>;
}

#[async_trait]
impl<A: Adapter + ?Sized> Adapter for Arc<A> {
    fn list_routes(&self) -> Vec<JsonText> {
        (**self).list_routes()
    }

    async fn prepare(&self, ctx: &CallContext, config: CallConfig) -> Result<Prepared, LlmFailure> {
        (**self).prepare(ctx, config).await
    }

    async fn open(
        &self,
        ctx: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        (**self).open(ctx, request).await
    }
}

/// One provider attempt. After an error only `close` is called.
#[async_trait]
pub trait Attempt: Send + Sync {
    /// What the host is to do next; asked after `open`, each `end` and each `emit`.
    ///
    /// # Errors
    /// The adapter's failure, or how it broke.
    async fn next(&mut self, ctx: &CallContext) -> Result<Action, LlmFailure>;

    /// The response's head.
    ///
    /// # Errors
    /// How the adapter broke.
    async fn head(
        &mut self,
        ctx: &CallContext,
        status: u16,
        headers: Vec<(String, String)>,
    ) -> Result<(), LlmFailure>;

    /// Bytes as they arrived; returns the chunks that they complete.
    ///
    /// # Errors
    /// How the adapter broke.
    async fn body(&mut self, ctx: &CallContext, data: &[u8]) -> Result<Vec<JsonText>, LlmFailure>;

    /// The request is over; returns its last chunks.
    ///
    /// # Errors
    /// How the adapter broke.
    async fn end(
        &mut self,
        ctx: &CallContext,
        cause: EndCause,
    ) -> Result<Vec<JsonText>, LlmFailure>;

    /// The host is done with it.
    async fn close(&mut self, ctx: &CallContext);
}
