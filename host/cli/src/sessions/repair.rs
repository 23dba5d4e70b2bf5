//! `dsh sessions repair`.

use dsh_store::Repair;
use dsh_store::report::{line, size};

use super::{Sessions, Words, print, refused, resolved};
use crate::exit::Failure;

pub(super) fn run(sessions: &Sessions, words: &Words) -> Result<u8, Failure> {
    let id = resolved(sessions, words.one())?;
    let dry = words.has("--dry-run");
    let mut repair = sessions.store.plan_repair(&id).map_err(refused)?;
    if !dry {
        if repair.damage.is_some() {
            sessions.forget(&id);
        }
        repair = sessions.store.mend(&id).map_err(refused)?;
    }
    print(&told(&id, &repair, dry), 0)
}

fn told(id: &str, repair: &Repair, dry: bool) -> String {
    let id = line(id, 300);
    if repair.is_nothing() {
        return format!("session {id} is sound; there is nothing to repair\n");
    }
    let mut text = String::new();
    let mut say = |what: String| text += &format!("{}\n", line(&what, 4000));
    if let Some(damage) = &repair.damage {
        say(format!("session {id} is damaged: {damage}"));
    } else {
        say(format!("session {id} ends early, as after a crash"));
    }
    let (keeps, loses) = if dry {
        ("would be kept", "would be left out")
    } else {
        ("are kept", "are left out")
    };
    say(format!("{} events {keeps}", repair.kept));
    if let Some(lost) = repair.lost {
        let from = lost.from_seq;
        let mut what = match lost.events {
            Some(events) => format!(
                "the {events} events from seq {from} to {} {loses}",
                from + events - 1
            ),
            None => {
                format!("whatever stands from seq {from} on {loses}").replace("are left", "is left")
            }
        };
        if let Some(bytes) = lost.bytes {
            what += &format!(
                "; the damage begins {} before the end of the file",
                size(bytes)
            );
        }
        say(what);
    }
    if let Some(torn) = repair.torn {
        say(format!(
            "the torn tail after byte {} {} cut off, {} whole events of it {keeps}",
            torn.truncate_to,
            if dry { "would be" } else { "is" },
            torn.recovered
        ));
    }
    if !repair.closers.is_empty() {
        let kinds: Vec<&str> = repair
            .closers
            .iter()
            .map(|event| event.kind.as_str())
            .collect();
        say(format!(
            "the open turn {} closed by {}",
            if dry { "would be" } else { "is" },
            kinds.join(", ")
        ));
    }
    match &repair.original {
        Some(original) => say(format!("the damaged log is kept as {}", original.display())),
        None if repair.damage.is_some() => {
            say("the damaged log would be kept beside the new one; nothing was changed".to_owned());
        }
        None if dry => say("nothing was changed".to_owned()),
        None => {}
    }
    text
}
