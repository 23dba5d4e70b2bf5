//! `dsh sessions show`.

use dsh_store::report::{Style, Transcript};
use dsh_store::{Inspection, Target};

use super::{Sessions, Words, events, out, refused, resolved, title_of, unread, written};
use crate::exit::Failure;

/// So many characters of one call's arguments or result are shown.
const MAX: usize = 2000;

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    let id = resolved(sessions, words.one())?;
    let log = sessions
        .store
        .inspect(&Target::Id(id.to_string()))
        .map_err(refused)?;
    let max = (!words.has("--full")).then_some(MAX);
    transcript(&log, Style::Terminal { max })
}

/// Prints a log as people read it.
pub(super) fn transcript(log: &Inspection, style: Style) -> Result<u8, Failure> {
    let title = title_of(log).map_err(unread)?;
    let mut transcript = Transcript::new(out(), style);
    let mut result = transcript.head(&log.header, title.as_deref());
    for event in events(log) {
        if result.is_err() {
            break;
        }
        result = transcript.event(&*event.map_err(unread)?);
    }
    let how = format!("mend it with: dsh sessions repair {}", log.header.id);
    written(
        result.and_then(|()| transcript.end(log.damage.as_ref(), &how)),
        0,
    )
}
