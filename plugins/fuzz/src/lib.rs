//! What must hold of the adapters for any bytes: plain functions that panic when it does not.
//!
//! Adapters are pure, so they are driven natively, without a host: `sse` is the reader of event streams against a simple
//! one, a protocol's name is its adapter fed with any bytes in any pieces, `requests` is the way from messages of any shape
//! to bodies, `json` the reader of JSON. The test run replays seeds and a bounded number of their mutations; `cargo xtask
//! fuzz` drives the same functions by coverage. An input that once broke something is kept below `corpus/TARGET` for ever.

#![cfg(not(target_family = "wasm"))]

mod adapters;
mod body;
mod grammar;
mod json;
pub mod random;
pub mod replay;
mod requests;
pub mod seeds;
mod sse;

/// A named function over bytes.
#[derive(Clone, Copy)]
pub struct Target {
    /// As `cargo xtask fuzz` calls it.
    pub name: &'static str,
    /// Panics when an invariant breaks.
    pub run: fn(&[u8]),
    /// Folders of `tests/conformance/llm` whose bodies are its seeds.
    pub protocols: &'static [&'static str],
}

const ALL: &[&str] = &[
    "deepseek",
    "openai-completions",
    "openai-responses",
    "anthropic-messages",
];

/// All targets.
pub const TARGETS: &[Target] = &[
    Target {
        name: "sse",
        run: sse::check,
        protocols: ALL,
    },
    Target {
        name: "json",
        run: json::check,
        protocols: &[],
    },
    Target {
        name: "requests",
        run: requests::check,
        protocols: &[],
    },
    Target {
        name: "deepseek",
        run: body::deepseek,
        protocols: &["deepseek"],
    },
    Target {
        name: "openai-completions",
        run: body::completions,
        protocols: &["openai-completions", "deepseek"],
    },
    Target {
        name: "openai-responses",
        run: body::responses,
        protocols: &["openai-responses"],
    },
    Target {
        name: "anthropic-messages",
        run: body::messages,
        protocols: &["anthropic-messages"],
    },
];

/// The target of a name.
#[must_use]
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|target| target.name == name).copied()
}
