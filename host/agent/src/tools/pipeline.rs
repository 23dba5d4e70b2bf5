//! One call's way, from the model's text to a result: check, decide, run,
//! review (spec/loop.md §7). The numbers in the comments are that table's.
//!
//! On purpose, arguments are checked before anyone is asked about the call: a
//! hook or a person that judges it then judges something that could run.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use dsh_session::{Json, Value};

use super::arguments::Call;
use super::registry::ToolRegistry;
use super::result::{CallResult, content_blocks, output_violations};
use super::tool::{CallScope, Tool};
use crate::approval::{ApprovalOutcome, Approvals, Ask};
use crate::cancel::Signal;
use crate::dispatch::{Dispatch, EventContext};
use crate::error::AgentError;
use crate::log::Log;
use dsh_plugin::api::{Concurrency, ToolCall};

/// Refuses calls by rules of the host's own, after hooks and approval.
pub trait Guard: Send + Sync {
    /// The reason to refuse, which the model reads; none lets the call pass.
    fn refuse(&self, tool: &str, arguments: &Json) -> Option<String>;
}

/// What a call's pipeline works with.
pub(crate) struct Pipeline<'a> {
    pub(crate) tools: &'a ToolRegistry,
    pub(crate) dispatch: &'a Dispatch,
    pub(crate) approvals: &'a Approvals,
    pub(crate) guards: &'a [Arc<dyn Guard>],
    pub(crate) log: &'a Log,
    pub(crate) signal: &'a Signal,
    pub(crate) turn: u64,
    pub(crate) step: u64,
    /// Whether the model that called takes pictures.
    pub(crate) images: bool,
}

/// How far a call came before its body.
pub(crate) enum Prepared {
    /// The body may run.
    Ready,
    /// It may not, and this is why.
    Settled(Finished),
}

/// What a call came to before it is reviewed.
pub(crate) struct Finished {
    pub(crate) result: CallResult,
    /// Whether the tool's body ran.
    pub(crate) invoked: bool,
    /// Whether `tools/post-execute` sees it.
    pub(crate) reviewed: bool,
}

impl Finished {
    fn last(result: CallResult) -> Self {
        Self {
            result,
            invoked: false,
            reviewed: false,
        }
    }

    fn for_review(result: CallResult) -> Self {
        Self {
            result,
            invoked: false,
            reviewed: true,
        }
    }
}

enum Decision {
    Allow,
    Deny(String),
    Aborted,
}

impl Pipeline<'_> {
    /// The call as it is handed to its tool.
    fn handed_over(&self, call: &Call) -> ToolCall {
        call.for_tool(self.turn, self.step, self.images)
    }

    /// Whether the call may overlap others; anything odd about it means no.
    pub(crate) async fn may_overlap(&self, call: &Call) -> bool {
        let Some(tool) = self.tools.get(&call.name) else {
            return false;
        };
        if !call.violations(tool.as_ref()).is_empty() {
            return false;
        }
        match tool.spec().concurrency {
            Concurrency::Always => true,
            Concurrency::Never => false,
            Concurrency::Ask => {
                tool.may_overlap(&self.handed_over(call), &self.scope())
                    .await
            }
        }
    }

    /// Stages 1 to 5: everything that may keep the body from running.
    pub(crate) async fn prepare(&self, call: &Call) -> Prepared {
        if self.signal.aborted() {
            return Prepared::Settled(Finished::last(CallResult::aborted_before_dispatch()));
        }
        if let Some(tool) = self.tools.get(&call.name) {
            let violations = call.violations(tool.as_ref());
            if !violations.is_empty() {
                let message = format!("invalid arguments: {}", violations.join("; "));
                return Prepared::Settled(Finished::for_review(CallResult::coded(
                    "INVALID_ARGS",
                    &message,
                )));
            }
        }
        match self.decide(call).await {
            Err(message) => Prepared::Settled(Finished::last(CallResult::failure(&message))),
            Ok(Decision::Deny(reason)) => {
                Prepared::Settled(Finished::for_review(CallResult::failure(&reason)))
            }
            Ok(Decision::Aborted) => {
                Prepared::Settled(Finished::for_review(CallResult::aborted_before_dispatch()))
            }
            Ok(Decision::Allow) if self.signal.aborted() => {
                Prepared::Settled(Finished::for_review(CallResult::aborted_before_dispatch()))
            }
            Ok(Decision::Allow) => Prepared::Ready,
        }
    }

    /// Stages 3 and 4: hooks, a person, guards.
    async fn decide(&self, call: &Call) -> Result<Decision, String> {
        let decision = if self.dispatch.listens("tools/pre-execute", Some(&call.name)) {
            let allow = Json::object(|decision| {
                decision.str("kind", "allow");
            });
            let payload = self.payload(call, |_| {});
            self.dispatch
                .waterfall(
                    "tools/pre-execute",
                    Some(&call.name),
                    payload,
                    &self.context(),
                    |_| async { Ok::<_, AgentError>(allow) },
                )
                .await
                .map_err(|error| error.to_string())?
        } else {
            Json::object(|decision| {
                decision.str("kind", "allow");
            })
        };
        let text = |key: &str| {
            decision
                .get(key)
                .and_then(Value::text)
                .map(std::borrow::Cow::into_owned)
        };
        match text("kind").as_deref() {
            Some("allow") => {}
            Some("deny") => {
                let reason =
                    text("reason").unwrap_or_else(|| format!("tool \"{}\" was denied", call.name));
                return Ok(Decision::Deny(reason));
            }
            Some("ask") => match self.ask(call, text("reason")).await? {
                Decision::Allow => {}
                refused => return Ok(refused),
            },
            _ => {
                return Err(
                    "a listener of tools/pre-execute decided neither allow, deny nor ask"
                        .to_owned(),
                );
            }
        }
        let refusal = self
            .guards
            .iter()
            .find_map(|guard| guard.refuse(&call.name, &call.arguments));
        Ok(refusal.map_or(Decision::Allow, Decision::Deny))
    }

    /// Stage 3a.
    async fn ask(&self, call: &Call, reason: Option<String>) -> Result<Decision, String> {
        let ask = Ask {
            tool_name: call.name.clone(),
            call_id: Some(call.id_text.clone()),
            reason,
            arguments: Some(call.arguments.clone()),
        };
        let outcome = self
            .approvals
            .ask(&ask, self.signal)
            .await
            .map_err(|error| error.to_string())?;
        Ok(match outcome {
            ApprovalOutcome::AllowedOnce => Decision::Allow,
            ApprovalOutcome::Cancelled if self.signal.aborted() => Decision::Aborted,
            refused => Decision::Deny(refused.reason(&call.name)),
        })
    }

    /// Stages 6 and 7: the body, inside of what is wrapped around it.
    pub(crate) async fn execute(&self, call: &Call) -> Finished {
        if !self.dispatch.listens("tools/execute", Some(&call.name)) {
            return self.body(call, None).await;
        }
        let timeout_ms = self
            .tools
            .get(&call.name)
            .and_then(|tool| tool.spec().timeout_ms);
        let payload = self.payload(call, |payload| {
            if let Some(timeout_ms) = timeout_ms {
                payload.u64("timeoutMs", timeout_ms);
            }
        });
        let body = Mutex::new(None);
        let outcome = self
            .dispatch
            .waterfall(
                "tools/execute",
                Some(&call.name),
                payload,
                &self.context(),
                |payload| {
                    let body = &body;
                    async move {
                        let deadline = payload.get("deadlineMs").and_then(Value::u64);
                        let finished = self.body(call, deadline).await;
                        let view = finished.result.view();
                        *body.lock().unwrap_or_else(PoisonError::into_inner) =
                            Some((finished, view.clone()));
                        Ok::<_, AgentError>(view)
                    }
                },
            )
            .await;
        let body = body.into_inner().unwrap_or_else(PoisonError::into_inner);
        match (outcome, body) {
            (Err(error), _) => Finished::last(CallResult::failure(&error.to_string())),
            (Ok(outcome), Some((finished, view))) if outcome == view => finished,
            (Ok(outcome), body) => self.wrapped(call, &outcome, body.map(|(finished, _)| finished)),
        }
    }

    /// A result that a wrapper made, over or instead of the body's.
    fn wrapped(&self, call: &Call, outcome: &Json, body: Option<Finished>) -> Finished {
        let invoked = body.as_ref().is_some_and(|finished| finished.invoked);
        let base = body.map(|finished| finished.result).unwrap_or_default();
        let is_error = outcome
            .get("isError")
            .and_then(Value::bool)
            .unwrap_or(false);
        let result = self
            .replaced(call, base, outcome, is_error)
            .unwrap_or_else(|what| CallResult::failure(&what));
        Finished {
            result,
            invoked,
            reviewed: true,
        }
    }

    async fn body(&self, call: &Call, deadline_ms: Option<u64>) -> Finished {
        if let Err(error) = self.dispatch.flush(self.log).await {
            return Finished::for_review(CallResult::failure(&error.to_string()));
        }
        if self.signal.aborted() {
            return Finished::for_review(CallResult::aborted_before_dispatch());
        }
        let Some(tool) = self.tools.get(&call.name) else {
            let message = format!("unknown tool \"{}\"", call.name);
            return Finished::for_review(CallResult::coded("UNKNOWN_TOOL", &message));
        };
        let scope = self.scope();
        let run = tool.run(self.handed_over(call), &scope);
        tokio::pin!(run);
        let (outcome, timed_out) = match deadline_ms {
            None => (run.await, false),
            Some(ms) => tokio::select! {
                biased;
                outcome = &mut run => (outcome, false),
                () = tokio::time::sleep(Duration::from_millis(ms)) => {
                    // Asked to end, and waited for: a body is never left running.
                    scope.cancel.cancel();
                    (run.await, true)
                }
            },
        };
        let result = if let (true, Some(ms)) = (timed_out, deadline_ms) {
            CallResult::coded("TOOL_TIMEOUT", &format!("tool call timed out after {ms}ms"))
        } else {
            let result = CallResult::of_body(tool.as_ref(), outcome, self.signal.aborted());
            if self.signal.aborted() && !result.is_error {
                result.given_up(CallResult::aborted())
            } else {
                result
            }
        };
        Finished {
            result,
            invoked: true,
            reviewed: true,
        }
    }

    /// Stages 8 to 10: the review, and the last word of a caller who gave up.
    pub(crate) async fn finalize(&self, call: &Call, finished: Finished) -> CallResult {
        let Finished {
            mut result,
            invoked,
            reviewed,
        } = finished;
        if reviewed
            && self
                .dispatch
                .listens("tools/post-execute", Some(&call.name))
        {
            let view = result.view();
            let payload = self.payload(call, |payload| {
                payload.json("result", &view);
            });
            let accept = Json::object(|decision| {
                decision.str("kind", "accept");
            });
            let decision = self
                .dispatch
                .waterfall(
                    "tools/post-execute",
                    Some(&call.name),
                    payload,
                    &self.context(),
                    |_| async { Ok::<_, AgentError>(accept) },
                )
                .await
                .map_err(|error| error.to_string());
            result = decision
                .and_then(|decision| self.review(call, result, &decision))
                .unwrap_or_else(|what| CallResult::failure(&what));
        }
        if self.signal.aborted() && !result.is_error {
            let aborted = if invoked {
                CallResult::aborted()
            } else {
                CallResult::aborted_before_dispatch()
            };
            result = result.given_up(aborted);
        }
        self.dispatch.notify("tools/result", Some(&call.name), || {
            self.payload(call, |payload| {
                payload.json("result", &result.view());
            })
        });
        result
    }

    fn review(
        &self,
        call: &Call,
        result: CallResult,
        decision: &Json,
    ) -> Result<CallResult, String> {
        let added: Vec<Json> = decision
            .get("additionalContexts")
            .into_iter()
            .flat_map(Value::items)
            .map(Value::to_json)
            .collect();
        match decision.get("kind").and_then(Value::text).as_deref() {
            Some("accept") => {
                let is_error = result.is_error;
                let mut result = self.replaced(call, result, decision, is_error)?;
                result.contexts.extend(added);
                Ok(result)
            }
            Some("block") => {
                let feedback = decision.get("feedback").and_then(Value::text);
                let feedback = feedback.as_deref().unwrap_or("the result was withheld");
                Ok(CallResult {
                    contexts: added,
                    ..CallResult::failure(feedback)
                })
            }
            _ => {
                Err("a listener of tools/post-execute decided neither accept nor block".to_owned())
            }
        }
    }

    /// The result with the `content` or the `value` that someone put in its place.
    fn replaced(
        &self,
        call: &Call,
        mut result: CallResult,
        by: &Json,
        is_error: bool,
    ) -> Result<CallResult, String> {
        let content = by.get("content");
        let value = by.get("value").filter(|value| {
            result
                .value
                .as_ref()
                .is_none_or(|own| own.as_str() != value.as_str())
        });
        if is_error != result.is_error {
            result.is_error = is_error;
            result.error = None;
            result.conclude = result.conclude && !is_error;
        }
        match (content, value) {
            (None, None) => Ok(result),
            (Some(content), _) if by.get("isError").is_some() || value.is_none() => {
                result.content = content_blocks(content.items().map(Value::as_str))?;
                Ok(result)
            }
            (Some(_), _) => {
                Err("a listener replaced both the content and the value of a result".to_owned())
            }
            (None, Some(_)) if is_error => Err("a listener put a value into a failure".to_owned()),
            (None, Some(value)) => {
                let value = value.to_json();
                let tool = self.tools.get(&call.name);
                let schema = tool
                    .as_ref()
                    .and_then(|tool: &Arc<dyn Tool>| tool.spec().output.as_ref());
                if let Some(what) = output_violations(schema, &value) {
                    return Ok(CallResult {
                        contexts: result.contexts,
                        ..CallResult::coded("INVALID_TOOL_OUTPUT", &what)
                    });
                }
                result.content = vec![crate::message::text_block(value.as_str())];
                result.value = Some(value);
                Ok(result)
            }
        }
    }

    fn payload(&self, call: &Call, more: impl FnOnce(&mut dsh_session::ObjectWriter<'_>)) -> Json {
        Json::object(|payload| {
            payload.u64("turn", self.turn).u64("step", self.step);
            payload.json("callId", &call.id).str("name", &call.name);
            payload
                .json("arguments", &call.arguments)
                .json("raw", &call.raw);
            more(payload);
        })
    }

    fn context(&self) -> EventContext {
        EventContext {
            signal: self.signal.clone(),
        }
    }

    fn scope(&self) -> CallScope {
        CallScope {
            cancel: self.signal.token().child_token(),
            time_ms: self
                .log
                .read(|session| session.last().map_or(0, |event| event.time)),
        }
    }
}
