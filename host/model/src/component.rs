//! An adapter that is a component: a thin bridge to `dsh-plugin`.

use async_trait::async_trait;
use dsh_plugin::api::{Action, CallConfig, EndCause, GenerateRequest, JsonText, Prepared};
use dsh_plugin::{CallContext, Mounted};

use crate::adapter::{Adapter, Attempt};
use crate::failure::LlmFailure;

/// The `llm-adapter` of a mounted row, with a warm instance of its own.
pub struct ComponentAdapter {
    routes: Vec<JsonText>,
    adapter: dsh_plugin::Adapter,
}

impl ComponentAdapter {
    /// Of this row; none if its component is no adapter.
    #[must_use]
    pub fn new(mounted: &Mounted) -> Option<Self> {
        let routes = mounted.routes().to_vec();
        mounted.adapter().map(|adapter| Self { routes, adapter })
    }
}

#[async_trait]
impl Adapter for ComponentAdapter {
    fn list_routes(&self) -> Vec<JsonText> {
        self.routes.clone()
    }

    async fn prepare(&self, ctx: &CallContext, config: CallConfig) -> Result<Prepared, LlmFailure> {
        Ok(self.adapter.prepare(ctx, config).await?)
    }

    async fn open(
        &self,
        ctx: &CallContext,
        request: GenerateRequest,
    ) -> Result<Box<dyn Attempt>, LlmFailure> {
        let attempt = self.adapter.open(ctx, request).await?;
        Ok(Box::new(ComponentAttempt {
            adapter: self.adapter.clone(),
            attempt,
        }))
    }
}

struct ComponentAttempt {
    adapter: dsh_plugin::Adapter,
    attempt: dsh_plugin::Attempt,
}

#[async_trait]
impl Attempt for ComponentAttempt {
    async fn next(&mut self, ctx: &CallContext) -> Result<Action, LlmFailure> {
        Ok(self.adapter.next(ctx, self.attempt).await?)
    }

    async fn head(
        &mut self,
        ctx: &CallContext,
        status: u16,
        headers: Vec<(String, String)>,
    ) -> Result<(), LlmFailure> {
        Ok(self
            .adapter
            .head(ctx, self.attempt, status, headers)
            .await?)
    }

    async fn body(&mut self, ctx: &CallContext, data: &[u8]) -> Result<Vec<JsonText>, LlmFailure> {
        Ok(self.adapter.body(ctx, self.attempt, data).await?)
    }

    async fn end(
        &mut self,
        ctx: &CallContext,
        cause: EndCause,
    ) -> Result<Vec<JsonText>, LlmFailure> {
        Ok(self.adapter.end(ctx, self.attempt, cause).await?)
    }

    async fn close(&mut self, ctx: &CallContext) {
        // An instance that broke took its attempts with it; nothing is left to do.
        let _ = self.adapter.close(ctx, self.attempt).await;
    }
}
