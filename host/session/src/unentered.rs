//! Input that a crash caught between its claim and the model.
//!
//! A step claims first and logs what entered later; in between stand the prompt, listeners and perhaps a compaction,
//! which asks a model and takes its time. A process that dies there leaves a log in which the input waits no more and
//! was never said. Who takes the session up again puts it back: see [`Session::unentered`].

use crate::{Error, Event, Inbox, Json, Kind, Session, Splice, Target, Value};

/// Why a turn of a crashed process has ended.
const INTERRUPTED: &str = "interrupted";

impl Session {
    /// What the last turn claimed and never brought in, as it was interrupted: the messages with the list that each was
    /// taken from, in the order of a claim. Nothing where that turn ended in any other way, as its driver then said
    /// what became of its input.
    ///
    /// Reads the whole log, but only where there may be something.
    ///
    /// # Errors
    /// [`Error::Archive`] when what is old of the log cannot be read, [`Error::Inbox`] when a splice does not fit.
    pub fn unentered(&self) -> Result<Vec<(Target, Json)>, Error> {
        let newest = |kind: Kind| self.last_of(&kind).map(|event| event.seq);
        let interrupted = self
            .last_of(&Kind::TurnEnd)
            .is_some_and(|end| interrupted(end));
        let spliced = newest(Kind::InboxSpliced);
        if !interrupted
            || spliced < newest(Kind::TurnStart)
            || spliced < newest(Kind::AssistantChunk)
        {
            return Ok(Vec::new());
        }
        let mut waiting = Inbox::default();
        let mut held: Vec<(Target, Json)> = Vec::new();
        for event in self.events_from(crate::Seq(self.header().seed_length.unwrap_or(0))) {
            let event = event?;
            match event.kind {
                Kind::InboxSpliced => {
                    if let Some(splice) = Splice::read(event.data.value()) {
                        // Put back, by whoever claimed it.
                        held.retain(|(_, message)| {
                            !splice
                                .inserted
                                .iter()
                                .any(|other| same(message, other.value()))
                        });
                        if !splice.canceled {
                            let claimed = waiting.list(splice.target).iter();
                            let claimed = claimed.skip(splice.start).take(splice.removed);
                            held.extend(claimed.map(|message| (splice.target, message.clone())));
                        }
                    }
                    waiting.fold(&event)?;
                }
                Kind::UserMessage => held.retain(|(_, message)| !same(message, event.data.value())),
                // The step went on, so whatever its listeners let in had entered.
                Kind::TurnStart
                | Kind::RequestHeader
                | Kind::AssistantChunk
                | Kind::AssistantMessage => held.clear(),
                Kind::TurnEnd if !self::interrupted(&event) => held.clear(),
                _ => {}
            }
        }
        Ok(held)
    }
}

fn interrupted(end: &Event) -> bool {
    let kind = end.data.value().path(&["reason", "kind"]);
    kind.is_some_and(|kind| kind.is(INTERRUPTED))
}

fn same(message: &Json, other: Value<'_>) -> bool {
    let id = other.get("id");
    id.is_some() && message.get("id") == id
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Draft, Header};

    fn message(id: &str) -> Json {
        Json::object(|message| {
            message.str("id", id);
        })
    }

    fn record(session: &mut Session, kind: Kind, data: &str) {
        session
            .append(Draft::new(kind, Json::normalise(data).unwrap()), 0)
            .unwrap();
    }

    fn end(session: &mut Session, reason: &str) {
        record(
            session,
            Kind::TurnEnd,
            &format!(r#"{{"turn":1,"reason":{{"kind":"{reason}"}}}}"#),
        );
    }

    /// Two messages inserted, one into each list, then claimed by a turn.
    fn claimed() -> Session {
        let mut session = Session::new(Header::new("s", 0)).unwrap();
        let mut inbox = Inbox::default();
        for (target, id) in [(Target::NextTurn, "prompt"), (Target::NextStep, "context")] {
            let splice = inbox.push(target, message(id)).unwrap();
            inbox.apply(&splice).unwrap();
            session.append(splice.draft(), 0).unwrap();
        }
        record(&mut session, Kind::TurnStart, r#"{"turn":1}"#);
        for splice in inbox.claim(Target::NextTurn).splices {
            session.append(splice.draft(), 0).unwrap();
        }
        session
    }

    #[test]
    fn what_an_interrupted_turn_claimed_and_never_brought_in_is_known() {
        let mut session = claimed();
        end(&mut session, "interrupted");
        let held = [
            (Target::NextStep, message("context")),
            (Target::NextTurn, message("prompt")),
        ];
        assert_eq!(session.unentered().unwrap(), held);
        // Put back once, it waits, and is not put back again.
        let splice = session
            .inbox()
            .unwrap()
            .push(Target::NextTurn, message("prompt"))
            .unwrap();
        session.append(splice.draft(), 0).unwrap();
        assert_eq!(session.unentered().unwrap(), held[..1]);
    }

    #[test]
    fn a_turn_that_ended_by_itself_said_what_became_of_its_input() {
        for reason in ["aborted", "blocked", "completed", "error"] {
            let mut session = claimed();
            end(&mut session, reason);
            assert!(session.unentered().unwrap().is_empty(), "{reason}");
        }
    }

    #[test]
    fn what_entered_is_not_missing() {
        let mut session = claimed();
        record(&mut session, Kind::StepStart, r#"{"turn":1,"step":1}"#);
        let entered = Draft::new(Kind::UserMessage, message("context")).append();
        session.append(entered, 0).unwrap();
        end(&mut session, "interrupted");
        assert_eq!(
            session.unentered().unwrap(),
            [(Target::NextTurn, message("prompt"))]
        );
    }

    #[test]
    fn where_the_step_went_on_nothing_is_missing() {
        let mut session = claimed();
        record(
            &mut session,
            Kind::RequestHeader,
            r#"{"header":{"config":{}},"reason":"initial"}"#,
        );
        end(&mut session, "interrupted");
        assert!(session.unentered().unwrap().is_empty());
    }
}
