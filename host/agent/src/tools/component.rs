//! The bridge to rows that export `tool`: one [`Tool`] for each tool of a row.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{PluginError, ToolCall, ToolOutcome};
use dsh_plugin::{CallError, Mounted};

use super::tool::{CallScope, Tool, ToolSpec};
use crate::dispatch::Standing;
use crate::error::AgentError;
use crate::ports::CallIdentity;

/// A tool of a mounted row.
pub struct ComponentTool {
    spec: ToolSpec,
    mounted: Mounted,
    identity: Arc<CallIdentity>,
}

impl ComponentTool {
    /// All tools of a row.
    ///
    /// # Errors
    /// [`AgentError::UnsupportedSchema`], [`AgentError::Json`]: the row is left out whole.
    pub fn all(
        mounted: &Mounted,
        identity: &Arc<CallIdentity>,
    ) -> Result<Vec<Arc<dyn Tool>>, AgentError> {
        let tool = |listed: &dsh_plugin::api::ToolSpec| {
            let mut spec = ToolSpec::new(&listed.name, &listed.description, &listed.parameters)?
                .with_timeout_ms(listed.timeout_ms)
                .with_concurrency(listed.concurrency);
            if let Some(output) = &listed.output {
                spec = spec.with_output(output)?;
            }
            let tool = Self {
                spec,
                mounted: mounted.clone(),
                identity: Arc::clone(identity),
            };
            Ok(Arc::new(tool) as Arc<dyn Tool>)
        };
        mounted.tools().iter().map(tool).collect()
    }
}

#[async_trait]
impl Tool for ComponentTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn standing(&self) -> Standing {
        Standing::Row {
            row: self.mounted.id().to_owned(),
            sources: Vec::new(),
        }
    }

    async fn may_overlap(&self, call: &ToolCall, scope: &CallScope) -> bool {
        let context = self.identity.context(self.mounted.id(), &call.id, scope);
        self.mounted.may_overlap(&context, call.clone()).await
    }

    async fn run(&self, call: ToolCall, scope: &CallScope) -> Result<ToolOutcome, PluginError> {
        let context = self.identity.context(self.mounted.id(), &call.id, scope);
        self.mounted
            .call_tool(&context, call)
            .await
            .map_err(CallError::into_plugin_error)
    }
}
