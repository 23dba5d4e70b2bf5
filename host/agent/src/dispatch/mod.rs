//! Events of the agent's own, and who may watch or change what they decide.
//!
//! A waterfall is split into `enter`, on the way in and in row order, and
//! `leave`, on the way out and in reverse. No listener holds the rest of the
//! chain in its hands, so a component is never entered twice, and one that does
//! nothing changes nothing: delegation is the default. What a listener's failure
//! means belongs to the event, not to the listener: a policy event refuses,
//! anything else goes on without it (architecture.md; wit/plugin.wit `dispatch`).
//!
//! Listeners that are only told something get it from a queue of their own, in
//! order and in batches, and never hold up a turn.
//!
//! | event | mode | payload | result |
//! | --- | --- | --- | --- |
//! | `agent/pre-step` | waterfall | `{turn, step, messages}`, those claimed | `{kind: "enter", messages}` or `{kind: "reject"}` |
//! | `agent/request` | waterfall | `{turn, step, config}` | the configuration |
//! | `agent/request-error` | waterfall | `{turn, step, provider, failure, retryPolicy, retries}`, the last being how often this step was retried under that policy | `{kind: "retry", delayMs?}` or `null` |
//! | `system-prompt/assemble` | waterfall | `{sections, contexts}`, each `{name, order, text}` | the same |
//! | `tools/pre-execute` | waterfall | a call | `{kind: "allow"}`, `{kind: "deny", reason?}`, `{kind: "ask", reason?}` |
//! | `tools/execute` | waterfall | a call, `timeoutMs?`; `deadlineMs` may be set | `{content, isError, value?, meta?}` |
//! | `tools/post-execute` | waterfall | a call, `result` | `{kind: "accept", content? or value?, additionalContexts?}` or `{kind: "block", feedback, additionalContexts?}` |
//! | `agent/turn-stopping` | decide | `{turn}` | `{messages}` for one more step |
//! | `approval/request` | decide | `{id, toolName, callId?, reason?, arguments?}` | `{outcome}` |
//! | `session/event` | notify | the event | |
//! | `agent/status` | notify | `{status}` | |
//! | `agent/error` | notify | `{turn, step, error}` | |
//! | `agent/session-start` | notify | `{source}` | |
//! | `tools/result` | notify | a call, `result` | |
//!
//! A call is `{turn, step, callId, name, arguments, raw}`: the arguments' value,
//! and the text that the model wrote. Arguments cannot be rewritten; a rewritten
//! payload of `tools/…` is what the listeners further in see.

mod chain;
mod component;
mod events;
mod listener;
mod observers;
mod stamp;

pub use chain::{Dispatch, DispatchError};
pub use component::ComponentListener;
pub use events::{EventSpec, Mode, OnFailure, event};
pub use listener::{Entry, EventContext, Listener, ListenerError, Standing, Subscription, Verdict};
pub(crate) use stamp::own_message;
