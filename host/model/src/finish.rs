//! Why a stream ended. `spec/llm.md` §1.7; an open set.

use dsh_session::{Json, Value};

use crate::failure::LlmFailure;

/// The reason of a `finish` chunk.
#[derive(Debug, Clone, PartialEq)]
pub enum FinishReason {
    /// The model is done.
    Stop,
    /// It wants tools to run.
    ToolCalls,
    /// The output cap was reached.
    MaxTokens,
    /// The caller gave up.
    Aborted(LlmFailure),
    /// The call failed.
    Error(LlmFailure),
    /// A kind that this version does not know, as it stands.
    Other(Json),
}

impl FinishReason {
    /// Reads the log's shape. A failure that does not validate becomes `UNKNOWN`, so that a
    /// failed stream is never taken for a good one.
    #[must_use]
    pub fn from_value(reason: Value<'_>) -> Self {
        let kind = reason.get("kind").and_then(Value::string);
        let is = |text| kind.is_some_and(|kind| kind.is(text));
        let failure = || {
            reason
                .get("failure")
                .and_then(LlmFailure::from_value)
                .unwrap_or_else(|| {
                    LlmFailure::new(
                        crate::code::UNKNOWN,
                        "the model call failed without a valid reason",
                    )
                })
        };
        if is("stop") {
            Self::Stop
        } else if is("tool-calls") {
            Self::ToolCalls
        } else if is("max-tokens") {
            Self::MaxTokens
        } else if is("aborted") {
            Self::Aborted(failure())
        } else if is("error") {
            Self::Error(failure())
        } else {
            Self::Other(reason.to_json())
        }
    }

    /// What went wrong, for `error` and `aborted`.
    #[must_use]
    pub fn failure(&self) -> Option<&LlmFailure> {
        match self {
            Self::Aborted(failure) | Self::Error(failure) => Some(failure),
            _ => None,
        }
    }

    /// The log's shape.
    #[must_use]
    pub fn to_json(&self) -> Json {
        let plain = |kind| {
            Json::object(|o| {
                o.str("kind", kind);
            })
        };
        let failed = |kind, failure: &LlmFailure| {
            Json::object(|o| {
                o.str("kind", kind).json("failure", &failure.to_json());
            })
        };
        match self {
            Self::Stop => plain("stop"),
            Self::ToolCalls => plain("tool-calls"),
            Self::MaxTokens => plain("max-tokens"),
            Self::Aborted(failure) => failed("aborted", failure),
            Self::Error(failure) => failed("error", failure),
            Self::Other(reason) => reason.clone(),
        }
    }

    /// The `finish` chunk with this reason and no replay state.
    #[must_use]
    pub fn to_chunk(&self) -> Json {
        Json::object(|o| {
            o.str("type", "finish").json("reason", &self.to_json());
        })
    }
}
