//! The session header: what is known of a session before its first event. `spec/session.md` §6, §9.2.

use std::sync::Arc;

use crate::Error;

/// Who started the session, when not a person.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// Another agent.
    Subagent,
}

/// The header. It is kept outside the log and never changes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Header {
    /// The session's id, any non-empty string.
    pub id: Arc<str>,
    /// Milliseconds since the epoch, a safe integer.
    pub created_at: u64,
    /// The absolute path that the session works in.
    pub cwd: Option<Arc<str>>,
    /// The session that this one was forked from or spawned by.
    pub parent_session: Option<Arc<str>>,
    /// How many of the first events were inherited.
    pub seed_length: Option<u64>,
    /// Who started it.
    pub origin: Option<Origin>,
    /// How many sessions stand above it; absent means 0, and reads so from disk.
    pub delegation_depth: Option<u64>,
    /// The agent preset chosen at creation.
    pub agent_preset: Option<Arc<str>>,
}

impl Header {
    /// A header with an id and a creation time alone.
    pub fn new(id: impl Into<Arc<str>>, created_at: u64) -> Header {
        Header {
            id: id.into(),
            created_at,
            cwd: None,
            parent_session: None,
            seed_length: None,
            origin: None,
            delegation_depth: None,
            agent_preset: None,
        }
    }

    /// The first line of a log, without the newline (§9.2).
    pub fn line(&self) -> String {
        todo!()
    }

    /// Reads the first line of a log, in the order of checks of §9.2: a foreign version is reported before any other
    /// fault. `cwd`, `parentSession` and `seedLength` are checked too, after the rest.
    ///
    /// # Errors
    /// [`Error::Json`], [`Error::UnsupportedVersion`], [`Error::HeaderShape`].
    pub fn parse_line(line: &str) -> Result<Header, Error> {
        let _ = line;
        todo!()
    }

    /// Checks the values against §6.
    ///
    /// # Errors
    /// [`Error::HeaderShape`].
    pub fn check(&self) -> Result<(), Error> {
        todo!()
    }
}
