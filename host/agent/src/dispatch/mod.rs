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

mod chain;
mod component;
mod events;
mod listener;
mod observers;
mod stamp;

pub use component::ComponentListener;
pub use chain::{Dispatch, DispatchError};
pub use events::{EventSpec, Mode, OnFailure, event};
pub(crate) use stamp::own_message;
pub use listener::{Entry, EventContext, Listener, ListenerError, Standing, Subscription, Verdict};
