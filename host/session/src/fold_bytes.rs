//! A fold as bytes, for a checkpoint. Derived and private: whoever stores it adds a version and a checksum, and when it is
//! not what it should be, there is none.
//!
//! Events are named by their seqs and read from the log again, so a checkpoint holds no second copy of what the log says;
//! only what waits in the inbox stands in it, as it was folded.

use std::collections::HashMap;
use std::sync::Arc;

use crate::closers::OpenTurn;
use crate::fold::Fold;
use crate::inbox::{Inbox, Target};
use crate::{Event, Json, Kind, Seq, Surface};

/// Numbers and texts, one after the other.
struct Out<'a>(&'a mut Vec<u8>);

impl Out<'_> {
    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_le_bytes());
    }

    fn text(&mut self, text: &str) {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
    }

    fn seqs<'s>(&mut self, seqs: impl ExactSizeIterator<Item = &'s Seq>) {
        self.number(seqs.len() as u64);
        seqs.for_each(|seq| self.number(seq.0));
    }
}

struct In<'a>(&'a [u8]);

impl<'a> In<'a> {
    fn take(&mut self, length: u64) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(usize::try_from(length).ok()?)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = self.number()?;
        std::str::from_utf8(self.take(length)?).ok()
    }

    fn seqs(&mut self) -> Option<Vec<Seq>> {
        let length = self.number()?;
        let bytes = self.take(length.checked_mul(8)?)?;
        let seqs = bytes.chunks_exact(8).map(|bytes| {
            let bytes: [u8; 8] = bytes.try_into().ok()?;
            Some(Seq(u64::from_le_bytes(bytes)))
        });
        seqs.collect()
    }
}

const TARGETS: [Target; 2] = [Target::NextTurn, Target::NextStep];

impl Fold {
    /// Appends the fold to `out`. `false` when it is one that cannot be stored: its inbox does not fold.
    pub fn write(&self, out: &mut Vec<u8>) -> bool {
        let Ok(inbox) = &self.inbox else {
            return false;
        };
        let mut out = Out(out);
        out.number(self.next_seq().0);
        out.number(self.surface.replace_generation());
        let (nodes, anchors) = self.surface.parts();
        out.seqs(nodes.iter());
        out.seqs(anchors.iter());
        let newest = self.newest.iter().flatten();
        out.seqs(
            newest
                .map(|event| &event.seq)
                .collect::<Vec<_>>()
                .into_iter(),
        );
        let foreign = self.foreign.values().map(|event| &event.seq);
        out.seqs(foreign);
        out.seqs(self.plugins.values().map(|event| &event.seq));
        out.seqs(self.open.events().iter().map(|event| &event.seq));
        for target in TARGETS {
            out.number(inbox.list(target).len() as u64);
            for message in inbox.list(target) {
                out.text(message.as_str());
            }
        }
        true
    }

    /// Reads what [`Fold::write`] wrote. `find` reads an event of the log; `None` when anything does not fit.
    pub fn read(
        bytes: &[u8],
        seed_length: u64,
        find: &mut dyn FnMut(Seq) -> Option<Arc<Event>>,
    ) -> Option<Fold> {
        let mut bytes = In(bytes);
        let mut fold = Fold::new(seed_length);
        let next = bytes.number()?;
        let generation = bytes.number()?;
        let (nodes, anchors) = (bytes.seqs()?, bytes.seqs()?);
        fold.surface = Surface::from_parts(nodes, anchors, generation, Seq(next))?;
        let mut events = |bytes: &mut In<'_>| -> Option<Vec<Arc<Event>>> {
            bytes.seqs()?.into_iter().map(&mut *find).collect()
        };
        for event in events(&mut bytes)? {
            let index = event.kind.index()?;
            fold.newest[index] = Some(event);
        }
        for event in events(&mut bytes)? {
            fold.foreign.insert(foreign(&event.kind)?, event);
        }
        let mut plugins = HashMap::new();
        for event in events(&mut bytes)? {
            plugins.insert(Fold::plugin(&event)?.into(), event);
        }
        fold.plugins = plugins;
        let mut open = OpenTurn::default();
        events(&mut bytes)?
            .iter()
            .for_each(|event| open.fold(event));
        fold.open = open;
        let mut inbox = Inbox::default();
        for target in TARGETS {
            for _ in 0..bytes.number()? {
                let message = Json::restore(bytes.text()?).ok()?;
                let splice = inbox.push(target, message).ok()?;
                inbox.apply(&splice).ok()?;
            }
        }
        fold.inbox = Ok(inbox);
        let newest = fold.newest.iter().flatten().chain(fold.foreign.values());
        fold.last = newest.max_by_key(|event| event.seq).cloned();
        let last = fold.last.as_ref().map_or(0, |last| last.seq.0 + 1);
        (bytes.0.is_empty() && last == next).then_some(fold)
    }
}

fn foreign(kind: &Kind) -> Option<Kind> {
    (!kind.is_known()).then(|| kind.clone())
}
