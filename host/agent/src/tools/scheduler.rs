//! Which calls of a message overlap, and in which order their results are
//! logged (spec/loop.md §6): bodies side by side where their tools say so,
//! results always in the model's order.
//!
//! Bodies run inside of the turn's own task: they wait side by side, and what
//! the log says does not depend on threads. Nothing here starts after an abort,
//! everything that was started is waited for, and every call has a result.

use std::future::Future;
use std::sync::Arc;

use dsh_session::{Draft, Event, Json, Kind};
use futures_util::future::BoxFuture;
use futures_util::stream::{FuturesUnordered, StreamExt};

use super::arguments::Call;
use super::pipeline::{Finished, Pipeline, Prepared};
use super::result::CallResult;
use crate::error::AgentError;
use crate::inbox::Inbox;
use crate::message::tool_result;

/// Runs the calls of one message.
pub(crate) struct Scheduler<'a> {
    pub(crate) pipeline: Pipeline<'a>,
    pub(crate) inbox: &'a Inbox,
    /// The pool's width, read at the start of each group.
    pub(crate) width: &'a (dyn Fn() -> usize + Send + Sync),
}

type Bodies<'a> = FuturesUnordered<BoxFuture<'a, (usize, Finished)>>;

/// Where each started call stands.
struct Progress {
    slots: Vec<Slot>,
    committed: usize,
    conclude: bool,
}

enum Slot {
    Running {
        call: Arc<Event>,
    },
    Done {
        call: Arc<Event>,
        finished: Finished,
    },
    Committed,
}

impl Scheduler<'_> {
    /// Runs all calls; whether one of them ends the turn.
    pub(crate) async fn run(&self, calls: &[Call]) -> Result<bool, AgentError> {
        let mut progress = Progress {
            slots: Vec::with_capacity(calls.len()),
            committed: 0,
            conclude: false,
        };
        let mut bodies = Bodies::new();
        let ran = self.groups(calls, &mut progress, &mut bodies).await;
        // After a failure of the log the bodies are still waited for.
        while bodies.next().await.is_some() {}
        ran?;
        for call in &calls[progress.slots.len()..] {
            let started = self.log_call(call)?;
            self.log_result(call, &started, &CallResult::aborted_before_dispatch())?;
        }
        Ok(progress.conclude)
    }

    async fn groups<'b>(
        &'b self,
        calls: &'b [Call],
        progress: &mut Progress,
        bodies: &mut Bodies<'b>,
    ) -> Result<(), AgentError> {
        while self.may_start(calls, progress) {
            let width = (self.width)().max(1);
            if self
                .pipeline
                .may_overlap(&calls[progress.slots.len()])
                .await
            {
                self.pool(calls, width, progress, bodies).await?;
            } else {
                self.start(calls, progress, bodies).await?;
            }
            self.drain(calls, 0, progress, bodies).await?;
        }
        Ok(())
    }

    /// Starts calls until one may not overlap.
    async fn pool<'b>(
        &'b self,
        calls: &'b [Call],
        width: usize,
        progress: &mut Progress,
        bodies: &mut Bodies<'b>,
    ) -> Result<(), AgentError> {
        loop {
            self.start(calls, progress, bodies).await?;
            self.commit_ready(calls, progress, bodies).await?;
            self.drain(calls, width - 1, progress, bodies).await?;
            if !self.may_start(calls, progress) {
                return Ok(());
            }
            // Asked again before each start: the tools may have changed.
            let overlaps = self.pipeline.may_overlap(&calls[progress.slots.len()]);
            if !beside(bodies, progress, overlaps).await {
                return Ok(());
            }
        }
    }

    fn may_start(&self, calls: &[Call], progress: &Progress) -> bool {
        progress.slots.len() < calls.len() && !self.pipeline.signal.aborted()
    }

    async fn start<'b>(
        &'b self,
        calls: &'b [Call],
        progress: &mut Progress,
        bodies: &mut Bodies<'b>,
    ) -> Result<(), AgentError> {
        let index = progress.slots.len();
        let call = &calls[index];
        let started = self.log_call(call)?;
        progress.slots.push(Slot::Running { call: started });
        match beside(bodies, progress, self.pipeline.prepare(call)).await {
            Prepared::Settled(finished) => progress.finish(index, finished),
            Prepared::Ready => bodies.push(Box::pin(async move {
                (index, self.pipeline.execute(call).await)
            })),
        }
        Ok(())
    }

    /// Waits until at most `left` bodies run, committing what is ready.
    async fn drain<'b>(
        &'b self,
        calls: &'b [Call],
        left: usize,
        progress: &mut Progress,
        bodies: &mut Bodies<'b>,
    ) -> Result<(), AgentError> {
        while bodies.len() > left {
            if let Some((index, finished)) = bodies.next().await {
                progress.finish(index, finished);
            }
            self.commit_ready(calls, progress, bodies).await?;
        }
        self.commit_ready(calls, progress, bodies).await
    }

    /// Commits finished calls, as far as all before them are.
    async fn commit_ready<'b>(
        &'b self,
        calls: &'b [Call],
        progress: &mut Progress,
        bodies: &mut Bodies<'b>,
    ) -> Result<(), AgentError> {
        while let Some((index, started, finished)) = progress.next_ready() {
            let call = &calls[index];
            let result = beside(bodies, progress, self.pipeline.finalize(call, finished)).await;
            self.log_result(call, &started, &result)?;
            for context in &result.contexts {
                self.inbox
                    .push(dsh_session::Target::NextStep, context.clone())?;
            }
            progress.conclude |= result.conclude;
        }
        Ok(())
    }

    fn log_call(&self, call: &Call) -> Result<Arc<Event>, AgentError> {
        let data = Json::object(|data| {
            data.u64("turn", self.pipeline.turn)
                .u64("step", self.pipeline.step);
            data.json("callId", &call.id)
                .str("name", &call.name)
                .json("arguments", &call.raw);
        });
        self.pipeline.log.record(Kind::ToolCall, data)
    }

    fn log_result(
        &self,
        call: &Call,
        started: &Event,
        result: &CallResult,
    ) -> Result<Arc<Event>, AgentError> {
        let message = tool_result(&call.id, &result.content, result.is_error);
        let data = Json::object(|data| {
            data.u64("turn", self.pipeline.turn)
                .u64("step", self.pipeline.step)
                .json("message", &message);
            if let Some((name, code)) = &result.error {
                data.object("error", |error| {
                    error.str("name", name).str("code", code);
                });
            }
            data.opt_json("meta", result.meta.as_ref());
        });
        self.pipeline.log.append(
            Draft::new(Kind::ToolResult, data)
                .append()
                .sources(vec![started.seq]),
        )
    }
}

/// Waits for something while the bodies go on.
async fn beside<T>(
    bodies: &mut Bodies<'_>,
    progress: &mut Progress,
    work: impl Future<Output = T>,
) -> T {
    tokio::pin!(work);
    loop {
        tokio::select! {
            biased;
            done = &mut work => return done,
            Some((index, finished)) = bodies.next(), if !bodies.is_empty() => progress.finish(index, finished),
        }
    }
}

impl Progress {
    fn finish(&mut self, index: usize, finished: Finished) {
        let slot = &mut self.slots[index];
        if let Slot::Running { call } = slot {
            *slot = Slot::Done {
                call: Arc::clone(call),
                finished,
            };
        }
    }

    /// The next call in order, if it is finished; from here on it counts as committed.
    fn next_ready(&mut self) -> Option<(usize, Arc<Event>, Finished)> {
        let index = self.committed;
        let slot = self.slots.get_mut(index)?;
        match std::mem::replace(slot, Slot::Committed) {
            Slot::Done { call, finished } => {
                self.committed += 1;
                Some((index, call, finished))
            }
            other => {
                *slot = other;
                None
            }
        }
    }
}
