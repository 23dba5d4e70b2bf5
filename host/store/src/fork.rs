//! A new session that begins with what another one had come to (spec/session.md §6, "API session fork").
//!
//! Only turns that the log itself closes can be inherited: a turn that is open may be running in another process, and
//! closing it is its writer's to do. So the parent is read without its lock and never written, and a damaged log gives
//! what is sound of it.

use std::path::PathBuf;

use dsh_session::{Error, Header, Kind, Seq, Session, Value, prompt_fork_cut};

use crate::{Store, StoreError, Target};

/// A session that was made from another one, durably.
#[derive(Debug, Clone)]
pub struct Forked {
    /// The new session's header.
    pub header: Header,
    /// Its log.
    pub path: PathBuf,
    /// How many events it inherited.
    pub inherited: u64,
}

impl Store {
    /// Forks a session as `child`: through the first `turn/end` at or after `at`, or the last one, and on to the next
    /// `turn/start`. `time_ms` is when. Returns when the new log is durable.
    ///
    /// # Errors
    /// [`StoreError::Refused`] with `FORK_UNAVAILABLE` when no turn has ended there; [`StoreError::AlreadyExists`];
    /// as [`Store::inspect`] and [`crate::Writer::flush`].
    pub fn fork(
        &self,
        id: &str,
        at: Option<Seq>,
        child: &str,
        time_ms: i64,
    ) -> Result<Forked, StoreError> {
        let refused = |source: Error| StoreError::Refused {
            id: id.to_owned(),
            source: Box::new(source),
        };
        let parent = self.inspect(&Target::Id(id.to_owned()))?;
        let cut = prompt_fork_cut(&parent.log, at).map_err(refused)?;
        let cut = cut.ok_or_else(|| {
            let what = match at {
                Some(at) => format!("no turn ends at or after seq {at}"),
                None => "none of its turns has ended".to_owned(),
            };
            refused(Error::Fork {
                code: "FORK_UNAVAILABLE",
                session: id.to_owned(),
                what,
            })
        })?;
        let mut preset = None;
        let mut seed = Vec::new();
        for event in parent.log.events_from(Seq(0)) {
            let event = event.map_err(refused)?;
            if event.kind == Kind::AgentPresetSelected {
                preset = event
                    .data
                    .get("agentPreset")
                    .and_then(Value::text)
                    .map(|p| p.as_ref().into());
            }
            if event.seq.0 < cut {
                seed.push(event);
            }
        }
        let now = u64::try_from(time_ms).unwrap_or(0);
        let mut header = Header::new(child, now);
        header.cwd = parent.header.cwd.clone();
        header.parent_session = Some(parent.header.id.clone());
        header.seed_length = Some(cut);
        header.agent_preset = preset.or_else(|| parent.header.agent_preset.clone());
        let session = Session::with_seed(header.clone(), seed, time_ms).map_err(refused)?;
        let writer = self.create(&session)?;
        writer.flush_blocking()?;
        Ok(Forked {
            header,
            path: writer.path().to_owned(),
            inherited: cut,
        })
    }
}

#[cfg(test)]
#[path = "fork_tests.rs"]
mod tests;
