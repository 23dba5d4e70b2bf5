//! The object that `dsh sessions inspect --json` prints: what reading one log gives, named and shaped as in the
//! conformance data, so that any program can compare two readers with it.
//!
//! It describes the log as a reader finds it, so `eventCount`, `lastSeq`, `torn` and the two hashes are of the stored
//! events alone. What is folded (surface, messages, title, request header and context, projections) is folded as a
//! resumed session would: over the closers too. A damaged log has no closers; everything is of its sound prefix then.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use dsh_session::{
    Error, Event, Header, Json, Kind, Message, ObjectWriter, RequestContext, RequestHeader, Seq,
    Surface, projection, title,
};

use crate::{Damage, DamageClass, Report, Stage, StoreError};

/// The error class that upstream would have refused with (spec/session.md §9.8).
pub fn wire_class(damage: &Damage) -> &'static str {
    match (damage.class, damage.stage) {
        (DamageClass::Unsupported, _) => "SessionFormatUnsupportedError",
        (_, Stage::Interpret) => "SessionPersistenceCorruptionError",
        _ => "Error",
    }
}

/// The stage at which upstream would have refused: `interpret` once there are decoded events to judge, else `scan`.
pub fn wire_stage(damage: &Damage) -> &'static str {
    match damage.stage {
        Stage::Interpret => "interpret",
        Stage::Open | Stage::Scan | Stage::Identity => "scan",
    }
}

fn write_damage(damage: &Damage, o: &mut ObjectWriter<'_>) {
    o.str("class", wire_class(damage))
        .str("stage", wire_stage(damage));
    for (key, value) in [("offset", damage.offset), ("seq", damage.seq)] {
        match value {
            Some(value) => o.u64(key, value),
            None => o.null(key),
        };
    }
    o.str("reason", &damage.reason);
}

/// `{class, stage, offset, seq, reason}`, or `null`.
pub fn damage_json(damage: Option<&Damage>) -> Json {
    match damage {
        Some(damage) => Json::object(|o| write_damage(damage, o)),
        None => Json::null(),
    }
}

/// `{"error":{class,stage,message}}`, for a log that cannot be read at all.
pub fn error_json(error: &StoreError) -> Json {
    let (class, stage) = match error {
        StoreError::Damaged { damage, .. } => (wire_class(damage), wire_stage(damage)),
        _ => ("Error", "scan"),
    };
    Json::object(|o| {
        o.object("error", |o| {
            o.str("class", class)
                .str("stage", stage)
                .str("message", &error.to_string());
        });
    })
}

/// A header as the API shows it: its line without the row tag.
fn header_json(header: &Header) -> Json {
    let line = Json::restore(&header.line()).unwrap_or_else(|_| Json::empty_object());
    Json::object(|o| {
        for (key, value) in line.value().entries() {
            if !key.is("type") {
                o.value(&key.decode(), value);
            }
        }
    })
}

/// A value of the log as JSON; what an event's line is always.
fn event_json(event: &Event) -> Json {
    Json::restore(&event.line()).unwrap_or_else(|_| Json::null())
}

/// The whole object. Reads the log twice and keeps what is on the surface.
///
/// # Errors
/// When an event that is still on disk cannot be read any more.
pub fn inspect_json(report: &Report) -> Result<Json, Error> {
    let inspection = &report.inspection;
    let log = &inspection.log;
    let events = || {
        let closers = inspection.closers.iter().cloned().map(Ok);
        log.events_from(Seq(0)).chain(closers)
    };
    let mut folds = Folds::default();
    let folded = events().map(|event| {
        let event = event?;
        folds.event(&event, |seq| log.event(seq))?;
        Ok(event)
    });
    let projections = projection::views(folded)?;
    let messages = messages_json(folds.surface.nodes(), events())?;
    let count = log.len();
    Ok(Json::object(|o| {
        o.json("header", &header_json(&inspection.header));
        o.u64("eventCount", count);
        match count.checked_sub(1) {
            Some(last) => o.u64("lastSeq", last),
            None => o.null("lastSeq"),
        };
        match inspection.torn {
            None => o.null("torn"),
            Some(torn) => o.object("torn", |o| {
                o.u64("truncateTo", torn.truncate_to);
                o.array("recoveredSeqs", |a| {
                    for seq in count - (torn.recovered as u64).min(count)..count {
                        a.u64(seq);
                    }
                });
            }),
        };
        o.json("damage", &damage_json(inspection.damage.as_ref()));
        o.object("surface", |o| {
            o.array("nodes", |a| {
                for node in folds.surface.nodes() {
                    a.u64(node.0);
                }
            });
            o.u64("replaceGeneration", folds.surface.replace_generation());
        });
        o.json("messages", &messages);
        o.array("closers", |a| {
            for closer in &inspection.closers {
                a.json(&event_json(closer));
            }
        });
        o.json("title", &folds.title());
        match folds.request_header() {
            Some(header) => o.json("requestHeader", header.json()),
            None => o.null("requestHeader"),
        };
        match &folds.context {
            Some(event) => o.json(
                "requestContext",
                &RequestContext::read(event.data.value()).data(),
            ),
            None => o.null("requestContext"),
        };
        o.json("projections", &projections);
        o.str("packedSha256", &report.packed_sha256);
        o.str("unpackedSha256", &report.unpacked_sha256);
    }))
}

/// What is folded besides the projections.
#[derive(Default)]
struct Folds {
    surface: Surface,
    header: Option<Arc<Event>>,
    context: Option<Arc<Event>>,
    titled: Option<Arc<Event>>,
    /// How many prompts could give a title.
    eligible: u64,
    /// What the first of them gives.
    fallback: Option<String>,
}

impl Folds {
    fn event(
        &mut self,
        event: &Arc<Event>,
        find: impl Fn(Seq) -> Result<Option<Arc<Event>>, Error>,
    ) -> Result<(), Error> {
        self.surface.push(event, find)?;
        match event.kind {
            Kind::RequestHeader => self.header = Some(event.clone()),
            Kind::RequestContext => self.context = Some(event.clone()),
            Kind::SessionTitle => self.titled = Some(event.clone()),
            Kind::UserMessage => {
                if let Some(text) = title::eligible_prompt(event) {
                    self.eligible += 1;
                    self.fallback.get_or_insert_with(|| {
                        title::fallback(&text, title::FALLBACK_WORDS, title::FALLBACK_BYTES)
                    });
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn request_header(&self) -> Option<RequestHeader> {
        let header = self.header.as_ref()?.data.get("header")?;
        RequestHeader::canonical(header).ok()
    }

    /// `{snapshot, eligible, fallback5words40bytes}`.
    fn title(&self) -> Json {
        let snapshot = self.titled.as_deref().map_or(Json::null(), snapshot_json);
        Json::object(|o| {
            o.json("snapshot", &snapshot);
            o.u64("eligible", self.eligible);
            match &self.fallback {
                Some(fallback) => o.str("fallback5words40bytes", fallback),
                None => o.null("fallback5words40bytes"),
            };
        })
    }
}

/// What the model would see: the messages of the surface's nodes, in their order.
fn messages_json(
    nodes: &[Seq],
    events: impl Iterator<Item = Result<Arc<Event>, Error>>,
) -> Result<Json, Error> {
    let on_surface: HashSet<Seq> = nodes.iter().copied().collect();
    let mut messages = HashMap::new();
    for event in events {
        let event = event?;
        if on_surface.contains(&event.seq)
            && let Some(message) = Message::of(&event)
        {
            messages.insert(event.seq, message);
        }
    }
    Ok(Json::array(|a| {
        for message in nodes.iter().filter_map(|node| messages.get(node)) {
            a.value(message.value());
        }
    }))
}

/// A logged title with when and where it was logged.
fn snapshot_json(event: &Event) -> Json {
    Json::object(|o| {
        for key in ["title", "messageSeqs", "source"] {
            if let Some(value) = event.data.get(key) {
                o.value(key, value);
            }
        }
        o.u64("eventSeq", event.seq.0).i64("updatedAt", event.time);
    })
}
