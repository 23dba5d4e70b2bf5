//! `contextPressure`: how full the model's context is. `spec/session.md` §10.6.
//!
//! What the provider counted last is exact and soon out of date; what came to the surface since is estimated and added.

use super::chunk::number;
use super::surface::{self, SurfaceTotal};
use super::{Look, State, Unit};
use crate::{Error, Json, Kind, Seq, Value};

/// The unit.
pub struct ContextPressure;

/// Optional members of the state stand in the order in which they came to be, as upstream writes them.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Member {
    Surface,
    Window,
    Pressure,
    Sampled,
}

#[derive(Clone)]
struct Fold {
    surface: SurfaceTotal,
    window: Option<f64>,
    /// Input of the newest sample, cached or not.
    pressure: Option<f64>,
    /// The surface's total when that sample was taken.
    sampled: Option<f64>,
    order: Vec<Member>,
}

const READS: [Kind; 7] = {
    let [a, b, c, d, e] = surface::READS;
    [a, b, c, d, e, Kind::AssistantChunk, Kind::RequestContext]
};

impl Unit for ContextPressure {
    fn key(&self) -> &str {
        "contextPressure"
    }

    fn version(&self) -> u64 {
        4
    }

    fn reads(&self) -> &[Kind] {
        &READS
    }

    fn init(&self) -> Box<dyn State> {
        Box::new(Fold {
            surface: SurfaceTotal::default(),
            window: None,
            pressure: None,
            sampled: None,
            order: vec![Member::Surface],
        })
    }

    fn parse(&self, state: Value<'_>, as_of: Option<Seq>) -> Option<Box<dyn State>> {
        // Absent is fine, another kind of value is not.
        let optional = |key| match state.get(key) {
            None => Some(None),
            Some(value) => value.f64().map(Some),
        };
        let mut fold = Fold {
            surface: SurfaceTotal::at(
                state.get("surfaceTokens")?.f64()?,
                state.get("claim"),
                as_of,
            ),
            window: optional("contextWindow")?,
            pressure: optional("pressureTokens")?,
            sampled: optional("sampledSurfaceTokens")?,
            order: Vec::new(),
        };
        // A parsed state has the order of upstream's schema; what comes later comes last.
        let present = [
            (Member::Window, fold.window.is_some()),
            (Member::Pressure, fold.pressure.is_some()),
            (Member::Surface, true),
            (Member::Sampled, fold.sampled.is_some()),
        ];
        let present = present.into_iter().filter(|(_, there)| *there);
        fold.order = present.map(|(member, _)| member).collect();
        (fold.pressure.is_some() == fold.sampled.is_some())
            .then(|| Box::new(fold) as Box<dyn State>)
    }
}

impl Fold {
    fn seen(&mut self, member: Member) {
        if !self.order.contains(&member) {
            self.order.push(member);
        }
    }
}

impl State for Fold {
    fn apply(&mut self, event: &Look<'_>) -> Result<bool, Error> {
        let mut changed = false;
        if event.kind == Kind::RequestContext {
            let window = event.data.get("contextWindow").and_then(Value::f64);
            changed = window != self.window;
            self.window = window;
            self.seen(Member::Window);
        }
        if let Some(usage) = event.usage() {
            let input = ["inputTokens", "cacheReadTokens", "cacheWriteTokens"];
            let pressure = Some(input.map(|name| number(usage, name)).iter().sum());
            let sampled = Some(self.surface.tokens);
            changed |= (pressure, sampled) != (self.pressure, self.sampled);
            (self.pressure, self.sampled) = (pressure, sampled);
            self.seen(Member::Pressure);
            self.seen(Member::Sampled);
        }
        if event.kind != Kind::AssistantChunk {
            changed |= self.surface.apply(event)?;
        }
        Ok(changed)
    }

    fn json(&self, as_of: Option<Seq>) -> Json {
        Json::object(|o| {
            for member in &self.order {
                let (name, value) = match member {
                    Member::Surface => ("surfaceTokens", Some(self.surface.tokens)),
                    Member::Window => ("contextWindow", self.window),
                    Member::Pressure => ("pressureTokens", self.pressure),
                    Member::Sampled => ("sampledSurfaceTokens", self.sampled),
                };
                if let Some(value) = value {
                    o.f64(name, value);
                }
            }
            o.opt_json("claim", self.surface.claim_json(as_of).as_ref());
        })
    }

    fn view(&self) -> Json {
        Json::object(|o| {
            if let (Some(pressure), Some(sampled)) = (self.pressure, self.sampled) {
                let projected = (pressure + self.surface.tokens - sampled).max(0.0);
                o.f64("pressureTokens", pressure)
                    .f64("projectedTokens", projected);
            }
            if let Some(window) = self.window {
                o.f64("contextWindow", window);
            }
        })
    }
}
