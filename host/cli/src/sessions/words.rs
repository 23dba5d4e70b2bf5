//! The words of `dsh sessions …`, as a pure function: a command, then what `crate::words` reads.

use crate::arguments::usage;
use crate::exit::Failure;
pub(super) use crate::words::Words;
use crate::words::{self, Flag, Read};

use super::place::Sessions;

/// One command.
pub(super) struct Verb {
    pub(super) name: &'static str,
    /// What follows the name in its usage line.
    usage: &'static str,
    summary: &'static str,
    help: &'static str,
    flags: &'static [Flag],
    /// The fewest and the most arguments.
    words: (usize, usize),
    pub(super) run: fn(&Sessions, &Words) -> Result<u8, Failure>,
}

impl std::fmt::Debug for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const JSON: Flag = Flag {
    name: "--json",
    value: "",
    help: "print JSON",
};

const ANY: usize = usize::MAX;

pub(super) static VERBS: [Verb; 8] = [
    Verb {
        name: "list",
        usage: "[options]",
        summary: "the stored sessions, the one that was spoken in last first",
        help: "A damaged session is listed too, marked with an exclamation mark.\n\n\
               With --json: an array of {id, title, cwd, createdAt, updatedAt, turns, bytes,\n\
               damage, path}; times in milliseconds since 1970, damage null or\n\
               {class, stage, offset, seq, reason}.",
        flags: &[
            JSON,
            Flag {
                name: "--cwd",
                value: "dir",
                help: "only those that work in this directory",
            },
        ],
        words: (0, 0),
        run: super::list::run,
    },
    Verb {
        name: "show",
        usage: "[options] ID",
        summary: "what was said in a session, in order",
        help: "Everything that was appended, also what a compaction has replaced since. Long\n\
               arguments and results of tools are cut, and it is said how much.",
        flags: &[Flag {
            name: "--full",
            value: "",
            help: "cut nothing",
        }],
        words: (1, 1),
        run: super::show::run,
    },
    Verb {
        name: "inspect",
        usage: "[options] ID|FILE",
        summary: "what reading a log gives; changes nothing",
        help: "Takes any log file too: what holds a slash or is the name of a file here is one.\n\
               Exit code 2 when the log cannot be read at all; with --json an object\n\
               {\"error\": {class, stage, message}} is printed then.",
        flags: &[JSON],
        words: (1, 1),
        run: super::inspect::run,
    },
    Verb {
        name: "export",
        usage: "[options] ID",
        summary: "a session as plain lines, or as Markdown",
        help: "jsonl: the header, then each event on a line of its own, expanded. md: a\n\
               transcript, whole. Of a damaged session what is sound, and exit code 1.",
        flags: &[Flag {
            name: "--format",
            value: "format",
            help: "jsonl (which it is without this) or md",
        }],
        words: (1, 1),
        run: super::export::run,
    },
    Verb {
        name: "fork",
        usage: "[options] ID",
        summary: "a new session that begins as another one went",
        help: "Prints the new session's id; go on with it by --resume. Only finished turns are\n\
               taken along.",
        flags: &[Flag {
            name: "--at",
            value: "seq",
            help: "through the turn that this event belongs to; the last\nfinished turn without this",
        }],
        words: (1, 1),
        run: super::fork::run,
    },
    Verb {
        name: "check",
        usage: "[options] [ID…]",
        summary: "whether logs are sound: every checksum, every rule",
        help: "All sessions when none is named. Exit code 1 when one is damaged. A log that a\n\
               crash cut short is sound: its next run mends it.",
        flags: &[
            JSON,
            Flag {
                name: "--all",
                value: "",
                help: "all sessions",
            },
        ],
        words: (0, ANY),
        run: super::check::run,
    },
    Verb {
        name: "repair",
        usage: "[options] ID",
        summary: "make a damaged session usable again",
        help: "Writes a log of everything before the damage and closes its last turn. The\n\
               damaged log is kept beside it.",
        flags: &[Flag {
            name: "--dry-run",
            value: "",
            help: "only say what would be done",
        }],
        words: (1, 1),
        run: super::repair::run,
    },
    Verb {
        name: "rm",
        usage: "[options] ID…",
        summary: "remove sessions for good",
        help: "Asks on a terminal; elsewhere --yes is needed. A session that is being written\n\
               is not removed.",
        flags: &[Flag {
            name: "--yes",
            value: "",
            help: "do not ask",
        }],
        words: (1, ANY),
        run: super::rm::run,
    },
];

const IDS: &str = "An ID may be shortened while only one session begins so, with or without\n\
                   `session-`; `last` is the newest session of the working directory,\n\
                   or, but for rm, of all where that has none.\n";

/// What the words ask for.
#[derive(Debug)]
pub(super) enum Asked {
    /// This text, on stdout.
    Help(String),
    /// This command with these words.
    Do(&'static Verb, Words),
}

/// Reads the words after `sessions`.
pub(super) fn parse(arguments: &[String]) -> Result<Asked, Failure> {
    let Some((first, rest)) = arguments.split_first() else {
        return Err(usage(
            "dsh sessions needs a command, for example: dsh sessions list (--help names them all)",
        ));
    };
    if matches!(first.as_str(), "-h" | "--help") {
        return Ok(Asked::Help(help()));
    }
    let Some(verb) = VERBS.iter().find(|verb| verb.name == first) else {
        let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        return Err(usage(format_args!(
            "dsh sessions has no command {first:?}; it has {}",
            names.join(", ")
        )));
    };
    let wrong = |what: String| usage(format_args!("dsh sessions {}: {what}", verb.name));
    let words = match words::read(verb.flags, rest).map_err(wrong)? {
        Read::Help => return Ok(Asked::Help(verb.text())),
        Read::Words(words) => words,
    };
    let (fewest, most) = verb.words;
    let count = words.arguments.len();
    if count < fewest {
        return Err(wrong(
            "it needs the id of a session; dsh sessions list shows them".to_owned(),
        ));
    }
    if count > most {
        let surplus = &words.arguments[most];
        return Err(wrong(format!("there is no place for {surplus:?}")));
    }
    if words.arguments.iter().any(|word| word.trim().is_empty()) {
        return Err(wrong("an id cannot be empty".to_owned()));
    }
    Ok(Asked::Do(verb, words))
}

fn help() -> String {
    let mut text = "Usage: dsh sessions <command> [options] [args...]\n\n\
                    Looks at stored sessions and mends them; nothing is booted for it.\n\n\
                    Commands:\n"
        .to_owned();
    for verb in &VERBS {
        text += &format!("  {:<9} {}\n", verb.name, verb.summary);
    }
    text += "\n";
    text += IDS;
    text += "\ndsh sessions <command> --help says more of each.\n\n\
             Exit codes: 0 done; 1 it could not be, or a check found damage; 2 a log that\n\
             inspect cannot read at all.\n";
    text
}

impl Verb {
    fn text(&self) -> String {
        let mut text = format!("Usage: dsh sessions {} {}\n\n", self.name, self.usage);
        let mut summary = self.summary.chars();
        if let Some(first) = summary.next() {
            text.extend(first.to_uppercase());
        }
        text += &format!("{}.\n\n{}\n", summary.as_str(), self.help);
        if self.usage.contains("ID") {
            text += "\n";
            text += IDS;
        }
        text += "\n";
        text += &words::options(self.flags);
        text
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
