//! Which turn last consumed work, for callers that wait for their input to have been dealt with. `spec/session.md` §8
//! "Accounting fold".

use std::sync::Arc;

use crate::{Event, Json, Kind, Seq, Splice, Value};

/// The accounting of a log.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ConsumedWork {
    /// The end of the last turn that accounts: one that had a step, or claimed something and did not end completed.
    pub end: Option<Seq>,
    /// Whether pending input was discarded after that without being replaced.
    pub dropped_unrun: bool,
    stepped: bool,
    claimed: bool,
}

impl ConsumedWork {
    /// Folds a whole log.
    pub fn of<'e>(log: impl IntoIterator<Item = &'e Arc<Event>>) -> ConsumedWork {
        let mut work = ConsumedWork::default();
        log.into_iter().for_each(|event| work.fold(event));
        work
    }

    /// `{endSeq, droppedUnrun}`.
    pub fn json(&self) -> Json {
        Json::object(|o| {
            match self.end {
                Some(seq) => o.u64("endSeq", seq.0),
                None => o.null("endSeq"),
            };
            o.bool("droppedUnrun", self.dropped_unrun);
        })
    }

    /// Folds one event.
    pub fn fold(&mut self, event: &Event) {
        match event.kind {
            Kind::TurnStart => (self.stepped, self.claimed) = (false, false),
            Kind::StepStart => self.stepped = true,
            Kind::InboxSpliced => match Splice::read(event.data.value()) {
                Some(splice) if splice.removed > 0 && !splice.canceled => self.claimed = true,
                Some(splice) if splice.canceled && splice.inserted.is_empty() => {
                    self.dropped_unrun = true;
                }
                _ => {}
            },
            Kind::TurnEnd => {
                let kind = event.data.value().path(&["reason", "kind"]);
                let completed = kind.is_some_and(|kind: Value<'_>| kind.is("completed"));
                if self.stepped || (self.claimed && !completed) {
                    self.end = Some(event.seq);
                    self.dropped_unrun = false;
                }
                (self.stepped, self.claimed) = (false, false);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Header, Inbox, Session, Target};

    #[test]
    fn a_turn_accounts_by_a_step_or_by_an_unfinished_claim() {
        let mut session = Session::new(Header::new("s", 0)).unwrap();
        let mut put = |draft: Draft| session.append(draft, 0).unwrap();
        let mut inbox = Inbox::default();
        let mut work = ConsumedWork::default();
        let turn_end = |kind: &str| {
            let data = Json::object(|o| {
                o.object("reason", |o| {
                    o.str("kind", kind);
                });
            });
            Draft::new(Kind::TurnEnd, data)
        };
        let mut run = |inbox: &mut Inbox, id: &str, end: &str, cancel: bool| {
            let message = Json::object(|o| {
                o.str("id", id);
            });
            let push = inbox.push(Target::NextTurn, message).unwrap();
            work.fold(&put(push.draft()));
            inbox.apply(&push).unwrap();
            work.fold(&put(Draft::new(Kind::TurnStart, Json::empty_object())));
            let splices = if cancel {
                inbox.clear()
            } else {
                inbox.claim(Target::NextTurn).splices
            };
            for splice in splices {
                work.fold(&put(splice.draft()));
                inbox.apply(&splice).unwrap();
            }
            work.fold(&put(turn_end(end)));
            (work.end, work.dropped_unrun)
        };
        assert_eq!(run(&mut inbox, "a", "completed", false), (None, false));
        assert_eq!(
            run(&mut inbox, "b", "blocked", false),
            (Some(Seq(7)), false)
        );
        assert_eq!(
            run(&mut inbox, "c", "completed", true),
            (Some(Seq(7)), true)
        );
    }
}
