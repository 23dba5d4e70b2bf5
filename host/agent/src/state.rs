//! The agent's phases and the wake latch (spec/loop.md §1.1, §1.4), as plain
//! state: whoever holds the lock asks it what to do next and does that.

use crate::cancel::{CancelCause, Signal};

/// What people are told of an agent's phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// No turn runs. Maintenance counts as idle.
    Idle,
    /// A turn runs.
    Running,
}

impl Status {
    /// As events have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Running => "running",
        }
    }
}

/// What the agent does.
#[derive(Debug)]
pub(crate) enum Phase {
    Idle,
    Maintenance(Activity),
    Running(Activity),
}

/// One activity: how to end it, and whether another is to follow.
#[derive(Debug, Default)]
pub(crate) struct Activity {
    pub(crate) signal: Signal,
    /// The latch: someone sent with a wake while this was winding down.
    pub(crate) wake: bool,
    /// Whoever aborted it wanted waiting input gone too.
    pub(crate) discard: bool,
}

/// What a wake does in the phase that there is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Wake {
    /// Nothing runs: start the driver.
    Start,
    /// It is remembered, or a live driver claims the message by itself.
    Nothing,
}

#[derive(Debug)]
pub(crate) struct State {
    pub(crate) phase: Phase,
    pub(crate) last_turn: u64,
    pub(crate) disposed: bool,
}

impl State {
    pub(crate) fn new(last_turn: u64) -> Self {
        Self {
            phase: Phase::Idle,
            last_turn,
            disposed: false,
        }
    }

    pub(crate) fn status(&self) -> Status {
        if matches!(self.phase, Phase::Running(_)) {
            Status::Running
        } else {
            Status::Idle
        }
    }

    pub(crate) fn activity(&mut self) -> Option<&mut Activity> {
        match &mut self.phase {
            Phase::Idle => None,
            Phase::Maintenance(activity) | Phase::Running(activity) => Some(activity),
        }
    }

    /// Whether what runs was aborted and is winding down.
    pub(crate) fn winding_down(&mut self) -> bool {
        self.activity()
            .is_some_and(|activity| activity.signal.aborted())
    }

    /// Somebody wants a turn. `after_abort` says that the activity was aborted
    /// already when the message was put in.
    pub(crate) fn wake(&mut self, after_abort: bool) -> Wake {
        let (activity, latches) = match &mut self.phase {
            Phase::Idle => return Wake::Start,
            Phase::Maintenance(activity) => (activity, true),
            Phase::Running(activity) => (activity, after_abort),
        };
        if latches && activity.signal.cause() != Some(&CancelCause::Disposed) {
            activity.wake = true;
        }
        Wake::Nothing
    }

    /// The activity is over; whether the latch asks for another one.
    pub(crate) fn end_activity(&mut self) -> bool {
        match std::mem::replace(&mut self.phase, Phase::Idle) {
            Phase::Idle => false,
            Phase::Maintenance(activity) | Phase::Running(activity) => activity.wake,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn running() -> State {
        State {
            phase: Phase::Running(Activity::default()),
            ..State::new(3)
        }
    }

    #[test]
    fn an_idle_wake_starts_and_a_live_turn_claims_by_itself() {
        assert_eq!(State::new(0).wake(false), Wake::Start);
        let mut state = running();
        assert_eq!(state.wake(false), Wake::Nothing);
        assert!(!state.end_activity());
    }

    #[test]
    fn a_wake_after_an_abort_is_latched() {
        let mut state = running();
        state.activity().unwrap().signal.abort(CancelCause::User);
        assert!(state.winding_down());
        state.wake(true);
        assert!(state.end_activity());
    }

    #[test]
    fn disposal_never_wakes() {
        let mut state = running();
        state
            .activity()
            .unwrap()
            .signal
            .abort(CancelCause::Disposed);
        state.wake(true);
        assert!(!state.end_activity());
    }

    #[test]
    fn maintenance_latches_and_shows_as_idle() {
        let mut state = State {
            phase: Phase::Maintenance(Activity::default()),
            ..State::new(0)
        };
        assert_eq!(state.status(), Status::Idle);
        assert_eq!(state.wake(false), Wake::Nothing);
        assert!(state.end_activity());
    }
}
