//! Cancellation with a cause. The first cause wins and is what `turn/end`
//! records; everything that waits in a turn waits on the same signal.

use std::sync::{Arc, OnceLock};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

/// Why a turn was given up; the shape is that of `turn/end`'s `reason.reason`
/// (spec/loop.md §1.5).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum CancelCause {
    /// A person asked.
    User,
    /// The agent that this one works for asked.
    Parent,
    /// A hook asked, and says why.
    Hook {
        /// The hook's own words.
        reason: String,
    },
    /// The agent is being disposed of.
    Disposed,
}

/// An abort signal: a token to wait on and the cause it was aborted with.
#[derive(Clone, Debug, Default)]
pub struct Signal {
    token: CancellationToken,
    cause: Arc<OnceLock<CancelCause>>,
}

impl Signal {
    /// A signal that nobody has aborted.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Aborts; later causes than the first are ignored.
    pub fn abort(&self, cause: CancelCause) {
        // The cause is set before the token, so that who wakes up finds it.
        let _ = self.cause.set(cause);
        self.token.cancel();
    }

    /// Whether someone aborted.
    #[must_use]
    pub fn aborted(&self) -> bool {
        self.token.is_cancelled()
    }

    /// The cause, once aborted.
    #[must_use]
    pub fn cause(&self) -> Option<&CancelCause> {
        self.aborted().then(|| self.cause.get()).flatten()
    }

    /// Resolves when someone aborts.
    pub async fn cancelled(&self) {
        self.token.cancelled().await;
    }

    /// The token that calls made for this work are given.
    #[must_use]
    pub fn token(&self) -> &CancellationToken {
        &self.token
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_cause_wins() {
        let signal = Signal::new();
        assert_eq!(signal.cause(), None);
        signal.abort(CancelCause::User);
        signal.abort(CancelCause::Disposed);
        assert_eq!(signal.cause(), Some(&CancelCause::User));
    }

    #[test]
    fn causes_have_the_logs_shape() {
        let text = |cause: &CancelCause| serde_json::to_string(cause).unwrap();
        assert_eq!(text(&CancelCause::User), r#"{"kind":"user"}"#);
        assert_eq!(
            text(&CancelCause::Hook {
                reason: "no".into()
            }),
            r#"{"kind":"hook","reason":"no"}"#
        );
    }
}
