//! The session: header, log, and the folds that are kept current. `spec/session.md` §2, §6.

use std::sync::Arc;

use crate::log::{Events, Log};
use crate::messages::{Derivation, Digest};
use crate::surface::Plan;
use crate::{
    Draft, Error, Event, Fold, Header, Inbox, Json, Kind, Messages, RequestContext, RequestHeader,
    Seq, Surface, Value, message, request,
};

/// One session in memory. A plain single-threaded value: whoever shares it puts a lock around it.
pub struct Session {
    header: Header,
    log: Log,
    fold: Fold,
    first_live_seq: u64,
    derivation: Derivation,
}

impl Session {
    /// An empty session without a seed; its log starts empty.
    ///
    /// # Errors
    /// [`Error::HeaderShape`].
    pub fn new(header: Header) -> Result<Session, Error> {
        header.check()?;
        let fold = Fold::new(header.seed_length.unwrap_or(0));
        Ok(Session {
            header,
            log: Log::default(),
            fold,
            first_live_seq: 0,
            derivation: Derivation::default(),
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
        session.begin(time)?;
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

    /// A session of a stored log that was folded as it was read, and `closers` that come behind it. Like
    /// [`Session::restore`] with all events, but nothing is read again.
    ///
    /// # Errors
    /// The header's, and the first unsound closer's.
    pub fn open(
        header: Header,
        log: Log,
        fold: Fold,
        closers: &[Arc<Event>],
        time: i64,
    ) -> Result<Session, Error> {
        let mut session = Session::new(header)?;
        session.log = log;
        session.fold = fold;
        for event in closers {
            check_seed(event, session.log.len())?;
            let plan = session.check(event)?;
            session.commit(event.clone(), plan);
        }
        session.begin(time)?;
        Ok(session)
    }

    /// What was there ends here: what comes now is live.
    fn begin(&mut self, time: i64) -> Result<(), Error> {
        self.first_live_seq = self.log.len();
        if self
            .last()
            .is_none_or(|last| last.kind != Kind::SessionEndSeed)
        {
            self.append(Draft::new(Kind::SessionEndSeed, Json::empty_object()), time)?;
        }
        Ok(())
    }

    /// The header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// The session's id.
    pub fn id(&self) -> &Arc<str> {
        &self.header.id
    }

    /// The log. What is old of it may have to be read from where it is stored.
    pub fn log(&self) -> &Log {
        &self.log
    }

    /// The events from `seq` on; none past the end. Stored ones are read piece by piece, which may fail.
    pub fn events_from(&self, seq: Seq) -> Events<'_> {
        self.log.events_from(seq)
    }

    /// The events since this object lives: what came after the seed or the stored log. Always in memory.
    pub fn live_events(&self) -> &[Arc<Event>] {
        self.live_from(Seq(0))
    }

    /// [`Session::live_events`] from `seq` on.
    pub fn live_from(&self, seq: Seq) -> &[Arc<Event>] {
        self.log.tail_from(Seq(seq.0.max(self.first_live_seq)))
    }

    /// The event at `seq`; `None` past the end.
    ///
    /// # Errors
    /// [`Error::Archive`] when it has to be read and cannot.
    pub fn event(&self, seq: Seq) -> Result<Option<Arc<Event>>, Error> {
        self.log.event(seq)
    }

    /// The seq that the next event will have, which is the log's length.
    pub fn next_seq(&self) -> Seq {
        Seq(self.log.len())
    }

    /// The newest event.
    pub fn last(&self) -> Option<&Arc<Event>> {
        self.fold.last()
    }

    /// The newest event of a kind, foreign ones included; always in memory.
    pub fn last_of(&self, kind: &Kind) -> Option<&Arc<Event>> {
        self.fold.last_of(kind)
    }

    /// The newest `user/message` whose source is this plugin, on the surface or not; always in memory.
    pub fn last_from(&self, plugin: &str) -> Option<&Arc<Event>> {
        self.fold.last_from(plugin)
    }

    /// What waits in the inbox (§8).
    ///
    /// # Errors
    /// [`Error::Inbox`] naming the first splice of the log that does not fit.
    pub fn inbox(&self) -> Result<Inbox, Error> {
        self.fold.inbox()
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
    /// [`Error::Removed`], [`Error::Surface`]; [`Error::Archive`] when a tool result replaces one that cannot be read.
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
        self.fold.check(event, |seq| self.event(seq))
    }

    fn commit(&mut self, event: Arc<Event>, plan: Plan) {
        if let Plan::Replace { first, last } = plan {
            self.log
                .drop_kept(&self.fold.surface().nodes()[first..=last]);
        }
        let changed = self.fold.apply(&event, plan);
        self.derivation.invalidate(changed);
        self.log.push(event);
    }

    /// The surface as of the last event.
    pub fn surface(&self) -> &Surface {
        self.fold.surface()
    }

    /// What the model sees as of the last event. A snapshot, cheap to take and to keep; costs what is new.
    ///
    /// # Errors
    /// [`Error::Archive`] when a message has to be read and cannot.
    pub fn messages(&mut self) -> Result<Messages, Error> {
        self.derivation
            .current(self.fold.surface().nodes(), &self.log)
            .cloned()
    }

    /// The digest of [`Session::messages`]: a request is current when its own digest is this one.
    ///
    /// # Errors
    /// As [`Session::messages`].
    pub fn digest(&mut self) -> Result<Digest, Error> {
        self.derivation
            .current(self.fold.surface().nodes(), &self.log)
            .map(Messages::digest)
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
