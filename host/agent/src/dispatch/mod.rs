//! Events of the agent's own, and who may watch or change what they decide.
//!
//! A waterfall is split into `enter`, on the way in and in row order, and
//! `leave`, on the way out and in reverse. No listener holds the rest of the
//! chain in its hands, so a component is never entered twice, and one that does
//! nothing changes nothing: delegation is the default. What a listener's failure
//! means belongs to the event, not to the listener: a policy event refuses,
//! anything else goes on without it (architecture.md; wit/plugin.wit `dispatch`).
//!
//! Listeners that are only told something get it from a queue of their own, in
//! order and in batches, and never hold up a turn.
//!
//! The events are in `table.rs`, from which `docs/events/` is made: what each
//! tells, what it lets one decide, and the rule for who fails. Payloads are made
//! once, and only where somebody listens.
//!
//! A listener answers by that table or has failed: no JSON, another shape, a
//! change where none is allowed count as much as a trap. Arguments of a call and
//! the place where something happens cannot be rewritten, so no listener shows
//! the next one another world.

mod absent;
mod chain;
mod component;
#[cfg(test)]
mod docs;
mod events;
mod files;
mod flush;
mod listener;
mod observers;
mod report;
mod row;
mod stamp;
mod table;

pub use chain::{Dispatch, DispatchError, Entered};
pub use component::ComponentListener;
pub use events::{EventSpec, Mode, OnFailure, check_subscription, event, events};
pub use files::FileEvents;
pub use listener::{Entry, EventContext, Listener, ListenerError, Standing, Subscription, Verdict};
pub use report::Failure;
pub(crate) use stamp::own_message;
