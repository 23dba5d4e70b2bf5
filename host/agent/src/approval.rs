//! Asking a person about one call, and what the log keeps of it
//! (spec/loop.md §12.2). Who answers is a listener of `approval/request`;
//! without one the answer is `unavailable`, and what was asked about does not
//! happen.

use std::sync::Arc;

use dsh_session::{Json, Kind, Value};

use crate::cancel::Signal;
use crate::dispatch::{Dispatch, EventContext};
use crate::error::AgentError;
use crate::log::Log;
use crate::message::fresh_id;

/// What is asked.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The tool that wants something.
    pub tool_name: String,
    /// The call.
    pub call_id: Option<String>,
    /// Why it is asked, for the person.
    pub reason: Option<String>,
    /// The call's arguments: shown to who answers, not logged here (`tool/call` has them).
    pub arguments: Option<Json>,
}

/// How it was answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ApprovalOutcome {
    /// Yes, this once.
    AllowedOnce,
    /// No.
    Rejected,
    /// The turn was given up while someone was asked.
    Cancelled,
    /// Nobody is there to answer.
    Unavailable,
}

impl ApprovalOutcome {
    /// As the log has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AllowedOnce => "allowed-once",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Unavailable => "unavailable",
        }
    }

    /// Why a call was refused, for the model.
    #[must_use]
    pub fn reason(self, tool: &str) -> String {
        match self {
            Self::AllowedOnce => format!("tool \"{tool}\" was approved"),
            Self::Rejected => format!("the user rejected tool \"{tool}\""),
            Self::Cancelled => format!("the approval of tool \"{tool}\" was cancelled"),
            Self::Unavailable => {
                format!("tool \"{tool}\" needs approval, and no approver is available")
            }
        }
    }

    fn read(answer: &Json) -> Option<Self> {
        let outcome = answer.get("outcome").and_then(Value::text)?;
        [
            Self::AllowedOnce,
            Self::Rejected,
            Self::Cancelled,
            Self::Unavailable,
        ]
        .into_iter()
        .find(|known| known.as_str() == outcome)
    }
}

/// The approval service of one agent.
pub struct Approvals {
    log: Arc<Log>,
    dispatch: Arc<Dispatch>,
}

impl Approvals {
    /// Asks through the agent's listeners and logs into its session.
    #[must_use]
    pub fn new(log: Arc<Log>, dispatch: Arc<Dispatch>) -> Self {
        Self { log, dispatch }
    }

    /// Asks, and logs question and answer. Must be called inside an open turn.
    ///
    /// # Errors
    /// When the log refuses an event.
    pub async fn ask(&self, ask: &Ask, signal: &Signal) -> Result<ApprovalOutcome, AgentError> {
        let id = fresh_id();
        self.log.record(
            Kind::ApprovalAsked,
            Json::object(|data| {
                data.str("id", &id).str("toolName", &ask.tool_name);
                data.opt_str("callId", ask.call_id.as_deref())
                    .opt_str("reason", ask.reason.as_deref());
            }),
        )?;
        let outcome = self.answer(&id, ask, signal).await;
        self.log.record(
            Kind::ApprovalDecided,
            Json::object(|data| {
                data.str("id", &id).str("outcome", outcome.as_str());
            }),
        )?;
        let tool = &ask.tool_name;
        self.dispatch
            .notify("authorization/settled", Some(tool), || {
                Json::object(|payload| {
                    payload.str("id", &id).str("toolName", tool);
                    payload.opt_str("callId", ask.call_id.as_deref());
                    payload.str("outcome", outcome.as_str());
                })
            });
        Ok(outcome)
    }

    async fn answer(&self, id: &str, ask: &Ask, signal: &Signal) -> ApprovalOutcome {
        if self.never() {
            return ApprovalOutcome::Rejected;
        }
        if signal.aborted() {
            return ApprovalOutcome::Cancelled;
        }
        let payload = Json::object(|payload| {
            payload.str("id", id).str("toolName", &ask.tool_name);
            payload
                .opt_str("callId", ask.call_id.as_deref())
                .opt_str("reason", ask.reason.as_deref());
            payload.opt_json("arguments", ask.arguments.as_ref());
        });
        let context = EventContext {
            signal: signal.clone(),
        };
        let nobody = Json::object(|answer| {
            answer.str("outcome", ApprovalOutcome::Unavailable.as_str());
        });
        let answer = self.dispatch.waterfall(
            "approval/request",
            Some(&ask.tool_name),
            payload,
            &context,
            |_| async { Ok::<_, AgentError>(nobody) },
        );
        tokio::select! {
            biased;
            () = signal.cancelled() => ApprovalOutcome::Cancelled,
            answer = answer => answer
                .ok()
                .and_then(|answer| ApprovalOutcome::read(&answer))
                // A listener that fails has not allowed anything.
                .unwrap_or(ApprovalOutcome::Unavailable),
        }
    }

    fn never(&self) -> bool {
        self.log.read(|session| {
            let policy = session.last_of(&Kind::ApprovalPolicy);
            policy
                .and_then(|event| event.data.get("policy"))
                .and_then(Value::text)
                .as_deref()
                == Some("never")
        })
    }
}
