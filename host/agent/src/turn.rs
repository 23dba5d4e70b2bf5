//! A turn: steps until there is nothing left to answer (spec/loop.md §2.1).
//!
//! Every `turn/start` gets exactly one `turn/end`, and every `step/start` its
//! `step/end`, on whatever way the turn ends. Input that a step claimed and did
//! not bring before the model is put back, or its refusal is logged; upstream
//! loses it.

use dsh_model::LlmFailure;
use dsh_session::{Draft, Json, Kind, Target, Value};

use crate::agent::Inner;
use crate::cancel::Signal;
use crate::dispatch::EventContext;
use crate::error::AgentError;
use crate::inbox::Claimed;
use crate::step::{Outcome, Step};

/// Ends a turn that cannot go on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The signal says why.
    Aborted,
    /// Something failed.
    Failed(LlmFailure),
}

impl From<AgentError> for Stop {
    fn from(error: AgentError) -> Self {
        Self::Failed(LlmFailure::new(error.code(), error.to_string()))
    }
}

/// How a turn ends by itself.
enum End {
    /// With an answer.
    Completed,
    /// The model ran into its output cap.
    MaxTokens,
    /// A listener refused its input.
    Blocked,
    /// It had no input.
    Empty,
}

/// Runs one turn; whether the driver may open another.
pub(crate) async fn run(agent: &Inner, signal: &Signal) -> bool {
    if signal.aborted() {
        return false;
    }
    let turn = agent.next_turn();
    let started = Json::object(|data| {
        data.u64("turn", turn);
    });
    if let Err(error) = agent.log.record(Kind::TurnStart, started) {
        report(
            agent,
            turn,
            0,
            &LlmFailure::new(error.code(), error.to_string()),
        );
        return false;
    }
    let mut work = Turn {
        agent,
        signal,
        turn,
        step: 0,
    };
    let end = work.steps().await;
    let (reason, more) = match end {
        Ok(End::Completed) => (kind("completed"), true),
        Ok(End::MaxTokens) => (kind("max-tokens"), true),
        Ok(End::Blocked) => (kind("blocked"), false),
        Ok(End::Empty) => (kind("completed"), false),
        Err(Stop::Aborted) => (aborted(signal), false),
        Err(Stop::Failed(_)) if signal.aborted() => (aborted(signal), false),
        Err(Stop::Failed(failure)) => {
            report(agent, turn, work.step, &failure);
            (failed(&failure), false)
        }
    };
    let ended = agent.log.record(Kind::TurnEnd, turn_end(turn, &reason));
    if let Err(error) = &ended {
        report(
            agent,
            turn,
            work.step,
            &LlmFailure::new(error.code(), error.to_string()),
        );
    }
    more && ended.is_ok()
}

/// Closes what a panic left open, so that the log stays one that pairs.
pub(crate) fn close_after_panic(agent: &Inner) {
    let failure = LlmFailure::new(
        "UNKNOWN",
        "the turn crashed inside of the host; this is a defect of dsh",
    );
    let (turn, step) = agent.log.read(|session| {
        let open = |start: &Kind, end: &Kind| {
            let started = session.last_of(start)?;
            let ended = session.last_of(end).map(|event| event.seq);
            (ended < Some(started.seq)).then(|| started.data.clone())
        };
        (
            open(&Kind::TurnStart, &Kind::TurnEnd),
            open(&Kind::StepStart, &Kind::StepEnd),
        )
    });
    let Some(turn) = turn.and_then(|data| data.get("turn").and_then(Value::u64)) else {
        return;
    };
    let step_number = step
        .as_ref()
        .and_then(|data| data.get("step"))
        .and_then(Value::u64)
        .unwrap_or(0);
    report(agent, turn, step_number, &failure);
    if let Some(step) = step {
        let _ = agent.log.record(Kind::StepEnd, step);
    }
    let _ = agent
        .log
        .record(Kind::TurnEnd, turn_end(turn, &failed(&failure)));
}

struct Turn<'a> {
    agent: &'a Inner,
    signal: &'a Signal,
    turn: u64,
    /// The last step that was opened.
    step: u64,
}

impl Turn<'_> {
    async fn steps(&mut self) -> Result<End, Stop> {
        let mut target = Target::NextTurn;
        let mut held: Option<End> = None;
        // Tools ran and the model has not seen what they gave.
        let mut unanswered = false;
        loop {
            let mut step = Step::new(self.agent, self.signal, self.turn, self.step + 1);
            let claimed = step.claim(target)?;
            let entry = step.pre_step(&claimed).await;
            let messages = match entry {
                Ok(Some(messages)) => messages,
                Ok(None) => {
                    self.log_rejected(&claimed)?;
                    return Ok(End::Blocked);
                }
                Err(stop) => return Err(self.give_back(claimed, stop)),
            };
            if messages.is_empty() && !unanswered {
                if let Some(end) = held {
                    return Ok(end);
                }
                if self.step == 0 {
                    return Ok(End::Empty);
                }
            }
            if self.signal.aborted() {
                return Err(self.give_back(claimed, Stop::Aborted));
            }
            self.step += 1;
            match self.run_step(&step, &messages).await? {
                Outcome::ToolsRan => {
                    unanswered = true;
                    held = held.filter(|end| matches!(end, End::MaxTokens));
                }
                Outcome::Completed => {
                    unanswered = false;
                    held = held
                        .filter(|end| matches!(end, End::MaxTokens))
                        .or(Some(End::Completed));
                }
                Outcome::MaxTokens => {
                    unanswered = false;
                    held = Some(End::MaxTokens);
                }
            }
            step.check()?;
            if let Some(end) = held.take_if(|_| !unanswered && self.next_step_is_empty()) {
                self.turn_stopping().await?;
                if self.next_step_is_empty() {
                    return Ok(end);
                }
                held = Some(end);
            }
            target = Target::NextStep;
        }
    }

    /// Opens the step, brings the messages in, runs it, and closes it whatever happened.
    async fn run_step(&self, step: &Step<'_>, messages: &[Json]) -> Result<Outcome, Stop> {
        let opened = Json::object(|data| {
            data.u64("turn", self.turn).u64("step", self.step);
        });
        self.agent.log.record(Kind::StepStart, opened.clone())?;
        let outcome = match step.enter(messages) {
            Ok(()) => step.run().await,
            Err(error) => Err(error.into()),
        };
        self.agent.log.record(Kind::StepEnd, opened)?;
        outcome
    }

    fn next_step_is_empty(&self) -> bool {
        self.agent.inbox.list(Target::NextStep).is_empty()
    }

    /// The last chance to go on: a listener may give the turn more input.
    async fn turn_stopping(&self) -> Result<(), Stop> {
        if !self.agent.dispatch.listens("agent/turn-stopping", None) {
            return Ok(());
        }
        let payload = Json::object(|payload| {
            payload.u64("turn", self.turn);
        });
        let context = EventContext {
            signal: self.signal.clone(),
        };
        let asked = self
            .agent
            .dispatch
            .decide("agent/turn-stopping", None, &payload, &context);
        let answer = tokio::select! {
            biased;
            () = self.signal.cancelled() => return Err(Stop::Aborted),
            answer = asked => answer,
        };
        // The event leaves failing listeners out, so there is no error to see here.
        let answer = answer.ok().flatten();
        for message in answer
            .as_ref()
            .and_then(|answer| answer.get("messages"))
            .into_iter()
            .flat_map(Value::items)
        {
            self.agent.inbox.push(Target::NextStep, message.to_json())?;
        }
        if self.signal.aborted() {
            Err(Stop::Aborted)
        } else {
            Ok(())
        }
    }

    /// Puts back what was claimed and not brought in.
    fn give_back(&self, claimed: Claimed, stop: Stop) -> Stop {
        let discard = self.signal.aborted() && self.agent.discards();
        match self.agent.inbox.put_back(claimed, discard) {
            Ok(()) => stop,
            Err(error) => error.into(),
        }
    }

    /// Refused input is not put back, since it would be refused again and keep
    /// everything behind it waiting; the log says what was refused.
    fn log_rejected(&self, claimed: &Claimed) -> Result<(), Stop> {
        if claimed.messages.is_empty() {
            return Ok(());
        }
        let data = Json::object(|data| {
            data.u64("turn", self.turn);
            data.array("messages", |messages| {
                for message in &claimed.messages {
                    messages.json(message);
                }
            });
        });
        let draft = Draft::new(Kind::from_name("agent/input/rejected"), data).ignorable(true);
        self.agent.log.append(draft)?;
        Ok(())
    }
}

fn report(agent: &Inner, turn: u64, step: u64, failure: &LlmFailure) {
    agent.dispatch.notify("agent/error", None, || {
        Json::object(|payload| {
            payload
                .u64("turn", turn)
                .u64("step", step)
                .json("error", &failure.to_json());
        })
    });
}

fn kind(name: &str) -> Json {
    Json::object(|reason| {
        reason.str("kind", name);
    })
}

fn aborted(signal: &Signal) -> Json {
    let cause = signal
        .cause()
        .and_then(|cause| serde_json::to_string(cause).ok());
    let cause = cause
        .and_then(|text| Json::normalise(&text).ok())
        .unwrap_or_else(|| kind("user"));
    Json::object(|reason| {
        reason.str("kind", "aborted").json("reason", &cause);
    })
}

fn failed(failure: &LlmFailure) -> Json {
    Json::object(|reason| {
        reason
            .str("kind", "error")
            .json("error", &failure.to_json());
    })
}

fn turn_end(turn: u64, reason: &Json) -> Json {
    Json::object(|data| {
        data.u64("turn", turn).json("reason", reason);
    })
}
