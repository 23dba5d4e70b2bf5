//! The bridge to rows that export `prompt`.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{PluginError, PromptSection};
use dsh_plugin::{CallContext, CallError, Prompt};
use dsh_session::Json;

use super::PromptSource;
use crate::ports::CallIdentity;
use crate::tools::CallScope;

/// A row's sections.
pub struct ComponentPrompt {
    row: String,
    prompt: Prompt,
    identity: Arc<CallIdentity>,
}

impl ComponentPrompt {
    /// Of a mounted row's prompt.
    #[must_use]
    pub fn new(row: &str, prompt: Prompt, identity: Arc<CallIdentity>) -> Self {
        Self {
            row: row.to_owned(),
            prompt,
            identity,
        }
    }
}

#[async_trait]
impl PromptSource for ComponentPrompt {
    fn name(&self) -> &str {
        &self.row
    }

    async fn sections(
        &self,
        variables: &Json,
        scope: &CallScope,
    ) -> Result<Vec<PromptSection>, PluginError> {
        let context: CallContext = self.identity.context(&self.row, "sections", scope);
        let sections = self
            .prompt
            .sections(&context, variables.as_str().to_owned())
            .await;
        match sections {
            // It was said when it happened; a session goes on without it.
            Err(CallError::Quarantined { .. }) => Ok(Vec::new()),
            sections => sections.map_err(CallError::into_plugin_error),
        }
    }
}
