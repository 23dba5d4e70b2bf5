//! How far a session's file effects reach.

use std::fmt;
use std::str::FromStr;

/// `SandboxMode` of the log (spec/cli.md §5). It speaks of file effects only:
/// reads, the network and processes are outside its vocabulary. Ordered from
/// narrow to wide, so that an escalation is a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Nothing is written.
    ReadOnly,
    /// The workspace and the temporary directories are.
    WorkspaceWrite,
    /// No fence but `$DSH_HOME`'s.
    DangerFullAccess,
}

impl Mode {
    /// All of them, narrow to wide.
    pub const ALL: [Mode; 3] = [Mode::ReadOnly, Mode::WorkspaceWrite, Mode::DangerFullAccess];

    /// As the log, `DSH_PERMISSION_MODE` and the model write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Mode::ReadOnly => "read-only",
            Mode::WorkspaceWrite => "workspace-write",
            Mode::DangerFullAccess => "danger-full-access",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The text names no mode.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is no sandbox mode; use read-only, workspace-write or danger-full-access")]
pub struct UnknownMode(pub String);

impl FromStr for Mode {
    type Err = UnknownMode;

    fn from_str(text: &str) -> Result<Self, UnknownMode> {
        Mode::ALL
            .into_iter()
            .find(|mode| mode.as_str() == text)
            .ok_or_else(|| UnknownMode(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mode_reads_as_it_is_written_and_wider_is_greater() {
        for mode in Mode::ALL {
            assert_eq!(mode.as_str().parse(), Ok(mode));
        }
        assert!(
            Mode::ReadOnly < Mode::WorkspaceWrite && Mode::WorkspaceWrite < Mode::DangerFullAccess
        );
        assert!("Read-Only".parse::<Mode>().is_err());
    }
}
