//! What a listener is, native or component. Payloads and results are JSON
//! texts, because that is what crosses to a component; a native listener takes
//! part by the same door, so that a policy can become a component later without
//! the chain noticing.

use std::sync::Arc;

use async_trait::async_trait;
use dsh_session::Json;

use crate::cancel::Signal;

/// One event that a listener takes part in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subscription {
    /// The event's name.
    pub event: String,
    /// Kinds of `session/event`, tool names of `tools/…`; none means all.
    pub only: Vec<String>,
    /// Told beside the turn, by [`Listener::beside`]; for events that are only told.
    pub beside: bool,
}

impl Subscription {
    /// All of an event.
    #[must_use]
    pub fn all(event: &str) -> Self {
        Self {
            event: event.to_owned(),
            only: Vec::new(),
            beside: false,
        }
    }
}

/// What `enter` decides.
#[derive(Clone, Debug)]
pub enum Verdict {
    /// On with the payload as it came.
    Proceed,
    /// On with this payload.
    Rewrite(Json),
    /// No further: this is the result.
    Settle(Json),
}

/// The answer of `enter`.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Where the chain goes.
    pub verdict: Verdict,
    /// Handed to `leave`; without one, `leave` is not called.
    pub carry: Option<String>,
}

impl Entry {
    /// On, and no `leave`.
    #[must_use]
    pub fn proceed() -> Self {
        Self {
            verdict: Verdict::Proceed,
            carry: None,
        }
    }

    /// On, and `leave` with this.
    #[must_use]
    pub fn carrying(carry: impl Into<String>) -> Self {
        Self {
            verdict: Verdict::Proceed,
            carry: Some(carry.into()),
        }
    }

    /// No further.
    #[must_use]
    pub fn settle(result: Json) -> Self {
        Self {
            verdict: Verdict::Settle(result),
            carry: None,
        }
    }
}

/// For whom messages that a listener makes speak.
#[derive(Clone, Debug)]
pub enum Standing {
    /// The host's own code: its messages keep the source that they have.
    Host,
    /// A component of this row. Its drafts get the source `{kind: "plugin",
    /// plugin: row}`, or one of the kinds that its manifest names.
    Row {
        /// The row's id.
        row: String,
        /// Source kinds of its own.
        sources: Vec<String>,
    },
}

/// What a listener may know beside the payload.
#[derive(Clone, Debug)]
pub struct EventContext {
    /// Aborted when the turn is.
    pub signal: Signal,
}

/// A listener that failed: a trap, a refusal, bad JSON.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct ListenerError {
    /// Stable, SCREAMING_SNAKE_CASE.
    pub code: String,
    /// For people, and for the model where one waits.
    pub message: String,
}

impl ListenerError {
    /// A failure with a code.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
        }
    }
}

/// Watches and decides events. Every method has a default that changes nothing.
#[async_trait]
pub trait Listener: Send + Sync {
    /// The row, as errors name it.
    fn name(&self) -> &str;

    /// Whose words its drafts are.
    fn standing(&self) -> Standing {
        Standing::Host
    }

    /// Whether it may decide this event, rather than watch it. One that only
    /// watches cannot refuse anything by failing: it is left out.
    fn decides(&self, _event: &str) -> bool {
        true
    }

    /// Whether the caller is inside of a call of it, so that it cannot be entered.
    fn is_entered(&self) -> bool {
        false
    }

    /// Who is told what it listens to beside the turn, and shares no memory with
    /// it; without one it is told itself.
    fn beside(&self) -> Option<Arc<dyn Listener>> {
        None
    }

    /// What it takes part in; read once, when it is mounted.
    fn subscriptions(&self) -> Vec<Subscription>;

    /// A waterfall, on the way in.
    async fn enter(
        &self,
        _event: &str,
        _payload: &Json,
        _cx: &EventContext,
    ) -> Result<Entry, ListenerError> {
        Ok(Entry::proceed())
    }

    /// A waterfall, on the way out; nothing returned leaves the outcome as it is.
    async fn leave(
        &self,
        _event: &str,
        _carry: String,
        _outcome: &Json,
        _cx: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        Ok(None)
    }

    /// An event that asks.
    async fn decide(
        &self,
        _event: &str,
        _payload: &Json,
        _cx: &EventContext,
    ) -> Result<Option<Json>, ListenerError> {
        Ok(None)
    }

    /// An event that tells; what happened while the listener was busy comes together.
    async fn notify(&self, _event: &str, _payloads: &[Json]) -> Result<(), ListenerError> {
        Ok(())
    }
}
