//! What crosses between host and component, as plain Rust.
//!
//! The host's other crates see these types and never a WIT binding, so that a
//! new version of the contract is an adapter in `contract/` and nothing else.
//! Shapes follow `wit/*.wit` one for one; what is open there is open here: a
//! [`JsonText`] is one JSON text as the guest made it, unchecked.

use std::fmt;

/// One JSON text, as it stands. From a guest it is not validated.
pub type JsonText = String;

/// Codes that the host itself answers an import with; the log's own vocabulary
/// (`FS_…`, what model calls fail with) comes beside them.
pub mod code {
    /// The call's token was cancelled while the import waited.
    pub const CANCELLED: &str = "CANCELLED";
    /// The row's grant does not reach that far.
    pub const DENIED: &str = "DENIED";
    /// A quota, a size or a budget.
    pub const LIMIT: &str = "LIMIT";
    /// The call's time was over.
    pub const TIMEOUT: &str = "TIMEOUT";
    /// An argument that cannot be.
    pub const INVALID: &str = "INVALID";
    /// What was named is not there.
    pub const NOT_FOUND: &str = "NOT_FOUND";
    /// It changed since it was read.
    pub const STALE: &str = "STALE";
    /// The host has nothing behind this import in this call.
    pub const UNAVAILABLE: &str = "UNAVAILABLE";
}

/// How a component or a port reports failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PluginError {
    /// `SCREAMING_SNAKE_CASE`, stable.
    pub code: String,
    /// For people, and for the model where one waits.
    pub message: String,
    /// Facts beside it, an object.
    pub details: Option<JsonText>,
}

impl PluginError {
    /// An error without details.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            code: code.into(),
            message: message.into(),
            details: None,
        }
    }

    /// The answer of an import whose call was cancelled.
    #[must_use]
    pub fn cancelled() -> Self {
        Self::new(code::CANCELLED, "the call was cancelled")
    }

    /// The answer of an import that has no port behind it in this call.
    #[must_use]
    pub fn unavailable(what: &str) -> Self {
        Self::new(code::UNAVAILABLE, format!("this call has no {what}"))
    }
}

impl fmt::Display for PluginError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for PluginError {}

// ---- tools ---------------------------------------------------------------

/// Whether calls of a tool may overlap others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Concurrency {
    /// No call may.
    #[default]
    Never,
    /// Every call may.
    Always,
    /// [`crate::Mounted::may_overlap`] tells, before each start.
    Ask,
}

/// A tool as its component lists it, read once when the row is mounted.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The name that the model calls.
    pub name: String,
    /// What the model reads about it.
    pub description: String,
    /// JSON Schema of the arguments, as the component wrote it.
    pub parameters: JsonText,
    /// JSON Schema of `value` in the outcome.
    pub output: Option<JsonText>,
    /// The tool's own bound on a run.
    pub timeout_ms: Option<u64>,
    /// Whether its calls may overlap.
    pub concurrency: Concurrency,
    /// How people's views show it.
    pub view: Option<JsonText>,
    /// The whole listing entry, as it came.
    pub text: JsonText,
}

/// One call of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The model's id for it.
    pub id: String,
    /// The tool's name.
    pub name: String,
    /// Valid JSON that the caller checked against the tool's schema.
    pub arguments: JsonText,
    /// The turn that it belongs to.
    pub turn: u32,
    /// The step that it belongs to.
    pub step: u32,
    /// `{parent?}`.
    pub more: Option<JsonText>,
}

/// What a tool made of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolOutcome {
    /// Content blocks `text` or `image`, a JSON text each.
    pub content: Vec<JsonText>,
    /// `{isError?, value?, meta?, context?, concludeTurn?}`.
    pub more: Option<JsonText>,
}

// ---- model adapters --------------------------------------------------------

/// What one model call asks for. Absent and empty differ.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CallConfig {
    /// The route's name.
    pub provider: String,
    /// The model's id at that provider.
    pub model: String,
    /// `reasoningEffort` of the log.
    pub reasoning_effort: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// `maxTokens` of the log.
    pub max_tokens: Option<u32>,
    /// Stop sequences.
    pub stop: Option<Vec<String>>,
    /// Members to come, as the log has them: an object.
    pub more: Option<JsonText>,
}

/// One model request, provider-neutral.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GenerateRequest {
    /// The prepared configuration.
    pub config: CallConfig,
    /// `compaction`, `session-title`, a plugin's own; none for the loop.
    pub purpose: Option<String>,
    /// The system prompt.
    pub system: Option<String>,
    /// Messages, a JSON text each.
    pub messages: Vec<JsonText>,
    /// Tool schemas `{name, description, parameters}`, a JSON text each.
    pub tools: Vec<JsonText>,
    /// The session that it is made for.
    pub session_id: Option<String>,
    /// `{credentialTag?}` and members to come.
    pub more: Option<JsonText>,
}

/// A piece of a request's body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// As they stand.
    Bytes(Vec<u8>),
    /// A picture's bytes, put in by the host.
    Picture(String),
    /// The same in base64.
    PictureBase64(String),
}

/// A request that a component asks the host to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: String,
    /// Absolute.
    pub url: String,
    /// Values may hold `{secret:NAME}`, `{credential}`, `{user-agent}`,
    /// `{anonymous-user-id}`: `wit/types.wit`.
    pub headers: Vec<(String, String)>,
    /// In order.
    pub body: Vec<Part>,
    /// For the whole exchange, from connecting to the last byte.
    pub timeout_ms: Option<u32>,
}

/// A call with its adapter's defaults filled in.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// The completed configuration.
    pub config: CallConfig,
    /// Which of its fields are defaults, by the log's names.
    pub defaulted: Vec<String>,
    /// What is known of the model, an object.
    pub model: JsonText,
}

/// Chunks of an adapter that has no wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Emission {
    /// How long the host waits first.
    pub after_ms: u32,
    /// Stream chunks, a JSON text each.
    pub chunks: Vec<JsonText>,
}

/// What an attempt wants the host to do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Send this, feed back what comes.
    Send(HttpRequest),
    /// Wait, take these chunks, ask again.
    Emit(Emission),
    /// The attempt is over.
    Done,
}

/// How a request's response ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndCause {
    /// The body ended as its framing said it would.
    Complete,
    /// It did not: `CONNECT`, `TLS`, `TRANSPORT`, `TIMEOUT`, `LIMIT`.
    Failed(PluginError),
    /// The caller gave up.
    Aborted,
}

// ---- prompt ----------------------------------------------------------------

/// Where a section of the prompt goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// The system prompt.
    System,
    /// The runtime-context snapshot.
    Context,
}

/// A section of the prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct PromptSection {
    /// Where it goes.
    pub place: Place,
    /// Its name, one of its place.
    pub name: String,
    /// Sections are sorted by it.
    pub order: f64,
    /// As it stands.
    pub text: String,
    /// The only section of its place.
    pub complete: bool,
}

// ---- projection ------------------------------------------------------------

/// A read model that a component folds from the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectionSpec {
    /// Its name, one of the component's.
    pub key: String,
    /// A stored state of another version is folded anew.
    pub version: u32,
    /// The event kinds that it reads; empty means all.
    pub kinds: Vec<String>,
}

// ---- dispatch --------------------------------------------------------------

/// An event that a component listens to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subscription {
    /// The event's name.
    pub event: String,
    /// Only these kinds or tool names; empty means all.
    pub only: Vec<String>,
    /// Told beside the turn, by an instance of its own.
    pub beside: bool,
}

/// What a listener of a waterfall makes of its payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// On with the payload as it came.
    Proceed,
    /// On with this one.
    Rewrite(JsonText),
    /// No further: this is the result.
    Settle(JsonText),
}

/// A listener's answer on the way in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// What becomes of the payload.
    pub verdict: Verdict,
    /// Handed to `leave`; without one, `leave` is not called.
    pub carry: Option<String>,
}

// ---- compaction ------------------------------------------------------------

/// Why the surface is to become smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trigger {
    /// Before a step.
    Pressure,
    /// The provider refused the request as too long.
    Overflow,
    /// A person asked.
    Manual,
}

/// What a compactor is told, measured after what was done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Situation {
    /// Why it is asked.
    pub trigger: Trigger,
    /// What the next request would cost.
    pub tokens: u32,
    /// Of the last request's model, where it is known.
    pub context_window: Option<u32>,
    /// How many of its plans were carried out for this trigger.
    pub round: u32,
    /// Recoveries from overflow since the last response.
    pub recoveries: u32,
    /// `{instructions?, summarise?}`.
    pub more: Option<JsonText>,
}

/// A shorter content for a tool result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trim {
    /// A `tool/result` on the surface.
    pub node: u32,
    /// Its new content blocks, a JSON text each.
    pub content: Vec<JsonText>,
}

/// What a compactor wants done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Plan {
    /// Nothing, or nothing more.
    Nothing,
    /// Shorter contents for tool results.
    Trim(Vec<Trim>),
    /// These nodes of the surface, first and last, are to become a summary.
    Summarise((u32, u32)),
}

/// A summary of some nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Text blocks, a JSON text each.
    pub content: Vec<JsonText>,
    /// `{provider, model, maxTokens?, rawOutput?, usage?}`.
    pub origin: JsonText,
}
