//! Read models: small states that are folded from the log, kept current, cached and restored. `spec/session.md` §10.
//!
//! A [`Unit`] says what is folded, a [`Registry`] which units there are, [`Projections`] is their states over one log.
//! Everything here is pure: no clock, no disk, and no event is looked at that a unit does not read. So a fold over a
//! long log costs what its chunks' tags cost, and whoever holds a state and a seq can go on from there
//! ([`Registry::restore`]) instead of reading the log again.
//!
//! A unit that cannot fold a log (a replacement whose price is another's) loses its own value in that log and no
//! other's; upstream's error for it is kept in [`Projections::fault`].

mod breakdown;
pub(crate) mod chunk;
mod list;
mod look;
mod pressure;
mod registry;
mod rows;
mod stats;
pub(crate) mod surface;
mod title;
mod usage;

#[cfg(test)]
mod projection_tests;

use std::sync::Arc;

pub use breakdown::ContextBreakdown;
pub use chunk::is_token;
pub use list::{ListFacts, SMALL_LOG, cold_blank};
pub use look::Look;
pub use pressure::ContextPressure;
pub use registry::{Change, Projections, Registry, Snapshot};
pub use rows::{Row, Rows};
pub use stats::SessionStats;
pub use title::Title;
pub use usage::TokenUsage;

use crate::{ConsumedWork, Error, Event, Json, Kind, Seq, Value};

/// What can be folded: a name, a version of the state's shape, and how states begin.
pub trait Unit: Send + Sync {
    /// Names the value, for clients and in the cache.
    fn key(&self) -> &str;
    /// Changes with the shape or the meaning of the state: a cached state of another version is not used.
    fn version(&self) -> u64;
    /// The kinds that the state looks at. No other event reaches it.
    fn reads(&self) -> &[Kind];
    /// Whether clients see the value; else it is only cached.
    fn is_visible(&self) -> bool {
        true
    }
    /// The state before the first event.
    fn init(&self) -> Box<dyn State>;
    /// The state that [`State::json`] wrote after the event `as_of`; `None` when the text is none.
    fn parse(&self, state: Value<'_>, as_of: Option<Seq>) -> Option<Box<dyn State>>;
}

/// One fold in progress.
pub trait State: Send {
    /// Takes the next event that the unit reads, and says whether the value changed.
    ///
    /// # Errors
    /// The log breaks a rule that the value rests on. The state is of no use then.
    fn apply(&mut self, look: &Look<'_>) -> Result<bool, Error>;
    /// The whole state as of the event `as_of`, which may be later than the last one applied.
    fn json(&self, as_of: Option<Seq>) -> Json;
    /// What clients see.
    fn view(&self) -> Json;
}

/// All views of a log, and the accounting of its turns: `{tokenUsage, contextPressure, contextBreakdown, sessionStats,
/// title, consumedWork}`. A value that the log does not allow is left out.
///
/// # Errors
/// The first that reading the events gives.
pub fn views(events: impl IntoIterator<Item = Result<Arc<Event>, Error>>) -> Result<Json, Error> {
    let mut projections = Registry::standard().start();
    let mut work = ConsumedWork::default();
    for event in events {
        let event = event?;
        projections.fold(&event);
        work.fold(&event);
    }
    let snapshot = projections.snapshot();
    Ok(Json::object(|o| {
        for (key, value) in &snapshot.values {
            o.json(key, value);
        }
        o.json("consumedWork", &work.json());
    }))
}
