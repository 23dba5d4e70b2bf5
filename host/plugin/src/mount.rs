//! A row in use.

use std::sync::Arc;

use crate::api::{
    Action, CallConfig, EndCause, Entry, GenerateRequest, JsonText, Prepared, PromptSection,
    Subscription, ToolCall, ToolOutcome, ToolSpec,
};
use crate::call::CallContext;
use crate::component::Component;
use crate::error::CallError;
use crate::grants::Grants;
use crate::limits::Limits;

/// A row of a profile, ready to be mounted.
#[derive(Debug, Clone)]
pub struct Row {
    /// The row's id in the profile.
    pub id: String,
    /// What it mounts.
    pub component: Arc<Component>,
    /// Its configuration: `config.get`.
    pub config: JsonText,
    /// What it may do.
    pub grants: Grants,
    /// What it may use up.
    pub limits: Limits,
}

/// A mounted row. Cheap to clone; all clones are the same row.
#[derive(Clone)]
pub struct Mounted {}

impl Mounted {
    /// The row's id.
    #[must_use]
    pub fn id(&self) -> &str {
        todo!()
    }

    /// The component that it mounts.
    #[must_use]
    pub fn component(&self) -> &Arc<Component> {
        todo!()
    }

    /// Its tools; empty for one that exports no `tool`.
    #[must_use]
    pub fn tools(&self) -> &[ToolSpec] {
        todo!()
    }

    /// Its routes, a JSON text each; empty for one that exports no `llm-adapter`.
    #[must_use]
    pub fn routes(&self) -> &[JsonText] {
        todo!()
    }

    /// What it listens to; empty for one that exports no `dispatch`.
    #[must_use]
    pub fn subscriptions(&self) -> &[Subscription] {
        todo!()
    }

    /// Whether it exports `prompt`.
    #[must_use]
    pub fn has_prompt(&self) -> bool {
        todo!()
    }

    /// Runs a tool on a fresh instance. No bound on the wall clock but the
    /// caller's: cancel `ctx.cancel`.
    ///
    /// # Errors
    /// [`CallError::Plugin`] is the tool's own error; any other, how the call ended.
    pub async fn call_tool(
        &self,
        _ctx: &CallContext,
        _call: ToolCall,
    ) -> Result<ToolOutcome, CallError> {
        todo!()
    }

    /// Whether this call may overlap others; a failure means no.
    pub async fn may_overlap(&self, _ctx: &CallContext, _call: ToolCall) -> bool {
        todo!()
    }

    /// An adapter of its own for an agent; none if it exports no `llm-adapter`.
    #[must_use]
    pub fn adapter(&self) -> Option<Adapter> {
        todo!()
    }

    /// A prompt of its own for an agent; none if it exports no `prompt`.
    #[must_use]
    pub fn prompt(&self) -> Option<Prompt> {
        todo!()
    }

    /// A listener of its own for an agent; none if it exports no `dispatch`.
    #[must_use]
    pub fn dispatch(&self) -> Option<Dispatch> {
        todo!()
    }
}

/// One provider attempt of an [`Adapter`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attempt {}

/// An `llm-adapter` with a warm instance of its own. Calls wait for each other,
/// so several attempts may be open at once. After a failure the next `prepare`
/// or `open` gets a new instance; attempts of the old one answer
/// [`CallError::Gone`]. Cheap to clone; all clones share the instance.
#[derive(Clone)]
pub struct Adapter {}

impl Adapter {
    /// The call with the adapter's defaults filled in.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn prepare(
        &self,
        _ctx: &CallContext,
        _config: CallConfig,
    ) -> Result<Prepared, CallError> {
        todo!()
    }

    /// Opens one provider attempt.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn open(
        &self,
        _ctx: &CallContext,
        _request: GenerateRequest,
    ) -> Result<Attempt, CallError> {
        todo!()
    }

    /// What the host is to do next; after `open`, each `end` and each `emit`.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn next(&self, _ctx: &CallContext, _attempt: Attempt) -> Result<Action, CallError> {
        todo!()
    }

    /// The response's head.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn head(
        &self,
        _ctx: &CallContext,
        _attempt: Attempt,
        _status: u16,
        _headers: Vec<(String, String)>,
    ) -> Result<(), CallError> {
        todo!()
    }

    /// Bytes as they arrived; returns the stream chunks that they complete.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn body(
        &self,
        _ctx: &CallContext,
        _attempt: Attempt,
        _data: &[u8],
    ) -> Result<Vec<JsonText>, CallError> {
        todo!()
    }

    /// The request is over; returns its last chunks.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn end(
        &self,
        _ctx: &CallContext,
        _attempt: Attempt,
        _cause: EndCause,
    ) -> Result<Vec<JsonText>, CallError> {
        todo!()
    }

    /// Gives the attempt's handle back. Nothing happens if its instance is gone.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn close(&self, _ctx: &CallContext, _attempt: Attempt) -> Result<(), CallError> {
        todo!()
    }
}

/// A `prompt` with a warm instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Prompt {}

impl Prompt {
    /// Its sections, for `{provider, model, cwd, …}`.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn sections(
        &self,
        _ctx: &CallContext,
        _variables: JsonText,
    ) -> Result<Vec<PromptSection>, CallError> {
        todo!()
    }
}

/// A `dispatch` with a warm instance of its own. Cheap to clone.
#[derive(Clone)]
pub struct Dispatch {}

impl Dispatch {
    /// Tells what happened.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn notify(
        &self,
        _ctx: &CallContext,
        _event: &str,
        _payloads: Vec<JsonText>,
    ) -> Result<(), CallError> {
        todo!()
    }

    /// Asks for a decision.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn decide(
        &self,
        _ctx: &CallContext,
        _event: &str,
        _payload: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        todo!()
    }

    /// On the way in.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn enter(
        &self,
        _ctx: &CallContext,
        _event: &str,
        _payload: JsonText,
    ) -> Result<Entry, CallError> {
        todo!()
    }

    /// On the way out.
    ///
    /// # Errors
    /// As every call: [`CallError`].
    pub async fn leave(
        &self,
        _ctx: &CallContext,
        _event: &str,
        _carry: String,
        _outcome: JsonText,
    ) -> Result<Option<JsonText>, CallError> {
        todo!()
    }
}
