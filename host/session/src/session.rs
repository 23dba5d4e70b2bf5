//! The session: header, log, and the folds that are kept current. `spec/session.md` §2, §6.

use std::sync::Arc;

use crate::messages::{Derivation, Digest};
use crate::surface::Plan;
use crate::{
    Draft, Error, Event, Header, Json, Kind, Messages, RequestContext, RequestHeader, Seq, Surface,
    Value, message, request,
};

/// One session in memory. A plain single-threaded value: whoever shares it puts a lock around it.
pub struct Session {
    header: Header,
    events: Vec<Arc<Event>>,
    first_live_seq: u64,
    surface: Surface,
    derivation: Derivation,
    /// The newest event of each known kind, by [`Kind::index`]; `u64::MAX` for none.
    newest: [u64; Kind::KNOWN.len()],
}

impl Session {
    /// An empty session without a seed; its log starts empty.
    ///
    /// # Errors
    /// [`Error::HeaderShape`].
    pub fn new(header: Header) -> Result<Session, Error> {
        header.check()?;
        Ok(Session {
            header,
            events: Vec::new(),
            first_live_seq: 0,
            surface: Surface::default(),
            derivation: Derivation::default(),
            newest: [u64::MAX; Kind::KNOWN.len()],
        })
    }

    /// A session that begins with inherited events. Appends `session/end-seed` at `time` unless the seed already ends
    /// with one (also for an empty seed).
    ///
    /// # Errors
    /// The header's and the first unsound event's (§6 "Seed").
    pub fn with_seed(header: Header, seed: Vec<Arc<Event>>, time: i64) -> Result<Session, Error> {
        match Session::salvage(header, seed, time)? {
            (session, None) => Ok(session),
            (_, Some(fault)) => Err(fault),
        }
    }

    /// [`Session::with_seed`] that keeps what is sound: the session of the longest sound prefix, and why it ends there.
    ///
    /// # Errors
    /// The header's.
    pub fn salvage(
        header: Header,
        seed: Vec<Arc<Event>>,
        time: i64,
    ) -> Result<(Session, Option<Error>), Error> {
        let mut session = Session::new(header)?;
        session.events.reserve(seed.len() + 1);
        let mut fault = None;
        for (index, event) in seed.into_iter().enumerate() {
            match check_seed(&event, index as u64).and_then(|()| session.check(&event)) {
                Ok(plan) => session.commit(event, plan),
                Err(found) => {
                    fault = Some(found);
                    break;
                }
            }
        }
        session.first_live_seq = session.events.len() as u64;
        if session
            .last()
            .is_none_or(|last| last.kind != Kind::SessionEndSeed)
        {
            session.append(Draft::new(Kind::SessionEndSeed, Json::empty_object()), time)?;
        }
        Ok((session, fault))
    }

    /// A session continued from storage, `events` as [`crate::interpret`] gave them plus closers. Like
    /// [`Session::with_seed`], it ends with `session/end-seed`; data needs no lossless check, being text already.
    ///
    /// # Errors
    /// As [`Session::with_seed`].
    pub fn restore(header: Header, events: Vec<Arc<Event>>, time: i64) -> Result<Session, Error> {
        Session::with_seed(header, events, time)
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

    /// The events from `seq` on; none past the end.
    pub fn events_from(&self, seq: Seq) -> &[Arc<Event>] {
        let start = usize::try_from(seq.0)
            .unwrap_or(usize::MAX)
            .min(self.events.len());
        &self.events[start..]
    }

    /// The event at `seq`.
    pub fn event(&self, seq: Seq) -> Option<&Arc<Event>> {
        usize::try_from(seq.0)
            .ok()
            .and_then(|index| self.events.get(index))
    }

    /// The seq that the next event will have, which is the log's length.
    pub fn next_seq(&self) -> Seq {
        Seq(self.events.len() as u64)
    }

    /// The newest event.
    pub fn last(&self) -> Option<&Arc<Event>> {
        self.events.last()
    }

    /// The newest event of a kind; in constant time for a known one.
    pub fn last_of(&self, kind: &Kind) -> Option<&Arc<Event>> {
        match kind.index() {
            Some(index) => self.event(Seq(self.newest[index])),
            None => self.events.iter().rfind(|event| event.kind == *kind),
        }
    }

    /// How many events were there before this object lived: the seed's or the stored log's length.
    pub fn first_live_seq(&self) -> Seq {
        Seq(self.first_live_seq)
    }

    /// Appends one event: checks in the order of §2, then commits. On an error nothing has changed.
    ///
    /// The data is lossless by its type, message shapes and pairing are not checked here, and any kind may be appended.
    ///
    /// # Errors
    /// [`Error::Removed`], [`Error::Surface`].
    pub fn append(&mut self, draft: Draft, time: i64) -> Result<Arc<Event>, Error> {
        if let Some(what) = removed(&draft.kind, draft.data.value()) {
            return Err(Error::Removed {
                subject: format!("event {}", draft.kind),
                what,
            });
        }
        let event = Event {
            kind: draft.kind,
            seq: self.next_seq(),
            time,
            data: draft.data,
            source_event_seqs: draft.source_event_seqs.map(Arc::from),
            surface_op: draft.surface_op,
            ignorable: draft.ignorable,
            verbatim: None,
        };
        let plan = self.check(&event)?;
        let event = Arc::new(event);
        self.commit(event.clone(), plan);
        Ok(event)
    }

    fn check(&self, event: &Event) -> Result<Plan, Error> {
        self.surface.check(event, |seq| self.event(seq))
    }

    fn commit(&mut self, event: Arc<Event>, plan: Plan) {
        if let Some(index) = event.kind.index() {
            self.newest[index] = event.seq.0;
        }
        let changed = self.surface.apply(event.seq, plan);
        self.derivation.invalidate(changed);
        self.events.push(event);
    }

    /// The surface as of the last event.
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// What the model sees as of the last event. A snapshot, cheap to take and to keep; costs what is new.
    pub fn messages(&mut self) -> Messages {
        self.derivation
            .current(self.surface.nodes(), &self.events)
            .clone()
    }

    /// The digest of [`Session::messages`]: a request is current when its own digest is this one.
    pub fn digest(&mut self) -> Digest {
        self.derivation
            .current(self.surface.nodes(), &self.events)
            .digest()
    }

    /// The latest request header, canonical (§4).
    pub fn request_header(&self) -> Option<RequestHeader> {
        let event = self.last_of(&Kind::RequestHeader)?;
        RequestHeader::canonical(event.data.get("header")?).ok()
    }

    /// The latest request context (§4).
    pub fn request_context(&self) -> Option<RequestContext> {
        self.last_of(&Kind::RequestContext)
            .map(|event| RequestContext::read(event.data.value()))
    }

    /// The number of the last `turn/start`, 0 when there is none.
    pub fn last_turn(&self) -> u64 {
        let turn = self
            .last_of(&Kind::TurnStart)
            .and_then(|event| event.data.get("turn"));
        turn.and_then(Value::u64).unwrap_or(0)
    }

    /// Whether the last turn boundary is a `turn/start`.
    pub fn in_turn(&self) -> bool {
        let seq = |kind| self.last_of(kind).map(|event| event.seq);
        seq(&Kind::TurnStart) > seq(&Kind::TurnEnd)
    }

    /// The agent preset in force: the last `agent-preset/selected`, else the header's.
    pub fn agent_preset(&self) -> Option<Arc<str>> {
        let selected = self.last_of(&Kind::AgentPresetSelected);
        let preset = selected
            .and_then(|event| event.data.get("agentPreset"))
            .and_then(Value::text);
        preset
            .map(Arc::from)
            .or_else(|| self.header.agent_preset.clone())
    }
}

/// The name of a removed kind or reason, if it is one (§2 step 2).
pub(crate) fn removed(kind: &Kind, data: Value<'_>) -> Option<&'static str> {
    match kind {
        Kind::Foreign(name) if **name == *"request/header-delta" => Some("request/header-delta"),
        Kind::RequestHeader
            if data
                .get("reason")
                .is_some_and(|reason| reason.is("fallback")) =>
        {
            Some("request/header reason \"fallback\"")
        }
        _ => None,
    }
}

/// The checks of one seed event before the surface sees it (§6).
fn check_seed(event: &Event, index: u64) -> Result<(), Error> {
    let subject = || format!("seed event {} at index {index}", event.kind);
    let safe = crate::MAX_SAFE_INTEGER;
    if event.seq.0 > safe || event.time.unsigned_abs() > safe {
        let what = "seq and time must be safe integers";
        return Err(Error::Envelope {
            subject: subject(),
            what,
        });
    }
    if let Some(what) = message::fault(event) {
        return Err(Error::MessageShape {
            subject: subject(),
            what,
        });
    }
    if let Some(what) = request::fault(event) {
        return Err(Error::RequestHeaderShape {
            subject: subject(),
            what,
        });
    }
    if let Some(what) = removed(&event.kind, event.data.value()) {
        return Err(Error::Removed {
            subject: subject(),
            what,
        });
    }
    if event.seq.0 != index {
        return Err(Error::Gap {
            subject: subject(),
            got: event.seq.0,
            expected: index,
        });
    }
    Ok(())
}
