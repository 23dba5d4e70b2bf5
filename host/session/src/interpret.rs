//! From decoded events to a log that a session accepts: the middle of the load pipeline, `spec/session.md` §9.8.
//!
//! Removed vocabulary is looked for first in the whole log, then every event is upgraded and its message checked, then
//! kinds, then envelopes. The order decides how a log is reported: one of a newer program must not be called damaged.

use std::sync::Arc;

use crate::event::Fault;
use crate::legacy::{STEERING, Upgrade, upgrade};
use crate::{Error, Event, Header, Kind, Seq, Stored, Value, message, request, session};

/// A decoded log that passed the reader's checks.
#[derive(Debug, Default)]
pub struct Interpreted {
    /// The events, upgraded where they had an older shape.
    pub events: Vec<Arc<Event>>,
    /// The seqs of those that were upgraded.
    pub migrated: Vec<Seq>,
}

/// Upgrades and checks a decoded log.
///
/// # Errors
/// The first fault, in the order of §9.8; see [`Error::class`] for how to report it.
pub fn interpret(header: &Header, stored: &[Stored]) -> Result<Interpreted, Error> {
    let (log, fault) = interpret_prefix(header, stored);
    match fault {
        None => Ok(log),
        Some(found) => Err(first_fault(header, stored).unwrap_or(found)),
    }
}

/// Upgrades and checks as much of a decoded log as is sound: the events before the first unsound one, and what is wrong
/// with that. For readers that show what there is.
pub fn interpret_prefix(header: &Header, stored: &[Stored]) -> (Interpreted, Option<Error>) {
    let mut log = Interpreted {
        events: Vec::with_capacity(stored.len()),
        ..Interpreted::default()
    };
    for item in stored {
        if let Err(fault) = take(header, item, &mut log) {
            return (log, Some(fault));
        }
    }
    (log, None)
}

/// The fault that upstream reports for a log that has one: those of every event's shape come before unknown kinds, and
/// those before envelopes.
fn first_fault(header: &Header, stored: &[Stored]) -> Option<Error> {
    if let Some(fault) = stored.iter().find_map(|item| check_removed(item).err()) {
        return Some(fault);
    }
    let mut events = Vec::with_capacity(stored.len());
    for item in stored {
        // Events that only their envelope spoils keep their place, since seqs are indices.
        match item {
            Stored::Sound(event) => match reshape(header, event, &events) {
                Ok((event, _)) => events.push(event),
                Err(fault) => return Some(fault),
            },
            Stored::Odd { seq, line } => {
                events.push(Arc::new(Event::plain(
                    Kind::from_name(""),
                    *seq,
                    0,
                    line.clone(),
                )));
            }
        }
    }
    stored.iter().find_map(|item| check_kind(item).err())
}

fn take(header: &Header, item: &Stored, log: &mut Interpreted) -> Result<(), Error> {
    check_removed(item)?;
    match item {
        Stored::Sound(event) => {
            let (event, upgraded) = reshape(header, event, &log.events)?;
            if !event.ignorable && !event.kind.is_known() {
                return Err(unknown(event.kind.as_str(), event.seq));
            }
            if upgraded {
                log.migrated.push(event.seq);
            }
            log.events.push(event);
            Ok(())
        }
        Stored::Odd { seq, line } => {
            check_kind(item)?;
            let fault = Event::read(line.value()).err();
            Err(fault
                .unwrap_or(Fault::Envelope("it is not readable"))
                .into_error(subject(*seq)))
        }
    }
}

/// Whether a sound envelope holds an event of today's shape that neither this module nor a session, the surface aside,
/// would change or refuse. Needs no other event. `session` is the session's id.
pub fn is_current(event: &Event, session: &str) -> bool {
    if removed(&event.kind, event.data.value()).is_some()
        || !(event.ignorable || event.kind.is_known())
        || message::fault(event).is_some()
        || request::fault(event).is_some()
    {
        return false;
    }
    event.kind.is_surface() || matches!(upgrade(event, session, &[]), Upgrade::Same)
}

fn subject(seq: Seq) -> String {
    format!("session event at seq {seq}")
}

fn unknown(kind: &str, seq: Seq) -> Error {
    Error::UnknownKind {
        kind: kind.to_owned(),
        seq,
    }
}

/// Refuses what no version reads any more.
fn check_removed(item: &Stored) -> Result<(), Error> {
    let (seq, found) = match item {
        Stored::Sound(event) => (event.seq, removed(&event.kind, event.data.value())),
        Stored::Odd { seq, line } => {
            let kind = line
                .get("type")
                .and_then(Value::text)
                .map(|name| Kind::from_name(&name));
            let data = line.get("data").unwrap_or(Value::trusted("null"));
            (*seq, kind.and_then(|kind| removed(&kind, data)))
        }
    };
    match found {
        Some(what) => Err(Error::Removed {
            subject: subject(seq),
            what,
        }),
        None => Ok(()),
    }
}

fn removed(kind: &Kind, data: Value<'_>) -> Option<&'static str> {
    match kind {
        Kind::Foreign(name) if **name == *"mode/set" => Some("mode/set"),
        kind => session::removed(kind, data),
    }
}

/// Upgrades one event and checks its message. The flag says whether it was upgraded.
fn reshape(
    header: &Header,
    event: &Arc<Event>,
    earlier: &[Arc<Event>],
) -> Result<(Arc<Event>, bool), Error> {
    let shape = |what| Error::MessageShape {
        subject: subject(event.seq),
        what,
    };
    // A sound message has no older shape, so most events are looked at once.
    let fault = message::fault(event);
    if event.kind.is_surface() && fault.is_none() {
        return Ok((event.clone(), false));
    }
    match upgrade(event, &header.id, earlier) {
        Upgrade::Same => match fault {
            Some(what) => Err(shape(what)),
            None => Ok((event.clone(), false)),
        },
        Upgrade::To(upgraded) => match message::fault(&upgraded) {
            Some(what) => Err(shape(what)),
            None => Ok((Arc::new(upgraded), true)),
        },
        Upgrade::Malformed(what) => Err(Error::LegacyShape {
            subject: subject(event.seq),
            what,
        }),
    }
}

/// Refuses a required event of an unknown kind; one without a kind counts as unknown (§1.4).
fn check_kind(item: &Stored) -> Result<(), Error> {
    match item {
        Stored::Sound(event) => {
            let known = event.ignorable || event.kind.is_known() || event.kind.as_str() == STEERING;
            if known {
                Ok(())
            } else {
                Err(unknown(event.kind.as_str(), event.seq))
            }
        }
        Stored::Odd { seq, line } => {
            let kind = line.get("type").and_then(Value::text).unwrap_or_default();
            let ignorable = line.get("ignorable").and_then(Value::bool) == Some(true);
            if ignorable || Kind::from_name(&kind).is_known() {
                Ok(())
            } else {
                Err(unknown(&kind, *seq))
            }
        }
    }
}

/// Refuses a required event of an unknown kind (§1.4).
///
/// # Errors
/// [`Error::UnknownKind`].
pub fn check_known(events: &[Arc<Event>]) -> Result<(), Error> {
    match events
        .iter()
        .find(|event| !event.ignorable && !event.kind.is_known())
    {
        Some(event) => Err(unknown(event.kind.as_str(), event.seq)),
        None => Ok(()),
    }
}

#[cfg(test)]
#[path = "interpret_tests.rs"]
mod tests;
