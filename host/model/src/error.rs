//! What fails before a stream starts. What fails in one is its `finish` chunk.

use crate::failure::{LlmFailure, code};

/// A route that cannot be registered, or a call that cannot be prepared.
/// `spec/llm.md` §3.2 to §3.5.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// What an adapter says of itself cannot be.
    #[error("the adapter cannot be registered: {0}")]
    InvalidAdapter(String),
    /// Two adapters for one route.
    #[error(
        "the route {route} is served by an adapter already; give one of the two another provider name"
    )]
    DuplicateAdapter {
        /// The provider's name.
        route: String,
    },
    /// A route's list of models cannot be.
    #[error("the list of models of {route}: {reason}")]
    InvalidCatalog {
        /// The provider's name.
        route: String,
        /// What is wrong.
        reason: String,
    },
    /// What an adapter says of a model cannot be.
    #[error("what the adapter says of {route}/{model}: {reason}")]
    InvalidModelInfo {
        /// The provider's name.
        route: String,
        /// The model.
        model: String,
        /// `INVALID_MODEL_INFO`, `INVALID_MODEL_CONTEXT`, `INVALID_MODEL_MAX_TOKENS` or
        /// `INVALID_MODEL_REASONING`.
        code: &'static str,
        /// What is wrong.
        reason: String,
    },
    /// No adapter serves the route.
    #[error("no adapter serves the provider {route:?}; there are: {}", list(known))]
    NoAdapter {
        /// The provider's name.
        route: String,
        /// Those that are served.
        known: Vec<String>,
    },
    /// The model does not think like that.
    #[error(
        "{route}/{model} does not take the reasoning effort {effort:?}; it takes: {}",
        list(efforts)
    )]
    UnsupportedReasoningEffort {
        /// The provider's name.
        route: String,
        /// The model.
        model: String,
        /// What was asked for.
        effort: String,
        /// What there is.
        efforts: Vec<String>,
    },
    /// The adapter changed what it may only complete.
    #[error("the adapter of {route} changed {field} of the call")]
    InvalidPreparedCall {
        /// The provider's name.
        route: String,
        /// Which field.
        field: &'static str,
    },
    /// The adapter refused or broke.
    #[error(transparent)]
    Adapter(#[from] LlmFailure),
}

fn list(names: &[String]) -> String {
    if names.is_empty() {
        String::from("none")
    } else {
        names.join(", ")
    }
}

impl ModelError {
    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &str {
        match self {
            Self::InvalidAdapter(_) => "INVALID_ADAPTER",
            Self::DuplicateAdapter { .. } => "DUPLICATE_ADAPTER",
            Self::InvalidCatalog { .. } => "INVALID_CATALOG",
            Self::InvalidModelInfo { code, .. } => code,
            Self::NoAdapter { .. } => "NO_ADAPTER",
            Self::UnsupportedReasoningEffort { .. } => "UNSUPPORTED_REASONING_EFFORT",
            Self::InvalidPreparedCall { .. } => "INVALID_PREPARED_CALL",
            Self::Adapter(failure) => &failure.code,
        }
    }

    /// Whether the caller gave up meanwhile.
    #[must_use]
    pub fn is_aborted(&self) -> bool {
        self.code() == code::ABORTED
    }

    /// The same in the log's shape.
    #[must_use]
    pub fn into_failure(self) -> LlmFailure {
        match self {
            Self::Adapter(failure) => failure,
            other => LlmFailure::new(other.code(), other.to_string()),
        }
    }
}
