//! `llm`: auxiliary model calls. Granted by `llm`, with a budget of tokens for
//! each session.
//!
//! The budget is looked at before a call, as what one costs is known when it is
//! over: the call that passes it is the last one, and several that run at once
//! may each be.

use super::Phase;
use crate::api::{PluginError, code};
use crate::contract::v0_1::{llm, types};
use crate::instance::State;
use crate::port::{Answer, Question};

super::capability!(llm, "llm");

impl State {
    /// Refuses a row that has used up what it was granted.
    fn within_budget(&self, spent: u64) -> Result<(), PluginError> {
        match self.row.grants.llm_tokens {
            Some(budget) if spent >= budget => Err(PluginError::new(
                code::LIMIT,
                format!(
                    "row {} has used {spent} of the {budget} tokens of its grant `llm` in this session; raise `tokens` to let it go on",
                    self.row.id
                ),
            )),
            _ => Ok(()),
        }
    }
}

impl llm::Host for State {
    async fn ask(
        &mut self,
        question: llm::Question,
    ) -> wasmtime::Result<Result<llm::Answer, types::Error>> {
        self.require(Phase::Work, "llm.ask")?;
        let messages: usize = question.messages.iter().map(String::len).sum();
        let system = question.system.as_ref().map_or(0, String::len);
        self.takes(question.purpose.len() + question.config.len() + system + messages)?;
        let Some(port) = self.ctx.ports.llm.clone() else {
            return Ok(Err(PluginError::unavailable("model to ask").into()));
        };
        if let Err(refused) = self.within_budget(port.spent(&self.row.id)) {
            return Ok(Err(refused.into()));
        }
        let asked = port.ask(&self.row.id, question.into());
        Ok(self.answer(asked).await.map(Into::into).map_err(Into::into))
    }
}

impl From<llm::Question> for Question {
    fn from(question: llm::Question) -> Self {
        Self {
            purpose: question.purpose,
            config: question.config,
            prefix: question.prefix,
            system: question.system,
            messages: question.messages,
            timeout_ms: question.timeout_ms,
        }
    }
}

impl From<Answer> for llm::Answer {
    fn from(answer: Answer) -> Self {
        Self {
            content: answer.content,
            finish: answer.finish,
            usage: answer.usage,
            config: answer.config,
        }
    }
}
