//! The history, as a target model takes it (spec/llm.md §7.3): neutral messages
//! become entries that every protocol understands, with what the provider needs
//! back verbatim where the same model wrote it, and as plain text where another
//! did. All texts are escaped; halves of surrogate pairs are gone.
//!
//! A replay state that does not fit its message costs that message its
//! signatures, never the call: the message is taken as another model's, and the
//! log says why.

mod read;
mod replay;
mod transform;

use std::borrow::Cow;

use guest_support::Error;

pub use transform::is_blank;

pub(crate) use replay::{KIND as REPLAY_KIND, VERSION as REPLAY_VERSION};

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// What people, or the harness, say.
    User {
        /// In order; never empty, though a text may be.
        parts: Vec<Piece<'a>>,
    },
    /// What a model said.
    Assistant(Assistant<'a>),
    /// What a tool answered; each call of the entry before has exactly one.
    Result {
        /// The call's id, as the call of this history has it.
        call_id: Cow<'a, str>,
        /// The tool; `unknown` where no call says so.
        tool_name: Cow<'a, str>,
        /// In order; never empty.
        parts: Vec<Piece<'a>>,
        /// Whether it tells of a failure.
        is_error: bool,
    },
}

/// A piece of what a user says or a tool answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// Escaped.
    Text(Cow<'a, str>),
    /// Only for models that take pictures.
    Image(Image<'a>),
}

/// A picture, by its attachment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image<'a> {
    /// `sha256:...`, to render.
    pub attachment: Cow<'a, str>,
}

/// A message of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assistant<'a> {
    /// The target itself wrote it: provider, api and model are the same.
    pub same: bool,
    /// The api that wrote it, by its replay state; none of a message without one
    /// that is usable.
    pub api: Option<Cow<'a, str>>,
    /// The provider's id of the answer, escaped.
    pub response_id: Option<Cow<'a, str>>,
    /// Why it ended, as the replay state names it: `stop`, `length`, `toolUse`.
    pub stop: Cow<'a, str>,
    /// In order.
    pub blocks: Vec<Block<'a>>,
}

impl Assistant<'_> {
    /// How many tools it calls.
    pub fn calls(&self) -> usize {
        let calls = self.blocks.iter();
        calls
            .filter(|block| matches!(block, Block::Call { .. }))
            .count()
    }
}

/// A block of a model's message. Signatures are escaped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block<'a> {
    /// What people read, and what another model thought.
    Text {
        /// Escaped.
        text: Cow<'a, str>,
        /// `textSignature`.
        signature: Option<Cow<'a, str>>,
    },
    /// Only of the target itself.
    Thinking {
        /// Escaped; may be empty where there is a signature.
        text: Cow<'a, str>,
        /// `thinkingSignature`.
        signature: Option<Cow<'a, str>>,
        /// The provider keeps the text to itself.
        redacted: bool,
    },
    /// A call of a tool.
    Call {
        /// Escaped; changed by the target's [`Target::call_id`] where another
        /// model wrote it.
        id: Cow<'a, str>,
        /// Escaped.
        name: Cow<'a, str>,
        /// A compact JSON object, not escaped.
        arguments: String,
        /// `thoughtSignature`.
        signature: Option<Cow<'a, str>>,
    },
}

/// Whom the history is for.
pub struct Target<'a> {
    /// The protocol.
    pub api: &'a str,
    /// The route.
    pub provider: &'a str,
    /// The model's id.
    pub model: &'a str,
    /// Whether it takes pictures.
    pub vision: bool,
    /// What it makes of the id of another model's call, escaped; none: nothing.
    pub call_id: &'a dyn Fn(&str) -> Option<String>,
    /// Takes a line for the host's log.
    pub warn: &'a dyn Fn(&str),
}

/// The entries of these messages, a JSON text each.
pub fn build<'a>(messages: &'a [String], target: &Target<'_>) -> Result<Vec<Entry<'a>>, Error> {
    Ok(transform::transform(read::read(messages, target)?, target))
}

#[cfg(test)]
#[path = "history_tests.rs"]
mod tests;
