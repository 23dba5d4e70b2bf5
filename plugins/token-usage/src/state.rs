//! The state, which is upstream's: the sums, and the newest sample. A step's samples repeat each other: the last one
//! counts, so the one before is taken off again.

use guest_support::fold::{Event, Tail, number, write_numbers};

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

#[derive(Debug, Default)]
pub(crate) struct State {
    totals: Buckets,
    last: Option<Sample>,
}

#[derive(Debug, PartialEq)]
struct Sample {
    place: (f64, f64),
    buckets: Buckets,
}

impl State {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let state = Tail::of(text);
        let last = state.member("last")?;
        let last = if last.is_null() {
            None
        } else {
            Some(Sample {
                place: (
                    last.member("turn")?.number()?,
                    last.member("step")?.number()?,
                ),
                buckets: buckets(last.member("buckets")?)?,
            })
        };
        Some(Self {
            totals: buckets(state.member("totals")?)?,
            last,
        })
    }

    pub(crate) fn fold(&mut self, event: Event<'_>) {
        let Some(usage) = event.usage() else {
            return;
        };
        let sample = Sample {
            place: event.place(),
            buckets: SAMPLED.map(|name| number(usage, name)),
        };
        let before = self.last.take().filter(|last| last.place == sample.place);
        let before = before.map_or(Buckets::default(), |last| last.buckets);
        for ((total, new), old) in self.totals.iter_mut().zip(sample.buckets).zip(before) {
            *total += new - old;
        }
        self.last = Some(sample);
    }

    pub(crate) fn view(&self) -> String {
        let mut out = String::with_capacity(128);
        write(&self.totals, &mut out);
        out
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::with_capacity(256);
        out.push_str("{\"totals\":");
        write(&self.totals, &mut out);
        out.push_str(",\"last\":");
        match &self.last {
            None => out.push_str("null"),
            Some(last) => {
                out.push('{');
                write_numbers([("turn", last.place.0), ("step", last.place.1)], &mut out);
                out.push_str(",\"buckets\":");
                write(&last.buckets, &mut out);
                out.push('}');
            }
        }
        out.push('}');
        out
    }
}

fn buckets(of: Tail<'_>) -> Option<Buckets> {
    let mut buckets = Buckets::default();
    for (bucket, name) in buckets.iter_mut().zip(NAMES) {
        *bucket = of.member(name)?.number()?;
    }
    Some(buckets)
}

fn write(buckets: &Buckets, out: &mut String) {
    out.push('{');
    write_numbers(NAMES.into_iter().zip(*buckets), out);
    out.push('}');
}
