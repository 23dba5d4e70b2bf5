//! Components as they are, mounted and called: what the host promises of them,
//! and what hostile ones try.

mod prober;
mod support;
mod survey;
mod wasi;

mod adapter;
mod bounds;
mod calls;
mod compacting;
mod folding;
mod hostile;
mod listening;
mod loading;
mod mounting;
mod ports;
