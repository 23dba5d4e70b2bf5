//! How a model call fails, in the log's own shape. `spec/llm.md` §1.8, §4.

use dsh_plugin::CallError;
use dsh_plugin::api::PluginError;
use dsh_session::{Json, Value};

/// Codes that this crate itself gives a failure (`spec/llm.md` §4). Adapters have more.
pub mod code {
    /// The caller gave up; the finish is then of kind `aborted`.
    pub const ABORTED: &str = "ABORTED";
    /// Nothing came for the route's idle time, or the request's time was over.
    pub const TIMEOUT: &str = "TIMEOUT";
    /// No connection, or a broken one.
    pub const TRANSPORT: &str = "TRANSPORT";
    /// The response ended before the adapter saw its end.
    pub const STREAM_CLOSED: &str = "STREAM_CLOSED";
    /// A size cap of the host.
    pub const LIMIT: &str = "LIMIT";
    /// The route's credential has no value.
    pub const MISSING_CREDENTIAL: &str = "MISSING_CREDENTIAL";
    /// The route's credential cannot be a key.
    pub const INVALID_CREDENTIAL: &str = "INVALID_CREDENTIAL";
    /// The route's grant does not reach that far.
    pub const DENIED: &str = "DENIED";
    /// The adapter asked for something that cannot be sent.
    pub const INVALID_REQUEST: &str = "INVALID_REQUEST";
    /// The adapter handed over something that is no stream chunk.
    pub const INVALID_CHUNK: &str = "INVALID_CHUNK";
    /// Anything else.
    pub const UNKNOWN: &str = "UNKNOWN";
}

/// A failed model call.
#[derive(Debug, Clone, PartialEq)]
pub struct LlmFailure {
    /// For people; never empty.
    pub message: String,
    /// Stable, mostly `SCREAMING_SNAKE_CASE`; never empty.
    pub code: String,
    /// The HTTP status, 100 to 599.
    pub status: Option<u16>,
    /// How long the provider asks to wait; finite and above 0.
    pub provider_retry_after_ms: Option<f64>,
    /// The provider's name for the request; never empty.
    pub request_id: Option<String>,
}

impl LlmFailure {
    /// A failure without facts beside it. An empty text is replaced by a general one.
    #[must_use]
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        let message = message.into();
        let code = if code.is_empty() { code::UNKNOWN } else { code };
        let message = if message.is_empty() {
            format!("the model call failed with {code}")
        } else {
            message
        };
        Self {
            message,
            code: code.to_owned(),
            status: None,
            provider_retry_after_ms: None,
            request_id: None,
        }
    }

    /// The caller gave up.
    #[must_use]
    pub fn aborted() -> Self {
        Self::new(code::ABORTED, "the model call was aborted")
    }

    /// Reads the log's shape; none where a member is not what §1.8 asks for.
    #[must_use]
    pub fn from_value(value: Value<'_>) -> Option<Self> {
        let text = |key| {
            value
                .get(key)
                .map(|member| member.text().map(std::borrow::Cow::into_owned))
        };
        let mut failure = Self::new(&text("code")??, text("message")??);
        if value.get("code")?.string()?.is_empty() || value.get("message")?.string()?.is_empty() {
            return None;
        }
        failure.read_facts(value).then_some(failure)
    }

    /// Takes `{status?, providerRetryAfterMs?, requestId?}`; false where one of them is unsound.
    fn read_facts(&mut self, value: Value<'_>) -> bool {
        if let Some(status) = value.get("status") {
            let status = status.u64().and_then(|status| u16::try_from(status).ok());
            self.status = status.filter(|status| (100..=599).contains(status));
            if self.status.is_none() {
                return false;
            }
        }
        if let Some(wait) = value.get("providerRetryAfterMs") {
            self.provider_retry_after_ms =
                wait.f64().filter(|wait| wait.is_finite() && *wait > 0.0);
            if self.provider_retry_after_ms.is_none() {
                return false;
            }
        }
        if let Some(id) = value.get("requestId") {
            self.request_id = id
                .text()
                .map(std::borrow::Cow::into_owned)
                .filter(|id| !id.is_empty());
            if self.request_id.is_none() {
                return false;
            }
        }
        true
    }

    /// The log's shape.
    #[must_use]
    pub fn to_json(&self) -> Json {
        Json::object(|o| {
            o.str("message", &self.message).str("code", &self.code);
            if let Some(status) = self.status {
                o.u64("status", u64::from(status));
            }
            if let Some(wait) = self.provider_retry_after_ms {
                o.f64("providerRetryAfterMs", wait);
            }
            o.opt_str("requestId", self.request_id.as_deref());
        })
    }
}

impl std::fmt::Display for LlmFailure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for LlmFailure {}

impl From<PluginError> for LlmFailure {
    /// Facts that do not validate are left out: the failure itself matters more.
    fn from(error: PluginError) -> Self {
        let code = if error.code == dsh_plugin::api::code::CANCELLED {
            code::ABORTED
        } else {
            &error.code
        };
        let plain = Self::new(code, error.message);
        let details = error.details.and_then(|text| Json::normalise(&text).ok());
        let mut whole = plain.clone();
        match details {
            Some(details) if whole.read_facts(details.value()) => whole,
            _ => plain,
        }
    }
}

impl From<CallError> for LlmFailure {
    fn from(error: CallError) -> Self {
        error.into_plugin_error().into()
    }
}

#[cfg(test)]
#[path = "failure_tests.rs"]
mod tests;
