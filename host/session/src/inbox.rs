//! The inbox: messages that wait for a turn or a step. `spec/session.md` §8.
//!
//! Two lists, folded from `agent/inbox/spliced`. Every change is first an event: a method here plans the [`Splice`],
//! the caller appends its draft, then [`Inbox::apply`]s it.

use std::sync::Arc;

use crate::{Draft, Error, Event, Json};

/// Which list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// One queued prompt a turn.
    NextTurn,
    /// Steering and injected context.
    NextStep,
}

/// One change of one list, normalised.
#[derive(Clone, Debug)]
pub struct Splice {
    /// The list.
    pub target: Target,
    /// Index of the first change.
    pub start: usize,
    /// How many are removed.
    pub removed: usize,
    /// What is put in.
    pub inserted: Vec<Json>,
    /// Whether the removal is a discard; a claim is none.
    pub canceled: bool,
}

impl Splice {
    /// The draft of its event.
    pub fn draft(&self) -> Draft {
        todo!()
    }
}

/// What [`Inbox::claim`] plans.
pub struct Claimed {
    /// Events to append and apply, in order.
    pub splices: Vec<Splice>,
    /// The messages, next-step ones first.
    pub messages: Vec<Json>,
}

/// The two lists.
#[derive(Clone, Default)]
pub struct Inbox {
    next_turn: Vec<Json>,
    next_step: Vec<Json>,
}

impl Inbox {
    /// Folds a log from `seed_length` (the header's, or 0) on.
    ///
    /// # Errors
    /// [`Error::Inbox`] naming the seq of a splice that does not fit.
    pub fn rebuild(log: &[Arc<Event>], seed_length: u64) -> Result<Inbox, Error> {
        let _ = (log, seed_length);
        todo!()
    }

    /// One list.
    pub fn list(&self, target: Target) -> &[Json] {
        match target {
            Target::NextTurn => &self.next_turn,
            Target::NextStep => &self.next_step,
        }
    }

    /// Whether both lists are empty.
    pub fn is_empty(&self) -> bool {
        self.next_turn.is_empty() && self.next_step.is_empty()
    }

    /// Plans a splice with the argument rules of `Array.splice`; `None` when nothing would change.
    ///
    /// # Errors
    /// [`Error::Inbox`] for a message without id or with an id that is pending already.
    pub fn splice(
        &self,
        target: Target,
        start: f64,
        delete_count: Option<f64>,
        inserted: Vec<Json>,
    ) -> Result<Option<Splice>, Error> {
        let _ = (target, start, delete_count, inserted);
        todo!()
    }

    /// Plans putting a message at the end of a list.
    ///
    /// # Errors
    /// As [`Inbox::splice`].
    pub fn push(&self, target: Target, message: Json) -> Result<Splice, Error> {
        let _ = (target, message);
        todo!()
    }

    /// Plans taking a message out; `None` when it is not pending.
    pub fn remove(&self, id: &str) -> Option<Splice> {
        let _ = id;
        todo!()
    }

    /// Plans putting another message in the place of one; `None` when it is not pending.
    ///
    /// # Errors
    /// As [`Inbox::splice`].
    pub fn replace(&self, id: &str, message: Json) -> Result<Option<Splice>, Error> {
        let _ = (id, message);
        todo!()
    }

    /// Plans emptying both lists, next-step first.
    pub fn clear(&self) -> Vec<Splice> {
        todo!()
    }

    /// Plans a claim: all of next-step, then for [`Target::NextTurn`] the first of next-turn.
    pub fn claim(&self, target: Target) -> Claimed {
        let _ = target;
        todo!()
    }

    /// Makes a planned change.
    ///
    /// # Errors
    /// [`Error::Inbox`] when it does not fit the lists; they are unchanged then.
    pub fn apply(&mut self, splice: &Splice) -> Result<(), Error> {
        let _ = splice;
        todo!()
    }
}
