//! How much a model thinks, and what that leaves to its answer (spec/llm.md §7.8).
//! Pure; the table test is the rule.

/// The least that providers take as a budget, and the least that an answer keeps
/// beside one.
const LEAST: u32 = 1024;

/// What the body says of thinking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Thinking {
    /// Nothing: the model does not reason, or cannot stop it.
    Unsaid,
    /// It is not to.
    Off,
    /// As much as it finds right, at this effort.
    Adaptive(String),
    /// Up to so many tokens.
    Budget(u32),
}

impl Thinking {
    /// Whether the model thinks, which leaves no say in its temperature.
    pub(crate) fn is_on(&self) -> bool {
        matches!(self, Self::Adaptive(_) | Self::Budget(_))
    }
}

/// What decides.
#[derive(Clone, Debug)]
pub(crate) struct Wish<'a> {
    /// The model reasons at all.
    pub(crate) reasons: bool,
    /// It can be told not to.
    pub(crate) can_stop: bool,
    /// It finds its own measure.
    pub(crate) adaptive: bool,
    /// The level that was asked for; none for no thinking.
    pub(crate) level: Option<&'a str>,
    /// What the model calls that level.
    pub(crate) spelling: Option<&'a str>,
    /// Tokens that a profile gives to a level.
    pub(crate) budget: Option<u32>,
    /// Tokens for the answer.
    pub(crate) cap: u32,
    /// The most that the model ever says.
    pub(crate) most: u32,
    /// Tokens that its window leaves.
    pub(crate) room: u32,
}

/// What to say of thinking, and the whole's cap.
pub(crate) fn decide(wish: &Wish<'_>) -> (Thinking, u32) {
    let none = match (wish.reasons, wish.can_stop) {
        (true, true) => Thinking::Off,
        _ => Thinking::Unsaid,
    };
    let Some(level) = wish.level.filter(|_| wish.reasons) else {
        return (none, wish.cap);
    };
    if wish.adaptive {
        let effort = wish.spelling.unwrap_or(match level {
            "minimal" | "low" => "low",
            "medium" => "medium",
            _ => "high",
        });
        return (Thinking::Adaptive(effort.to_owned()), wish.cap);
    }
    let wanted = wish.budget.unwrap_or(match level {
        "minimal" => 1024,
        "low" => 2048,
        "medium" => 8192,
        _ => 16384,
    });
    let whole = wish
        .cap
        .saturating_add(wanted)
        .min(wish.most)
        .min(wish.room);
    let budget = wanted.min(whole.saturating_sub(LEAST));
    if budget < LEAST {
        // No provider takes less, and the answer comes first.
        return (none, wish.cap);
    }
    (Thinking::Budget(budget), whole)
}

#[cfg(test)]
#[path = "thinking_tests.rs"]
mod tests;
