//! What one call is made of, beside its configuration.
//!
//! What the model sees is logged: a request of the loop can be made of a
//! session's [`Messages`] only, which only a session makes. Any other says what
//! it is for.

use dsh_session::{Json, Messages};

/// One request, provider-neutral. `spec/llm.md` §1.5.
#[derive(Clone)]
pub struct Request {
    conversation: Conversation,
    purpose: Option<String>,
    /// The system prompt; absent and empty differ.
    pub system: Option<String>,
    /// Tool schemas `{name, description, parameters}`.
    pub tools: Vec<Json>,
    /// The session that it is made for.
    pub session_id: Option<String>,
}

#[derive(Clone)]
enum Conversation {
    Surface(Messages),
    Auxiliary(Vec<Json>),
}

impl Request {
    /// A request of the loop: the surface as it is.
    #[must_use]
    pub fn of_surface(messages: Messages) -> Self {
        Self::new(Conversation::Surface(messages), None)
    }

    /// A call beside the loop: `compaction`, `session-title`, a plugin's own.
    #[must_use]
    pub fn auxiliary(purpose: impl Into<String>, messages: Vec<Json>) -> Self {
        Self::new(Conversation::Auxiliary(messages), Some(purpose.into()))
    }

    /// A call beside the loop that continues the surface, so that the provider's cache holds.
    #[must_use]
    pub fn auxiliary_of_surface(purpose: impl Into<String>, messages: Messages) -> Self {
        Self::new(Conversation::Surface(messages), Some(purpose.into()))
    }

    fn new(conversation: Conversation, purpose: Option<String>) -> Self {
        Self {
            conversation,
            purpose,
            system: None,
            tools: Vec::new(),
            session_id: None,
        }
    }

    /// With a system prompt.
    #[must_use]
    pub fn system(mut self, system: Option<String>) -> Self {
        self.system = system;
        self
    }

    /// With tools.
    #[must_use]
    pub fn tools(mut self, tools: Vec<Json>) -> Self {
        self.tools = tools;
        self
    }

    /// For a session.
    #[must_use]
    pub fn session(mut self, id: impl Into<String>) -> Self {
        self.session_id = Some(id.into());
        self
    }

    /// What it is for; none for the loop.
    #[must_use]
    pub fn purpose(&self) -> Option<&str> {
        self.purpose.as_deref()
    }

    /// The messages, each through `map`.
    pub(crate) fn messages(&self, map: impl Fn(&str) -> String) -> Vec<String> {
        match &self.conversation {
            Conversation::Surface(messages) => messages.iter().map(|m| map(m.as_str())).collect(),
            Conversation::Auxiliary(messages) => messages.iter().map(|m| map(m.as_str())).collect(),
        }
    }
}
