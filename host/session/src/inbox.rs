//! The inbox: messages that wait for a turn or a step. `spec/session.md` §8.
//!
//! Two lists, folded from `agent/inbox/spliced`. Every change is an event before it is a fact: a method here plans a
//! [`Splice`] and touches nothing, the caller appends its draft, then [`Inbox::apply`]s it. Messages are JSON texts with
//! an `id` that is unique over both lists.

use std::collections::HashSet;
use std::sync::Arc;

use crate::{Draft, Error, Event, Json, Kind, Value};

/// Which list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Target {
    /// One queued prompt a turn.
    NextTurn,
    /// Steering and injected context.
    NextStep,
}

impl Target {
    /// The name in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Target::NextTurn => "next-turn",
            Target::NextStep => "next-step",
        }
    }

    fn read(value: Value<'_>) -> Option<Target> {
        [Target::NextTurn, Target::NextStep]
            .into_iter()
            .find(|target| value.is(target.as_str()))
    }
}

/// One change of one list, normalised.
#[derive(Clone, Debug, PartialEq)]
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
        let data = Json::object(|o| {
            o.str("target", self.target.as_str())
                .u64("start", self.start as u64);
            if self.removed > 0 {
                o.u64("removedCount", self.removed as u64);
            }
            o.array("inserted", |a| {
                for message in &self.inserted {
                    a.json(message);
                }
            });
            if self.canceled {
                o.str("outcome", "canceled");
            }
        });
        Draft::new(Kind::InboxSpliced, data)
    }

    /// Reads the data of its event.
    pub fn read(data: Value<'_>) -> Option<Splice> {
        let count = |value: Value<'_>| value.u64().and_then(|number| usize::try_from(number).ok());
        let inserted = data.get("inserted").filter(|list| list.is_array())?;
        Some(Splice {
            target: Target::read(data.get("target")?)?,
            start: count(data.get("start")?)?,
            removed: data.get("removedCount").map_or(Some(0), count)?,
            inserted: inserted.items().map(Value::to_json).collect(),
            canceled: data
                .get("outcome")
                .is_some_and(|outcome| outcome.is("canceled")),
        })
    }
}

/// What [`Inbox::claim`] plans.
#[derive(Clone, Debug, Default)]
pub struct Claimed {
    /// Events to append and apply, in order.
    pub splices: Vec<Splice>,
    /// The messages, next-step ones first.
    pub messages: Vec<Json>,
}

/// The two lists.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    next_turn: Vec<Json>,
    next_step: Vec<Json>,
    /// The ids in both lists, as JSON texts.
    ids: HashSet<Box<str>>,
}

fn id(message: &Json) -> Result<Value<'_>, String> {
    let id = message
        .get("id")
        .filter(|id| id.string().is_some_and(|text| !text.is_empty()));
    id.ok_or_else(|| "a message needs a non-empty id".to_owned())
}

fn fault(subject: impl Into<String>) -> impl FnOnce(String) -> Error {
    let subject = subject.into();
    move |what| Error::Inbox { subject, what }
}

/// An index argument as `Array.splice` reads it: truncated, from the end when negative, clamped.
fn index(argument: f64, length: usize) -> usize {
    let whole = if argument.is_nan() {
        0.0
    } else {
        argument.trunc()
    };
    let from_start = if whole < 0.0 {
        whole + length as f64
    } else {
        whole
    };
    // A cast saturates: negative gives 0, infinity the largest number.
    (from_start as usize).min(length)
}

impl Inbox {
    /// Folds events from `seed_length` (the header's, or 0) on. Pending messages survive a restart.
    ///
    /// # Errors
    /// [`Error::Inbox`] naming the seq of a splice that does not fit.
    pub fn rebuild<'e>(
        log: impl IntoIterator<Item = &'e Arc<Event>>,
        seed_length: u64,
    ) -> Result<Inbox, Error> {
        let mut inbox = Inbox::default();
        for event in log.into_iter().filter(|event| event.seq.0 >= seed_length) {
            inbox.fold(event)?;
        }
        Ok(inbox)
    }

    /// Folds one event; other kinds change nothing.
    ///
    /// # Errors
    /// [`Error::Inbox`] naming the seq; the lists are unchanged then.
    pub fn fold(&mut self, event: &Event) -> Result<(), Error> {
        if event.kind != Kind::InboxSpliced {
            return Ok(());
        }
        let splice =
            Splice::read(event.data.value()).ok_or_else(|| "the splice is malformed".to_owned());
        splice
            .and_then(|splice| self.make(&splice))
            .map_err(fault(format!("inbox splice at seq {}", event.seq)))
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

    /// Plans a splice with the argument rules of `Array.splice`; `None` when nothing would change. What it removes is a
    /// discard.
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
        let length = self.list(target).len();
        let start = index(start, length);
        let removed = match delete_count {
            None => length - start,
            // Negative counts remove nothing.
            Some(count) => index(count.max(0.0), length - start),
        };
        if removed == 0 && inserted.is_empty() {
            return Ok(None);
        }
        let splice = Splice {
            target,
            start,
            removed,
            inserted,
            canceled: removed > 0,
        };
        self.check(&splice)
            .map_err(fault(format!("inbox {}", target.as_str())))?;
        Ok(Some(splice))
    }

    /// Plans putting a message at the end of a list.
    ///
    /// # Errors
    /// As [`Inbox::splice`].
    pub fn push(&self, target: Target, message: Json) -> Result<Splice, Error> {
        let start = self.list(target).len();
        let splice = Splice {
            target,
            start,
            removed: 0,
            inserted: vec![message],
            canceled: false,
        };
        self.check(&splice)
            .map_err(fault(format!("inbox {}", target.as_str())))?;
        Ok(splice)
    }

    fn find(&self, id: &str) -> Option<(Target, usize)> {
        [Target::NextTurn, Target::NextStep]
            .into_iter()
            .find_map(|target| {
                let is_it = |message: &Json| message.get("id").is_some_and(|found| found.is(id));
                self.list(target)
                    .iter()
                    .position(is_it)
                    .map(|index| (target, index))
            })
    }

    /// Plans taking a message out; `None` when it is not pending.
    pub fn remove(&self, id: &str) -> Option<Splice> {
        let (target, start) = self.find(id)?;
        Some(Splice {
            target,
            start,
            removed: 1,
            inserted: Vec::new(),
            canceled: true,
        })
    }

    /// Plans putting another message in the place of one; `None` when it is not pending.
    ///
    /// # Errors
    /// As [`Inbox::splice`].
    pub fn replace(&self, id: &str, message: Json) -> Result<Option<Splice>, Error> {
        match self.find(id) {
            Some((target, start)) => self.splice(target, start as f64, Some(1.0), vec![message]),
            None => Ok(None),
        }
    }

    /// Plans emptying both lists, next-step first.
    pub fn clear(&self) -> Vec<Splice> {
        let take = |target| self.take(target, usize::MAX, true);
        [Target::NextStep, Target::NextTurn]
            .into_iter()
            .filter_map(take)
            .collect()
    }

    /// Plans a claim: all of next-step, then for [`Target::NextTurn`] the first of next-turn. The first step of a turn
    /// claims next-turn, later ones next-step.
    pub fn claim(&self, target: Target) -> Claimed {
        let mut claimed = Claimed::default();
        claimed
            .splices
            .extend(self.take(Target::NextStep, usize::MAX, false));
        claimed.messages.extend_from_slice(&self.next_step);
        if target == Target::NextTurn {
            claimed
                .splices
                .extend(self.take(Target::NextTurn, 1, false));
            claimed.messages.extend(self.next_turn.first().cloned());
        }
        claimed
    }

    /// Plans removing up to `most` from the front of a list; `None` when it is empty.
    fn take(&self, target: Target, most: usize, canceled: bool) -> Option<Splice> {
        let removed = self.list(target).len().min(most);
        let inserted = Vec::new();
        (removed > 0).then_some(Splice {
            target,
            start: 0,
            removed,
            inserted,
            canceled,
        })
    }

    /// Makes a planned change.
    ///
    /// # Errors
    /// [`Error::Inbox`] when it does not fit the lists; they are unchanged then.
    pub fn apply(&mut self, splice: &Splice) -> Result<(), Error> {
        self.make(splice)
            .map_err(fault(format!("inbox {}", splice.target.as_str())))
    }

    fn check(&self, splice: &Splice) -> Result<(), String> {
        let list = self.list(splice.target);
        let end = splice
            .start
            .checked_add(splice.removed)
            .filter(|end| *end <= list.len());
        let end = end.ok_or_else(|| "the splice reaches past the end of the list".to_owned())?;
        let leaving: HashSet<Value<'_>> = list[splice.start..end]
            .iter()
            .filter_map(|message| id(message).ok())
            .collect();
        let mut coming = HashSet::new();
        for message in &splice.inserted {
            let id = id(message)?;
            let pending = self.ids.contains(id.as_str()) && !leaving.contains(&id);
            if pending || !coming.insert(id) {
                return Err(format!("message {} is already pending", id.as_str()));
            }
        }
        Ok(())
    }

    fn make(&mut self, splice: &Splice) -> Result<(), String> {
        self.check(splice)?;
        let list = match splice.target {
            Target::NextTurn => &mut self.next_turn,
            Target::NextStep => &mut self.next_step,
        };
        let range = splice.start..splice.start + splice.removed;
        for message in list.splice(range, splice.inserted.iter().cloned()) {
            if let Ok(id) = id(&message) {
                self.ids.remove(id.as_str());
            }
        }
        for message in &splice.inserted {
            self.ids.insert(id(message)?.as_str().into());
        }
        Ok(())
    }
}
