//! What a call is made with.

use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::port::PortSet;

/// For whom and with what a call runs. Cheap to clone.
#[derive(Clone, Default)]
pub struct CallContext {
    /// What the row's granted imports are linked to, for this call.
    pub ports: Arc<PortSet>,
    /// Cancelling it makes waiting imports answer `CANCELLED` at once and, after
    /// a grace, interrupts the component.
    pub cancel: CancellationToken,
    /// The session, where there is one.
    pub session_id: Option<String>,
    /// The agent, where there is one.
    pub agent_id: Option<String>,
    /// The time of the newest event, milliseconds since 1970: what an ungranted
    /// clock shows.
    pub time_ms: i64,
    /// What an ungranted generator is seeded with.
    pub seed: u64,
}
