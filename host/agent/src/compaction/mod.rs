//! Making the surface smaller before it no longer fits (spec/loop.md §10).
//!
//! Rows choose what goes and write the text that stands for it. Everything that
//! could do harm is the host's: it measures, refuses a range that would part a
//! call from its result and a text that is empty or no shorter, makes sure that
//! the surface is still the one that was read, and commits the whole as one
//! transaction. So a row can waste a summary, and cannot lose a conversation.
//!
//! **When.** Before each step (`pressure`), after input was claimed and the
//! prompt assembled; what was claimed is not on the surface yet and is never
//! compacted. Inside a step whose request the provider refused as too long
//! (`overflow`). When somebody asks, between turns (`by_hand`).
//!
//! **Who.** Rows are asked in row order, each with a fresh measure after every
//! plan that was carried out. The first that wants to summarise decides. A trim
//! is the cheaper half and goes first: where one row wants to summarise, those
//! before it that had nothing to say are asked once more and told so, and all
//! trims of the round are carried out instead, then everybody is asked again. A
//! trim by itself does nothing, so that a row which only trims needs no threshold
//! of its own. A compaction by hand trims nothing.
//!
//! **When it fails.** Under pressure every failure is a line on stderr, once for
//! each cause, and the step goes on: the provider has the last word on what fits.
//! After three failures in a row a row of them is not bought on every step: see
//! `Breaker`.

mod breaker;
mod component;
mod error;
mod frame;
mod rounds;
mod selection;
mod transaction;
mod trim;

use std::collections::HashSet;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use dsh_model::LlmFailure;
use dsh_plugin::api::{JsonText, Plan, PluginError, Situation, Summary, Trigger};
use dsh_session::{Kind, Session};

pub use component::ComponentCompactor;
pub use error::CompactionError;

use crate::agent::Inner;
use crate::cancel::Signal;
use crate::last_request::last_request;
use crate::step::Step;
use crate::tools::CallScope;
use breaker::{Breaker, Mark};
use rounds::Rounds;

/// What providers' adapters call a request that is too long.
const TOO_LONG: &str = "CONTEXT_WINDOW_EXCEEDED";

/// The one model call that a summary was written with, as the host saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelCall {
    /// All content blocks of its answer.
    pub content: Vec<JsonText>,
    /// What the provider counted.
    pub usage: Option<JsonText>,
    /// The configuration that it ran with: `{provider, model, maxTokens?, …}`.
    pub config: JsonText,
}

/// What a row wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The text, and how it says that it was made.
    pub summary: Summary,
    /// Where it was made by exactly one call of a model: that call. What it says
    /// then counts for more than what the row says.
    pub call: Option<ModelCall>,
}

/// A row that compacts.
#[async_trait]
pub trait Compactor: Send + Sync {
    /// The row, as errors name it.
    fn row(&self) -> &str;

    /// What it wants done.
    ///
    /// # Errors
    /// It is left out of this round.
    async fn choose(&self, situation: &Situation, scope: &CallScope) -> Result<Plan, PluginError>;

    /// The text that is to stand for these nodes, first and last.
    ///
    /// # Errors
    /// The compaction fails with it.
    async fn summarise(
        &self,
        situation: &Situation,
        nodes: (u32, u32),
        scope: &CallScope,
    ) -> Result<Written, PluginError>;
}

/// Told of a compaction that failed or pauses, a line for people.
type Tell = dyn Fn(&str) + Send + Sync;

/// The rows that compact, in order, and how that has been going.
#[derive(Default)]
pub struct Compactors {
    rows: Vec<Arc<dyn Compactor>>,
    tell: Option<Box<Tell>>,
    told: Mutex<HashSet<String>>,
    breaker: Mutex<Breaker>,
    /// Recoveries from overflow since the last response.
    recoveries: AtomicU32,
}

/// A compaction that was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Compacted {
    /// Its id in the log.
    pub id: String,
    /// How many nodes of the surface the summary stands for.
    pub nodes: usize,
    /// Estimated tokens that they had.
    pub before: u64,
    /// Estimated tokens that the summary has.
    pub after: u64,
}

impl Compactors {
    /// Of these rows. `tell` hears what went wrong, once for each cause.
    #[must_use]
    pub fn new(rows: Vec<Arc<dyn Compactor>>, tell: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self {
            rows,
            tell: Some(Box::new(tell)),
            ..Self::default()
        }
    }

    /// The model answered, or nothing runs any more: recoveries are counted anew.
    pub(crate) fn answered(&self) {
        self.recoveries.store(0, Ordering::Relaxed);
    }

    fn breaker(&self) -> MutexGuard<'_, Breaker> {
        self.breaker.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Says it, unless it was said before.
    fn say(&self, cause: String, line: impl FnOnce() -> String) {
        let mut told = self.told.lock().unwrap_or_else(PoisonError::into_inner);
        if told.insert(cause)
            && let Some(tell) = &self.tell
        {
            tell(&line());
        }
    }

    fn say_failed(&self, route: &str, error: &CompactionError) {
        // Who gave up knows.
        if !matches!(error, CompactionError::Cancelled) {
            self.say(format!("{route} {}", error.cause()), || {
                format!("the conversation could not be made shorter: {error}")
            });
        }
    }
}

/// The route of the last request, and how the surface stands.
fn mark(session: &Session, turn: u64) -> Option<Mark> {
    // Read where it stands: a header is long, and this is asked before every step.
    let header = session.last_of(&Kind::RequestHeader)?;
    let member = |name: &str| {
        let text = header
            .data
            .value()
            .path(&["header", "config", name])?
            .text()?;
        Some(text.into_owned())
    };
    Some(Mark {
        route: format!("{}/{}", member("provider")?, member("model")?),
        generation: session.surface().replace_generation(),
        turn,
    })
}

/// Whether the model that a run asks first is the one that the session asked last, and
/// which was `logged` last.
fn goes_on(agent: &Inner, logged: &str, session: &Session) -> bool {
    let chosen = format!("{}/{}", agent.config.provider, agent.config.model);
    let asked = last_request(session).and_then(|header| {
        let part = |name: &str| Some(header.config()?.get(name)?.text()?.into_owned());
        Some(format!("{}/{}", part("provider")?, part("model")?))
    });
    logged == chosen && asked.as_deref() == Some(logged)
}

/// Before a step: whatever the rows want done. Never fails, and the step goes on.
pub(crate) async fn pressure(step: &Step<'_>) {
    let agent = step.agent;
    let compactors = &agent.compactors;
    if compactors.rows.is_empty() {
        return;
    }
    // Before the first request of a session nothing was sent that could be too long.
    let Some(now) = agent.log.read(|session| mark(session, step.turn)) else {
        return;
    };
    // Nor is the window known of a model that was not asked before this run: what is
    // logged is another one's.
    if !agent.requested.load(Ordering::Acquire)
        && !agent
            .log
            .read(|session| goes_on(agent, &now.route, session))
    {
        return;
    }
    if !compactors.breaker().allows(&now) {
        return;
    }
    let rounds = Rounds::new(
        agent,
        step.signal,
        Trigger::Pressure,
        Some(step.turn),
        &now.route,
    );
    match rounds.run().await {
        Ok(done) if done.carried == 0 => {}
        Ok(_) => compactors.breaker().succeeded(),
        Err(CompactionError::Cancelled) => {}
        Err(error) => {
            compactors.say_failed(&now.route, &error);
            let after = agent.log.read(|session| mark(session, step.turn));
            if compactors.breaker().failed(after.unwrap_or(now)) {
                compactors.say("paused".to_owned(), || {
                    "compaction failed three times in a row and pauses; it is tried again in the next turn, or when the model or the conversation has changed".to_owned()
                });
            }
        }
    }
}

/// A request was refused: whether it was too long and is shorter now, so that it
/// is worth sending again.
pub(crate) async fn overflow(step: &Step<'_>, failure: &LlmFailure) -> bool {
    let agent = step.agent;
    let compactors = &agent.compactors;
    if failure.code != TOO_LONG || compactors.rows.is_empty() {
        return false;
    }
    let Some(before) = agent.log.read(|session| mark(session, step.turn)) else {
        return false;
    };
    let rounds = Rounds::new(
        agent,
        step.signal,
        Trigger::Overflow,
        Some(step.turn),
        &before.route,
    );
    if let Err(error) = rounds.run().await {
        compactors.say_failed(&before.route, &error);
    }
    // Also where the summary failed after something was trimmed.
    let generation = |session: &Session| session.surface().replace_generation();
    if agent.log.read(generation) == before.generation {
        return false;
    }
    compactors.recoveries.fetch_add(1, Ordering::Relaxed);
    true
}

/// Because somebody asked, between turns: everything but the newest.
pub(crate) async fn by_hand(
    agent: &Inner,
    signal: &Signal,
    command: Option<&str>,
    instructions: Option<&str>,
) -> Result<Option<Compacted>, CompactionError> {
    let route = agent.log.read(|session| mark(session, 0));
    let route = route.map_or_else(String::new, |mark| mark.route);
    let mut rounds = Rounds::new(agent, signal, Trigger::Manual, None, &route);
    rounds.command = command;
    rounds.instructions = instructions;
    let done = rounds.run().await?;
    if done.compacted.is_some() {
        agent.compactors.breaker().succeeded();
        let flushed = agent.log.barrier().await;
        flushed.map_err(CompactionError::Persistence)?;
    }
    Ok(done.compacted)
}

/// Whether a compaction began and never ended: it locks the session for others
/// until that is opened anew, as nobody can know what became of it.
fn locked(session: &Session) -> bool {
    let at = |kind: &Kind| session.last_of(kind).map(|event| event.seq);
    let started = at(&Kind::CompactionStart);
    started.is_some() && started > at(&Kind::CompactionEnd) && started > at(&Kind::SessionEndSeed)
}
