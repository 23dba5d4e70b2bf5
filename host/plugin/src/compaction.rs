//! A compactor in use.
//!
//! It chooses what of the surface goes and writes the text that stands for it;
//! whoever calls it measures, checks and commits. It is asked to choose before
//! every step and mostly has nothing to say, so that is a call of a warm
//! instance, under the row's bounds. A summary is rare and may have a long history
//! pass through: it has an instance of its own, and what is left in that one's
//! memory goes with it. It waits for a model, so the wall clock does not bound it;
//! whoever calls cancels it.

use std::sync::Arc;

use crate::api::{Plan, Situation, Summary};
use crate::call::CallContext;
use crate::capability::Phase;
use crate::contract::v0_1::CompactionGuest;
use crate::error::CallError;
use crate::instance::{Call, Live};
use crate::mount::Shared;
use crate::warm::Warm;

/// A `compaction`. Cheap to clone.
#[derive(Clone)]
pub struct Compaction {
    warm: Warm<CompactionGuest>,
    shared: Arc<Shared>,
}

fn call<'a>(function: &'static str, ctx: &'a CallContext, timed: bool) -> Call<'a> {
    Call {
        function,
        ctx,
        phase: Phase::Work,
        timed,
        place: None,
        event: "",
    }
}

impl Compaction {
    pub(crate) fn new(shared: Arc<Shared>) -> Self {
        Self {
            warm: Warm::new(Arc::clone(&shared)),
            shared,
        }
    }

    /// What it wants done.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn choose(
        &self,
        ctx: &CallContext,
        situation: &Situation,
    ) -> Result<Plan, CallError> {
        let situation = situation.clone().into();
        let body = |mut live: Live<CompactionGuest>| async move {
            let plan = live.guest.call_choose(&mut live.store, &situation).await;
            (
                live,
                plan.map(|plan| plan.map(Into::into).map_err(Into::into)),
            )
        };
        let how = call("compaction.choose", ctx, true);
        let (_, plan) = self.warm.call(None, how, body).await?;
        Ok(plan)
    }

    /// The text that is to stand for these nodes, first and last.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn summarise(
        &self,
        ctx: &CallContext,
        situation: &Situation,
        nodes: (u32, u32),
    ) -> Result<Summary, CallError> {
        let situation = situation.clone().into();
        let body = move |mut live: Live<CompactionGuest>| async move {
            let summary = live
                .guest
                .call_summarise(&mut live.store, &situation, nodes)
                .await;
            (
                live,
                summary.map(|summary| summary.map(Into::into).map_err(Into::into)),
            )
        };
        self.shared
            .call_fresh(call("compaction.summarise", ctx, false), body)
            .await
    }
}
