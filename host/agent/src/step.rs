//! One step, as the data goes (architecture.md, "One step, as the data goes";
//! spec/loop.md §2.2, §2.3). The functions stand in the order in which a step
//! runs through them:
//!
//! 1. [`Step::claim`]: from the inbox; the splice is logged first.
//! 2. [`Step::pre_step`]: the prompt's sections and facts, room on the surface
//!    where it is short of it, then the listeners.
//! 3. [`Step::enter`]: what entered is appended as `user/message`.
//! 4. [`request::build`]: the request, from the surface and nothing else.
//! 5. [`Step::exchange`]: one attempt at the provider, which `dsh-model` drives
//!    (`stream.rs`).
//! 6. [`Step::take_chunk`] and [`Step::answer`]: chunks into the log and the
//!    assembler, and at the end one `assistant/message`.
//! 7. [`Step::run_tools`]: the calls, scheduled.
//! 8. [`Step::barrier`]: waits for the store before a decision, a request, a body.

use std::future::Future;
use std::sync::atomic::Ordering;

use dsh_model::{BlockAssembler, FinishReason, LlmFailure, RetryPolicy};
use dsh_session::{Draft, Json, Kind, Seq, Target, Value};

use crate::agent::Inner;
use crate::cancel::Signal;
use crate::compaction;
use crate::dispatch::EventContext;
use crate::error::AgentError;
use crate::inbox::Claimed;
use crate::message::assistant;
use crate::prompt::Assembly;
use crate::request::{self, Built};
use crate::retry;
use crate::tools::{Call, Pipeline, Scheduler};
use crate::turn::Stop;

/// How a step ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The model is done, or a tool said that the turn is.
    Completed,
    /// The model ran into its output cap; no tool ran.
    MaxTokens,
    /// Tools ran; the model has yet to see what they gave.
    ToolsRan,
}

/// One step of a turn.
pub(crate) struct Step<'a> {
    pub(crate) agent: &'a Inner,
    pub(crate) signal: &'a Signal,
    pub(crate) turn: u64,
    pub(crate) step: u64,
    prompt: Assembly,
}

/// What an attempt brought.
pub(crate) struct Attempt {
    pub(crate) assembler: BlockAssembler,
    chunks: Vec<Seq>,
    pub(crate) provider: String,
    model: String,
    /// Whether it takes pictures, which tools are told.
    images: bool,
    policy: RetryPolicy,
}

impl<'a> Step<'a> {
    pub(crate) fn new(agent: &'a Inner, signal: &'a Signal, turn: u64, step: u64) -> Self {
        Self {
            agent,
            signal,
            turn,
            step,
            prompt: Assembly::default(),
        }
    }

    /// 1. Takes what waits.
    pub(crate) fn claim(&self, target: Target) -> Result<Claimed, Stop> {
        self.check()?;
        Ok(self.agent.inbox.claim(target)?)
    }

    /// 2. Puts the prompt together and lets the listeners decide what enters; none if they refuse.
    pub(crate) async fn pre_step(&mut self, claimed: &Claimed) -> Result<Option<Vec<Json>>, Stop> {
        let variables = self.variables()?;
        let scope = self.agent.scope(self.signal);
        let assembled =
            self.agent
                .prompts
                .assemble(&variables, &scope, &self.agent.dispatch, self.signal);
        self.prompt = self.unless_aborted(assembled).await??;
        // Not dropped when the turn is given up: it ends what it began in the log.
        compaction::pressure(self).await;
        self.check()?;
        // Looked at behind it, so that what was shadowed is told again at once.
        let candidate = self.snapshot();
        let decision = self.decide_entry(claimed, candidate).await?;
        self.barrier().await?;
        Ok(decision)
    }

    /// What prompt components are told: `{provider, model, cwd, tools}`, the
    /// last by name, as the model will see them.
    fn variables(&self) -> Result<Json, AgentError> {
        let config = &self.agent.config;
        let header = self.agent.log.read(dsh_session::Session::request_header);
        let logged = |member: &str| {
            let text = header
                .as_ref()
                .and_then(|header| header.config()?.get(member))
                .and_then(Value::text);
            text.map(std::borrow::Cow::into_owned)
        };
        let provider = logged("provider").unwrap_or_else(|| config.provider.clone());
        let model = logged("model").unwrap_or_else(|| config.model.clone());
        let tools = self.agent.tools.wire()?;
        Ok(Json::object(|variables| {
            variables
                .str("provider", &provider)
                .str("model", &model)
                .str("cwd", &config.cwd);
            variables.array("tools", |names| {
                for name in tools.iter().filter_map(|tool| tool.get("name")) {
                    names.value(name);
                }
            });
        }))
    }

    /// The runtime-context message, where the model does not know it yet.
    fn snapshot(&self) -> Option<Json> {
        let facts = self
            .prompt
            .context()
            .map(|section| (section.name.as_str(), section.text.as_str()));
        let message = self
            .agent
            .log
            .read(|session| crate::prompt::snapshot_candidate(session, facts));
        message.map(|message| message.json().clone())
    }

    async fn decide_entry(
        &self,
        claimed: &Claimed,
        candidate: Option<Json>,
    ) -> Result<Option<Vec<Json>>, Stop> {
        let enter = |messages: Vec<Json>| messages.into_iter().chain(candidate).collect::<Vec<_>>();
        if !self.agent.dispatch.listens("agent/pre-step", None) {
            return Ok(Some(enter(claimed.messages.clone())));
        }
        let list =
            |name: &str, messages: &[Json], head: &dyn Fn(&mut dsh_session::ObjectWriter<'_>)| {
                Json::object(|object| {
                    head(object);
                    object.array(name, |items| {
                        for message in messages {
                            items.json(message);
                        }
                    });
                })
            };
        let payload = list("messages", &claimed.messages, &|payload| {
            payload.u64("turn", self.turn).u64("step", self.step);
        });
        let context = self.context();
        let decided = self.agent.dispatch.waterfall(
            "agent/pre-step",
            None,
            payload,
            &context,
            |payload| async move {
                let messages = payload
                    .get("messages")
                    .into_iter()
                    .flat_map(Value::items)
                    .map(Value::to_json)
                    .collect();
                Ok::<_, AgentError>(list("messages", &enter(messages), &|decision| {
                    decision.str("kind", "enter");
                }))
            },
        );
        let decided = self.unless_aborted(decided).await?;
        let decided = decided
            .map_err(|error| Stop::Failed(LlmFailure::new("LISTENER_FAILED", error.to_string())))?;
        match decided.get("kind").and_then(Value::text).as_deref() {
            Some("reject") => Ok(None),
            Some("enter") => Ok(Some(
                decided
                    .get("messages")
                    .into_iter()
                    .flat_map(Value::items)
                    .map(Value::to_json)
                    .collect(),
            )),
            _ => Err(Stop::Failed(LlmFailure::new(
                "LISTENER_FAILED",
                "a listener of agent/pre-step decided neither enter nor reject",
            ))),
        }
    }

    /// 3. Brings messages before the model.
    pub(crate) fn enter(&self, messages: &[Json]) -> Result<(), AgentError> {
        for message in messages {
            self.agent
                .log
                .append(Draft::new(Kind::UserMessage, message.clone()).append())?;
        }
        Ok(())
    }

    /// Steps 4 to 7, again and again where a failed attempt is retried: in the
    /// same step, with a request built anew.
    pub(crate) async fn run(&self) -> Result<Outcome, Stop> {
        let system = self.prompt.system();
        self.agent.titles.entered();
        loop {
            let built = request::build(self, &system).await?;
            let attempt = self.exchange(built).await?;
            match attempt.assembler.finish() {
                FinishReason::Error(failure) | FinishReason::Aborted(failure) => {
                    let shorter = compaction::overflow(self, &failure).await;
                    self.check()?;
                    if shorter {
                        continue;
                    }
                    let (provider, policy) = (&attempt.provider, &attempt.policy);
                    let spoke = !attempt.assembler.blocks().is_empty();
                    if !retry::is_wanted(self, provider, policy, &failure, spoke).await? {
                        return Err(Stop::Failed(failure));
                    }
                }
                finish => {
                    let blocks = self.answer(&attempt)?;
                    if finish == FinishReason::MaxTokens {
                        return Ok(Outcome::MaxTokens);
                    }
                    return self.run_tools(&blocks, attempt.images).await;
                }
            }
        }
    }

    /// 5. One attempt at the provider, to its end.
    async fn exchange(&self, built: Built) -> Result<Attempt, Stop> {
        self.barrier().await?;
        built.check_against(&self.agent.log)?;
        let mut attempt = Attempt {
            assembler: BlockAssembler::new(),
            chunks: Vec::new(),
            provider: built.config.provider.clone(),
            model: built.config.model.clone(),
            images: built
                .call
                .as_ref()
                .is_ok_and(|call| call.model().takes_images()),
            policy: built.policy.clone(),
        };
        let taken = self.serve(built, &mut attempt).await;
        match taken {
            Ok(()) => Ok(attempt),
            Err(stop) => {
                if self.signal.aborted() {
                    self.interrupted(&attempt)?;
                }
                Err(stop)
            }
        }
    }

    /// 6. A chunk, as it came.
    pub(crate) fn take_chunk(&self, attempt: &mut Attempt, chunk: &Json) -> Result<(), Stop> {
        self.check()?;
        let data = Json::object(|data| {
            data.u64("turn", self.turn)
                .u64("step", self.step)
                .json("chunk", chunk);
        });
        attempt
            .chunks
            .push(self.agent.log.record(Kind::AssistantChunk, data)?.seq);
        attempt.assembler.push(chunk);
        Ok(())
    }

    /// 6. The whole answer, as one message on the surface; its blocks.
    fn answer(&self, attempt: &Attempt) -> Result<Vec<Json>, Stop> {
        let blocks = attempt.assembler.blocks();
        let replay_state = attempt.assembler.replay_state();
        let message = assistant(
            &blocks,
            &attempt.provider,
            &attempt.model,
            replay_state.as_ref(),
        );
        self.append_answer(attempt, &message, false)?;
        self.agent.compactors.answered();
        Ok(blocks)
    }

    /// What came before the turn was given up, if that says anything.
    fn interrupted(&self, attempt: &Attempt) -> Result<(), Stop> {
        let blocks = attempt.assembler.interrupted_blocks();
        if blocks.is_empty() {
            return Ok(());
        }
        let message = assistant(&blocks, &attempt.provider, &attempt.model, None);
        self.append_answer(attempt, &message, true)
    }

    fn append_answer(
        &self,
        attempt: &Attempt,
        message: &Json,
        interrupted: bool,
    ) -> Result<(), Stop> {
        let data = Json::object(|data| {
            data.u64("turn", self.turn)
                .u64("step", self.step)
                .json("message", message);
            if interrupted {
                data.bool("interrupted", true);
            }
            data.opt_json("usage", attempt.assembler.usage());
        });
        let draft = Draft::new(Kind::AssistantMessage, data)
            .append()
            .sources(attempt.chunks.clone());
        self.agent.log.append(draft)?;
        Ok(())
    }

    /// 7. The calls of a message, if it has any.
    async fn run_tools(&self, blocks: &[Json], images: bool) -> Result<Outcome, Stop> {
        let is_call = |block: &&Json| {
            block
                .get("type")
                .and_then(Value::string)
                .is_some_and(|kind| kind.is("tool-call"))
        };
        let calls: Vec<Call> = blocks
            .iter()
            .filter(is_call)
            .map(|block| Call::read(block.value()))
            .collect();
        if calls.is_empty() {
            return Ok(Outcome::Completed);
        }
        let agent = self.agent;
        let scheduler = Scheduler {
            pipeline: Pipeline {
                tools: &agent.tools,
                dispatch: &agent.dispatch,
                approvals: &agent.approvals,
                guards: &agent.guards,
                log: &agent.log,
                signal: self.signal,
                turn: self.turn,
                step: self.step,
                images,
            },
            inbox: &agent.inbox,
            width: &|| agent.width.load(Ordering::Relaxed),
        };
        let concluded = scheduler.run(&calls).await?;
        Ok(if concluded {
            Outcome::Completed
        } else {
            Outcome::ToolsRan
        })
    }

    /// 8. Waits until what was logged so far is durable.
    async fn barrier(&self) -> Result<(), Stop> {
        self.check()?;
        self.agent.dispatch.flush(&self.agent.log).await?;
        self.check()
    }

    pub(crate) fn check(&self) -> Result<(), Stop> {
        if self.signal.aborted() {
            Err(Stop::Aborted)
        } else {
            Ok(())
        }
    }

    pub(crate) fn context(&self) -> EventContext {
        EventContext {
            signal: self.signal.clone(),
        }
    }

    /// Waits for something, but not for longer than the turn lives.
    pub(crate) async fn unless_aborted<T>(&self, work: impl Future<Output = T>) -> Result<T, Stop> {
        tokio::select! {
            biased;
            () = self.signal.cancelled() => Err(Stop::Aborted),
            done = work => Ok(done),
        }
    }
}
