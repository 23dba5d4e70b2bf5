//! A prompt component in use.

use std::sync::Arc;

use crate::api::{JsonText, PluginError, PromptSection, code};
use crate::call::CallContext;
use crate::capability::Phase;
use crate::contract::v0_1::PromptGuest;
use crate::error::CallError;
use crate::instance::{Call, Live};
use crate::mount::Shared;
use crate::warm::Warm;

/// A `prompt` with a warm instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Prompt {
    warm: Warm<PromptGuest>,
    /// Whether it may replace a whole place.
    may_complete: bool,
}

impl Prompt {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        let may_complete = shared.linked.row.grants.has("prompt.complete");
        Self {
            warm: Warm::new(shared),
            may_complete,
        }
    }

    /// Its sections, for `{provider, model, cwd, …}`.
    ///
    /// # Errors
    /// As every call: [`CallError`]; `DENIED` where it would replace a whole
    /// place without the grant `prompt.complete`.
    pub async fn sections(
        &self,
        ctx: &CallContext,
        variables: JsonText,
    ) -> Result<Vec<PromptSection>, CallError> {
        let how = Call {
            function: "prompt.sections",
            ctx,
            phase: Phase::Work,
            timed: true,
            place: None,
            event: "",
        };
        let body = |mut live: Live<PromptGuest>| async move {
            let sections = live.guest.call_sections(&mut live.store, &variables).await;
            (live, sections.map(|sections| sections.map_err(Into::into)))
        };
        let (_, sections) = self.warm.call(None, how, body).await?;
        let sections: Vec<PromptSection> = sections.into_iter().map(Into::into).collect();
        match sections
            .iter()
            .find(|section| section.complete && !self.may_complete)
        {
            Some(section) => Err(CallError::Plugin(PluginError::new(
                code::DENIED,
                format!(
                    "section {} would replace all others: its row needs the grant `prompt.complete`",
                    section.name
                ),
            ))),
            None => Ok(sections),
        }
    }
}
