//! The events that a run has: how each is delivered, what a failing listener
//! means for it, and where drafts of messages may stand in a result.

/// How an event reaches its listeners.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// `enter` in row order, the host's own default, `leave` in reverse.
    Waterfall,
    /// Asked in row order; the first answer wins.
    Decide,
    /// Told after the fact.
    Notify,
}

/// What a listener that fails means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailure {
    /// What was to be decided is refused.
    Refuse,
    /// On without this listener.
    LeaveOut,
}

/// One event.
#[derive(Debug)]
pub struct EventSpec {
    /// As subscriptions name it.
    pub name: &'static str,
    /// How it is delivered.
    pub mode: Mode,
    /// The rule for a listener that fails.
    pub on_failure: OnFailure,
    /// The member of a result that holds messages, whose drafts the host stamps.
    pub messages: Option<&'static str>,
}

const fn spec(
    name: &'static str,
    mode: Mode,
    on_failure: OnFailure,
    messages: Option<&'static str>,
) -> EventSpec {
    EventSpec {
        name,
        mode,
        on_failure,
        messages,
    }
}

const EVENTS: &[EventSpec] = &[
    spec(
        "agent/pre-step",
        Mode::Waterfall,
        OnFailure::Refuse,
        Some("messages"),
    ),
    spec("agent/request", Mode::Waterfall, OnFailure::Refuse, None),
    spec(
        "agent/request-error",
        Mode::Waterfall,
        OnFailure::LeaveOut,
        None,
    ),
    spec(
        "system-prompt/assemble",
        Mode::Waterfall,
        OnFailure::Refuse,
        None,
    ),
    spec(
        "tools/pre-execute",
        Mode::Waterfall,
        OnFailure::Refuse,
        None,
    ),
    spec("tools/execute", Mode::Waterfall, OnFailure::Refuse, None),
    spec(
        "tools/post-execute",
        Mode::Waterfall,
        OnFailure::Refuse,
        Some("additionalContexts"),
    ),
    spec(
        "agent/turn-stopping",
        Mode::Decide,
        OnFailure::LeaveOut,
        Some("messages"),
    ),
    spec("approval/request", Mode::Decide, OnFailure::Refuse, None),
    spec("session/event", Mode::Notify, OnFailure::LeaveOut, None),
    spec("agent/status", Mode::Notify, OnFailure::LeaveOut, None),
    spec("agent/error", Mode::Notify, OnFailure::LeaveOut, None),
    spec(
        "agent/session-start",
        Mode::Notify,
        OnFailure::LeaveOut,
        None,
    ),
    spec("tools/result", Mode::Notify, OnFailure::LeaveOut, None),
];

/// The event of this name, if a run has it.
#[must_use]
pub fn event(name: &str) -> Option<&'static EventSpec> {
    EVENTS.iter().find(|spec| spec.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_person_can_be_told_what_each_event_means() {
        for spec in EVENTS {
            let known = dsh_plugin::want::event(spec.name)
                .unwrap_or_else(|| panic!("{} has no words", spec.name));
            assert_eq!(
                known.lets.is_some(),
                spec.mode != Mode::Notify,
                "{}",
                spec.name
            );
        }
    }
}
