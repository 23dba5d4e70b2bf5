//! One event as all units see it. What several of them ask is found once: a message's price and a usage cost a walk
//! over all of its text.

use std::cell::OnceCell;
use std::ops::Deref;

use super::chunk;
use crate::{Event, Value, estimate};

/// An event, and what was found in it so far.
pub struct Look<'e> {
    event: &'e Event,
    usage: OnceCell<Option<Value<'e>>>,
    price: OnceCell<u64>,
}

impl<'e> Look<'e> {
    /// A first look.
    pub fn new(event: &'e Event) -> Look<'e> {
        Look {
            event,
            usage: OnceCell::new(),
            price: OnceCell::new(),
        }
    }

    /// What a provider said about tokens: the usage of a usage chunk or of a finished message.
    pub fn usage(&self) -> Option<Value<'e>> {
        *self.usage.get_or_init(|| chunk::usage(self.event))
    }

    /// Estimated tokens of what the event puts on the surface.
    pub fn price(&self) -> u64 {
        *self.price.get_or_init(|| estimate::event(self.event))
    }
}

impl Deref for Look<'_> {
    type Target = Event;

    fn deref(&self) -> &Event {
        self.event
    }
}
