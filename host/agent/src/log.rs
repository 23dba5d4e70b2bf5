//! The session's log as a run uses it: append with the time stamped, hand on,
//! wait for durability.
//!
//! Events are handed to sinks while the session's lock is held, so every
//! follower sees them in log order; a sink therefore only queues, and never
//! appends or reads the log itself.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_session::meter::TokenMeter;
use dsh_session::{Digest, Draft, Event, Json, Kind, Messages, Session};
use tokio::sync::mpsc;

use crate::error::AgentError;

/// Where the time of an event comes from.
pub trait Clock: Send + Sync {
    /// Milliseconds since the epoch.
    fn now_ms(&self) -> i64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        since.map_or(0, |elapsed| {
            i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
        })
    }
}

/// Takes every event as it is committed: the store's writer, a live view.
/// Called in log order and under the session's lock: queue and return.
pub trait EventSink: Send + Sync {
    /// One event, committed to memory and not yet durable.
    fn event(&self, event: &Arc<Event>);
}

/// The flush that barriers wait for (spec/session.md §11).
#[async_trait]
pub trait Durability: Send + Sync {
    /// Returns when everything appended before the call is durable.
    ///
    /// # Errors
    /// Why it could not be written, for people.
    async fn flush(&self) -> Result<(), String>;
}

/// Keeps nothing: for sessions that are not stored.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoDurability;

#[async_trait]
impl Durability for NoDurability {
    async fn flush(&self) -> Result<(), String> {
        Ok(())
    }
}

/// A shared session with its clock, its sinks and its barrier.
pub struct Log {
    session: Arc<Mutex<Session>>,
    clock: Arc<dyn Clock>,
    sinks: Mutex<Vec<Arc<dyn EventSink>>>,
    followers: Mutex<Vec<mpsc::UnboundedSender<Arc<Event>>>>,
    durability: Arc<dyn Durability>,
    /// Made when somebody first measures; folds what is new since the last time.
    meter: Mutex<Option<TokenMeter>>,
}

impl Log {
    /// Puts the parts together.
    #[must_use]
    pub fn new(
        session: Arc<Mutex<Session>>,
        clock: Arc<dyn Clock>,
        sinks: Vec<Arc<dyn EventSink>>,
        durability: Arc<dyn Durability>,
    ) -> Self {
        Self {
            session,
            clock,
            sinks: Mutex::new(sinks),
            followers: Mutex::default(),
            durability,
            meter: Mutex::default(),
        }
    }

    /// Appends one event, and hands it on.
    ///
    /// # Errors
    /// [`AgentError::Session`] when the log refuses it; nothing has changed then.
    pub fn append(&self, draft: Draft) -> Result<Arc<Event>, AgentError> {
        let mut session = self.lock();
        self.commit(&mut session, draft)
    }

    /// Appends an event beside the surface.
    ///
    /// # Errors
    /// As [`Log::append`].
    pub fn record(&self, kind: Kind, data: Json) -> Result<Arc<Event>, AgentError> {
        self.append(Draft::new(kind, data))
    }

    /// Appends what `plan` makes of the session as it is, with nothing of
    /// anyone else's in between; the first error leaves the rest out.
    ///
    /// # Errors
    /// As [`Log::append`], and what `plan` fails with.
    pub fn append_all<E: From<AgentError>>(
        &self,
        plan: impl FnOnce(&Session) -> Result<Vec<Draft>, E>,
    ) -> Result<Vec<Arc<Event>>, E> {
        let mut session = self.lock();
        let drafts = plan(&session)?;
        drafts
            .into_iter()
            .map(|draft| self.commit(&mut session, draft).map_err(E::from))
            .collect()
    }

    /// Looks at the session. `look` must not append.
    pub fn read<R>(&self, look: impl FnOnce(&Session) -> R) -> R {
        look(&self.lock())
    }

    /// Tokens that the next request would hold (spec/loop.md §11). Costs what is
    /// new since the last measure.
    ///
    /// # Errors
    /// [`AgentError::Session`] when a stored event cannot be read.
    pub fn measure(&self) -> Result<u64, AgentError> {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a sum of counts, which is no less than 0 and far below 2^53"
        )]
        self.metered(|_, meter| meter.total() as u64)
    }

    /// Looks at the session and at its token measure, as of the same event.
    pub(crate) fn metered<R>(
        &self,
        look: impl FnOnce(&Session, &TokenMeter) -> R,
    ) -> Result<R, AgentError> {
        let session = self.lock();
        let mut kept = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
        let meter = match kept.take() {
            Some(meter) => caught_up(meter, &session)?,
            None => TokenMeter::take_up(&session)?,
        };
        Ok(look(&session, kept.insert(meter)))
    }

    /// What the model sees now; folds what is new of the surface.
    ///
    /// # Errors
    /// [`AgentError::Session`] when a stored message cannot be read.
    pub fn messages(&self) -> Result<Messages, AgentError> {
        Ok(self.lock().messages()?)
    }

    /// The digest of what the model sees now.
    ///
    /// # Errors
    /// As [`Log::messages`].
    pub fn digest(&self) -> Result<Digest, AgentError> {
        Ok(self.lock().digest()?)
    }

    /// Waits until all that was appended so far is durable.
    ///
    /// # Errors
    /// [`AgentError::Durability`].
    pub async fn barrier(&self) -> Result<(), AgentError> {
        self.durability
            .flush()
            .await
            .map_err(AgentError::Durability)
    }

    /// Adds a sink, which gets every later event.
    pub fn attach(&self, sink: Arc<dyn EventSink>) {
        // The session's lock orders this against appends.
        let _session = self.lock();
        self.sinks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(sink);
    }

    /// Every later event, in order.
    pub fn follow(&self) -> mpsc::UnboundedReceiver<Arc<Event>> {
        let (follower, events) = mpsc::unbounded_channel();
        let _session = self.lock();
        self.followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(follower);
        events
    }

    /// The clock.
    pub fn now_ms(&self) -> i64 {
        self.clock.now_ms()
    }

    fn commit(&self, session: &mut Session, draft: Draft) -> Result<Arc<Event>, AgentError> {
        let event = session.append(draft, self.clock.now_ms())?;
        for sink in self
            .sinks
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .iter()
        {
            sink.event(&event);
        }
        // Who no longer listens is forgotten.
        let mut followers = self
            .followers
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        followers.retain(|follower| follower.send(Arc::clone(&event)).is_ok());
        Ok(event)
    }

    fn lock(&self) -> MutexGuard<'_, Session> {
        // A panic elsewhere does not make the log wrong: append commits whole events or nothing.
        self.session.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Folds what is new. Steps that do not fit cost the anchor, and nothing else: a
/// measure by the heuristic is better than none.
fn caught_up(mut meter: TokenMeter, session: &Session) -> Result<TokenMeter, AgentError> {
    for event in session.live_from(meter.next_seq()) {
        if meter.fold(event).is_err() {
            return Ok(TokenMeter::without_anchor(session)?);
        }
    }
    Ok(meter)
}
