//! A session's title: the host's own one, and those that components propose
//! (spec/session.md §10.4, spec/loop.md §14).
//!
//! - The host's own is the first words of the first prompt. It is logged right
//!   behind the messages that a step brought in, and before the request that they
//!   lead to, so that every session that was asked something has a name, and
//!   always at the same place of its log.
//! - A component is asked beside the turn, once the request's route is logged, as
//!   a title is asked for on that route. What it asks a model is in the log before
//!   the answer's first chunk: the chunk waits for that, no longer than
//!   [`PATIENCE`]. The request itself waits for nothing.
//! - The latest title wins. A person's own ends the asking, and nothing automatic
//!   replaces it.
//! - No title is worth a run: what fails is left out without a word, and an agent
//!   that is disposed of does not wait for a model that is still asked.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use dsh_plugin::CallContext;
use dsh_plugin::api::{JsonText, PluginError};
use dsh_plugin::port::{Answer, Llm, PortSet, Question};
use dsh_session::title::{self, Generation, Limits, Proposal, Request};
use dsh_session::{Event, Json, Kind, Seq, Session};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::auxiliary::LlmPort;
use crate::error::AgentError;
use crate::log::{EventSink, Log};
use crate::ports::CallIdentity;
use crate::tools::CallScope;

/// How long the first chunk of an answer waits for the title's request to be logged.
const PATIENCE: Duration = Duration::from_secs(1);

/// What a title may cost in output where its component does not say.
const MAX_TOKENS: u32 = 64;

/// What proposes a title: a component, as a run has it.
#[async_trait]
pub trait Proposer: Send + Sync {
    /// A title from the session's human prompts, each the message with its `seq`.
    ///
    /// # Errors
    /// Why there is none; nobody is told.
    async fn propose(
        &self,
        context: &CallContext,
        prompts: Vec<JsonText>,
        current: Option<String>,
    ) -> Result<Option<String>, PluginError>;
}

#[async_trait]
impl Proposer for dsh_plugin::Title {
    async fn propose(
        &self,
        context: &CallContext,
        prompts: Vec<JsonText>,
        current: Option<String>,
    ) -> Result<Option<String>, PluginError> {
        let proposed = self.propose(context, prompts, current).await;
        proposed.map_err(dsh_plugin::CallError::into_plugin_error)
    }
}

/// A component that proposes titles.
pub struct Titler {
    /// Its row.
    pub row: String,
    /// Who it is in the log: `titleProvider`, and the provider of a title's source.
    pub provider: String,
    /// The plugin that its messages to a model are marked with.
    pub source: String,
    /// What is called.
    pub title: Arc<dyn Proposer>,
}

/// What titles are made with.
#[derive(Default)]
pub struct TitleParts {
    /// How long they may be.
    pub limits: Limits,
    /// Who is asked, in this order, until one proposes.
    pub titlers: Vec<Titler>,
    /// What they ask models with.
    pub llm: Option<LlmPort>,
}

/// The titles of one agent; nothing where it was given no parts.
pub(crate) struct Titles(Option<Arc<Driver>>);

struct Driver {
    parts: TitleParts,
    log: Arc<Log>,
    identity: Arc<CallIdentity>,
    state: Arc<Mutex<State>>,
    asking: Mutex<Option<JoinHandle<()>>>,
}

struct State {
    titles: title::Titles,
    is_fork: bool,
    /// What is to be asked with the next request.
    due: Option<Request>,
    /// Ends what is asked now.
    running: Option<CancellationToken>,
}

/// Follows the log. It holds nothing of the log's, which holds it.
struct Folding(Arc<Mutex<State>>);

impl EventSink for Folding {
    fn event(&self, event: &Arc<Event>) {
        if !matches!(event.kind, Kind::UserMessage | Kind::SessionTitle) {
            return;
        }
        let mut state = lock(&self.0);
        state.titles.fold(event);
        if state.titles.is_pinned() {
            state.due = None;
            if let Some(running) = state.running.take() {
                running.cancel();
            }
        } else if let Some(request) =
            state
                .titles
                .generation_due(Generation::FirstPrompt, event.seq, state.is_fork)
        {
            state.due = Some(request);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Titles {
    /// Takes up a session where it is.
    pub(crate) fn new(
        parts: Option<TitleParts>,
        log: &Arc<Log>,
        identity: &Arc<CallIdentity>,
    ) -> Result<Self, AgentError> {
        let Some(parts) = parts else {
            return Ok(Self(None));
        };
        let mut titles = title::Titles::with_limits(parts.limits);
        let is_fork = log.read(|session| {
            known(session, &mut titles)?;
            Ok::<_, AgentError>(session.header().parent_session.is_some())
        })?;
        let state = Arc::new(Mutex::new(State {
            titles,
            is_fork,
            due: None,
            running: None,
        }));
        log.attach(Arc::new(Folding(Arc::clone(&state))));
        Ok(Self(Some(Arc::new(Driver {
            parts,
            log: Arc::clone(log),
            identity: Arc::clone(identity),
            state,
            asking: Mutex::default(),
        }))))
    }

    /// Messages were brought before the model: the session gets a name, if it has
    /// none. A log that refuses it refuses the step's next event too.
    pub(crate) fn entered(&self) {
        let Some(driver) = &self.0 else { return };
        let appended = driver.log.append_all(|_| {
            let due = lock(&driver.state).titles.fallback_due();
            Ok::<_, AgentError>(due.into_iter().collect())
        });
        drop(appended);
    }

    /// A request goes out, and its route is logged: asks for a title beside it, if
    /// one is due.
    pub(crate) fn begin(&self) -> Option<Begun> {
        let driver = self.0.as_ref()?;
        if driver.parts.titlers.is_empty() {
            return None;
        }
        let cancel = CancellationToken::new();
        let request = {
            let mut state = lock(&driver.state);
            let request = state.due.take()?;
            state.running = Some(cancel.clone());
            request
        };
        let (logged, begun) = oneshot::channel();
        let asking = Arc::clone(driver);
        let task = tokio::spawn(async move {
            tokio::select! {
                biased;
                () = cancel.cancelled() => {}
                () = asking.ask(&request, logged, &cancel) => {}
            }
        });
        *lock(&driver.asking) = Some(task);
        Some(Begun(begun))
    }

    /// Gives up what is asked; returns when nothing of it runs.
    pub(crate) async fn stop(&self) {
        let Some(driver) = &self.0 else { return };
        let asking = lock(&driver.asking).take();
        if let Some(asking) = asking {
            asking.abort();
            let _ = asking.await;
        }
    }

    /// How long titles may be.
    pub(crate) fn limits(&self) -> Limits {
        self.0
            .as_ref()
            .map(|driver| driver.parts.limits)
            .unwrap_or_default()
    }
}

/// What of a log decides which title is due: the title that it has, or else the
/// first prompt. Not the whole log: a long one is not read for a name.
fn known(session: &Session, titles: &mut title::Titles) -> Result<(), AgentError> {
    if let Some(named) = session.last_of(&Kind::SessionTitle) {
        titles.fold(named);
        return Ok(());
    }
    // Who has no message at all is found out without a look at any event.
    if session.last_of(&Kind::UserMessage).is_none() {
        return Ok(());
    }
    for event in session.events_from(Seq(0)) {
        let event = event.map_err(AgentError::from)?;
        titles.fold(&event);
        if !titles.prompts().is_empty() {
            break;
        }
    }
    Ok(())
}

/// A title is asked for.
pub(crate) struct Begun(oneshot::Receiver<()>);

impl Begun {
    /// Returns when what is asked is logged, or nothing will be; or when that
    /// takes too long.
    pub(crate) async fn logged(self) {
        let _ = tokio::time::timeout(PATIENCE, self.0).await;
    }
}

impl Driver {
    /// Asks one component after another, and logs what the first one proposes.
    async fn ask(
        &self,
        request: &Request,
        logged: oneshot::Sender<()>,
        cancel: &CancellationToken,
    ) {
        let mut logged = Some(logged);
        // Of a log that cannot be read, whoever needs more of it says so.
        let Ok(prompts) = self.messages(request) else {
            return;
        };
        for titler in &self.parts.titlers {
            let asked = Arc::new(Asked {
                log: Arc::clone(&self.log),
                port: self.parts.llm.clone(),
                provider: titler.provider.clone(),
                source: titler.source.clone(),
                seqs: request.prompts.iter().map(|prompt| prompt.seq).collect(),
                logged: Mutex::new(logged.take()),
                route: Mutex::default(),
            });
            let scope = CallScope {
                cancel: cancel.child_token(),
                time_ms: self
                    .log
                    .read(|session| session.last().map_or(0, |event| event.time)),
            };
            let mut context = self.identity.context(&titler.row, "title", &scope);
            context.ports = Arc::new(PortSet {
                llm: Some(Arc::<Asked>::clone(&asked)),
                ..PortSet::clone(&context.ports)
            });
            let current = lock(&self.state).titles.title();
            let proposed = titler.title.propose(
                &context,
                prompts.clone(),
                current.map(|title| title.to_string()),
            );
            if let Ok(Some(title)) = proposed.await
                && self.accept(request, titler, &asked, &title)
            {
                return;
            }
            logged = lock(&asked.logged).take();
        }
    }

    /// The prompts as a component is told them: each the message, with its seq.
    fn messages(&self, request: &Request) -> Result<Vec<String>, AgentError> {
        let message = |seq: Seq| {
            let event = self.log.read(|session| session.event(seq))?;
            Ok(event.map(|event| {
                let message = Json::object(|message| {
                    message.u64("seq", seq.0);
                    for (key, value) in event.data.value().entries() {
                        message.value(&key.decode(), value);
                    }
                });
                message.as_str().to_owned()
            }))
        };
        request
            .prompts
            .iter()
            .filter_map(|prompt| message(prompt.seq).transpose())
            .collect()
    }

    /// Logs a proposal; whether that was one to log.
    fn accept(&self, request: &Request, titler: &Titler, asked: &Asked, title: &str) -> bool {
        let route = lock(&asked.route).clone();
        let title = Json::string(title);
        let proposal = Proposal {
            title: title.value(),
            message_seqs: &asked.seqs,
            provider: &titler.provider,
            model: route
                .as_ref()
                .map(|(provider, model)| (provider.as_str(), model.as_str())),
        };
        let appended = self.log.append_all(|_| {
            let draft = lock(&self.state).titles.accept(request, proposal)?;
            Ok::<_, AgentError>(draft.into_iter().collect())
        });
        appended.is_ok()
    }
}

/// `llm` while a title is proposed: what is asked is logged first, in the log's
/// own vocabulary.
struct Asked {
    log: Arc<Log>,
    port: Option<LlmPort>,
    provider: String,
    source: String,
    seqs: Vec<Seq>,
    /// Told once something is logged.
    logged: Mutex<Option<oneshot::Sender<()>>>,
    /// Of the newest answer.
    route: Mutex<Option<(String, String)>>,
}

#[async_trait]
impl Llm for Asked {
    async fn ask(&self, row: &str, question: Question) -> Result<Answer, PluginError> {
        let Some(port) = &self.port else {
            return Err(PluginError::unavailable("model to ask"));
        };
        let question = Question {
            purpose: "session-title".to_owned(),
            ..question
        };
        let mut prompt = port.prompt(question, &self.source)?;
        let max_tokens = *prompt.config.max_tokens.get_or_insert(MAX_TOKENS);
        let route = (prompt.config.provider.clone(), prompt.config.model.clone());
        let data = Json::object(|data| {
            data.str("titleProvider", &self.provider);
            data.array("messageSeqs", |seqs| {
                for seq in &self.seqs {
                    seqs.u64(seq.0);
                }
            });
            data.object("route", |to| {
                to.str("provider", &route.0).str("model", &route.1);
            });
            data.str("system", prompt.system.as_deref().unwrap_or_default());
            data.array("messages", |list| {
                for message in &prompt.messages {
                    list.json(message);
                }
            });
            data.u64("maxTokens", u64::from(max_tokens));
        });
        let recorded = self.log.record(Kind::SessionTitleLlmRequest, data);
        recorded.map_err(|error| PluginError::new(error.code(), error.to_string()))?;
        if let Some(logged) = lock(&self.logged).take() {
            let _ = logged.send(());
        }
        let answer = port.call(row, prompt).await?;
        *lock(&self.route) = Some(route);
        Ok(answer)
    }

    fn spent(&self, row: &str) -> u64 {
        self.port.as_ref().map_or(0, |port| port.spent(row))
    }
}
