//! When a row is put out of use.
//!
//! Three failures of its own in a row at one thing: calling on would fail the
//! same way and cost its bounds every time. One thing is a function of one of
//! its exports and, for a listener, one event; what it does well elsewhere says
//! nothing about that. The whole row goes, as it is one component that somebody
//! installed, and not the part of it that was seen to fail. Answers, also errors
//! that the component itself gives, end the row of failures; a cancelled call
//! says nothing about it.

use std::collections::HashMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::CallError;

/// Failures in a row.
const PATIENCE: u32 = 3;

/// What was called: counted apart from anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Task<'a> {
    pub(crate) function: &'static str,
    /// Of a listener; else empty.
    pub(crate) event: &'a str,
}

/// How a row has been doing.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Whether there ever was a failure to look at.
    failing: AtomicBool,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    /// In a row; a task that is not there has none.
    counts: HashMap<&'static str, HashMap<String, u32>>,
    /// The last one, once the row is out of use.
    ended: Option<String>,
}

impl Health {
    /// Refuses a call of a row that is out of use.
    pub(crate) fn check(&self, row: &str) -> Result<(), CallError> {
        if !self.failing.load(Ordering::Acquire) {
            return Ok(());
        }
        match &self.lock().ended {
            None => Ok(()),
            Some(last) => Err(CallError::Quarantined {
                row: row.to_owned(),
                failures: PATIENCE,
                last: last.clone(),
            }),
        }
    }

    /// Counts how a call ended; returns how many failures there were where this
    /// one puts the row out of use, which happens once.
    pub(crate) fn note<T>(&self, task: Task<'_>, result: &Result<T, CallError>) -> Option<u32> {
        if result.is_ok() && !self.failing.load(Ordering::Acquire) {
            return None;
        }
        let mut failures = self.lock();
        match result {
            Err(error) if error.is_failure_of_component() => {
                self.failing.store(true, Ordering::Release);
                let events = failures.counts.entry(task.function).or_default();
                let count = events.entry(task.event.to_owned()).or_default();
                *count += 1;
                // Calls that were under way may still fail after it.
                let ends = *count >= PATIENCE && failures.ended.is_none();
                ends.then(|| {
                    failures.ended = Some(error.to_string());
                    PATIENCE
                })
            }
            Ok(_) | Err(CallError::Plugin(_)) => {
                // Mostly there is nothing to forget.
                if let Some(events) = failures.counts.get_mut(task.function) {
                    events.remove(task.event);
                }
                None
            }
            Err(_) => None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "health_tests.rs"]
mod tests;
