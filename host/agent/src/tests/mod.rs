//! The rules of `spec/loop.md` §17 (`docs/loop.md`), over a scripted model and fake
//! tools, some with the official components. What a test asserts is the log, event by event.

mod auxiliary;
mod compaction;
mod context;
mod differences;
mod ends;
mod events;
mod header;
mod inbox;
mod inbox_port;
mod pipeline;
mod policies;
mod rig;
mod scheduler;
mod stream;
mod titles;
mod turn;
mod wake;
