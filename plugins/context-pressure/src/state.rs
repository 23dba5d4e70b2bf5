//! The state, which is upstream's: `{surfaceTokens, contextWindow?, pressureTokens?, sampledSurfaceTokens?, claim?}`.
//!
//! A replacement takes nodes off the surface whose prices are long forgotten. Compaction writes their sum just before
//! it replaces them: a *claim*, good for the next event and no other.

use guest_support::fold::{Event, Tail, number, write_number, write_numbers};
use guest_support::{Error, error};

use crate::estimate;

/// Members in the order in which they came to be, as upstream writes them; so the order is read from a state too.
const NAMES: [&str; 4] = [
    "surfaceTokens",
    "contextWindow",
    "pressureTokens",
    "sampledSurfaceTokens",
];
const SURFACE: usize = 0;
const WINDOW: usize = 1;
const PRESSURE: usize = 2;
const SAMPLED: usize = 3;

#[derive(Debug)]
pub(crate) struct State {
    members: [Option<f64>; 4],
    /// Those that are there.
    order: Vec<usize>,
    claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    range: (f64, f64),
    tokens: f64,
}

impl Default for State {
    fn default() -> Self {
        let mut members = [None; 4];
        members[SURFACE] = Some(0.0);
        Self {
            members,
            order: vec![SURFACE],
            claim: None,
        }
    }
}

impl State {
    pub(crate) fn read(text: &str) -> Option<Self> {
        let mut state = Self {
            members: [None; 4],
            order: Vec::with_capacity(4),
            claim: None,
        };
        for (name, value) in Tail::of(text).members() {
            match NAMES.iter().position(|known| *known == name) {
                Some(at) => state.set(at, Some(value.number()?)),
                None if name == "claim" => state.claim = Claim::read(value, value.member("tokens")),
                None => {}
            }
        }
        let paired = state.members[PRESSURE].is_some() == state.members[SAMPLED].is_some();
        (paired && state.members[SURFACE].is_some()).then_some(state)
    }

    fn set(&mut self, at: usize, value: Option<f64>) {
        match (self.members[at], value) {
            (None, Some(_)) => self.order.push(at),
            (Some(_), None) => self.order.retain(|other| *other != at),
            _ => {}
        }
        self.members[at] = value;
    }

    fn surface(&self) -> f64 {
        self.members[SURFACE].unwrap_or_default()
    }

    /// Takes the log's next event.
    pub(crate) fn fold(&mut self, event: Event<'_>) -> Result<(), Error> {
        let claim = self.claim.take();
        if event.kind == "request/context" {
            self.set(
                WINDOW,
                event.data.member("contextWindow").and_then(Tail::number),
            );
        }
        if let Some(usage) = event.usage() {
            let input = ["inputTokens", "cacheReadTokens", "cacheWriteTokens"];
            let pressure = input.map(|name| number(usage, name)).iter().sum();
            self.set(PRESSURE, Some(pressure));
            self.set(SAMPLED, Some(self.surface()));
        }
        match event.kind {
            "compaction/summary" | "compaction/prune" => {
                let tokens = event.data.member("shadowedTokenCount");
                let range = event.data.member("shadowedRange");
                self.claim = range.and_then(|range| Claim::read(range, tokens));
            }
            "user/message" | "assistant/message" | "tool/result" => {
                let delta = delta(event, claim)?;
                self.members[SURFACE] = Some(self.surface() + delta);
            }
            _ => {}
        }
        Ok(())
    }

    pub(crate) fn view(&self) -> String {
        let mut shown = Vec::with_capacity(3);
        if let (Some(pressure), Some(sampled)) = (self.members[PRESSURE], self.members[SAMPLED]) {
            shown.push(("pressureTokens", pressure));
            shown.push((
                "projectedTokens",
                (pressure + self.surface() - sampled).max(0.0),
            ));
        }
        shown.extend(self.members[WINDOW].map(|window| ("contextWindow", window)));
        let mut out = "{".to_owned();
        write_numbers(shown, &mut out);
        out.push('}');
        out
    }

    pub(crate) fn text(&self) -> String {
        let mut out = String::with_capacity(192);
        out.push('{');
        let members = self
            .order
            .iter()
            .filter_map(|at| Some((NAMES[*at], self.members[*at]?)));
        write_numbers(members, &mut out);
        if let Some(claim) = self.claim {
            out.push_str(",\"claim\":{");
            write_numbers([("start", claim.range.0), ("end", claim.range.1)], &mut out);
            out.push_str(",\"tokens\":");
            write_number(claim.tokens, &mut out);
            out.push('}');
        }
        out.push('}');
        out
    }
}

/// By how much an event changes what the surface is estimated to cost.
fn delta(event: Event<'_>, claim: Option<Claim>) -> Result<f64, Error> {
    let Some(op) = event.surface_op() else {
        return Ok(0.0);
    };
    if op.is("append") {
        return Ok(estimate::event(event));
    }
    let replaced = (number(op, "start"), number(op, "end"));
    match claim {
        Some(claim) if claim.range == replaced => Ok(estimate::event(event) - claim.tokens),
        // What was there is counted on, and nothing added: nobody said what it was worth.
        None => Ok(0.0),
        Some(claim) => Err(error(
            "TOKEN_SURFACE",
            format!(
                "event {} replaces {} to {} of the surface, and what stands before it prices {} to {}",
                event.seq, replaced.0, replaced.1, claim.range.0, claim.range.1
            ),
        )),
    }
}

impl Claim {
    fn read(range: Tail<'_>, tokens: Option<Tail<'_>>) -> Option<Self> {
        let seq = |name| range.member(name).and_then(Tail::number);
        Some(Self {
            range: (seq("start")?, seq("end")?),
            tokens: tokens?.number()?,
        })
    }
}
