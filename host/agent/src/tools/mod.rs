//! Tools: what they are, which there are, and how the calls of one message are
//! scheduled (spec/loop.md §6, §8) and carried through the pipeline (§7).

mod arguments;
mod component;
mod pipeline;
mod registry;
mod result;
mod scheduler;
mod schema;
mod tool;

pub(crate) use arguments::Call;
pub use component::ComponentTool;
pub use pipeline::Guard;
pub(crate) use pipeline::Pipeline;
pub use registry::ToolRegistry;
pub(crate) use scheduler::Scheduler;
pub use schema::Schema;
pub use tool::{CallScope, Tool, ToolSpec};
