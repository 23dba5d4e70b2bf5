//! What people hear of listeners that fail: a line for each row and event, once.
//! What the failure means for the run is the event's rule, and happens every time.

use std::collections::HashSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use super::events::EventSpec;
use super::listener::{Listener, ListenerError};

/// A listener that failed.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The row.
    pub row: String,
    /// The event.
    pub event: &'static str,
    /// What it failed with.
    pub error: ListenerError,
    /// Whether what was to be decided is refused for it; otherwise the run went
    /// on as if the listener were not there.
    pub refused: bool,
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            row, event, error, ..
        } = self;
        let meant = if self.refused {
            "what it was to decide is refused"
        } else {
            "the run goes on without it"
        };
        write!(
            f,
            "row {row} failed at {event}, so {meant}: {error}; if that stays so, update it or disable the row"
        )
    }
}

type Tell = Box<dyn Fn(&Failure) + Send + Sync>;

#[derive(Default)]
pub(super) struct Reports {
    tell: OnceLock<Tell>,
    told: Mutex<HashSet<(String, &'static str)>>,
}

impl Reports {
    /// The first one stays.
    pub(super) fn to(&self, tell: Tell) {
        let _ = self.tell.set(tell);
    }

    pub(super) fn failed(
        &self,
        listener: &dyn Listener,
        spec: &EventSpec,
        error: &ListenerError,
        refused: bool,
    ) {
        // A turn that was given up is nobody's failure, and a quarantine was told.
        if matches!(error.code.as_str(), "CANCELLED" | "PLUGIN_QUARANTINED") {
            return;
        }
        let row = listener.name().to_owned();
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = self.tell.get()
            && told.insert((row.clone(), spec.name))
        {
            tell(&Failure {
                row,
                event: spec.name,
                error: error.clone(),
                refused,
            });
        }
    }
}
