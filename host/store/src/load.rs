//! Reading a stored log.

use std::path::PathBuf;
use std::sync::Arc;

use dsh_session::{Event, Header};

use crate::Damage;

/// Which log to read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A session of this store.
    Id(String),
    /// Any file; the encoding is told by its name (`.zstd` or not), its place is not checked.
    File(PathBuf),
}

/// A tail that a crash left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Torn {
    /// Where the kept part of the file ends.
    pub truncate_to: u64,
    /// How many events after that were still readable and are part of the log.
    pub recovered: usize,
}

/// What reading a log gives.
#[derive(Debug, Clone)]
pub struct Inspection {
    /// The file.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The header.
    pub header: Header,
    /// The longest sound prefix, upgraded where events had an older shape, without closers.
    pub events: Vec<Arc<Event>>,
    /// The events that would close an open turn; empty when the log is damaged.
    pub closers: Vec<Arc<Event>>,
    /// How many events were upgraded in memory.
    pub migrated: usize,
    /// The torn tail, which is normal after a crash.
    pub torn: Option<Torn>,
    /// Why the log ends where it does, when it should not.
    pub damage: Option<Damage>,
}
