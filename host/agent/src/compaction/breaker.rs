//! When compacting is not worth trying.
//!
//! A summary is a model call over nearly all of the conversation. One that fails
//! is likely to fail again a step later, for the same reason and the same money.
//! So after three failures in a row it pauses until something is different that
//! may let it succeed: the route, the surface (somebody compacted by hand), or
//! the turn (time has passed, a person is there). Then it has one try; success
//! starts the count anew. Recovery from overflow does not ask here, since without
//! it the turn is over.

/// Failures in a row.
const PATIENCE: u32 = 3;

/// What has to change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mark {
    /// `provider/model` of the last request.
    pub(super) route: String,
    /// How often the surface was rewritten.
    pub(super) generation: u64,
    /// The turn.
    pub(super) turn: u64,
}

/// Counts failures.
#[derive(Debug, Default)]
pub(super) struct Breaker {
    failures: u32,
    paused: Option<Mark>,
}

impl Breaker {
    /// Whether to try.
    pub(super) fn allows(&self, now: &Mark) -> bool {
        self.paused.as_ref() != Some(now)
    }

    /// It failed, and this is how things stand; true where it pauses now.
    pub(super) fn failed(&mut self, now: Mark) -> bool {
        self.failures = self.failures.saturating_add(1);
        self.paused = (self.failures >= PATIENCE).then_some(now);
        self.paused.is_some()
    }

    /// It succeeded.
    pub(super) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(turn: u64) -> Mark {
        Mark {
            route: "p/m".into(),
            generation: 2,
            turn,
        }
    }

    #[test]
    fn three_failures_in_a_row_pause_it_until_something_changes() {
        let mut breaker = Breaker::default();
        assert!(!breaker.failed(mark(1)) && !breaker.failed(mark(1)));
        assert!(breaker.allows(&mark(1)));
        assert!(breaker.failed(mark(1)));
        assert!(!breaker.allows(&mark(1)));
        let other = Mark {
            route: "p/n".into(),
            ..mark(1)
        };
        let rewritten = Mark {
            generation: 3,
            ..mark(1)
        };
        for changed in [mark(2), other, rewritten] {
            assert!(breaker.allows(&changed), "{changed:?}");
        }
        // One try, not three more.
        assert!(breaker.failed(mark(2)));
        assert!(!breaker.allows(&mark(2)));
    }

    #[test]
    fn success_starts_the_count_anew() {
        let mut breaker = Breaker::default();
        breaker.failed(mark(1));
        breaker.failed(mark(1));
        breaker.succeeded();
        assert!(!breaker.failed(mark(1)));
        assert!(breaker.allows(&mark(1)));
    }
}
