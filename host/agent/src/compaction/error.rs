//! Why the conversation was not made shorter.

use crate::error::AgentError;

/// Why a compaction did not happen. [`CompactionError::kind`] is what callers
/// tell apart.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CompactionError {
    /// The agent does something else.
    #[error("the agent is busy; wait until it is idle")]
    Busy,
    /// The log has a compaction that never ended.
    #[error("an earlier compaction of this session did not end; open the session again to go on")]
    Locked,
    /// It was given up.
    #[error("the compaction was given up")]
    Cancelled,
    /// What was read is not what is there.
    #[error("the conversation changed while it was summarised")]
    Changed,
    /// A plan that cannot be carried out.
    #[error("row {row} {what}")]
    Plan {
        /// The row.
        row: String,
        /// What is wrong with it.
        what: String,
    },
    /// A row failed.
    #[error("row {row}: {message} ({code})")]
    Row {
        /// The row.
        row: String,
        /// The error's code.
        code: String,
        /// Its words.
        message: String,
    },
    /// A summary that cannot be used.
    #[error("the summary of row {row} {what}")]
    Summary {
        /// The row.
        row: String,
        /// What is wrong with it.
        what: String,
    },
    /// The summary would make the conversation longer.
    #[error(
        "the summary of row {row} is not smaller than what it would replace ({after} tokens for {before})"
    )]
    NotSmaller {
        /// The row.
        row: String,
        /// Estimated tokens of what it would replace.
        before: u64,
        /// Estimated tokens of the summary.
        after: u64,
    },
    /// The log did not take it, or could not be read.
    #[error(transparent)]
    Commit(AgentError),
    /// It is done, and not on disk.
    #[error("the conversation was made shorter, but {0}")]
    Persistence(AgentError),
}

impl CompactionError {
    /// `busy`, `cancelled`, `changed`, `summary`, `commit` or `persistence`
    /// (spec/loop.md §10.7).
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Busy | Self::Locked => "busy",
            Self::Cancelled => "cancelled",
            Self::Changed => "changed",
            Self::Plan { .. }
            | Self::Row { .. }
            | Self::Summary { .. }
            | Self::NotSmaller { .. } => "summary",
            Self::Commit(_) => "commit",
            Self::Persistence(_) => "persistence",
        }
    }

    /// Equal for failures that need to be told only once.
    pub(super) fn cause(&self) -> String {
        match self {
            Self::Plan { row, .. } => format!("plan {row}"),
            Self::Row { row, code, .. } => format!("row {row} {code}"),
            Self::Summary { row, .. } => format!("text {row}"),
            Self::NotSmaller { row, .. } => format!("size {row}"),
            Self::Commit(error) => format!("commit {}", error.code()),
            other => other.kind().to_owned(),
        }
    }
}

impl From<AgentError> for CompactionError {
    fn from(error: AgentError) -> Self {
        Self::Commit(error)
    }
}
