//! What a new session says before anything else: under which permissions it
//! runs (spec/cli.md §4 step 7, §5). A resumed session keeps what it has.

use dsh_session::{Json, Kind};

use crate::error::AgentError;
use crate::log::Log;

/// A permission preset: a sandbox mode and an approval policy under one name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preset {
    /// Everything may be read, nothing written.
    ReadOnly,
    /// The workspace and the temporary directory may be written.
    WorkspaceWrite,
    /// No sandbox.
    DangerFullAccess,
}

impl Preset {
    /// The preset of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        [Self::ReadOnly, Self::WorkspaceWrite, Self::DangerFullAccess]
            .into_iter()
            .find(|preset| preset.name() == name)
    }

    /// Its name, which is its sandbox mode's too.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadOnly => "read-only",
            Self::WorkspaceWrite => "workspace-write",
            Self::DangerFullAccess => "danger-full-access",
        }
    }

    /// What happens to a question of approval.
    #[must_use]
    pub fn approval_policy(self) -> &'static str {
        if self == Self::DangerFullAccess {
            "never"
        } else {
            "ask"
        }
    }
}

/// Logs `permission/preset`, `sandbox/mode` and `approval/policy` of a new session.
///
/// # Errors
/// When the log refuses an event.
pub fn pin_permissions(log: &Log, preset: Preset) -> Result<(), AgentError> {
    let fact = |member: &'static str, value: &'static str| {
        Json::object(|data| {
            data.str(member, value);
        })
    };
    log.record(Kind::PermissionPreset, fact("preset", preset.name()))?;
    log.record(Kind::SandboxMode, fact("mode", preset.name()))?;
    log.record(
        Kind::ApprovalPolicy,
        fact("policy", preset.approval_policy()),
    )?;
    Ok(())
}
