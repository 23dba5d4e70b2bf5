//! `session/flush`: listeners hear that the log is about to be made durable, and
//! are waited for, so that what they append then is part of it.

use dsh_session::Json;

use super::chain::Dispatch;
use crate::error::AgentError;
use crate::log::Log;

impl Dispatch {
    /// Tells listeners, then waits until all that was appended is durable.
    ///
    /// # Errors
    /// [`AgentError::Durability`].
    pub(crate) async fn flush(&self, log: &Log) -> Result<(), AgentError> {
        let length = || {
            Json::object(|payload| {
                let length = log.read(|session| session.next_seq().0);
                payload.u64("length", length);
            })
        };
        self.notify_all("session/flush", None, length).await;
        log.barrier().await
    }
}
