//! What is wrong with a stored log, as data: a reader gives the longest sound prefix and says where it ends and why.

use std::fmt;

use dsh_session::ErrorClass;

/// The kind of damage, which decides what its owner can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DamageClass {
    /// Bytes or events break the format. Never used for a foreign version.
    Corrupt,
    /// A version or a required event that this program does not know; a newer program may.
    Unsupported,
    /// The log is sound in itself, but not where its header says, or its id is there twice.
    Identity,
    /// A file in a place or an encoding that this root does not use.
    Layout,
    /// The file could not be read at all; it may be sound.
    Unreadable,
}

impl DamageClass {
    /// The error code that refusing such a log carries.
    pub fn code(self) -> &'static str {
        match self {
            Self::Corrupt => "SESSION_DAMAGED",
            Self::Unsupported => "SESSION_FORMAT_UNSUPPORTED",
            Self::Identity => "SESSION_IDENTITY",
            Self::Layout => "SESSION_LAYOUT",
            Self::Unreadable => "STORE_IO",
        }
    }
}

impl From<ErrorClass> for DamageClass {
    fn from(class: ErrorClass) -> Self {
        match class {
            ErrorClass::Unsupported => Self::Unsupported,
            _ => Self::Corrupt,
        }
    }
}

/// The step of reading that found it (spec/session.md §9.8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Stage {
    /// Finding and opening the file.
    Open,
    /// Bytes to lines to events.
    Scan,
    /// Header against path and id.
    Identity,
    /// Upgrades, shapes, kinds, surface.
    Interpret,
}

/// One damage: everything before `seq` is sound.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// The kind of damage.
    pub class: DamageClass,
    /// The step that found it.
    pub stage: Stage,
    /// Byte offset in the file where the sound part ends, as far as it is known: the
    /// start of the line (plain) or of the frame (Zstandard) that is not sound.
    pub offset: Option<u64>,
    /// The seq that the first event after the sound prefix has or would have.
    pub seq: Option<u64>,
    /// What is wrong.
    pub reason: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let class = match self.class {
            DamageClass::Corrupt => "corrupt",
            DamageClass::Unsupported => "unsupported format",
            DamageClass::Identity => "wrong identity",
            DamageClass::Layout => "wrong place",
            DamageClass::Unreadable => "unreadable",
        };
        write!(f, "{class}: {}", self.reason)?;
        match (self.offset, self.seq) {
            (Some(offset), Some(seq)) => write!(f, " (byte {offset}, sound before seq {seq})"),
            (Some(offset), None) => write!(f, " (byte {offset})"),
            (None, Some(seq)) => write!(f, " (sound before seq {seq})"),
            (None, None) => Ok(()),
        }
    }
}
