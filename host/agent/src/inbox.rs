//! Input that waits for a turn or a step (spec/loop.md §1.2). Every change is
//! an event first: who reads the log knows what waits, and what became of it.

use std::sync::{Arc, Mutex, PoisonError};

use dsh_session::{Inbox as Lists, Json, Splice, Target};

use crate::dispatch::Dispatch;
use crate::error::AgentError;
use crate::log::Log;

/// Both lists of one agent, live.
pub(crate) struct Inbox {
    log: Arc<Log>,
    dispatch: Arc<Dispatch>,
    lists: Mutex<Lists>,
}

/// What a step took, and from where, so that it can be put back.
#[derive(Debug, Default)]
pub(crate) struct Claimed {
    pub(crate) messages: Vec<Json>,
    /// How many of them came from next-step; the rest is the turn's own.
    from_next_step: usize,
}

impl Inbox {
    /// Folds what waits from the log, leaving out what a seed brought. What a
    /// process that crashed had claimed and not brought in is put back.
    pub(crate) fn rebuild(log: Arc<Log>, dispatch: Arc<Dispatch>) -> Result<Self, AgentError> {
        let (lists, lost) = log.read(|session| (session.inbox(), session.unentered()));
        let inbox = Self {
            log,
            dispatch,
            lists: Mutex::new(lists?),
        };
        let lost = lost?;
        let of_step = |(target, _): &&(Target, Json)| *target == Target::NextStep;
        let from_next_step = lost.iter().filter(of_step).count();
        inbox.put_back(
            Claimed {
                messages: lost.into_iter().map(|(_, message)| message).collect(),
                from_next_step,
            },
            false,
        )?;
        Ok(inbox)
    }

    /// Puts a message at the end of a list.
    pub(crate) fn push(&self, target: Target, message: Json) -> Result<(), AgentError> {
        self.change(|lists| Ok(vec![lists.push(target, message)?]))
    }

    /// Takes a message out, as discarded; false when it does not wait.
    pub(crate) fn remove(&self, id: &str) -> Result<bool, AgentError> {
        let mut found = false;
        self.change(|lists| {
            let splice = lists.remove(id);
            found = splice.is_some();
            Ok(splice.into_iter().collect())
        })?;
        Ok(found)
    }

    /// Discards everything that waits, next-step first.
    pub(crate) fn clear(&self) -> Result<(), AgentError> {
        self.change(|lists| Ok(lists.clear()))
    }

    /// Takes all of next-step, and for a turn's first step the head of next-turn.
    pub(crate) fn claim(&self, target: Target) -> Result<Claimed, AgentError> {
        let mut claimed = Claimed::default();
        self.change(|lists| {
            claimed.from_next_step = lists.list(Target::NextStep).len();
            let plan = lists.claim(target);
            claimed.messages = plan.messages;
            Ok(plan.splices)
        })?;
        Ok(claimed)
    }

    /// Puts back what a step took and did not use, in front of what came since.
    /// `discard` takes it out again at once, so that the log says what became of it.
    pub(crate) fn put_back(&self, claimed: Claimed, discard: bool) -> Result<(), AgentError> {
        let Claimed {
            mut messages,
            from_next_step,
        } = claimed;
        let of_turn = messages.split_off(from_next_step.min(messages.len()));
        for (target, messages) in [(Target::NextStep, messages), (Target::NextTurn, of_turn)] {
            let count = messages.len();
            if count == 0 {
                continue;
            }
            self.change(|lists| {
                Ok(lists
                    .splice(target, 0.0, Some(0.0), messages)?
                    .into_iter()
                    .collect())
            })?;
            if discard {
                self.change(|lists| {
                    let splice =
                        lists.splice(target, 0.0, Some(count_to_f64(count)), Vec::new())?;
                    Ok(splice.into_iter().collect())
                })?;
            }
        }
        Ok(())
    }

    /// Whether nothing waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_empty()
    }

    /// What waits in a list.
    pub(crate) fn list(&self, target: Target) -> Vec<Json> {
        self.lists
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .list(target)
            .to_vec()
    }

    /// Appends the events of a planned change, then makes it.
    fn change(
        &self,
        plan: impl FnOnce(&Lists) -> Result<Vec<Splice>, AgentError>,
    ) -> Result<(), AgentError> {
        let mut lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        for splice in plan(&lists)? {
            self.log.append(splice.draft())?;
            let waited = lists.list(splice.target).iter();
            let removed: Vec<_> = waited
                .skip(splice.start)
                .take(splice.removed)
                .cloned()
                .collect();
            lists.apply(&splice)?;
            self.tell(&splice, &removed);
        }
        Ok(())
    }

    fn tell(&self, splice: &Splice, removed: &[Json]) {
        let taken = if splice.canceled {
            "agent/inbox/discarded"
        } else {
            "agent/inbox/claimed"
        };
        for (name, messages) in [(taken, removed), ("agent/inbox/inserted", &splice.inserted)] {
            if messages.is_empty() {
                continue;
            }
            self.dispatch.notify(name, None, || {
                Json::object(|payload| {
                    payload.str("target", splice.target.as_str());
                    payload.array("messages", |list| {
                        for message in messages {
                            list.json(message);
                        }
                    });
                })
            });
        }
    }
}

#[allow(
    clippy::cast_precision_loss,
    reason = "an inbox holds nowhere near 2^53 messages"
)]
fn count_to_f64(count: usize) -> f64 {
    count as f64
}
