//! Components: everything of dsh that has an opinion runs in here.
//!
//! A *component* is a WebAssembly component that imports and exports interfaces
//! of `dsh:plugin` (`wit/`). A *row* of a profile mounts one: it says which
//! component, with which configuration, which grants and which limits. This
//! crate loads components, links to each what its row was granted, and calls it
//! so that nothing it does can hurt: every call has a bound on computing, on
//! time, on memory and on what it hands over, and a trap costs the instance
//! that it happened in and nothing else.
//!
//! How to read it:
//!
//! - [`Engine`] (`engine`, `ticker`, `run`): the one engine, and how a call runs.
//! - [`Component`] (`component`, `load`, `cache`, `code`): what a component says of itself
//!   without being run; its machine code, compiled once and cached.
//! - [`componentise`], [`Engine::survey`], [`want`]: what somebody is told who is
//!   about to install one.
//! - [`Grants`], [`Limits`] (`grants`, `limits`): what a row may do, as pure data.
//! - `capability/`: a file per capability that a grant gives.
//! - [`port`]: the traits that capabilities call, implemented by other crates.
//! - `instance`, `contract/`: a store with its state, and the bindings of each
//!   version of the contract.
//! - [`Mounted`] (`mount`, [`Adapter`], [`Prompt`]): a row in use.
//! - [`api`]: all that crosses, as plain Rust. No WIT or wasmtime type is public.

pub mod api;
#[doc(hidden)]
pub mod floor;
pub mod manifest;
pub mod port;
pub mod want;

mod adapter;
mod aot;
mod cache;
mod call;
mod capability;
mod check;
mod code;
mod compaction;
mod component;
mod componentise;
mod contract;
mod dispatch;
mod engine;
mod error;
mod grants;
mod health;
mod instance;
mod limits;
mod load;
mod mount;
mod offer;
mod projection;
mod prompt;
mod run;
mod stack;
mod standin;
mod survey;
mod ticker;
mod title;
mod warm;

pub use adapter::{Adapter, Attempt};
pub use call::CallContext;
pub use check::check;
pub use compaction::Compaction;
pub use component::{Component, Description, Interface, Metadata};
pub use componentise::{Componentised, componentise};
pub use dispatch::{Dispatch, Sense};
pub use engine::{Engine, EngineConfig};
pub use error::{CallError, Error};
pub use grants::{DirGrant, Grants, RouteGrant, SecretGrant};
pub use limits::{CEILING, Limits};
pub use mount::{Mounted, Row};
pub use projection::Projection;
pub use prompt::Prompt;
pub use survey::Offered;
pub use title::Title;
