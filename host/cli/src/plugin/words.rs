//! The words of `dsh plugin …`, as a pure function: a command, then what `crate::words` reads.
//!
//! `--profile NAME` stands before the command, as upstream has it, or behind it; without it the profile is `headless`,
//! since most of what is written about plugins leaves it out.

use crate::arguments::usage;
use crate::exit::Failure;
use crate::words::{self, Flag, Read, Words};

use super::{Desk, Done};

/// The profile that is meant where none is named.
pub(super) const DEFAULT_PROFILE: &str = "headless";

/// One command.
pub(super) struct Verb {
    pub(super) name: &'static str,
    /// What follows the name in its usage line.
    usage: &'static str,
    summary: &'static str,
    help: &'static str,
    examples: &'static [&'static str],
    flags: &'static [&'static [Flag]],
    /// The fewest and the most arguments.
    words: (usize, usize),
    /// What it lacks where there are fewer.
    needs: &'static str,
    pub(super) run: fn(&Desk, &Words) -> Done,
}

impl std::fmt::Debug for Verb {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

const fn flag(name: &'static str, value: &'static str, help: &'static str) -> Flag {
    Flag { name, value, help }
}

/// What every command takes.
static COMMON: [Flag; 2] = [
    flag("--profile", "name", "the profile; headless without it"),
    flag(
        "--json",
        "",
        "print one JSON object; docs/schema has its shape",
    ),
];

/// What takes long.
static LONG: [Flag; 2] = [
    flag(
        "--progress",
        "",
        "say on stderr how far it is, also without a terminal",
    ),
    flag(
        "--timeout",
        "seconds",
        "give a download up after that long (600)",
    ),
];

static DECIDE: [Flag; 3] = [
    flag("--yes", "", "give it what it wants, do not ask"),
    flag(
        "--grant",
        "name[=what]",
        "give it exactly this, do not ask; repeatable",
    ),
    flag("--none", "", "give it nothing, do not ask"),
];

static TRUST: [Flag; 3] = [
    flag("--sha256", "hex", "the digest that the bytes must have"),
    flag(
        "--key",
        "key|file",
        "the minisign public key that must have signed it",
    ),
    flag(
        "--allow-downgrade",
        "",
        "take an older version of an unsigned plugin",
    ),
];

static ADD: [Flag; 1] = [flag(
    "--as",
    "row=id",
    "another id for one of its rows; repeatable",
)];

static UPDATE: [Flag; 2] = [
    flag(
        "--from",
        "source",
        "take it from there from now on (one plugin)",
    ),
    flag("--dry-run", "", "only say what would change"),
];

static REPLAY: [Flag; 3] = [
    flag("--request", "file", "the call: request.json"),
    flag(
        "--response",
        "file",
        "what comes back; without it, the file that the case names",
    ),
    flag(
        "--expect",
        "file",
        "what has to come of it; without it and without --json,\nan expected.json beside the request",
    ),
];

static NOTHING: [Flag; 0] = [];

const ANY: usize = usize::MAX;

const NEEDS_NAME: &str = "it needs the name of a plugin; dsh plugin list shows them";

pub(super) static VERBS: [Verb; 14] = [
    Verb {
        name: "add",
        usage: "[options] SOURCE",
        summary: "install a plugin, and decide what it may do",
        help: "SOURCE is the path or the https:// address of a WebAssembly component. What it\n\
               wants is shown in words, and nothing is installed before you say yes. Without\n\
               --sha256 the digest that came is pinned. A signature (SOURCE.minisig) is read\n\
               beside it. Interrupted at any point, the profile stays as it was.",
        examples: &[
            "dsh plugin add ./notes.wasm",
            "dsh plugin add --sha256 3fe0… https://plugins.example/notes.wasm",
            "dsh plugin add --grant workspace=read --grant kv ./notes.wasm",
        ],
        flags: &[&DECIDE, &TRUST, &ADD, &LONG],
        words: (1, 1),
        needs: "it needs a source: the path or the https:// address of a .wasm file",
        run: super::add::run,
    },
    Verb {
        name: "update",
        usage: "[options] [NAME…]",
        summary: "fetch plugins again from where they came",
        help: "All of them when none is named. What changes is shown, what it wants first; you\n\
               are asked again where it wants more. Grants that are not wanted any more go.",
        examples: &[
            "dsh plugin update",
            "dsh plugin update --from ./notes-0.4.wasm acme:notes",
        ],
        flags: &[&DECIDE, &TRUST, &UPDATE, &LONG],
        words: (0, ANY),
        needs: "",
        run: super::update::run,
    },
    Verb {
        name: "remove",
        usage: "[options] NAME…",
        summary: "take plugins out of the profile",
        help: "Its rows, grants and, where no other profile has it, its bytes go. Your patch\n\
               files are never touched.",
        examples: &["dsh plugin remove acme:notes"],
        flags: &[&NOTHING],
        words: (1, ANY),
        needs: NEEDS_NAME,
        run: super::remove::run,
    },
    Verb {
        name: "list",
        usage: "[options]",
        summary: "the plugins of the profile",
        help: "In the order in which their rows are laid over each other.",
        examples: &["dsh plugin list", "dsh plugin list --json"],
        flags: &[&NOTHING],
        words: (0, 0),
        needs: "",
        run: super::list::run,
    },
    Verb {
        name: "info",
        usage: "[options] NAME|FILE",
        summary: "all that a plugin says of itself; runs nothing of it",
        help: "Manifest, imports, exports, what it wants and has, rows, digest, contract,\n\
               signature. FILE is any component: what holds a slash or is a file here is one.",
        examples: &["dsh plugin info acme:notes", "dsh plugin info ./notes.wasm"],
        flags: &[&NOTHING],
        words: (1, 1),
        needs: "it needs the name of a plugin, or a file",
        run: super::info::run,
    },
    Verb {
        name: "verify",
        usage: "[options] [NAME…]",
        summary: "whether what is installed is what was decided on",
        help: "Packages against the lock, signatures again, grants against the digest that they\n\
               were given to. Exit code 1 when something is wrong.",
        examples: &["dsh plugin verify"],
        flags: &[&NOTHING],
        words: (0, ANY),
        needs: "",
        run: super::verify::run,
    },
    Verb {
        name: "enable",
        usage: "[options] NAME|ROW…",
        summary: "mount plugins, or single rows of them, again",
        help: "Undoes disable.",
        examples: &["dsh plugin enable acme:notes"],
        flags: &[&NOTHING],
        words: (1, ANY),
        needs: "it needs the name of a plugin, or the id of one of its rows; dsh plugin list shows them",
        run: super::switch::enable,
    },
    Verb {
        name: "disable",
        usage: "[options] NAME|ROW…",
        summary: "keep plugins, or single rows of them, without mounting them",
        help: "Written into the lock alone; your patch files are never touched.",
        examples: &["dsh plugin disable acme:notes", "dsh plugin disable notes"],
        flags: &[&NOTHING],
        words: (1, ANY),
        needs: "it needs the name of a plugin, or the id of one of its rows; dsh plugin list shows them",
        run: super::switch::disable,
    },
    Verb {
        name: "grant",
        usage: "[options] NAME GRANT[=WHAT]…",
        summary: "let a plugin do more, or other things",
        help: "A grant that is there already is replaced. WHAT is JSON, or simple:\n\
               http=https://a,https://b  process=shell  process=git,rg  workspace=write\n\
               kv=1MiB  dir=/data:ro  observe=turn/end",
        examples: &["dsh plugin grant acme:notes workspace=write"],
        flags: &[&NOTHING],
        words: (2, ANY),
        needs: "it needs the name of a plugin and a grant; dsh plugin info NAME shows what it wants",
        run: super::grant::grant,
    },
    Verb {
        name: "revoke",
        usage: "[options] NAME GRANT…",
        summary: "take grants back",
        help: "A row that needs the grant to start is left out from then on, and says so.",
        examples: &["dsh plugin revoke acme:notes workspace"],
        flags: &[&NOTHING],
        words: (2, ANY),
        needs: "it needs the name of a plugin and a grant; dsh plugin info NAME shows what it has",
        run: super::grant::revoke,
    },
    Verb {
        name: "why",
        usage: "[options] NAME|ROW|TOOL",
        summary: "where a plugin, a row or a tool comes from, and who let it",
        help: "The layer that brings it, the layers that change it, who granted what, or why it\n\
               is left out.",
        examples: &["dsh plugin why take_note"],
        flags: &[&NOTHING],
        words: (1, 1),
        needs: "it needs the name of a plugin, of a tool, or the id of a row",
        run: super::why::run,
    },
    Verb {
        name: "outdated",
        usage: "[options] [NAME…]",
        summary: "ask the sources for other bytes; changes nothing",
        help: "All plugins when none is named.",
        examples: &["dsh plugin outdated"],
        flags: &[&LONG],
        words: (0, ANY),
        needs: "",
        run: super::outdated::run,
    },
    Verb {
        name: "audit",
        usage: "[options]",
        summary: "what each row of the profile may do, and what stands out",
        help: "Grants that are not used, or are wider than what is wanted; no signature; any\n\
               program; requests; conversations sent away. Exit code 0 whatever is found.",
        examples: &["dsh plugin audit"],
        flags: &[&NOTHING],
        words: (0, 0),
        needs: "",
        run: super::audit::run,
    },
    Verb {
        name: "replay",
        usage: "[options] COMPONENT --request FILE",
        summary: "play a recorded call through a model adapter; sends nothing",
        help: "COMPONENT is a file, a component of this dsh (llm-deepseek), or an installed plugin.\n\
               Prints the request that it makes, the chunks that it makes of the response, and\n\
               the message that they are put together to. Exit code 1 when the component breaks\n\
               or something else comes out than is expected. docs/plugins.md has the files' shape.",
        examples: &[
            "dsh plugin replay llm-deepseek --request request.json --response response.sse",
            "dsh plugin replay --json ./my.wasm --request request.json --response response.sse",
        ],
        flags: &[&REPLAY],
        words: (1, 1),
        needs: "it needs a component: a file, or a name as in dsh plugin replay llm-deepseek",
        run: super::replay::run,
    },
];

/// Words of upstream's package manager, and what does the same here.
const UPSTREAMS: [(&str, &str); 9] = [
    (
        "install",
        "plugins are installed by dsh plugin add SOURCE, and what is installed stays so; dsh plugin verify checks it",
    ),
    ("i", "install a plugin by dsh plugin add SOURCE"),
    ("rm", "take a plugin out by dsh plugin remove NAME"),
    ("uninstall", "take a plugin out by dsh plugin remove NAME"),
    ("un", "take a plugin out by dsh plugin remove NAME"),
    ("ls", "dsh plugin list shows what is installed"),
    ("up", "dsh plugin update fetches plugins again"),
    ("upgrade", "dsh plugin update fetches plugins again"),
    (
        "root",
        "components are in $DSH_HOME/plugins/sha256, named by their digests",
    ),
];

/// What the words ask for.
#[derive(Debug)]
pub(super) enum Asked {
    /// This text, on stdout.
    Help(String),
    /// This command in this profile.
    Do(&'static Verb, Box<Order>),
}

/// A command's words.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Order {
    pub(super) profile: String,
    pub(super) words: Words,
}

/// Whether JSON is wanted, as far as words that may mean nothing tell.
pub(super) fn wants_json(arguments: &[String]) -> bool {
    arguments
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--json")
}

/// Reads the words after `plugin`.
pub(super) fn parse(arguments: &[String]) -> Result<Asked, Failure> {
    let mut rest = arguments;
    let mut profile = None;
    // Upstream's order: the profile, then the command. What every command takes may stand there.
    let mut before = Vec::new();
    let first = loop {
        let Some((first, after)) = rest.split_first() else {
            return Err(usage(
                "dsh plugin needs a command, for example: dsh plugin add ./notes.wasm (--help names them all)",
            ));
        };
        rest = after;
        match first.as_str() {
            "-h" | "--help" => return Ok(Asked::Help(help())),
            "--json" => before.push(first.clone()),
            "--profile" => {
                let (name, after) = rest
                    .split_first()
                    .ok_or_else(|| usage("option '--profile <name>' argument missing"))?;
                profile = Some(name.clone());
                rest = after;
            }
            text => match text.strip_prefix("--profile=") {
                Some(name) => profile = Some(name.to_owned()),
                None => break first,
            },
        }
    };
    let Some(verb) = VERBS.iter().find(|verb| verb.name == first) else {
        if let Some((_, instead)) = UPSTREAMS.iter().find(|(word, _)| word == first) {
            return Err(usage(format_args!(
                "dsh plugin has no command {first}: {instead}"
            )));
        }
        let names: Vec<&str> = VERBS.iter().map(|verb| verb.name).collect();
        return Err(usage(format_args!(
            "dsh plugin has no command {first:?}; it has {}",
            names.join(", ")
        )));
    };
    let wrong = |what: String| usage(format_args!("dsh plugin {}: {what}", verb.name));
    before.extend_from_slice(rest);
    let flags: Vec<Flag> = verb.all_flags().copied().collect();
    let words = match words::read(&flags, &before).map_err(wrong)? {
        Read::Help => return Ok(Asked::Help(verb.text())),
        Read::Words(words) => words,
    };
    let (fewest, most) = verb.words;
    if words.arguments.len() < fewest {
        return Err(wrong(verb.needs.to_owned()));
    }
    if words.arguments.len() > most {
        return Err(wrong(format!(
            "there is no place for {:?}",
            words.arguments[most]
        )));
    }
    if words.arguments.iter().any(|word| word.trim().is_empty()) {
        return Err(wrong("a name cannot be empty".to_owned()));
    }
    let decided = ["--yes", "--grant", "--none"]
        .iter()
        .filter(|flag| words.has(flag))
        .count();
    if decided > 1 {
        return Err(wrong("say one of --yes, --grant and --none".to_owned()));
    }
    let profile = words
        .value("--profile")
        .map(str::to_owned)
        .or(profile)
        .unwrap_or_else(|| DEFAULT_PROFILE.to_owned());
    if profile.trim().is_empty() {
        return Err(usage("--profile needs a name"));
    }
    Ok(Asked::Do(verb, Box::new(Order { profile, words })))
}

fn help() -> String {
    let mut text = "Usage: dsh plugin [--profile <name>] <command> [options] [args...]\n\n\
                    Plugins are WebAssembly components. What one may do is decided by you when it is\n\
                    added, is kept in the profile's dsh.lock with the digest of its bytes, and is\n\
                    all that it can do.\n\n\
                    Commands:\n"
        .to_owned();
    for verb in &VERBS {
        text += &format!("  {:<9} {}\n", verb.name, verb.summary);
    }
    text += "\ndsh plugin <command> --help says more of each. The profile is headless where none\n\
             is named.\n\n\
             Examples:\n";
    for example in VERBS.iter().filter_map(|verb| verb.examples.first()) {
        text += &format!("  {example}\n");
    }
    text += "\nExit codes: 0 done; 1 refused, failed, or verify found something wrong.\n";
    text
}

impl Verb {
    fn all_flags(&self) -> impl Iterator<Item = &'static Flag> + use<> {
        self.flags.iter().copied().flatten().chain(&COMMON)
    }

    fn text(&self) -> String {
        let mut text = format!("Usage: dsh plugin {} {}\n\n", self.name, self.usage);
        let mut summary = self.summary.chars();
        if let Some(first) = summary.next() {
            text.extend(first.to_uppercase());
        }
        text += &format!("{}.\n\n{}\n\n", summary.as_str(), self.help);
        text += &words::options(self.all_flags());
        text += "\nExamples:\n";
        for example in self.examples {
            text += &format!("  {example}\n");
        }
        text
    }
}

#[cfg(test)]
#[path = "words_tests.rs"]
mod tests;
