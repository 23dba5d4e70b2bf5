//! Listing by headers alone.

use std::path::PathBuf;

use dsh_session::Header;

use crate::Damage;

/// One stored session, or what stands where one should be.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The log.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written, epoch milliseconds.
    pub modified_ms: i64,
    /// Its header, or why it cannot be opened.
    pub header: Result<Header, Damage>,
}
