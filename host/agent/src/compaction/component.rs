//! The bridge to rows that export `compaction`.
//!
//! While a row writes, the host listens to what it asks models. Where that is one
//! call, the log says of the summary what the host saw of it, and not what the
//! row says: which model answered, what, and at what price. Its question is not
//! logged apart, as the summary's own events tell of it.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dsh_plugin::api::{Plan, PluginError, Situation};
use dsh_plugin::port::{Answer, Llm, PortSet, Question};
use dsh_plugin::{CallContext, CallError, Compaction};

use super::{Compactor, ModelCall, Written};
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
        let mut context = self.context(scope);
        let heard: Arc<Mutex<Vec<Answer>>> = Arc::default();
        if let Some(llm) = &context.ports.llm {
            let overheard = Overheard {
                llm: llm.unlogged().unwrap_or_else(|| Arc::clone(llm)),
                heard: Arc::clone(&heard),
            };
            context.ports = Arc::new(PortSet {
                llm: Some(Arc::new(overheard)),
                ..PortSet::clone(&context.ports)
            });
        }
        let summary = self.compaction.summarise(&context, situation, nodes).await;
        let summary = summary.map_err(CallError::into_plugin_error)?;
        let mut heard = heard.lock().unwrap_or_else(PoisonError::into_inner);
        let call = match (heard.pop(), heard.is_empty()) {
            (Some(answer), true) => Some(ModelCall {
                content: answer.content,
                usage: answer.usage,
                config: answer.config,
            }),
            _ => None,
        };
        Ok(Written { summary, call })
    }
}

/// Model calls, and what came of them.
struct Overheard {
    llm: Arc<dyn Llm>,
    heard: Arc<Mutex<Vec<Answer>>>,
}

#[async_trait]
impl Llm for Overheard {
    async fn ask(&self, row: &str, question: Question) -> Result<Answer, PluginError> {
        let answer = self.llm.ask(row, question).await?;
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(answer.clone());
        Ok(answer)
    }

    fn spent(&self, row: &str) -> u64 {
        self.llm.spent(row)
    }
}
