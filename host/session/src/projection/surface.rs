//! The surface's estimate as one running number. `spec/session.md` §10.6 "Surface total".
//!
//! A replacement takes nodes away whose prices are long forgotten. Compaction writes their sum just before it replaces
//! them, so the total needs no list: the sum is a *claim*, good for the next event and no other.

use super::Look;
use crate::{Error, Json, Kind, Seq, SurfaceOp, Value};

/// The kinds that the total looks at.
pub(crate) const READS: [Kind; 5] = [
    Kind::CompactionSummary,
    Kind::CompactionPrune,
    Kind::UserMessage,
    Kind::AssistantMessage,
    Kind::ToolResult,
];

/// The running total.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SurfaceTotal {
    pub(crate) tokens: f64,
    claim: Option<Claim>,
}

#[derive(Clone, Copy, Debug)]
struct Claim {
    start: Seq,
    end: Seq,
    tokens: f64,
    /// The event that made it; it is void after the next one, whether or not that reached us.
    armed: Seq,
}

impl SurfaceTotal {
    pub(crate) fn at(tokens: f64, claim: Option<Value<'_>>, as_of: Option<Seq>) -> SurfaceTotal {
        let claim = claim.zip(as_of);
        SurfaceTotal {
            tokens,
            claim: claim.and_then(|(claim, armed)| Claim::read(claim, claim.get("tokens"), armed)),
        }
    }

    /// Takes an event of [`READS`]; whether the total changed.
    pub(crate) fn apply(&mut self, event: &Look<'_>) -> Result<bool, Error> {
        let claim = self.claim.take();
        let claim = claim.filter(|claim| claim.armed.0 + 1 == event.seq.0);
        let delta = match (&event.kind, event.surface_op) {
            (Kind::CompactionSummary | Kind::CompactionPrune, _) => {
                let data = event.data.value();
                let range = data.get("shadowedRange");
                self.claim = range.and_then(|range| {
                    Claim::read(range, data.get("shadowedTokenCount"), event.seq)
                });
                0.0
            }
            (_, Some(SurfaceOp::Append)) => event.price() as f64,
            (_, Some(SurfaceOp::Replace { start, end })) => match claim {
                Some(claim) if (claim.start, claim.end) == (start, end) => {
                    event.price() as f64 - claim.tokens
                }
                Some(claim) => {
                    return Err(Error::TokenSurface {
                        seq: event.seq,
                        replaced: (start, end),
                        priced: (claim.start, claim.end),
                    });
                }
                None => 0.0,
            },
            _ => 0.0,
        };
        self.tokens += delta;
        Ok(delta != 0.0)
    }

    /// The claim, while the next event may still use it.
    pub(crate) fn claim_json(&self, as_of: Option<Seq>) -> Option<Json> {
        let claim = self.claim.filter(|claim| Some(claim.armed) == as_of)?;
        Some(Json::object(|o| {
            o.u64("start", claim.start.0)
                .u64("end", claim.end.0)
                .f64("tokens", claim.tokens);
        }))
    }
}

impl Claim {
    fn read(range: Value<'_>, tokens: Option<Value<'_>>, armed: Seq) -> Option<Claim> {
        let seq = |key| range.get(key).and_then(Value::u64).map(Seq);
        Some(Claim {
            start: seq("start")?,
            end: seq("end")?,
            tokens: tokens?.f64()?,
            armed,
        })
    }
}
