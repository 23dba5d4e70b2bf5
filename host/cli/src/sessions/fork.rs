//! `dsh sessions fork`.

use dsh_agent::{Clock, SystemClock};
use uuid::Uuid;

use super::{Sessions, Words, print, refused, resolved, seq};
use crate::exit::Failure;

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    let at = words.value("--at").map(seq).transpose()?;
    let id = resolved(sessions, words.one())?;
    let child = format!("session-{}", Uuid::new_v4());
    let forked = sessions
        .store
        .fork(&id, at, &child, SystemClock.now_ms())
        .map_err(refused)?;
    print(&format!("{}\n", forked.header.id), 0)
}
