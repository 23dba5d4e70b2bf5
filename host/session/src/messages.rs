//! What the model sees. `spec/session.md` §3 "deriveMessages".
//!
//! A [`Messages`] can only be taken from a session, so a request that carries one carries what is logged. Its digest is
//! a chain over the messages: it grows by hashing what is new, and two lists are compared by comparing digests.
//! A message is a slice of its event's data; nothing is copied.

use std::ops::Range;
use std::sync::Arc;

use crate::log::Log;
use crate::{Error, Event, Json, Kind, Seq, Value, message};

/// The digest of a list of messages. Equal digests mean equal lists.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Digest([u8; 32]);

impl Digest {
    fn then(self, message: &str) -> Digest {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.0);
        hasher.update(message.as_bytes());
        Digest(*hasher.finalize().as_bytes())
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0[..8]
            .iter()
            .try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// One message as the model sees it.
#[derive(Clone)]
pub struct Message {
    seq: Seq,
    data: Json,
    range: Range<usize>,
}

impl Message {
    /// What the model sees of an event: nothing of log-only events and of assistant messages without content.
    pub fn of(event: &Event) -> Option<Message> {
        let data = event.data.value();
        let message = message::of(&event.kind, data)?;
        if event.kind == Kind::AssistantMessage
            && message
                .get("content")
                .is_some_and(|content| content.as_str() == "[]")
        {
            return None;
        }
        Some(Message {
            seq: event.seq,
            data: event.data.clone(),
            range: message.range_in(data),
        })
    }

    /// The event that carries it.
    pub fn seq(&self) -> Seq {
        self.seq
    }

    /// The message as JSON text.
    pub fn as_str(&self) -> &str {
        &self.data.as_str()[self.range.clone()]
    }

    /// A view of the message.
    pub fn value(&self) -> Value<'_> {
        Value::trusted(self.as_str())
    }
}

impl std::fmt::Debug for Message {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Messages a block: a snapshot shares whole blocks and copies the last one.
const BLOCK: usize = 64;

/// What the model sees, at one moment. Cheap to take and to keep; later appends do not change it.
#[derive(Clone, Default)]
pub struct Messages {
    blocks: Vec<Arc<Vec<Message>>>,
    tail: Vec<Message>,
    digest: Digest,
}

impl Messages {
    /// The digest of the whole list. A list is current while [`crate::Session::digest`] gives the same.
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// How many messages there are.
    pub fn len(&self) -> usize {
        self.blocks.len() * BLOCK + self.tail.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The messages in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = &Message> {
        self.blocks
            .iter()
            .flat_map(|block| block.iter())
            .chain(&self.tail)
    }

    /// Appends the list as one JSON array to `out`.
    pub fn write_json(&self, out: &mut String) {
        out.push('[');
        for (index, message) in self.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(message.as_str());
        }
        out.push(']');
    }

    /// The list as one JSON array.
    pub fn to_json(&self) -> Json {
        let mut out = String::new();
        self.write_json(&mut out);
        Json::trusted(out)
    }

    fn push(&mut self, message: Message) {
        self.digest = self.digest.then(message.as_str());
        self.tail.push(message);
        if self.tail.len() == BLOCK {
            self.blocks.push(Arc::new(std::mem::take(&mut self.tail)));
        }
    }

    fn truncate(&mut self, len: usize, digest: Digest) {
        if len < self.len() {
            let mut tail = match self.blocks.get(len / BLOCK) {
                Some(block) => block.to_vec(),
                None => std::mem::take(&mut self.tail),
            };
            tail.truncate(len % BLOCK);
            self.blocks.truncate(len / BLOCK);
            self.tail = tail;
        }
        self.digest = digest;
    }
}

impl std::fmt::Debug for Messages {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The list kept current: folds nodes lazily, and again only from where a replace changed them.
#[derive(Clone, Default)]
pub(crate) struct Derivation {
    list: Messages,
    /// Length and digest of the list after each folded node.
    marks: Vec<(usize, Digest)>,
}

impl Derivation {
    /// Forgets the nodes from `node` on.
    pub(crate) fn invalidate(&mut self, node: usize) {
        if node < self.marks.len() {
            self.marks.truncate(node);
            let (len, digest) = self.marks.last().copied().unwrap_or_default();
            self.list.truncate(len, digest);
        }
    }

    /// Folds the nodes that are new and gives the list. After an error, what was folded stands.
    pub(crate) fn current(&mut self, nodes: &[Seq], log: &Log) -> Result<&Messages, Error> {
        for node in &nodes[self.marks.len()..] {
            let event = log.event(*node)?;
            if let Some(message) = event.and_then(|event| Message::of(&event)) {
                self.list.push(message);
            }
            self.marks.push((self.list.len(), self.list.digest));
        }
        Ok(&self.list)
    }
}

#[cfg(test)]
#[path = "messages_tests.rs"]
mod tests;
