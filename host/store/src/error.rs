//! One error type, a variant a cause. Cloneable, since one failed write answers every waiter of a barrier.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::{Damage, DamageClass, layout};

/// Why the store refused or failed. [`StoreError::code`] is stable; the text is for people.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The file system failed.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// Writing failed and so did cutting the half-written batch off again. The next write tries both again.
    #[error("cannot {action} {}: {source}; removing the half-written batch failed too: {rollback}", path.display())]
    Rollback {
        /// What was tried.
        action: &'static str,
        /// On what.
        path: PathBuf,
        /// Why writing failed.
        source: Arc<io::Error>,
        /// Why the roll-back failed.
        rollback: Arc<io::Error>,
    },
    /// Another process, or another writer of this one, writes this session.
    #[error("session {id:?} is being written by another process ({holder}); wait for it or stop it, lock {}", path.display())]
    Locked {
        /// The session.
        id: String,
        /// The lock file.
        path: PathBuf,
        /// Who that is, as far as the lock says: `pid 7 on box since 2026-11-30 01:22:33 UTC`.
        holder: String,
    },
    /// The file system has no locks, so a second writer could not be kept out. Nothing is written there.
    #[error("cannot lock {}: {source}; this file system has no file locks, and without one two writers would ruin the log: put the sessions on one that has", path.display())]
    CannotLock {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        source: Arc<io::Error>,
    },
    /// No stored session has this id.
    #[error("no session {id:?} below {}; dsh sessions list shows those that are there", root.display())]
    NotFound {
        /// The id asked for.
        id: String,
        /// Where was looked.
        root: PathBuf,
    },
    /// A shortened id that more than one session has.
    #[error("{text:?} is short for more than one session: {}{}; write more of it", candidates.join(", "), if *more > 0 { format!(" and {more} more") } else { String::new() })]
    Ambiguous {
        /// What was written.
        text: String,
        /// Some of the ids.
        candidates: Vec<String>,
        /// How many others there are.
        more: usize,
    },
    /// A session that was to be created is there already.
    #[error("session {id:?} exists already at {}; resume it or choose another id", path.display())]
    AlreadyExists {
        /// The session.
        id: String,
        /// Its log.
        path: PathBuf,
    },
    /// A live session has the id of a stored one and is not its continuation.
    #[error("session {id:?} is stored at {} and is another one: {reason}; choose another id, or resume the stored one", path.display())]
    Collision {
        /// The session.
        id: String,
        /// Its log.
        path: PathBuf,
        /// What differs.
        reason: String,
    },
    /// The files below the root are not where one session has one log of the configured encoding.
    #[error("session {id:?} cannot be addressed: {reason}")]
    Layout {
        /// The session.
        id: String,
        /// What stands in the way, and what to do.
        reason: String,
    },
    /// The log is damaged or of a foreign format; it can be read up to the damage but not written.
    #[error("log {} is not usable: {damage}; nothing was changed; {}", path.display(), advice(path, damage))]
    Damaged {
        /// The log.
        path: PathBuf,
        /// Where and why.
        damage: Box<Damage>,
    },
    /// The log is damaged in a way that no repair can mend.
    #[error("log {} cannot be repaired: {damage}; nothing was changed; {advice}", path.display())]
    Unrepairable {
        /// The log.
        path: PathBuf,
        /// Where and why.
        damage: Box<Damage>,
        /// What can be done.
        advice: String,
    },
    /// The log changed under its writer, though it holds the lock. Nothing more is written.
    #[error("log {} was changed by somebody else ({reason}); writing has stopped, inspect the log before going on", path.display())]
    TailChanged {
        /// The log.
        path: PathBuf,
        /// What was expected and what was found.
        reason: String,
    },
    /// A rule of the session forbids it.
    #[error("session {id:?}: {source}")]
    Refused {
        /// The session.
        id: String,
        /// The rule.
        source: Box<dsh_session::Error>,
    },
    /// An event does not continue the log.
    #[error(
        "event with seq {got} handed to the writer of session {id:?}, which expects {expected}"
    )]
    Sequence {
        /// The session.
        id: String,
        /// The seq due next.
        expected: u64,
        /// The seq given.
        got: u64,
    },
    /// The session's own log could not be read.
    #[error("session {id:?}: {source}")]
    Session {
        /// The session.
        id: String,
        /// What the session said.
        source: dsh_session::Error,
    },
    /// The writer was closed.
    #[error("the writer of session {id:?} is closed")]
    Closed {
        /// The session.
        id: String,
    },
    /// A value that no path can be made of.
    #[error("{what} cannot be empty: no path can be made of it")]
    EmptyName {
        /// Which value.
        what: &'static str,
    },
    /// A projection cache that this program does not read or write. Nothing depends on the file.
    #[error("projection cache {} is not usable: {reason}; move it away and it is made anew", path.display())]
    ProjectionCache {
        /// The file.
        path: PathBuf,
        /// What it is instead.
        reason: String,
    },
    /// A configuration value out of its range.
    #[error("store configuration: {0}")]
    Config(String),
}

/// What can be done about a log that cannot be written to.
fn advice(path: &Path, damage: &Damage) -> String {
    let id = layout::id_of(path).unwrap_or_else(|| "ID".to_owned());
    match (damage.class, damage.seq) {
        (DamageClass::Corrupt, Some(_)) => {
            format!("dsh sessions repair {id} makes it usable again up to there")
        }
        (DamageClass::Unsupported, Some(_)) => format!(
            "a newer dsh may read it whole, and dsh sessions repair {id} keeps what this one can read"
        ),
        (DamageClass::Unsupported, None) => "a newer dsh may read it".to_owned(),
        (DamageClass::Identity | DamageClass::Layout, _) => {
            "move it to where it belongs".to_owned()
        }
        _ => "what is in it can be seen in the file alone, and a new session can be started beside it"
            .to_owned(),
    }
}

impl StoreError {
    /// A stable name of the cause.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Io { .. } | Self::Rollback { .. } => "STORE_IO",
            Self::Locked { .. } => "SESSION_LOCKED",
            Self::CannotLock { .. } => "STORE_CANNOT_LOCK",
            Self::NotFound { .. } => "SESSION_NOT_FOUND",
            Self::Ambiguous { .. } => "SESSION_AMBIGUOUS",
            Self::AlreadyExists { .. } => "SESSION_ALREADY_EXISTS",
            Self::Collision { .. } => "SESSION_COLLISION",
            Self::Layout { .. } => "SESSION_LAYOUT",
            Self::Damaged { damage, .. } | Self::Unrepairable { damage, .. } => damage.class.code(),
            Self::Refused { source, .. } => source.code(),
            Self::TailChanged { .. } => "SESSION_TAIL_CHANGED",
            Self::Sequence { .. } => "SESSION_SEQUENCE",
            Self::Session { source, .. } => source.code(),
            Self::Closed { .. } => "SESSION_WRITER_CLOSED",
            Self::EmptyName { .. } => "SESSION_NAME_EMPTY",
            Self::ProjectionCache { .. } => "PROJECTION_CACHE_UNUSABLE",
            Self::Config(_) => "STORE_CONFIG",
        }
    }

    /// Whether trying the same again may succeed: space returns, a lock is given back.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Io { .. } | Self::Rollback { .. } | Self::Locked { .. }
        )
    }

    pub(crate) fn io(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io {
            action,
            path,
            source: Arc::new(source),
        }
    }
}
