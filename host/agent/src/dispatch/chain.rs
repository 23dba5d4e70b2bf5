//! The chain itself: row order in, reverse order out.

use std::future::Future;
use std::sync::Arc;

use dsh_session::Json;

use super::events::{
    EventSpec, Mode, OnFailure, assert_payload, assert_result, event, only_proceeds,
};
use super::listener::{EventContext, Listener, ListenerError, Verdict};
use super::observers::Observers;
use super::report::{Failure, Reports};
use super::row::Row;
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

/// What a waterfall's core is called with.
#[derive(Clone, Debug)]
pub enum Entered {
    /// Nobody settled it: the payload as the last listener left it.
    Open(Json),
    /// A listener settled it, with this result.
    Settled(Json),
}

/// All listeners of an agent, in row order.
pub struct Dispatch {
    rows: Vec<Row>,
    observers: Observers,
    reports: Arc<Reports>,
}

impl Dispatch {
    /// Takes the listeners in row order. Must be called inside a tokio runtime
    /// when any of them subscribes to an event that only tells.
    ///
    /// # Errors
    /// [`AgentError::Subscription`] where a run has no use for a subscription.
    pub fn new(listeners: Vec<Arc<dyn Listener>>) -> Result<Self, AgentError> {
        let rows = listeners.into_iter().map(Row::new);
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let reports = Arc::default();
        Ok(Self {
            observers: Observers::new(&rows, &reports),
            rows,
            reports,
        })
    }

    /// Tells of listeners that fail, once for each row and event. `tell` must not wait.
    #[must_use]
    pub fn reporting(self, tell: impl Fn(&Failure) + Send + Sync + 'static) -> Self {
        self.reports.to(Box::new(tell));
        self
    }

    /// Whether anyone takes part in an event, so that a payload need not be made.
    #[must_use]
    pub fn listens(&self, name: &'static str, key: Option<&str>) -> bool {
        event(name).is_some_and(|spec| self.rows.iter().any(|row| row.takes(spec, key)))
    }

    /// Whether anyone who takes part may decide: for who must know beforehand
    /// whether somebody could answer.
    #[must_use]
    pub fn decides(&self, name: &'static str, key: Option<&str>) -> bool {
        event(name).is_some_and(|spec| {
            let decides = |row: &&Row| row.listener.decides(name);
            self.rows
                .iter()
                .filter(decides)
                .any(|row| row.takes(spec, key))
        })
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
        let core = |entered| async {
            match entered {
                Entered::Open(payload) => core(payload).await,
                Entered::Settled(result) => Ok(result),
            }
        };
        self.waterfall_around(name, key, payload, cx, core).await
    }

    /// As [`Dispatch::waterfall`], with a core that also sees what a listener
    /// settled, and makes the outcome of that.
    ///
    /// # Errors
    /// As [`Dispatch::waterfall`].
    pub async fn waterfall_around<E, F>(
        &self,
        name: &'static str,
        key: Option<&str>,
        payload: Json,
        cx: &EventContext,
        core: impl FnOnce(Entered) -> F,
    ) -> Result<Json, DispatchError<E>>
    where
        F: Future<Output = Result<Json, E>>,
    {
        let spec = spec_of(name, Mode::Waterfall);
        assert_payload(spec, &payload);
        let mut payload = payload;
        let mut carried: Vec<(&Row, String)> = Vec::new();
        let mut settled = None;
        for (index, row) in self.taking(spec, key) {
            let listener = &*row.listener;
            self.catch_up(spec, index, listener).await;
            let entered = match listener.enter(name, &payload, cx).await {
                Ok(entry) => read_verdict(spec, listener, &payload, entry.verdict)
                    .map(|read| (read, entry.carry)),
                Err(error) => Err(error),
            };
            let (read, carry) = match entered {
                Ok(entered) => entered,
                Err(error) => {
                    self.refuse_or_leave_out(spec, row, error)?;
                    continue;
                }
            };
            match read {
                Verdict::Proceed => {}
                Verdict::Rewrite(next) => payload = next,
                Verdict::Settle(result) => {
                    settled = Some(result);
                    break;
                }
            }
            if let Some(carry) = carry {
                carried.push((row, carry));
            }
        }
        let known = payload.clone();
        let entered = settled.map_or_else(|| Entered::Open(payload), Entered::Settled);
        let mut outcome = core(entered).await.map_err(DispatchError::Core)?;
        assert_result(spec, &outcome);
        for (row, carry) in carried.into_iter().rev() {
            let listener = &*row.listener;
            let left = match listener.leave(name, carry, &outcome, cx).await {
                Ok(None) => continue,
                Ok(Some(result)) => read_outcome(spec, listener, &[&known, &outcome], result),
                Err(error) => Err(error),
            };
            match left {
                Ok(result) => outcome = result,
                Err(error) => self.refuse_or_leave_out(spec, row, error)?,
            }
        }
        Ok(outcome)
    }

    /// Asks in row order; the first answer wins.
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
        let spec = spec_of(name, Mode::Serial);
        assert_payload(spec, payload);
        for (index, row) in self.taking(spec, key) {
            let listener = &*row.listener;
            self.catch_up(spec, index, listener).await;
            let answer = match listener.decide(name, payload, cx).await {
                Ok(None) => continue,
                Ok(Some(answer)) => read_result(spec, listener, &[], answer),
                Err(error) => Err(error),
            };
            match answer {
                Ok(answer) => return Ok(Some(answer)),
                Err(error) => self.refuse_or_leave_out(spec, row, error)?,
            }
        }
        Ok(None)
    }

    /// Tells observers; returns at once. The payload is made once, and only
    /// where somebody listens.
    pub fn notify(&self, name: &'static str, key: Option<&str>, payload: impl FnOnce() -> Json) {
        let spec = event(name).filter(|spec| spec.mode.only_tells());
        self.observers
            .tell(spec.expect("a told event of the table"), key, payload);
    }

    /// Tells observers, and waits until all were told: an event of the mode `parallel`.
    pub async fn notify_all(
        &self,
        name: &'static str,
        key: Option<&str>,
        payload: impl FnOnce() -> Json,
    ) {
        let spec = spec_of(name, Mode::Parallel);
        self.observers.tell(spec, key, payload);
        self.observers.told(&self.rows, spec, key).await;
    }

    /// Waits until all who take an event were told what there was to tell.
    pub async fn told(&self, name: &'static str) {
        let spec = event(name).expect("an event of the table");
        self.observers.told(&self.rows, spec, None).await;
    }

    /// Waits until every observer has been told what there was to tell.
    pub async fn settle(&self) {
        self.observers.settle().await;
    }

    /// A decision rests on what happened; who only watches is told in time.
    async fn catch_up(&self, spec: &EventSpec, index: usize, listener: &dyn Listener) {
        if listener.decides(spec.name) {
            self.observers.catch_up(index, listener).await;
        }
    }

    fn taking<'a>(
        &'a self,
        spec: &'static EventSpec,
        key: Option<&'a str>,
    ) -> impl Iterator<Item = (usize, &'a Row)> {
        let takes = move |(_, row): &(usize, &Row)| row.takes(spec, key);
        self.rows.iter().enumerate().filter(takes)
    }

    fn refuse_or_leave_out<E>(
        &self,
        spec: &'static EventSpec,
        row: &Row,
        error: ListenerError,
    ) -> Result<(), DispatchError<E>> {
        // One that was never asked to decide, only to watch, refuses nothing.
        let refuses = spec.on_failure == OnFailure::Refuse && row.listener.decides(spec.name);
        self.reports.failed(&*row.listener, spec, &error, refuses);
        if !refuses {
            return Ok(());
        }
        Err(DispatchError::Listener {
            listener: row.listener.name().to_owned(),
            event: spec.name,
            error,
        })
    }
}

fn spec_of(name: &'static str, mode: Mode) -> &'static EventSpec {
    event(name)
        .filter(|spec| spec.mode == mode)
        .expect("an event of the table, in its mode")
}

fn nonsense(what: String) -> ListenerError {
    ListenerError::new("INVALID", what)
}

/// A verdict as the host goes on with it: checked, and with its drafts stamped.
fn read_verdict(
    spec: &EventSpec,
    listener: &dyn Listener,
    payload: &Json,
    verdict: Verdict,
) -> Result<Verdict, ListenerError> {
    Ok(match verdict {
        Verdict::Proceed => Verdict::Proceed,
        Verdict::Rewrite(by) => {
            let next = spec.rewritten(payload, &by).map_err(nonsense)?;
            Verdict::Rewrite(stamp(spec, listener, &[payload], next)?)
        }
        Verdict::Settle(result) if only_proceeds(spec, &result) => Verdict::Proceed,
        Verdict::Settle(result) => {
            Verdict::Settle(read_result(spec, listener, &[payload], result)?)
        }
    })
}

fn read_outcome(
    spec: &EventSpec,
    listener: &dyn Listener,
    known: &[&Json],
    outcome: Json,
) -> Result<Json, ListenerError> {
    if !spec.leaves {
        return Err(nonsense(format!(
            "the outcome of {} cannot be changed",
            spec.name
        )));
    }
    read_result(spec, listener, known, outcome)
}

fn read_result(
    spec: &EventSpec,
    listener: &dyn Listener,
    known: &[&Json],
    result: Json,
) -> Result<Json, ListenerError> {
    spec.check_result(&result).map_err(nonsense)?;
    stamp(spec, listener, known, result)
}

#[cfg(test)]
#[path = "chain_tests.rs"]
mod tests;
