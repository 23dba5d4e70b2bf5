//! `dsh sessions export`: an event at a time, so that a log of any length goes through.

use std::io::Write;

use dsh_store::Target;
use dsh_store::report::Style;

use super::{Sessions, Words, events, out, refused, resolved, show, unread, written};
use crate::arguments::usage;
use crate::exit::Failure;
use crate::report;

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    let markdown = match words.value("--format") {
        None | Some("jsonl") => false,
        Some("md") => true,
        Some(other) => {
            return Err(usage(format_args!(
                "dsh sessions export: there is no format {other:?}; take jsonl or md"
            )));
        }
    };
    let id = resolved(sessions, words.one())?;
    let log = sessions
        .store
        .inspect(&Target::Id(id.to_string()))
        .map_err(refused)?;
    if markdown {
        show::transcript(&log, Style::Markdown)?;
    } else {
        let mut out = out();
        let mut line = log.header.line();
        line.push('\n');
        let mut result = out.write_all(line.as_bytes());
        for event in events(&log) {
            if result.is_err() {
                break;
            }
            line.clear();
            event.map_err(unread)?.write_line(&mut line);
            line.push('\n');
            result = out.write_all(line.as_bytes());
        }
        written(result.and_then(|()| out.flush()), 0)?;
    }
    let Some(damage) = &log.damage else {
        return Ok(0);
    };
    report::line(format_args!(
        "session {id:?} is damaged, this is what is sound of it: {damage}"
    ));
    Ok(1)
}
