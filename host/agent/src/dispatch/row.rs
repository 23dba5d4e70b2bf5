//! A listener in its place, with what it takes part in.

use std::sync::Arc;

use super::events::{EventSpec, check_subscription, event};
use super::listener::{Listener, Subscription};
use crate::error::AgentError;

/// A subscription to an event of the table.
#[derive(Clone)]
pub(super) struct Taken {
    pub(super) spec: &'static EventSpec,
    pub(super) beside: bool,
    only: Vec<String>,
}

impl Taken {
    /// Whether it covers an event of that key (event kind, tool or provider).
    pub(super) fn covers(&self, spec: &EventSpec, key: Option<&str>) -> bool {
        std::ptr::eq(self.spec, spec)
            && (self.only.is_empty()
                || key.is_some_and(|key| self.only.iter().any(|only| only == key)))
    }
}

pub(super) struct Row {
    pub(super) listener: Arc<dyn Listener>,
    pub(super) takes: Vec<Taken>,
}

impl Row {
    pub(super) fn new(listener: Arc<dyn Listener>) -> Result<Self, AgentError> {
        let taken = |subscription: Subscription| {
            let Subscription {
                event: name,
                only,
                beside,
            } = subscription;
            match (check_subscription(&name, beside), event(&name)) {
                (Ok(()), Some(spec)) => Ok(Taken { spec, beside, only }),
                (checked, _) => Err(AgentError::Subscription {
                    listener: listener.name().to_owned(),
                    what: checked.err().unwrap_or_default(),
                }),
            }
        };
        let takes = listener.subscriptions().into_iter().map(taken);
        let takes = takes.collect::<Result<_, _>>()?;
        Ok(Self { listener, takes })
    }

    pub(super) fn takes(&self, spec: &EventSpec, key: Option<&str>) -> bool {
        self.takes.iter().any(|taken| taken.covers(spec, key))
    }
}
