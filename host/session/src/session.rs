//! The session: header, log, and the folds that are kept current. `spec/session.md` §2, §6.

use std::sync::Arc;

use crate::{
    Draft, Error, Event, Header, Kind, Messages, RequestContext, RequestHeader, Seq, Surface,
};

/// One session in memory. A plain single-threaded value: whoever shares it puts a lock around it.
pub struct Session {
    header: Header,
    events: Vec<Arc<Event>>,
    first_live_seq: u64,
}

impl Session {
    /// An empty session without a seed; its log starts empty.
    ///
    /// # Errors
    /// [`Error::HeaderShape`].
    pub fn new(header: Header) -> Result<Session, Error> {
        let _ = header;
        todo!()
    }

    /// A session that begins with inherited events. Appends `session/end-seed` at `time` unless the seed already ends
    /// with one (also for an empty seed).
    ///
    /// # Errors
    /// The header's and the first unsound event's (§6 "Seed").
    pub fn with_seed(header: Header, seed: Vec<Arc<Event>>, time: i64) -> Result<Session, Error> {
        let _ = (header, seed, time);
        todo!()
    }

    /// A session continued from storage, `events` as [`crate::interpret`] gave them plus closers. Like
    /// [`Session::with_seed`], it ends with `session/end-seed`.
    ///
    /// # Errors
    /// As [`Session::with_seed`].
    pub fn restore(header: Header, events: Vec<Arc<Event>>, time: i64) -> Result<Session, Error> {
        let _ = (header, events, time);
        todo!()
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The session's id.
    pub fn id(&self) -> &Arc<str> {
        &self.header.id
    }

    /// The whole log.
    pub fn events(&self) -> &[Arc<Event>] {
        &self.events
    }

    /// The events from `seq` on.
    pub fn events_from(&self, seq: Seq) -> &[Arc<Event>] {
        let _ = seq;
        todo!()
    }

    /// The event at `seq`.
    pub fn event(&self, seq: Seq) -> Option<&Arc<Event>> {
        let _ = seq;
        todo!()
    }

    /// The seq that the next event will have, which is the log's length.
    pub fn next_seq(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    /// The newest event.
    pub fn last(&self) -> Option<&Arc<Event>> {
        self.events.last()
    }

    /// The newest event of a known kind, in constant time.
    pub fn last_of(&self, kind: &Kind) -> Option<&Arc<Event>> {
        let _ = kind;
        todo!()
    }

    /// How many events were there before this object lived: the seed's or the stored log's length.
    pub fn first_live_seq(&self) -> Seq {
        Seq(self.first_live_seq)
    }

    /// Appends one event: checks in the order of §2, then commits. On an error nothing has changed.
    ///
    /// # Errors
    /// [`Error::Removed`], [`Error::Surface`].
    pub fn append(&mut self, draft: Draft, time: i64) -> Result<Arc<Event>, Error> {
        let _ = (draft, time);
        todo!()
    }

    /// The surface as of the last event.
    pub fn surface(&self) -> &Surface {
        todo!()
    }

    /// What the model sees as of the last event. A snapshot, cheap to take and to keep.
    pub fn messages(&self) -> Messages {
        todo!()
    }

    /// The latest request header, canonical (§4).
    pub fn request_header(&self) -> Option<RequestHeader> {
        todo!()
    }

    /// The latest request context (§4).
    pub fn request_context(&self) -> Option<RequestContext> {
        todo!()
    }

    /// The number of the last `turn/start`, 0 when there is none.
    pub fn last_turn(&self) -> u64 {
        todo!()
    }

    /// The agent preset in force: the last `agent-preset/selected`, else the header's.
    pub fn agent_preset(&self) -> Option<Arc<str>> {
        todo!()
    }
}
