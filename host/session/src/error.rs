//! One error type, a variant a cause.

use crate::{JsonError, Kind, Seq};

/// How a reader should treat an [`Error`] found in a stored log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ErrorClass {
    /// The log is of a version, or holds an event, that this program does not know. It is not damaged.
    Unsupported,
    /// The log was decoded but breaks a rule of the format.
    Corrupt,
    /// The request itself was refused: nothing is wrong with a stored log.
    Refused,
}

/// Why something was refused. [`Error::code`] is stable; the text is for people.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Not JSON, or beyond the lossless boundary.
    #[error("{subject} is not usable as JSON: {source}")]
    Json {
        /// What was read.
        subject: String,
        /// What is wrong with it.
        source: JsonError,
    },
    /// The envelope has a wrong, missing or unknown member.
    #[error("{subject} has an invalid event envelope: {what}")]
    Envelope {
        /// Which event.
        subject: String,
        /// Which member, and how it fails.
        what: &'static str,
    },
    /// A kind or reason that the format no longer has.
    #[error("{subject} uses the removed format {what}; this version cannot read it")]
    Removed {
        /// Which event.
        subject: String,
        /// The removed name.
        what: &'static str,
    },
    /// A seq that is not the next one.
    #[error("{subject} has seq {got}, expected {expected}")]
    Gap {
        /// Which event.
        subject: String,
        /// The seq found.
        got: u64,
        /// The seq that the log continues with.
        expected: u64,
    },
    /// A rule of the surface.
    #[error("{kind} at seq {seq}: {fault}")]
    Surface {
        /// The event's kind.
        kind: Kind,
        /// The event's seq.
        seq: Seq,
        /// The rule.
        fault: SurfaceFault,
    },
    /// A stored message lacks what every message has.
    #[error("{subject} {what}")]
    MessageShape {
        /// Which event.
        subject: String,
        /// What it lacks.
        what: &'static str,
    },
    /// A stored request header lacks what every header has.
    #[error("{subject} {what}")]
    RequestHeaderShape {
        /// Which event.
        subject: String,
        /// What it lacks.
        what: &'static str,
    },
    /// An event of an older shape that cannot be upgraded.
    #[error("{subject} is a malformed {what}")]
    LegacyShape {
        /// Which event.
        subject: String,
        /// The older shape.
        what: &'static str,
    },
    /// A required event of a kind that this program does not know.
    #[error(
        "event kind {kind:?} at seq {seq} is unknown and required; a newer program wrote this log"
    )]
    UnknownKind {
        /// The kind, empty when the event has none.
        kind: String,
        /// The event's seq.
        seq: Seq,
    },
    /// A header of another format version.
    #[error("session format version {version} is not supported, this program reads version 0")]
    UnsupportedVersion {
        /// The version as written.
        version: String,
    },
    /// A header line that is not a session header.
    #[error("session header {what}")]
    HeaderShape {
        /// What is wrong.
        what: &'static str,
    },
    /// The plain file has damage that is followed by a finished turn, or cannot be read at all.
    #[error("{what} at line {line}")]
    Scan {
        /// What is wrong.
        what: &'static str,
        /// The line, from 1; the header is line 1.
        line: u64,
    },
    /// A stored event that was there when the log was opened cannot be read again.
    #[error(
        "cannot read the stored event at seq {seq}: {reason}; check the session's log before going on"
    )]
    Archive {
        /// The event asked for.
        seq: Seq,
        /// What failed.
        reason: String,
    },
    /// An inbox splice that does not fit the lists.
    #[error("{subject}: {what}")]
    Inbox {
        /// Which splice.
        subject: String,
        /// Why it does not fit.
        what: String,
    },
    /// A projection is registered already, in another version.
    #[error(
        "projection {key:?} is registered in version {registered}, version {offered} cannot be registered beside it"
    )]
    ProjectionVersion {
        /// Which.
        key: String,
        /// The version that is there.
        registered: u64,
        /// The version refused.
        offered: u64,
    },
    /// A projection cannot go on from its cached state.
    #[error(
        "projection {key:?} cannot be restored from seq {base}: {what}; read the log again from 0"
    )]
    ProjectionRestore {
        /// Which.
        key: String,
        /// Where the events at hand begin.
        base: Seq,
        /// What is wrong with its row.
        what: &'static str,
    },
    /// A replacement whose price was written for other nodes, so the surface's estimate is lost.
    #[error(
        "token estimate: the replacement at seq {seq} takes the nodes {} to {} away, but the price before it is that of {} to {}",
        replaced.0, replaced.1, priced.0, priced.1
    )]
    TokenSurface {
        /// The replacement.
        seq: Seq,
        /// First and last node that it replaces.
        replaced: (Seq, Seq),
        /// First and last node that the compaction event before it priced.
        priced: (Seq, Seq),
    },
    /// A log whose context cannot be measured, though it can be read.
    #[error("token measure: at seq {seq} {what}")]
    TokenMeter {
        /// The event that breaks the rule.
        seq: Seq,
        /// The rule.
        what: &'static str,
    },
    /// A title that is not taken.
    #[error("session title refused: {what}")]
    Title {
        /// Why.
        what: &'static str,
    },
    /// A fork point that does not exist or lies inside a turn.
    #[error("fork of session {session:?}: {what}")]
    Fork {
        /// The code, as upstream names it.
        code: &'static str,
        /// The source session.
        session: String,
        /// What is wrong with the boundary.
        what: String,
    },
}

/// A broken rule of the surface; the order is the order of the checks (§3).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SurfaceFault {
    /// seq is not the next one.
    #[error("seq is not contiguous, expected {expected}")]
    NotContiguous {
        /// The next seq.
        expected: u64,
    },
    /// A log-only kind with a surface operation.
    #[error("a log-only event cannot carry surfaceOp")]
    OpOnLogOnly,
    /// A log-only kind with sources.
    #[error("a log-only event cannot carry sourceEventSeqs")]
    SourcesOnLogOnly,
    /// A surface kind without an operation.
    #[error("a surface event needs a surfaceOp")]
    MissingOp,
    /// An operation that is neither `"append"` nor a replace.
    #[error("surfaceOp must be \"append\" or {{op:\"replace\",start,end}}")]
    InvalidOp,
    /// The first node to replace is not on the surface.
    #[error("replace start {0} is not on the surface")]
    StartNotFound(Seq),
    /// The last node to replace is not on the surface.
    #[error("replace end {0} is not on the surface")]
    EndNotFound(Seq),
    /// The range runs backwards.
    #[error("replace start {0} stands after its end {1} on the surface")]
    Reversed(Seq, Seq),
    /// sourceEventSeqs is not a list.
    #[error("sourceEventSeqs must be a list of seqs")]
    SourcesNotList,
    /// An empty list on another kind than assistant/message.
    #[error("sourceEventSeqs may be empty only on assistant/message")]
    SourcesEmpty,
    /// An item is not a seq.
    #[error("sourceEventSeqs holds something that is not a seq")]
    SourcesItem,
    /// An item stands twice.
    #[error("sourceEventSeqs names {0} twice")]
    SourcesDuplicate(Seq),
    /// An item is not earlier than the event.
    #[error("sourceEventSeqs names {0}, which is not earlier")]
    SourcesNotEarlier(Seq),
    /// Replaced nodes that the sources leave out.
    #[error("sourceEventSeqs leaves replaced nodes out: {0:?}")]
    NotCovered(Vec<Seq>),
    /// A tool result replaces more than one node.
    #[error("a tool result may replace exactly one node")]
    ToolRange,
    /// A tool result replaces something else.
    #[error("a tool result may only replace a tool result, {0} is none")]
    ToolTarget(Seq),
    /// A tool result changes more than its content.
    #[error("a replacing tool result may only change its content")]
    ToolRewrite,
}

impl Error {
    /// A stable name of the cause.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Json { .. } => "JSON_INVALID",
            Error::Envelope { .. } => "EVENT_ENVELOPE_INVALID",
            Error::Removed { .. } => "EVENT_FORMAT_REMOVED",
            Error::Gap { .. } => "EVENT_SEQ_GAP",
            Error::Surface { .. } => "SURFACE_RULE_BROKEN",
            Error::MessageShape { .. } => "MESSAGE_SHAPE_INVALID",
            Error::RequestHeaderShape { .. } => "REQUEST_HEADER_INVALID",
            Error::LegacyShape { .. } => "LEGACY_SHAPE_INVALID",
            Error::UnknownKind { .. } => "EVENT_KIND_UNKNOWN",
            Error::UnsupportedVersion { .. } => "SESSION_VERSION_UNSUPPORTED",
            Error::HeaderShape { .. } => "SESSION_HEADER_INVALID",
            Error::Scan { .. } => "SESSION_LOG_UNREADABLE",
            Error::Archive { .. } => "SESSION_READ_FAILED",
            Error::Inbox { .. } => "INBOX_SPLICE_INVALID",
            Error::ProjectionVersion { .. } => "PROJECTION_VERSION_TAKEN",
            Error::ProjectionRestore { .. } => "PROJECTION_RESTORE_REFUSED",
            Error::TokenSurface { .. } => "TOKEN_SURFACE_UNPRICED",
            Error::TokenMeter { .. } => "TOKEN_METER_REFUSED",
            Error::Title { .. } => "SESSION_TITLE_INVALID",
            Error::Fork { code, .. } => code,
        }
    }

    /// How a reader of a stored log should report it.
    pub fn class(&self) -> ErrorClass {
        match self {
            Error::UnknownKind { .. } | Error::UnsupportedVersion { .. } => ErrorClass::Unsupported,
            Error::Fork { .. }
            | Error::ProjectionVersion { .. }
            | Error::ProjectionRestore { .. }
            | Error::TokenSurface { .. }
            | Error::TokenMeter { .. }
            | Error::Title { .. } => ErrorClass::Refused,
            _ => ErrorClass::Corrupt,
        }
    }
}
