//! A title component in use.

use std::sync::Arc;

use crate::api::JsonText;
use crate::call::CallContext;
use crate::capability::Phase;
use crate::contract::v0_1::TitleGuest;
use crate::error::CallError;
use crate::instance::{Call, Live};
use crate::mount::Shared;
use crate::warm::Warm;

/// A `title` with a warm instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Title {
    warm: Warm<TitleGuest>,
}

impl Title {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            warm: Warm::new(shared),
        }
    }

    /// A title for the session, if it has one to propose. `prompts` are the
    /// session's human prompts so far, each the message with the member `seq`,
    /// its event; `current` is the title that the session has.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn propose(
        &self,
        ctx: &CallContext,
        prompts: Vec<JsonText>,
        current: Option<String>,
    ) -> Result<Option<String>, CallError> {
        let how = Call {
            function: "title.propose",
            ctx,
            phase: Phase::Work,
            timed: true,
            place: None,
            event: "",
        };
        let body = |mut live: Live<TitleGuest>| async move {
            let proposed = live
                .guest
                .call_propose(&mut live.store, &prompts, current.as_deref())
                .await;
            (live, proposed.map(|proposed| proposed.map_err(Into::into)))
        };
        Ok(self.warm.call(None, how, body).await?.1)
    }
}
