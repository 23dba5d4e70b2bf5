//! Session logs on disk.
//!
//! A [`Store`] is one root directory; a session is one append-only file below it, in upstream's format v0, byte for
//! byte (`spec/session.md` §5, §7, §9). The file is the truth; what lies beside it is derived from it
//! and may be lost.
//!
//! What this crate promises:
//! - **Nothing is called durable before it is.** [`Writer::enqueue`] is memory only; [`Writer::flush`] returns when the
//!   bytes and the names that lead to them are synced. A batch appears whole or not at all.
//! - **A killed writer leaves a log that opens.** The tail that a crash cuts off is told from damage by its shape; a
//!   turn that was open is closed by events that are a pure function of the log.
//! - **Nothing is lost while the process lives.** A failed write is rolled back, the batch stays queued, the next
//!   event or flush tries again.
//! - **One writer.** An OS lock refuses the second one ([`StoreError::Locked`]); and before each append the file's size
//!   and tail are compared with what was written, since a lock can be bypassed.
//! - **Reading never throws a session away.** A damaged log opens to its longest sound prefix with its [`Damage`]
//!   named, and one bad session never hides another in [`Store::list`]. Only resuming a damaged log is refused.
//!
//! From the bottom up: [`storage`] is the seam to the file system; [`frame`] knows Zstandard frames, [`layout`] knows
//! paths; then come reading, writing and the queue between; [`Store`] is the front. [`projcache`] stands beside it: what
//! it holds is folded from logs and may be deleted.

#![forbid(unsafe_code)]

mod archive;
mod behind;
mod check;
mod checkpoint;
#[cfg(test)]
mod conformance;
mod damage;
mod error;
mod examine;
mod fork;
mod hole;
mod index;
mod list;
mod load;
mod locate;
mod lock;
mod log_file;
mod overview;
mod pool;
#[cfg(test)]
mod process_tests;
mod remove;
mod repair;
mod resolve;
mod scan;
mod store;
mod survey;
#[cfg(test)]
mod testing;
mod walk;
mod writer;

pub mod frame;
pub mod layout;
pub mod projcache;
pub mod report;
pub mod storage;

pub use check::check;
pub use damage::{Damage, DamageClass, Stage};
pub use error::StoreError;
pub use examine::Report;
pub use fork::Forked;
pub use layout::Compression;
pub use list::Entry;
pub use load::{Inspection, Target, Torn};
pub use lock::LOCK_FILE;
pub use overview::{Only, Overview, Page};
pub use remove::Removed;
pub use repair::{Lost, Repair};
pub use resolve::LAST;
pub use store::{FailureHook, Store, StoreConfig};
pub use survey::Watch;
pub use writer::Writer;
