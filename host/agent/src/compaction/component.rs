//! The bridge to rows that export `compaction`.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{Plan, PluginError, Situation};
use dsh_plugin::{CallContext, CallError, Compaction};

use super::{Compactor, Written};
use crate::ports::CallIdentity;
use crate::tools::CallScope;

/// A row that compacts.
pub struct ComponentCompactor {
    row: String,
    compaction: Compaction,
    identity: Arc<CallIdentity>,
}

impl ComponentCompactor {
    /// Of a mounted row's compactor.
    #[must_use]
    pub fn new(row: &str, compaction: Compaction, identity: Arc<CallIdentity>) -> Self {
        Self {
            row: row.to_owned(),
            compaction,
            identity,
        }
    }

    fn context(&self, scope: &CallScope) -> CallContext {
        self.identity.context(&self.row, "compaction", scope)
    }
}

#[async_trait]
impl Compactor for ComponentCompactor {
    fn row(&self) -> &str {
        &self.row
    }

    async fn choose(&self, situation: &Situation, scope: &CallScope) -> Result<Plan, PluginError> {
        match self
            .compaction
            .choose(&self.context(scope), situation)
            .await
        {
            // It was said when it happened; a session goes on without it.
            Err(CallError::Quarantined { .. }) => Ok(Plan::Nothing),
            plan => plan.map_err(CallError::into_plugin_error),
        }
    }

    async fn summarise(
        &self,
        situation: &Situation,
        nodes: (u32, u32),
        scope: &CallScope,
    ) -> Result<Written, PluginError> {
        let context = self.context(scope);
        let summary = self.compaction.summarise(&context, situation, nodes).await;
        Ok(Written {
            summary: summary.map_err(CallError::into_plugin_error)?,
            call: None,
        })
    }
}
