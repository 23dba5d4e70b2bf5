//! The agent: one session's inbox and the one driver that empties it.
//!
//! All that decides between sending, waking, cancelling and ending happens
//! under one lock, so that a message sent while a turn ends either is claimed
//! by it or wakes the next one.

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use dsh_model::Models;
use dsh_plugin::CallContext;
use dsh_session::{Event, Json, Target};
use futures_util::FutureExt;
use tokio::sync::watch;

use crate::approval::Approvals;
use crate::cancel::{CancelCause, Signal};
use crate::compaction::{self, Compacted, CompactionError, Compactors};
use crate::dispatch::Dispatch;
use crate::error::AgentError;
use crate::greeting;
use crate::inbox::Inbox;
use crate::inbox_port::InboxPort;
use crate::log::{EventSink, Log};
use crate::message::Message;
use crate::ports::CallIdentity;
use crate::prompt::Prompts;
use crate::state::{Activity, Phase, State, Status, Wake};
use crate::titles::{TitleParts, Titles};
use crate::tools::{CallScope, Guard, ToolRegistry};
use crate::turn;

/// What an agent is set up with (spec/loop.md §1.8).
#[derive(Clone, Debug)]
pub struct AgentConfig {
    /// The route of requests, until something selects another.
    pub provider: String,
    /// The model at that route.
    pub model: String,
    /// An effort that was asked for; otherwise the log's or the adapter's.
    pub reasoning_effort: Option<String>,
    /// An output cap for the first request.
    pub max_tokens: Option<u32>,
    /// The working directory, as prompts name it.
    pub cwd: String,
    /// How many tool bodies may run side by side.
    pub max_parallel_tool_calls: usize,
}

impl AgentConfig {
    /// Ten bodies side by side, no cap, no effort.
    #[must_use]
    pub fn new(
        provider: impl Into<String>,
        model: impl Into<String>,
        cwd: impl Into<String>,
    ) -> Self {
        Self {
            provider: provider.into(),
            model: model.into(),
            reasoning_effort: None,
            max_tokens: None,
            cwd: cwd.into(),
            max_parallel_tool_calls: 10,
        }
    }
}

/// Why the agent starts, as `agent/session-start` tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StartSource {
    /// A new session.
    Startup,
    /// One that was there.
    Resume,
}

impl StartSource {
    /// As events have it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Startup => "startup",
            Self::Resume => "resume",
        }
    }
}

/// What an agent is made of.
pub struct Parts {
    /// Its session.
    pub log: Arc<Log>,
    /// The routes.
    pub models: Arc<Models>,
    /// Its tools.
    pub tools: Arc<ToolRegistry>,
    /// Its prompt.
    pub prompts: Prompts,
    /// Its listeners.
    pub dispatch: Arc<Dispatch>,
    /// Who makes its conversation shorter.
    pub compactors: Compactors,
    /// The host's own refusals.
    pub guards: Vec<Arc<dyn Guard>>,
    /// For whom components are called.
    pub identity: Arc<CallIdentity>,
    /// Its options.
    pub config: AgentConfig,
    /// New or resumed.
    pub source: StartSource,
    /// What names its session; without it, nothing does.
    pub titles: Option<TitleParts>,
    /// What of its ports puts input before it, to be told which agent it is.
    pub inbox: Option<Arc<InboxPort>>,
}

/// A running agent. Cheap to clone; all clones are the same agent.
#[derive(Clone)]
pub struct Agent {
    inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) log: Arc<Log>,
    pub(crate) models: Arc<Models>,
    pub(crate) tools: Arc<ToolRegistry>,
    pub(crate) prompts: Prompts,
    pub(crate) dispatch: Arc<Dispatch>,
    pub(crate) compactors: Compactors,
    pub(crate) approvals: Approvals,
    pub(crate) guards: Vec<Arc<dyn Guard>>,
    pub(crate) identity: Arc<CallIdentity>,
    pub(crate) config: AgentConfig,
    pub(crate) inbox: Inbox,
    pub(crate) titles: Titles,
    /// Whether this process has made a request of this session (spec/loop.md §4, item 6).
    pub(crate) requested: AtomicBool,
    pub(crate) width: AtomicUsize,
    /// Inputs that came from whoever holds the agent, rather than from a row.
    pub(crate) inputs: AtomicU64,
    /// Whether the listeners of its start were waited for.
    pub(crate) greeted: AtomicBool,
    state: Mutex<State>,
    status: watch::Sender<Status>,
    busy: watch::Sender<bool>,
}

impl Agent {
    /// Puts an agent together on its session, and tells `agent/session-start`.
    /// Pending input of a resumed session waits for a wake. Must be called inside
    /// the runtime that its turns are to run on.
    ///
    /// # Errors
    /// When the session's inbox cannot be read.
    pub fn new(parts: Parts) -> Result<Self, AgentError> {
        let last_turn = parts.log.read(dsh_session::Session::last_turn);
        let inner = Inner {
            inbox: Inbox::rebuild(Arc::clone(&parts.log), Arc::clone(&parts.dispatch))?,
            titles: Titles::new(parts.titles, &parts.log, &parts.identity)?,
            approvals: Approvals::new(Arc::clone(&parts.log), Arc::clone(&parts.dispatch)),
            log: parts.log,
            models: parts.models,
            tools: parts.tools,
            prompts: parts.prompts,
            dispatch: parts.dispatch,
            compactors: parts.compactors,
            guards: parts.guards,
            identity: parts.identity,
            width: AtomicUsize::new(parts.config.max_parallel_tool_calls),
            config: parts.config,
            requested: AtomicBool::new(false),
            inputs: AtomicU64::new(0),
            greeted: AtomicBool::new(false),
            state: Mutex::new(State::new(last_turn)),
            status: watch::Sender::new(Status::Idle),
            busy: watch::Sender::new(false),
        };
        let agent = Self {
            inner: Arc::new(inner),
        };
        let inner = &agent.inner;
        // Before anybody is told that there is an agent.
        if let Some(inbox) = parts.inbox {
            inbox.serve(&agent);
        }
        inner
            .log
            .attach(Arc::new(Telling(Arc::downgrade(&inner.dispatch))));
        greeting::tell(inner, parts.source);
        Ok(agent)
    }

    /// Puts a message into a list and, with `wake`, makes sure that it is taken
    /// up (spec/loop.md §1.3). Waking an activity that is being given up opens a
    /// turn after it, whatever the list. Must be called inside a tokio runtime.
    ///
    /// # Errors
    /// A message whose id waits already, or an agent that is gone.
    pub fn send(&self, message: &Message, target: Target, wake: bool) -> Result<(), AgentError> {
        self.inner.inputs.fetch_add(1, Ordering::Relaxed);
        Inner::send(&self.inner, message, target, wake)
    }

    /// For whoever must not keep the agent.
    pub(crate) fn downgrade(&self) -> Weak<Inner> {
        Arc::downgrade(&self.inner)
    }

    /// A prompt for a turn of its own.
    ///
    /// # Errors
    /// As [`Agent::send`].
    pub fn followup(&self, message: &Message) -> Result<(), AgentError> {
        self.send(message, Target::NextTurn, true)
    }

    /// Input for the next step of the turn that runs, or for a new one.
    ///
    /// # Errors
    /// As [`Agent::send`].
    pub fn steer(&self, message: &Message) -> Result<(), AgentError> {
        self.send(message, Target::NextStep, true)
    }

    /// Context for whatever step comes next.
    ///
    /// # Errors
    /// As [`Agent::send`].
    pub fn inject(&self, message: &Message) -> Result<(), AgentError> {
        self.send(message, Target::NextStep, false)
    }

    /// Takes back a message that waits; false when it was claimed before.
    ///
    /// # Errors
    /// When the log refuses the event.
    pub fn withdraw(&self, id: &str) -> Result<bool, AgentError> {
        Inner::withdraw(&self.inner, id)
    }

    /// Messages that wait in a list.
    #[must_use]
    pub fn pending(&self, target: Target) -> Vec<Json> {
        self.inner.inbox.list(target)
    }

    /// Gives up what runs; the first cause wins. Unless `keep_inbox`, what waits
    /// is discarded too (spec/loop.md §1.5).
    ///
    /// # Errors
    /// When the log refuses the events of the discard; what runs is aborted all the same.
    pub fn cancel(&self, cause: CancelCause, keep_inbox: bool) -> Result<(), AgentError> {
        let mut state = self.inner.lock();
        let cleared = if keep_inbox {
            Ok(())
        } else {
            self.inner.inbox.clear()
        };
        if let Some(activity) = state.activity() {
            if !keep_inbox {
                activity.wake = false;
                activity.discard = true;
            }
            activity.signal.abort(cause);
        }
        cleared
    }

    /// Waits until nothing runs and nothing is about to.
    pub async fn when_idle(&self) {
        let mut busy = self.inner.busy.subscribe();
        // The sender lives in `inner`, which this call keeps alive.
        let _ = busy.wait_for(|busy| !busy).await;
    }

    /// The public status, and its changes.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Status> {
        self.inner.status.subscribe()
    }

    /// Runs something that no turn may race: compaction by hand, a rewind. A
    /// wake meanwhile opens a turn after it (spec/loop.md §1.6).
    ///
    /// # Errors
    /// [`AgentError::Busy`] unless the agent is idle.
    pub async fn maintenance<T, F: Future<Output = T>>(
        &self,
        task: impl FnOnce(Signal) -> F,
    ) -> Result<T, AgentError> {
        let signal = Signal::new();
        {
            let mut state = self.inner.lock();
            if state.disposed {
                return Err(AgentError::Disposed);
            }
            if !matches!(state.phase, Phase::Idle) {
                return Err(AgentError::Busy);
            }
            state.phase = Phase::Maintenance(Activity {
                signal: signal.clone(),
                ..Activity::default()
            });
            self.inner.busy.send_replace(true);
        }
        let ended = EndOnDrop(&self.inner);
        let result = task(signal).await;
        drop(ended);
        Ok(result)
    }

    /// Names the session, as a person does: it ends the asking for titles, and
    /// nothing automatic replaces it.
    ///
    /// # Errors
    /// When nothing visible is left of the title, or the log refuses it.
    pub fn rename(&self, title: &str) -> Result<(), AgentError> {
        let max_bytes = self.inner.titles.limits().max_bytes;
        let draft = dsh_session::title::rename(title, max_bytes)?;
        self.inner.log.append(draft).map(drop)
    }

    /// Makes the conversation shorter because somebody asks for it: all but its
    /// newest part becomes a summary, on disk when this returns. `instructions`
    /// are a person's words to who writes it. None where nothing is worth it, and
    /// then nothing was logged (spec/loop.md §10.7).
    ///
    /// # Errors
    /// [`CompactionError`], by its [`kind`](CompactionError::kind); `busy` unless the agent is idle.
    pub async fn compact(
        &self,
        instructions: Option<String>,
    ) -> Result<Option<Compacted>, CompactionError> {
        self.compact_for(None, instructions).await
    }

    /// [`Agent::compact`] for a command that is logged itself, under this id.
    ///
    /// # Errors
    /// As [`Agent::compact`].
    pub async fn compact_for(
        &self,
        command_id: Option<&str>,
        instructions: Option<String>,
    ) -> Result<Option<Compacted>, CompactionError> {
        let inner = Arc::clone(&self.inner);
        let work = async move |signal: Signal| {
            let instructions = instructions.as_deref();
            compaction::by_hand(&inner, &signal, command_id, instructions).await
        };
        match self.maintenance(work).await {
            Ok(done) => done,
            Err(AgentError::Busy) => Err(CompactionError::Busy),
            Err(error) => Err(CompactionError::Commit(error)),
        }
    }

    /// Ends the agent: gives up what runs, waits for it, makes the log durable
    /// and tells observers the rest. What waits in the inbox stays in the log.
    ///
    /// # Errors
    /// [`AgentError::Durability`] when the last flush fails.
    pub async fn dispose(&self) -> Result<(), AgentError> {
        self.inner.lock().disposed = true;
        self.cancel(CancelCause::Disposed, true)?;
        self.when_idle().await;
        self.inner.titles.stop().await;
        greeting::farewell(&self.inner).await
    }

    /// How many tool bodies may run side by side, from the next group on.
    pub fn set_max_parallel_tool_calls(&self, width: usize) {
        self.inner.width.store(width.max(1), Ordering::Relaxed);
    }
}

/// Tells observers of every event: `session/event`. Listeners hold the log, so
/// the log must not hold them.
struct Telling(Weak<Dispatch>);

impl EventSink for Telling {
    fn event(&self, event: &Arc<Event>) {
        if let Some(dispatch) = self.0.upgrade() {
            dispatch.notify("session/event", Some(event.kind.as_str()), || {
                Json::restore(&event.line()).unwrap_or_else(|_| Json::null())
            });
        }
    }
}

struct EndOnDrop<'a>(&'a Arc<Inner>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        Inner::end_activity(self.0, &mut self.0.lock());
    }
}

impl Inner {
    /// Puts a message in, whoever it is from: see [`Agent::send`].
    pub(crate) fn send(
        inner: &Arc<Self>,
        message: &Message,
        target: Target,
        wake: bool,
    ) -> Result<(), AgentError> {
        let mut state = inner.lock();
        if state.disposed {
            return Err(AgentError::Disposed);
        }
        let after_abort = wake && state.winding_down();
        let target = if after_abort {
            Target::NextTurn
        } else {
            target
        };
        inner.inbox.push(target, message.json().clone())?;
        if wake && state.wake(after_abort) == Wake::Start {
            Self::start(inner, &mut state);
        }
        Ok(())
    }

    /// Takes back a message that waits.
    pub(crate) fn withdraw(&self, id: &str) -> Result<bool, AgentError> {
        let _state = self.lock();
        self.inbox.remove(id)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a turn's worth of activity.
    fn start(inner: &Arc<Self>, state: &mut State) {
        let activity = Activity::default();
        let signal = activity.signal.clone();
        state.phase = Phase::Running(activity);
        inner.busy.send_replace(true);
        inner.publish(state);
        tokio::spawn(Self::drive(Arc::clone(inner), signal));
    }

    /// Turns, one after another, while there is input for them (spec/loop.md §1.7, §2.1).
    async fn drive(inner: Arc<Self>, mut signal: Signal) {
        greeting::heard(&inner, &signal).await;
        loop {
            let turn = AssertUnwindSafe(turn::run(&inner, &signal))
                .catch_unwind()
                .await;
            let more = turn.unwrap_or_else(|_| {
                turn::close_after_panic(&inner);
                false
            });
            let mut state = inner.lock();
            if more && !signal.aborted() && !inner.inbox.is_empty() {
                let activity = Activity::default();
                signal = activity.signal.clone();
                state.phase = Phase::Running(activity);
                continue;
            }
            Self::end_activity(&inner, &mut state);
            return;
        }
    }

    fn end_activity(inner: &Arc<Self>, state: &mut State) {
        let again = state.end_activity() && !inner.inbox.is_empty() && !state.disposed;
        inner.compactors.answered();
        inner.publish(state);
        if again {
            Self::start(inner, state);
        } else {
            inner.busy.send_replace(false);
        }
    }

    fn publish(&self, state: &State) {
        let status = state.status();
        if self.status.send_replace(status) != status {
            self.dispatch.notify("agent/status", None, || {
                Json::object(|payload| {
                    payload.str("status", status.as_str());
                })
            });
        }
    }

    /// The number of the turn that is about to be opened.
    pub(crate) fn next_turn(&self) -> u64 {
        let mut state = self.lock();
        state.last_turn += 1;
        state.last_turn
    }

    /// Whether whoever gave up the activity wanted waiting input gone.
    pub(crate) fn discards(&self) -> bool {
        self.lock()
            .activity()
            .is_some_and(|activity| activity.discard)
    }

    /// What a component is called with on behalf of this turn.
    pub(crate) fn scope(&self, signal: &Signal) -> CallScope {
        CallScope {
            cancel: signal.token().child_token(),
            time_ms: self
                .log
                .read(|session| session.last().map_or(0, |event| event.time)),
        }
    }

    /// The context that an adapter is called with.
    pub(crate) fn adapter_context(&self, provider: &str, signal: &Signal) -> CallContext {
        self.identity
            .context(provider, "model", &self.scope(signal))
    }
}
