//! The chain itself: row order in, reverse order out.

use std::future::Future;
use std::sync::Arc;

use dsh_session::Json;

use super::events::{EventSpec, Mode, OnFailure, event};
use super::listener::{EventContext, Listener, ListenerError, Subscription, Verdict};
use super::observers::Observers;
use super::stamp::stamp;
use crate::error::AgentError;

/// Why a chain gave no result.
#[derive(Debug, thiserror::Error)]
pub enum DispatchError<E> {
    /// A listener of a policy event failed, so what it guards is refused.
    #[error("{listener} failed at {event}: {error}")]
    Listener {
        /// The row.
        listener: String,
        /// The event.
        event: &'static str,
        /// What it failed with.
        error: ListenerError,
    },
    /// What the chain leads to failed.
    #[error(transparent)]
    Core(E),
}

struct Row {
    listener: Arc<dyn Listener>,
    subscriptions: Vec<Subscription>,
}

impl Row {
    fn takes(&self, spec: &EventSpec, key: Option<&str>) -> bool {
        self.subscriptions
            .iter()
            .any(|subscription| subscription.covers(spec.name, key))
    }
}

/// All listeners of an agent, in row order.
pub struct Dispatch {
    rows: Vec<Row>,
    observers: Observers,
}

impl Dispatch {
    /// Takes the listeners in row order. Must be called inside a tokio runtime
    /// when any of them subscribes to an event that only tells.
    ///
    /// # Errors
    /// [`AgentError::UnknownEvent`] where a subscription names no event of a run.
    pub fn new(listeners: Vec<Arc<dyn Listener>>) -> Result<Self, AgentError> {
        let mut rows = Vec::with_capacity(listeners.len());
        for listener in listeners {
            let subscriptions = listener.subscriptions();
            if let Some(unknown) = subscriptions
                .iter()
                .find(|subscription| event(&subscription.event).is_none())
            {
                return Err(AgentError::UnknownEvent {
                    listener: listener.name().to_owned(),
                    event: unknown.event.clone(),
                });
            }
            rows.push(Row {
                listener,
                subscriptions,
            });
        }
        let observers = Observers::new(
            rows.iter()
                .map(|row| (&row.listener, row.subscriptions.as_slice())),
        );
        Ok(Self { rows, observers })
    }

    /// Whether anyone takes part in an event, so that a payload need not be made.
    #[must_use]
    pub fn listens(&self, name: &'static str, key: Option<&str>) -> bool {
        event(name).is_some_and(|spec| self.rows.iter().any(|row| row.takes(spec, key)))
    }

    /// Runs a waterfall around `core`, which is the host's own default.
    ///
    /// # Errors
    /// A failed listener where the event's rule is to refuse, and what `core` fails with.
    pub async fn waterfall<E, F>(
        &self,
        name: &'static str,
        key: Option<&str>,
        payload: Json,
        cx: &EventContext,
        core: impl FnOnce(Json) -> F,
    ) -> Result<Json, DispatchError<E>>
    where
        F: Future<Output = Result<Json, E>>,
    {
        let spec = waterfall_spec(name);
        let mut payload = payload;
        let mut entered: Vec<(&Row, String)> = Vec::new();
        let mut settled = None;
        for row in self.rows.iter().filter(|row| row.takes(spec, key)) {
            let entry = match row.listener.enter(name, &payload, cx).await {
                Ok(entry) => entry,
                Err(error) => {
                    refuse_or_leave_out(spec, row, error)?;
                    continue;
                }
            };
            match entry.verdict {
                Verdict::Proceed => {}
                Verdict::Rewrite(next) => {
                    match stamp(spec, row.listener.as_ref(), &[&payload], next) {
                        Ok(next) => payload = next,
                        Err(error) => {
                            refuse_or_leave_out(spec, row, error)?;
                            continue;
                        }
                    }
                }
                Verdict::Settle(result) if only_proceeds(spec, &result) => {}
                Verdict::Settle(result) => {
                    match stamp(spec, row.listener.as_ref(), &[&payload], result) {
                        Ok(result) => {
                            settled = Some(result);
                            break;
                        }
                        Err(error) => {
                            refuse_or_leave_out(spec, row, error)?;
                            continue;
                        }
                    }
                }
            }
            if let Some(carry) = entry.carry {
                entered.push((row, carry));
            }
        }
        let known = payload.clone();
        let mut outcome = match settled {
            Some(result) => result,
            None => core(payload).await.map_err(DispatchError::Core)?,
        };
        for (row, carry) in entered.into_iter().rev() {
            let left = match row.listener.leave(name, carry, &outcome, cx).await {
                Ok(None) => continue,
                Ok(Some(result)) => stamp(spec, row.listener.as_ref(), &[&known, &outcome], result)
                    .or_else(|error| {
                        refuse_or_leave_out(spec, row, error).map(|()| outcome.clone())
                    }),
                Err(error) => refuse_or_leave_out(spec, row, error).map(|()| outcome.clone()),
            };
            outcome = left?;
        }
        Ok(outcome)
    }

    /// Asks in row order; the first answer wins, with the row that gave it.
    ///
    /// # Errors
    /// A failed listener where the event's rule is to refuse.
    pub async fn decide(
        &self,
        name: &'static str,
        key: Option<&str>,
        payload: &Json,
        cx: &EventContext,
    ) -> Result<Option<Json>, DispatchError<std::convert::Infallible>> {
        let spec = event(name)
            .filter(|spec| spec.mode == Mode::Decide)
            .expect("a decided event of the table");
        for row in self.rows.iter().filter(|row| row.takes(spec, key)) {
            let answer = row
                .listener
                .decide(name, payload, cx)
                .await
                .and_then(|answer| {
                    answer
                        .map(|answer| stamp(spec, row.listener.as_ref(), &[], answer))
                        .transpose()
                });
            match answer {
                Ok(None) => {}
                Ok(Some(answer)) => return Ok(Some(answer)),
                Err(error) => refuse_or_leave_out(spec, row, error)?,
            }
        }
        Ok(None)
    }

    /// Tells observers; returns at once.
    pub fn notify(&self, name: &'static str, key: Option<&str>, payload: impl FnOnce() -> Json) {
        self.observers.tell(name, key, payload);
    }

    /// Waits until every observer has been told what there was to tell.
    pub async fn settle(&self) {
        self.observers.settle().await;
    }
}

fn waterfall_spec(name: &'static str) -> &'static EventSpec {
    event(name)
        .filter(|spec| spec.mode == Mode::Waterfall)
        .expect("a waterfall of the table")
}

/// A settled `allow` of `tools/pre-execute` only proceeds: no listener speaks
/// for the others (wit/plugin.wit, `verdict`).
fn only_proceeds(spec: &EventSpec, result: &Json) -> bool {
    #[derive(serde::Deserialize)]
    struct Decision {
        kind: String,
    }
    spec.name == "tools/pre-execute"
        && serde_json::from_str::<Decision>(result.as_str())
            .is_ok_and(|decision| decision.kind == "allow")
}

fn refuse_or_leave_out<E>(
    spec: &EventSpec,
    row: &Row,
    error: ListenerError,
) -> Result<(), DispatchError<E>> {
    match spec.on_failure {
        OnFailure::LeaveOut => Ok(()),
        // It was never asked to decide, only to watch.
        OnFailure::Refuse if !row.listener.decides(spec.name) => Ok(()),
        OnFailure::Refuse => {
            let listener = row.listener.name().to_owned();
            Err(DispatchError::Listener {
                listener,
                event: spec.name,
                error,
            })
        }
    }
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
