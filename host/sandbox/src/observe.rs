//! What a session's policy says of a change that somebody is about to make.
//!
//! Every read and every change is reported here with the version that it met,
//! and before each change the policy is asked, whatever guard its writer set: a
//! writer can ask for more than the policy, and never for less. What the fence
//! refuses anyway is not asked about. The policy may take its time, as a
//! component may stand behind it, so it is asked between two looks at the file:
//! the first says which file it is, the second is the atomic step of the change
//! itself, where the file must still be that one and be as the policy wants it.
//!
//! A tool that reads for a change ([`dsh_plugin::port::Workspace::read_for`])
//! and then makes it asks twice.

use std::path::{Path, PathBuf};

use async_trait::async_trait;

/// What is about to be done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// Its content is replaced, whatever it was.
    Write,
    /// Its content is changed, which needs it to be known.
    Edit,
    /// It goes.
    Remove,
    /// It goes elsewhere, or comes from there. Nothing is lost by it, so of an
    /// answer [`Expect::Denied`] and [`Expect::Refused`] alone count.
    Rename,
}

impl Operation {
    /// As events name it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Edit => "edit",
            Self::Remove => "remove",
            Self::Rename => "rename",
        }
    }
}

/// A change that is about to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Intent {
    /// What is to be done.
    pub operation: Operation,
    /// Canonical.
    pub path: PathBuf,
    /// Of what is there now; none where nothing is.
    pub version: Option<String>,
}

/// What a file must be for a change to take place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Expect {
    /// Anything.
    Any,
    /// Not there.
    Absent,
    /// Not there, since whoever writes has not read it; a file that is there
    /// fails with `FS_NOT_OBSERVED`, not with `FS_STALE_VERSION`.
    Unobserved,
    /// This version.
    Version(String),
    /// The change must not take place: `FS_NOT_OBSERVED`.
    Refused,
    /// The change must not take place, and this is why: `FS_PERMISSION_DENIED`.
    Denied(String),
}

/// Hears of reads and changes, and decides what a change must meet. It is told
/// canonical paths, from threads that may block, and must not call back into
/// the workspace.
#[async_trait]
pub trait WritePolicy: Send + Sync {
    /// `fs/observed`: a read or a change met this version, or nothing. Must not wait.
    fn observed(&self, path: &Path, version: Option<&str>);
    /// Before a change: what must hold for it.
    async fn intent(&self, intent: &Intent) -> Expect;
}

/// No policy: whatever is written replaces what is there.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unguarded;

#[async_trait]
impl WritePolicy for Unguarded {
    fn observed(&self, _: &Path, _: Option<&str>) {}

    async fn intent(&self, _: &Intent) -> Expect {
        Expect::Any
    }
}
