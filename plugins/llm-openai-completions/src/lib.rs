//! The chat completions adapter (spec/llm.md §7.6): what DeepSeek's own API is a
//! dialect of, and what most other servers speak. Pure, as every adapter; what it
//! shares with the others is in `adapter-support`.

mod request;
mod stream;

adapter_support::component!(stream::Completions);
