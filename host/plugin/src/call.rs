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

impl CallContext {
    /// Takes another's place. Calls of a stream come by the thousand with the
    /// same one, and cloning what is equal would cost more than looking.
    pub(crate) fn become_as(&mut self, other: &Self) {
        let same = Arc::ptr_eq(&self.ports, &other.ports)
            && self.cancel == other.cancel
            && self.session_id == other.session_id
            && self.agent_id == other.agent_id;
        if same {
            (self.time_ms, self.seed) = (other.time_ms, other.seed);
        } else {
            *self = other.clone();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_takes_each_part_of_the_other_that_differs() {
        let first = CallContext::default();
        let mut others = vec![first.clone(); 6];
        others[0].ports = Arc::default();
        others[1].cancel = CancellationToken::new();
        others[2].session_id = Some("s".to_owned());
        others[3].agent_id = Some("a".to_owned());
        others[4].time_ms = 1;
        others[5].seed = 1;
        for (at, other) in others.into_iter().enumerate() {
            let mut context = first.clone();
            context.become_as(&other);
            assert!(Arc::ptr_eq(&context.ports, &other.ports), "{at}");
            assert!(context.cancel == other.cancel, "{at}");
            assert_eq!(
                (
                    context.session_id,
                    context.agent_id,
                    context.time_ms,
                    context.seed
                ),
                (other.session_id, other.agent_id, other.time_ms, other.seed),
            );
        }
    }
}
