//! What this crate fails with, a variant a cause.

use dsh_session::{Error as SessionError, JsonError};

/// Errors of an agent and its parts.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AgentError {
    /// The log refused an event, or could not be read.
    #[error("the session's log: {0}")]
    Session(#[from] SessionError),
    /// A text that should be JSON is none.
    #[error("{subject} is not usable as JSON: {source}")]
    Json {
        /// What was read.
        subject: String,
        /// What is wrong with it.
        source: JsonError,
    },
    /// The session could not be made durable, so what needed that was not started.
    #[error("the session could not be written to disk: {0}")]
    Durability(String),
    /// A tool's schema uses what the subset does not have.
    #[error("the schema of tool \"{tool}\" cannot be used: {what}")]
    UnsupportedSchema {
        /// The tool.
        tool: String,
        /// Where and what.
        what: String,
    },
    /// Two tools of one name.
    #[error("tool \"{name}\" is registered twice; rename one of them or leave its row out")]
    DuplicateTool {
        /// The name.
        name: String,
    },
    /// `toolOrder` is not usable.
    #[error("toolOrder {what}")]
    ToolOrder {
        /// Why.
        what: String,
    },
    /// A listener subscribes to something that a run has no use for.
    #[error("{listener} cannot take part: {what}")]
    Subscription {
        /// The row.
        listener: String,
        /// What is wrong with it.
        what: String,
    },
    /// The prompt cannot be put together.
    #[error("the prompt cannot be put together: {0}")]
    Prompt(String),
    /// A message that is not one.
    #[error("a message {what}")]
    Message {
        /// What it lacks.
        what: String,
    },
    /// Maintenance or another exclusive task while the agent is busy.
    #[error("the agent is busy; wait until it is idle")]
    Busy,
    /// The agent was disposed of.
    #[error("the agent is gone")]
    Disposed,
}

impl AgentError {
    /// The stable code that logs and users see.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Session(error) => error.code(),
            Self::Json { .. } => "JSON_INVALID",
            Self::Durability(_) => "PERSISTENCE",
            Self::UnsupportedSchema { .. } => "UNSUPPORTED_SCHEMA",
            Self::DuplicateTool { .. } => "DUPLICATE_TOOL",
            Self::ToolOrder { .. } => "INVALID_TOOL_ORDER",
            Self::Subscription { .. } => "UNKNOWN_EVENT",
            Self::Prompt(_) => "PROMPT_INVALID",
            Self::Message { .. } => "MESSAGE_INVALID",
            Self::Busy => "BUSY",
            Self::Disposed => "DISPOSED",
        }
    }
}
