//! Model calls beside the loop: a summary, a title, a plugin's own question.
//!
//! The prompt of such a call is put together here, from what the log has and
//! from drafts, and never from what a component says the log has: a prefix is
//! named by the surface's nodes, so that it is the loop's own request once more
//! and the provider's cache holds. Ids, roles and sources are the host's.
//!
//! - It raises no event of the agent's: nobody rewrites, vetoes or retries it.
//!   A failed attempt is made again by the route's own policy, without a trace
//!   in the log, which knows retries of steps alone (spec/llm.md §5).
//! - What it asks is durable before the adapter is called (spec/session.md
//!   §11.2), whoever logs it: [`port`] for a row's own question, the title
//!   driver and compaction by events of theirs.
//! - It has adapter instances of its own, apart from those of the loop: nothing
//!   that goes wrong in it takes a turn's answer with it.
//! - Dropping the call gives it up. The exchange runs in a task of its own,
//!   which ends through its token, so that an adapter is never left half way.

mod call;
mod port;
mod question;

pub use port::{LLM_REQUEST, LLM_RESPONSE, LlmPort};
