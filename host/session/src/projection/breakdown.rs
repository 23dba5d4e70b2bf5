//! `contextBreakdown`: what the context is made of, estimated. `spec/session.md` §10.6.

use super::surface::{self, SurfaceTotal};
use super::{Look, State, Unit};
use crate::{Error, Json, Kind, RequestHeader, Seq, Value, estimate};

/// The unit.
pub struct ContextBreakdown;

#[derive(Clone, Default)]
struct Fold {
    system: f64,
    tools: f64,
    surface: SurfaceTotal,
}

const READS: [Kind; 6] = {
    let [a, b, c, d, e] = surface::READS;
    [a, b, c, d, e, Kind::RequestHeader]
};

impl Unit for ContextBreakdown {
    fn key(&self) -> &str {
        "contextBreakdown"
    }

    fn version(&self) -> u64 {
        2
    }

    fn reads(&self) -> &[Kind] {
        &READS
    }

    fn init(&self) -> Box<dyn State> {
        Box::<Fold>::default()
    }

    fn parse(&self, state: Value<'_>, as_of: Option<Seq>) -> Option<Box<dyn State>> {
        let number = |key| state.get(key).and_then(Value::f64);
        Some(Box::new(Fold {
            system: number("systemTokens")?,
            tools: number("toolsTokens")?,
            surface: SurfaceTotal::at(number("messageTokens")?, state.get("claim"), as_of),
        }))
    }
}

impl State for Fold {
    fn apply(&mut self, event: &Look<'_>) -> Result<bool, Error> {
        if event.kind != Kind::RequestHeader {
            return self.surface.apply(event);
        }
        let header = event.data.get("header");
        let header = header.and_then(|header| RequestHeader::canonical(header).ok());
        let price = |by: fn(&RequestHeader) -> u64| header.as_ref().map_or(0.0, |h| by(h) as f64);
        let prices = (price(estimate::system), price(estimate::tools));
        let changed = prices != (self.system, self.tools);
        (self.system, self.tools) = prices;
        Ok(changed)
    }

    fn json(&self, as_of: Option<Seq>) -> Json {
        let claim = self.surface.claim_json(as_of);
        self.write(claim.as_ref())
    }

    fn view(&self) -> Json {
        self.write(None)
    }
}

impl Fold {
    fn write(&self, claim: Option<&Json>) -> Json {
        Json::object(|o| {
            o.f64("systemTokens", self.system)
                .f64("toolsTokens", self.tools)
                .f64("messageTokens", self.surface.tokens)
                .opt_json("claim", claim);
        })
    }
}
