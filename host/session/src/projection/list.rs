//! What a list of sessions says of a log. `spec/session.md` §10.1.

use crate::{Event, Kind};

/// Up to this many bytes a log that nobody knows anything about is read to learn whether it is blank.
pub const SMALL_LOG: u64 = 1024;

/// When a session was last spoken to and whether anything ever ran in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ListFacts {
    created_at: i64,
    prompted_at: Option<i64>,
    started: bool,
}

impl ListFacts {
    /// Those of an empty log; `created_at` is the header's, in epoch milliseconds.
    pub fn new(created_at: i64) -> ListFacts {
        ListFacts {
            created_at,
            prompted_at: None,
            started: false,
        }
    }

    /// Folds one event.
    pub fn fold(&mut self, event: &Event) {
        match event.kind {
            Kind::TurnStart => self.started = true,
            Kind::UserMessage => {
                let source = event.data.value().path(&["source", "kind"]);
                if source.is_some_and(|kind| kind.is("user")) {
                    self.prompted_at = Some(event.time);
                }
            }
            _ => {}
        }
    }

    /// Epoch milliseconds: creation or the last message of a person, whichever is later.
    pub fn updated_at(&self) -> i64 {
        self.prompted_at
            .map_or(self.created_at, |time| time.max(self.created_at))
    }

    /// Whether no turn was started yet.
    pub fn blank(&self) -> bool {
        !self.started
    }
}

/// Whether a stored session that is not live is blank. A cached "no" is trusted, since logs only grow; otherwise a
/// small log is read, and what cannot be learned cheaply is no blank session.
pub fn cold_blank(cached: Option<bool>, bytes: u64, read: impl FnOnce() -> Option<bool>) -> bool {
    cached != Some(false) && bytes <= SMALL_LOG && read() == Some(true)
}
