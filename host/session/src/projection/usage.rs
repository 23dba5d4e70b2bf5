//! `tokenUsage`: what the provider counted, over the whole session. `spec/session.md` §10.6.

use super::chunk::{number, place};
use super::{Look, State, Unit};
use crate::{Error, Json, Kind, ObjectWriter, Seq, Value};

/// The unit.
pub struct TokenUsage;

const NAMES: [&str; 4] = [
    "uncachedInputTokens",
    "outputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
];
const SAMPLED: [&str; 4] = [
    "inputTokens",
    "outputTokens",
    "cacheReadTokens",
    "cacheWriteTokens",
];

type Buckets = [f64; 4];

/// A step's samples repeat each other: the last one counts, so the one before is taken off again.
#[derive(Clone, Default)]
struct Fold {
    totals: Buckets,
    last: Option<Last>,
}

#[derive(Clone, PartialEq)]
struct Last {
    place: (f64, f64),
    buckets: Buckets,
}

impl Unit for TokenUsage {
    fn key(&self) -> &str {
        "tokenUsage"
    }

    fn version(&self) -> u64 {
        1
    }

    fn reads(&self) -> &[Kind] {
        &[Kind::AssistantChunk, Kind::AssistantMessage]
    }

    fn init(&self) -> Box<dyn State> {
        Box::<Fold>::default()
    }

    fn parse(&self, state: Value<'_>, _: Option<Seq>) -> Option<Box<dyn State>> {
        let last = match state.get("last")? {
            last if last.is_null() => None,
            last => Some(Last {
                place: (last.get("turn")?.f64()?, last.get("step")?.f64()?),
                buckets: read(last.get("buckets")?)?,
            }),
        };
        let totals = read(state.get("totals")?)?;
        Some(Box::new(Fold { totals, last }))
    }
}

fn read(value: Value<'_>) -> Option<Buckets> {
    let mut buckets = Buckets::default();
    for (bucket, name) in buckets.iter_mut().zip(NAMES) {
        *bucket = value.get(name)?.f64()?;
    }
    Some(buckets)
}

fn write(buckets: &Buckets, o: &mut ObjectWriter<'_>) {
    for (bucket, name) in buckets.iter().zip(NAMES) {
        o.f64(name, *bucket);
    }
}

impl State for Fold {
    fn apply(&mut self, event: &Look<'_>) -> Result<bool, Error> {
        let Some(usage) = event.usage() else {
            return Ok(false);
        };
        let sample = Last {
            place: place(event.data.value()),
            buckets: SAMPLED.map(|name| number(usage, name)),
        };
        if self.last.as_ref() == Some(&sample) {
            return Ok(false);
        }
        let before = self
            .last
            .take()
            .filter(|last| last.place == sample.place)
            .map_or(Buckets::default(), |last| last.buckets);
        for ((total, new), old) in self.totals.iter_mut().zip(sample.buckets).zip(before) {
            *total += new - old;
        }
        self.last = Some(sample);
        Ok(true)
    }

    fn json(&self, _: Option<Seq>) -> Json {
        Json::object(|o| {
            o.object("totals", |o| write(&self.totals, o));
            match &self.last {
                None => o.null("last"),
                Some(last) => o.object("last", |o| {
                    o.f64("turn", last.place.0).f64("step", last.place.1);
                    o.object("buckets", |o| write(&last.buckets, o));
                }),
            };
        })
    }

    fn view(&self) -> Json {
        Json::object(|o| write(&self.totals, o))
    }
}
