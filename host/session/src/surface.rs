//! The surface: which events the model sees, and what it sees of them. `spec/session.md` §3.

use std::sync::Arc;

use crate::{Error, Event, Seq, error::SurfaceFault};

/// The ordered nodes, as a fold over events.
pub struct Surface {
    nodes: Vec<Seq>,
    replace_generation: u64,
}

impl Surface {
    /// The seqs on the surface, in the order that the model sees them.
    pub fn nodes(&self) -> &[Seq] {
        &self.nodes
    }

    /// How many replaces there were.
    pub fn replace_generation(&self) -> u64 {
        self.replace_generation
    }

    /// The digest of all messages in order; equal digests mean equal messages.
    pub fn digest(&self) -> [u8; 32] {
        todo!()
    }

    /// Checks a candidate and leaves the surface as it is.
    ///
    /// # Errors
    /// [`Error::Surface`], the first rule broken.
    pub fn check(&self, event: &Event, log: &[Arc<Event>]) -> Result<(), Error> {
        let _ = (event, log, SurfaceFault::MissingOp);
        todo!()
    }
}

/// One message as the model sees it: a slice of an event's data.
#[derive(Clone)]
pub struct Message {
    seq: Seq,
    data: Arc<str>,
    start: usize,
    end: usize,
}

impl Message {
    /// The event that carries it.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The message as JSON text.
    pub fn as_str(&self) -> &str {
        &self.data[self.start..self.end]
    }
}

/// What the model sees, at one moment. Only a session makes it, so a request that carries it carries what is logged.
#[derive(Clone)]
pub struct Messages {
    digest: [u8; 32],
}

impl Messages {
    /// The digest of the whole list; compare with [`Surface::digest`] to see whether the list is still current.
    pub fn digest(&self) -> &[u8; 32] {
        &self.digest
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        todo!()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages in order.
    pub fn iter(&self) -> impl Iterator<Item = &Message> {
        std::iter::empty()
    }

    /// Appends the list as one JSON array to `out`.
    pub fn write_json(&self, out: &mut String) {
        let _ = out;
        todo!()
    }
}
