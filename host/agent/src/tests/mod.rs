//! The rules of `spec/loop.md` §17, a test each, over a scripted model and fake
//! tools. What a test asserts is the log, event by event.

mod compaction;
mod differences;
mod header;
mod inbox;
mod inbox_port;
mod pipeline;
mod rig;
mod scheduler;
mod stream;
mod turn;
mod wake;
