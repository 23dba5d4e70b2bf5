//! Token counts of a response. `spec/llm.md` §1.9: disjoint, so that they add up.

use dsh_session::Value;

/// What a response cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Input that no cache held.
    pub input: u64,
    /// Output, reasoning included.
    pub output: u64,
    /// Input that a cache held.
    pub cache_read: Option<u64>,
    /// Input written to a cache.
    pub cache_write: Option<u64>,
    /// Of the output, the reasoning.
    pub reasoning: Option<u64>,
}

impl TokenUsage {
    /// Reads the log's shape; none without both of the counts that are always there.
    #[must_use]
    pub fn from_value(usage: Value<'_>) -> Option<Self> {
        let count = |key| usage.get(key).and_then(Value::u64);
        Some(Self {
            input: count("inputTokens")?,
            output: count("outputTokens")?,
            cache_read: count("cacheReadTokens"),
            cache_write: count("cacheWriteTokens"),
            reasoning: count("reasoningTokens"),
        })
    }

    /// All of the input, cached or not.
    #[must_use]
    pub fn billed_input(&self) -> u64 {
        self.input
            .saturating_add(self.cache_read.unwrap_or(0))
            .saturating_add(self.cache_write.unwrap_or(0))
    }
}
