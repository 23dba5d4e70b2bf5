//! `dsh sessions rm`.

use std::io::{self, IsTerminal, Write};

use dsh_store::report::{line, size};

use super::{Sessions, Words, print, refused, resolved_here};
use crate::arguments::usage;
use crate::exit::Failure;

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    let mut ids = Vec::new();
    for text in &words.arguments {
        let id = resolved_here(sessions, text)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    // Every id must be one before any session goes.
    for id in &ids {
        sessions.store.find(id).map_err(refused)?;
    }
    if !words.has("--yes") {
        if !(io::stdin().is_terminal() && io::stderr().is_terminal()) {
            return Err(usage(
                "dsh sessions rm: nobody can be asked here; say --yes to remove without asking",
            ));
        }
        let names: Vec<String> = ids.iter().map(|id| line(id, 100)).collect();
        if !asked(&names) {
            return Err(Failure::of("nothing was removed"));
        }
    }
    for id in ids {
        sessions.forget(&id);
        let removed = sessions.store.remove(&id).map_err(refused)?;
        sessions.forget_data(&id);
        print(
            &format!("removed {} ({})\n", line(&id, 300), size(removed.bytes)),
            0,
        )?;
    }
    Ok(0)
}

fn asked(names: &[String]) -> bool {
    let _ = write!(io::stderr(), "Remove {} for good? [y/N] ", names.join(", "));
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok()
        && matches!(answer.trim(), "y" | "Y" | "yes" | "Yes" | "YES")
}
