//! `dsh sessions check`: reads logs whole and says what is not as it should be. Writes nothing.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use dsh_session::Json;
use dsh_store::report::{self, damage_json};
use dsh_store::{Damage, Entry, Inspection, StoreError, Target};

use super::{Sessions, Words, out, refused, resolved, written};
use crate::arguments::usage;
use crate::exit::Failure;

/// What was found of one log.
struct Found {
    id: Option<Arc<str>>,
    path: PathBuf,
    result: Result<Inspection, Fault>,
}

/// Why it is not sound.
struct Fault {
    damage: Option<Damage>,
    reason: String,
    events: u64,
}

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    if words.has("--all") && !words.arguments.is_empty() {
        return Err(usage(
            "dsh sessions check: --all checks every session, so no id goes with it",
        ));
    }
    let mut which: Vec<(Option<Arc<str>>, Option<Entry>)> = Vec::new();
    if words.arguments.is_empty() {
        let entries = sessions.store.list().map_err(refused)?;
        which.extend(entries.into_iter().map(|entry| (entry.id(), Some(entry))));
    } else {
        for text in &words.arguments {
            which.push((Some(resolved(sessions, text)?), None));
        }
    }
    let json = words.has("--json");
    let mut out = out();
    let mut result = if json { out.write_all(b"[") } else { Ok(()) };
    let mut damaged = 0u64;
    let count = which.len();
    for (at, (id, entry)) in which.into_iter().enumerate() {
        let found = one(sessions, id, entry)?;
        damaged += u64::from(found.result.is_err());
        let line = if json {
            let comma = if at == 0 { "\n" } else { ",\n" };
            format!("{comma}{}", found.json())
        } else {
            found.line() + "\n"
        };
        // The exit code counts also when nobody reads on.
        result = result.and_then(|()| out.write_all(line.as_bytes()));
    }
    let end = match (json, count) {
        (true, 0) => "]\n".to_owned(),
        (true, _) => "\n]\n".to_owned(),
        (false, _) => format!("{count} checked, {damaged} damaged\n"),
    };
    let result = result.and_then(|()| out.write_all(end.as_bytes()));
    let code = u8::from(damaged > 0);
    written(result.and_then(|()| out.flush()), code)
}

fn one(sessions: &Sessions, id: Option<Arc<str>>, entry: Option<Entry>) -> Result<Found, Failure> {
    // What the list objects to (a place, an id that is there twice) reading by id would object to as well.
    if let Some(Entry {
        path,
        header: Err(damage),
        ..
    }) = entry
    {
        let events = sessions
            .store
            .inspect(&Target::File(path.clone()))
            .map_or(0, |log| log.log.len());
        return Ok(Found {
            id,
            path,
            result: Err(Fault::of(damage, events)),
        });
    }
    let target = match (&id, entry) {
        (_, Some(entry)) => Target::File(entry.path),
        (Some(id), None) => Target::Id(id.to_string()),
        (None, None) => Target::Id(String::new()),
    };
    let path = match &target {
        Target::File(path) => path.clone(),
        Target::Id(id) => sessions.store.find(id).map_err(refused)?,
    };
    let result = match sessions.store.inspect(&target) {
        Ok(log) => match log.damage.clone() {
            None => Ok(log),
            Some(damage) => Err(Fault::of(damage, log.log.len())),
        },
        Err(StoreError::Damaged { damage, .. }) => Err(Fault::of(*damage, 0)),
        Err(error) => Err(Fault {
            damage: None,
            reason: error.to_string(),
            events: 0,
        }),
    };
    Ok(Found { id, path, result })
}

impl Fault {
    fn of(damage: Damage, events: u64) -> Self {
        Self {
            reason: damage.to_string(),
            damage: Some(damage),
            events,
        }
    }
}

impl Found {
    fn line(&self) -> String {
        let id = self.id.as_deref().unwrap_or("?");
        let (mark, what) = match &self.result {
            Ok(log) => {
                let mut what = format!("{} events", log.log.len());
                if let Some(torn) = log.torn {
                    let cut = log.bytes.saturating_sub(torn.truncate_to);
                    what += &format!(", a torn tail of {cut} bytes, which is normal after a crash");
                }
                if !log.closers.is_empty() {
                    what += ", its last turn is open";
                }
                ("ok", what)
            }
            Err(fault) => (
                "DAMAGED",
                format!("{}; {} events are sound", fault.reason, fault.events),
            ),
        };
        format!(
            "{mark:<7}  {}  {}",
            report::line(id, 300),
            report::line(&what, 2000)
        )
    }

    fn json(&self) -> Json {
        Json::object(|o| {
            match &self.id {
                Some(id) => o.str("id", id),
                None => o.null("id"),
            };
            o.str("path", &self.path.to_string_lossy());
            match &self.result {
                Ok(log) => o
                    .bool("ok", true)
                    .u64("events", log.log.len())
                    .bool("torn", log.torn.is_some())
                    .bool("openTurn", !log.closers.is_empty())
                    .null("damage"),
                Err(fault) => {
                    o.bool("ok", false)
                        .u64("events", fault.events)
                        .bool("torn", false)
                        .bool("openTurn", false);
                    match &fault.damage {
                        Some(damage) => o.json("damage", &damage_json(Some(damage))),
                        None => o.object("damage", |o| {
                            o.str("class", "Error").str("stage", "scan");
                            o.null("offset").null("seq").str("reason", &fault.reason);
                        }),
                    }
                }
            };
        })
    }
}
