use std::sync::Arc;

use dsh_session::{Event, Inbox, Json, Splice, Target, Value};

use crate::cases::{flag, member, table};

fn message(id: &str) -> Json {
    Json::object(|o| {
        o.str("id", id);
    })
}

fn ids(messages: &[Json]) -> Json {
    Json::array(|a| {
        for message in messages {
            a.value(message.get("id").unwrap());
        }
    })
}

/// The lists and the log that a script of inbox operations works on.
#[derive(Default)]
struct Desk {
    inbox: Inbox,
    splices: Vec<Splice>,
}

impl Desk {
    fn make(&mut self, splice: Splice) {
        self.inbox.apply(&splice).unwrap();
        self.splices.push(splice);
    }

    /// Runs one operation; the value is what upstream's method returns.
    fn run(&mut self, op: &[Value<'_>]) -> Result<Json, String> {
        let arg = |index: usize| op[index].text().unwrap_or_default();
        let target = |index| match &*arg(index) {
            "next-turn" => Target::NextTurn,
            "next-step" => Target::NextStep,
            other => panic!("target {other}"),
        };
        let float = |index: usize| op[index].f64().unwrap_or(f64::INFINITY);
        let error = |error: dsh_session::Error| error.to_string();
        let truth = |value: bool| Json::normalise(if value { "true" } else { "false" }).unwrap();
        Ok(match &*arg(0) {
            "append" => {
                let splice = self
                    .inbox
                    .push(target(1), message(&arg(2)))
                    .map_err(error)?;
                self.make(splice);
                Json::null()
            }
            "prepend" => {
                let put = vec![message(&arg(2))];
                let splice = self
                    .inbox
                    .splice(target(1), 0.0, Some(0.0), put)
                    .map_err(error)?;
                self.make(splice.unwrap());
                Json::null()
            }
            "splice" => {
                let put: Vec<Json> = op[4]
                    .items()
                    .map(|id| message(&id.text().unwrap()))
                    .collect();
                let splice = self
                    .inbox
                    .splice(target(1), float(2), Some(float(3)), put)
                    .map_err(error)?;
                let Some(splice) = splice else {
                    return Ok(ids(&[]));
                };
                let range = splice.start..splice.start + splice.removed;
                let removed = ids(&self.inbox.list(splice.target)[range]);
                self.make(splice);
                removed
            }
            "replace" => match self
                .inbox
                .replace(&arg(1), message(&arg(2)))
                .map_err(error)?
            {
                Some(splice) => {
                    self.make(splice);
                    truth(true)
                }
                None => truth(false),
            },
            "remove" => match self.inbox.remove(&arg(1)) {
                Some(splice) => {
                    self.make(splice);
                    truth(true)
                }
                None => truth(false),
            },
            "claim" => {
                let claimed = self.inbox.claim(target(1));
                claimed
                    .splices
                    .into_iter()
                    .for_each(|splice| self.make(splice));
                ids(&claimed.messages)
            }
            "clear" => {
                self.inbox
                    .clear()
                    .into_iter()
                    .for_each(|splice| self.make(splice));
                Json::null()
            }
            other => panic!("operation {other}"),
        })
    }
}

#[test]
fn inbox_operations_log_and_change_what_upstream_does() {
    table("tbl-inbox", |name, input, expected| {
        let mut desk = Desk::default();
        let results = member(expected, "results").items();
        for (op, want) in member(input, "ops").items().zip(results) {
            let got = desk.run(&op.items().collect::<Vec<_>>());
            assert_eq!(got.is_ok(), flag(want, "ok"), "{name}: {got:?}");
            if let (Ok(got), Some(want)) = (got, want.get("value")) {
                assert_eq!(got.value(), want, "{name}");
            }
        }
        // The expected lines show ids in place of messages.
        let data = |splice: &Splice| {
            let mut shown = splice.clone();
            for message in &mut shown.inserted {
                *message = message.get("id").unwrap().to_json();
            }
            shown.draft().data
        };
        let got: Vec<Json> = desk.splices.iter().map(data).collect();
        let lines = member(expected, "events").items();
        let want: Vec<Json> = lines
            .map(|line| Event::parse(&line.text().unwrap()).unwrap().data)
            .collect();
        assert_eq!(got, want, "{name}");
        for (key, target) in [
            ("nextTurn", Target::NextTurn),
            ("nextStep", Target::NextStep),
        ] {
            assert_eq!(
                ids(desk.inbox.list(target)).value(),
                member(expected, key),
                "{name}"
            );
        }
    });
}

#[test]
fn an_inbox_is_rebuilt_from_its_log_as_upstream() {
    table("tbl-inbox-fold", |name, input, expected| {
        let log: Vec<Arc<Event>> = member(input, "events")
            .items()
            .map(|event| Arc::new(Event::parse(event.as_str()).unwrap()))
            .collect();
        let seed_length = input.get("seedLength").and_then(Value::u64).unwrap_or(0);
        let inbox = Inbox::rebuild(&log, seed_length);
        assert_eq!(inbox.is_ok(), flag(expected, "ok"), "{name}: {inbox:?}");
        let (Ok(inbox), Some(want)) = (inbox, expected.get("value")) else {
            return;
        };
        for (key, target) in [
            ("nextTurn", Target::NextTurn),
            ("nextStep", Target::NextStep),
        ] {
            assert_eq!(ids(inbox.list(target)).value(), member(want, key), "{name}");
        }
    });
}
