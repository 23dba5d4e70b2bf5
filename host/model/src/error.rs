//! What fails before a stream starts. What fails in one is its `finish` chunk.

use dsh_check::did_you_mean;

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
    #[error(
        "no adapter serves the provider {route:?}{}; there are: {}; `dsh models` shows each, and \
         why one cannot be called",
        did_you_mean(route, known.iter().map(String::as_str)),
        list(known)
    )]
    NoAdapter {
        /// The provider's name.
        route: String,
        /// Those that are served.
        known: Vec<String>,
    },
    /// The route is known, and its configuration is wrong.
    #[error("the provider {route} cannot be called: {problem}")]
    InvalidConfig {
        /// The provider's name.
        route: String,
        /// What is wrong, and what to do.
        problem: String,
    },
    /// Whoever registered the routes has taken them back.
    #[error("the registration of these routes was disposed of; register them again")]
    RegistrationDisposed,
    /// The model does not think like that.
    #[error(
        "{route}/{model} does not take the reasoning effort {effort:?}{}; it takes: {}",
        did_you_mean(effort, efforts.iter().map(String::as_str)),
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
            Self::InvalidConfig { .. } => "INVALID_CONFIG",
            Self::RegistrationDisposed => "REGISTRATION_DISPOSED",
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
