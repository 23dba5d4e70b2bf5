//! The bridge to rows that export `dispatch`.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_plugin::api::{Entry as ApiEntry, Verdict as ApiVerdict};
use dsh_plugin::{CallContext, CallError, Sense};
use dsh_session::Json;

use super::events::event;
use super::listener::{
    Entry, EventContext, Listener, ListenerError, Standing, Subscription, Verdict,
};
use crate::log::Log;
use crate::ports::CallIdentity;
use crate::tools::CallScope;

/// What the host can make use of, by the table: whatever else a component
/// answers is a failure of its own, and counts towards its quarantine.
struct ByTheTable;

impl Sense for ByTheTable {
    fn verdict(&self, name: &str, verdict: &ApiVerdict) -> Result<(), String> {
        let Some(spec) = event(name) else {
            return Ok(());
        };
        match verdict {
            ApiVerdict::Proceed => Ok(()),
            // What stays as it was is not at hand here; it is checked with the rest.
            ApiVerdict::Rewrite(_) if spec.rewrites.is_empty() => {
                Err(format!("the payload of {name} cannot be rewritten"))
            }
            ApiVerdict::Rewrite(text) => spec.check_rewrite(&read("payload", text)?),
            ApiVerdict::Settle(text) => spec.check_result(&read("result", text)?),
        }
    }

    fn outcome(&self, name: &str, outcome: &str) -> Result<(), String> {
        match event(name) {
            Some(spec) if !spec.leaves => Err(format!("the outcome of {name} cannot be changed")),
            Some(spec) => spec.check_result(&read("result", outcome)?),
            None => Ok(()),
        }
    }

    fn decision(&self, name: &str, answer: &str) -> Result<(), String> {
        event(name).map_or(Ok(()), |spec| spec.check_result(&read("answer", answer)?))
    }
}

fn read(what: &str, text: &str) -> Result<Json, String> {
    Json::normalise(text).map_err(|error| format!("its {what} is {error}"))
}

/// A row's listener.
#[derive(Clone)]
pub struct ComponentListener {
    row: String,
    sources: Vec<String>,
    subscriptions: Vec<Subscription>,
    dispatch: dsh_plugin::Dispatch,
    /// Another instance, for what it listens to beside the turn.
    beside: Option<dsh_plugin::Dispatch>,
    identity: Arc<CallIdentity>,
    log: Arc<Log>,
}

impl ComponentListener {
    /// Of a mounted row's dispatch; `sources` are the message source kinds that
    /// its manifest names.
    #[must_use]
    pub fn new(
        mounted: &dsh_plugin::Mounted,
        dispatch: dsh_plugin::Dispatch,
        sources: Vec<String>,
        identity: Arc<CallIdentity>,
        log: Arc<Log>,
    ) -> Self {
        let subscriptions = mounted.subscriptions().iter();
        let subscriptions = subscriptions
            .map(|own| Subscription {
                event: own.event.clone(),
                only: own.only.clone(),
                beside: own.beside,
            })
            .collect();
        let sense: Arc<dyn Sense> = Arc::new(ByTheTable);
        let beside = mounted.subscriptions().iter().any(|own| own.beside);
        let beside = beside.then(|| mounted.dispatch()).flatten();
        Self {
            row: mounted.id().to_owned(),
            sources,
            subscriptions,
            dispatch: dispatch.with_sense(sense),
            beside,
            identity,
            log,
        }
    }

    fn context(&self, event: &str, cx: Option<&EventContext>) -> CallContext {
        let scope = CallScope {
            cancel: cx
                .map(|cx| cx.signal.token().child_token())
                .unwrap_or_default(),
            time_ms: self
                .log
                .read(|session| session.last().map_or(0, |event| event.time)),
        };
        self.identity.context(&self.row, event, &scope)
    }
}

/// What a listener is taken to have answered that was skipped, as it is already
/// at work further up the same chain of calls: nothing.
fn unless_skipped<T>(result: Result<T, CallError>, nothing: T) -> Result<T, ListenerError> {
    match result {
        Err(CallError::OnStack { .. }) => Ok(nothing),
        result => result.map_err(failed),
    }
}

fn failed(error: CallError) -> ListenerError {
    let error = error.into_plugin_error();
    ListenerError::new(error.code, error.message)
}

fn json(what: &str, text: &str) -> Result<Json, ListenerError> {
    read(what, text).map_err(|what| ListenerError::new("INVALID", what))
}

#[async_trait]
impl Listener for ComponentListener {
    fn name(&self) -> &str {
        &self.row
    }

    fn standing(&self) -> Standing {
        Standing::Row {
            row: self.row.clone(),
            sources: self.sources.clone(),
        }
    }

    fn decides(&self, event: &str) -> bool {
        self.dispatch.may_decide(event)
    }

    fn is_entered(&self) -> bool {
        self.dispatch.is_entered()
    }

    fn beside(&self) -> Option<Arc<dyn Listener>> {
        let other = Self {
            dispatch: self.beside.clone()?,
            ..self.clone()
        };
        Some(Arc::new(other))
    }

    fn subscriptions(&self) -> Vec<Subscription> {
        self.subscriptions.clone()
    }

    async fn enter(
        &self,
        event: &str,
        payload: &Json,
        cx: &EventContext,
    ) -> Result<Entry, ListenerError> {
        let context = self.context(event, Some(cx));
        let entered = self
            .dispatch
            .enter(&context, event, payload.as_str().to_owned())
            .await;
        let nothing = ApiEntry {
            verdict: ApiVerdict::Proceed,
            carry: None,
        };
        let ApiEntry { verdict, carry } = unless_skipped(entered, nothing)?;
        let verdict = match verdict {
            ApiVerdict::Proceed => Verdict::Proceed,
            ApiVerdict::Rewrite(text) => Verdict::Rewrite(json("payload", &text)?),
            ApiVerdict::Settle(text) => Verdict::Settle(json("result", &text)?),
        };
        Ok(Entry { verdict, carry })
    }

    async fn leave(
        &self,
        event: &str,
        carry: String,
        outcome: &Json,
        cx: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        let context = self.context(event, Some(cx));
        let result = self
            .dispatch
            .leave(&context, event, carry, outcome.as_str().to_owned())
            .await;
        unless_skipped(result, None)?
            .map(|text| json("result", &text))
            .transpose()
    }

    async fn decide(
        &self,
        event: &str,
        payload: &Json,
        cx: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        let context = self.context(event, Some(cx));
        let answer = self
            .dispatch
            .decide(&context, event, payload.as_str().to_owned())
            .await;
        unless_skipped(answer, None)?
            .map(|text| json("answer", &text))
            .transpose()
    }

    async fn notify(&self, event: &str, payloads: &[Json]) -> Result<(), ListenerError> {
        let payloads = payloads
            .iter()
            .map(|payload| payload.as_str().to_owned())
            .collect();
        let context = self.context(event, None);
        let told = self.dispatch.notify(&context, event, payloads).await;
        told.map_err(failed)
    }
}
