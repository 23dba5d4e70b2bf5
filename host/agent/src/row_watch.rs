//! What a session keeps of a row that was put out of use: one event, and a line
//! for whoever watches the run.

use std::sync::Arc;

use dsh_plugin::port::{Quarantine, Watch};
use dsh_session::{Draft, Json, Kind};

use crate::log::Log;

/// The event's kind, `{row, plugin, reason, failures}`. It is of this host alone
/// and marked as ignorable, so that whoever does not know it still opens the log.
pub const ROW_QUARANTINED: &str = "dsh/row-quarantined";

/// Bytes of a reason that are kept: a component's own words may be in it.
const REASON: usize = 1 << 10;

/// Logs quarantines, and tells them on.
pub struct RowWatch {
    log: Arc<Log>,
    say: Box<dyn Fn(&Quarantine) + Send + Sync>,
}

impl RowWatch {
    /// Of this log; `say` is called with each, at once, and must not wait.
    pub fn new(log: Arc<Log>, say: impl Fn(&Quarantine) + Send + Sync + 'static) -> Self {
        Self {
            log,
            say: Box::new(say),
        }
    }
}

impl Watch for RowWatch {
    fn quarantined(&self, quarantine: Quarantine) {
        (self.say)(&quarantine);
        let reason = &quarantine.reason[..quarantine.reason.floor_char_boundary(REASON)];
        let data = Json::object(|data| {
            data.str("row", &quarantine.row)
                .str("plugin", &quarantine.plugin)
                .str("reason", reason)
                .u64("failures", u64::from(quarantine.failures));
        });
        // A log that takes no event any more has said so itself.
        let _ = self
            .log
            .append(Draft::new(Kind::from_name(ROW_QUARANTINED), data).ignorable(true));
    }
}
