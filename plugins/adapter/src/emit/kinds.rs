//! What blocks, ends and counts are, and how the log names them.

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// What people read.
    Text,
    /// What the model thought.
    Reasoning,
    /// A call of a tool.
    Call,
}

/// Why a provider ended an answer, as replay states name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// It was done.
    Stop,
    /// The cap was reached.
    Length,
    /// It waits for tools.
    ToolUse,
}

/// The provider's counts, disjoint; unknown ones are 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Not from a cache, nor written to one.
    pub input: u64,
    /// Reasoning included.
    pub output: u64,
    /// Read from a cache.
    pub cache_read: u64,
    /// Written to a cache.
    pub cache_write: u64,
}

impl Kind {
    /// As chunks and blocks name it.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Reasoning => "reasoning",
            Kind::Call => "tool-call",
        }
    }

    /// The member of a replay entry that holds its signature.
    pub(crate) fn signature(self) -> &'static str {
        match self {
            Kind::Text => "textSignature",
            Kind::Reasoning => "thinkingSignature",
            Kind::Call => "thoughtSignature",
        }
    }
}

impl Stop {
    /// As replay states name it.
    pub fn name(self) -> &'static str {
        match self {
            Stop::Stop => "stop",
            Stop::Length => "length",
            Stop::ToolUse => "toolUse",
        }
    }
}
