//! When a row is put out of use.
//!
//! Three failures of its own in a row, on whichever of its exports: calling on
//! would fail the same way and cost its bounds every time. Answers, also errors
//! that the component itself gives, end the row of failures; a cancelled call
//! says nothing about it.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::CallError;

/// Failures in a row.
const PATIENCE: u32 = 3;

/// How a row has been doing.
#[derive(Debug, Default)]
pub(crate) struct Health {
    /// Whether there is a failure to look at: set before it is counted.
    failing: AtomicBool,
    failures: Mutex<Failures>,
}

#[derive(Debug, Default)]
struct Failures {
    count: u32,
    last: String,
}

impl Health {
    /// Refuses a call of a row that is out of use.
    pub(crate) fn check(&self, row: &str) -> Result<(), CallError> {
        if !self.failing.load(Ordering::Acquire) {
            return Ok(());
        }
        let failures = self.lock();
        if failures.count < PATIENCE {
            return Ok(());
        }
        Err(CallError::Quarantined {
            row: row.to_owned(),
            failures: failures.count,
            last: failures.last.clone(),
        })
    }

    /// Counts how a call ended; returns how many failures there were where this
    /// one puts the row out of use, which happens once.
    pub(crate) fn note<T>(&self, result: &Result<T, CallError>) -> Option<u32> {
        if result.is_ok() && !self.failing.load(Ordering::Acquire) {
            return None;
        }
        let mut failures = self.lock();
        match result {
            Err(error) if error.is_failure_of_component() => {
                self.failing.store(true, Ordering::Release);
                failures.count += 1;
                failures.last = error.to_string();
                // Calls that were under way may still fail after it.
                (failures.count == PATIENCE).then_some(PATIENCE)
            }
            Ok(_) | Err(CallError::Plugin(_)) if failures.count < PATIENCE => {
                failures.count = 0;
                self.failing.store(false, Ordering::Release);
                None
            }
            _ => None,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Failures> {
        self.failures
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::PluginError;

    fn trap() -> Result<(), CallError> {
        Err(CallError::Trap {
            row: "r".to_owned(),
            function: "tool.run",
            reason: "x".to_owned(),
        })
    }

    #[test]
    fn three_failures_in_a_row_put_a_row_out_of_use_for_good() {
        let health = Health::default();
        for out_of_use in [None, None, Some(3)] {
            health.check("r").unwrap();
            assert_eq!(health.note(&trap()), out_of_use);
        }
        assert_eq!(health.note(&trap()), None, "it is said once");
        let Err(CallError::Quarantined {
            failures: 4, last, ..
        }) = health.check("r")
        else {
            panic!()
        };
        assert!(last.contains("crashed in tool.run"));
        health.note(&Ok(()));
        assert!(health.check("r").is_err());
    }

    #[test]
    fn an_answer_ends_the_row_of_failures_and_a_cancel_does_not_count() {
        let health = Health::default();
        for _ in 0..5 {
            health.note(&trap());
            health.note(&trap());
            health.note::<()>(&Err(CallError::Cancelled {
                row: "r".to_owned(),
                function: "tool.run",
            }));
            health.note::<()>(&Err(CallError::Plugin(PluginError::cancelled())));
        }
        health.check("r").unwrap();
    }
}
