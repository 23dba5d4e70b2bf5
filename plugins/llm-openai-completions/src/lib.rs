//! The chat completions adapter (spec/llm.md §7.6): what DeepSeek's own API is a
//! dialect of, and what most other servers speak. Pure, as every adapter; what it
//! shares with the others is in `adapter-support`.

mod calls;
mod dialect;
mod messages;
mod request;
mod stream;
mod thinking;
mod usage;

pub use stream::Completions;

adapter_support::component!(Completions);

#[cfg(test)]
mod conformance;
#[cfg(test)]
mod request_tests;
#[cfg(test)]
mod servers_tests;
