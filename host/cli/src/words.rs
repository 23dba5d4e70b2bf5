//! The words behind a sub-command, as a pure function: options anywhere among the arguments, as `--flag value` or
//! `--flag=value`, `--` before an argument that looks like an option.

/// An option.
#[derive(Clone, Copy)]
pub(crate) struct Flag {
    pub(crate) name: &'static str,
    /// What its value is called; empty for a flag that has none.
    pub(crate) value: &'static str,
    /// For the help; what takes more than a line is broken by hand.
    pub(crate) help: &'static str,
}

/// What was written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Words {
    flags: Vec<(&'static str, String)>,
    pub(crate) arguments: Vec<String>,
}

/// What the words ask for.
#[derive(Debug)]
pub(crate) enum Read {
    Help,
    Words(Words),
}

impl Words {
    /// Whether a flag was given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        self.value(flag).is_some()
    }

    /// The value of a flag, the last one given.
    pub(crate) fn value(&self, flag: &str) -> Option<&str> {
        let given = self.flags.iter().rfind(|(name, _)| *name == flag);
        given.map(|(_, value)| &**value)
    }

    /// All values of a flag, in order.
    pub(crate) fn values<'a>(&'a self, flag: &'a str) -> impl Iterator<Item = &'a str> {
        let given = self.flags.iter().filter(move |(name, _)| *name == flag);
        given.map(|(_, value)| &**value)
    }

    /// The one argument of a command that takes one.
    pub(crate) fn one(&self) -> &str {
        self.arguments.first().map_or("", String::as_str)
    }
}

/// Reads words that may hold these flags.
///
/// # Errors
/// What is wrong with them, in a few words.
pub(crate) fn read(flags: &[Flag], words: &[String]) -> Result<Read, String> {
    let mut read = Words::default();
    let mut rest = words.iter();
    let mut literal = false;
    while let Some(word) = rest.next() {
        if literal || !word.starts_with('-') || word == "-" {
            read.arguments.push(word.clone());
            continue;
        }
        if word == "--" {
            literal = true;
            continue;
        }
        if matches!(word.as_str(), "-h" | "--help") {
            return Ok(Read::Help);
        }
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (word.as_str(), None),
        };
        let Some(flag) = flags.iter().find(|flag| flag.name == name) else {
            return Err(format!(
                "there is no option {name}; --help shows those that are"
            ));
        };
        let value = match (flag.value, attached) {
            ("", None) => String::new(),
            ("", Some(_)) => return Err(format!("{name} takes no value")),
            (what, attached) => attached
                .or_else(|| rest.next().cloned())
                .filter(|value| !value.is_empty())
                .ok_or_else(|| format!("{name} needs a {what}"))?,
        };
        read.flags.push((flag.name, value));
    }
    Ok(Read::Words(read))
}

/// The help's block of options.
pub(crate) fn options<'a>(flags: impl IntoIterator<Item = &'a Flag>) -> String {
    let mut text = "Options:\n".to_owned();
    for flag in flags {
        let name = match flag.value {
            "" => flag.name.to_owned(),
            value => format!("{} <{value}>", flag.name),
        };
        let help = flag.help.replace('\n', &format!("\n{:27}", ""));
        text += &format!("  {name:<24} {help}\n");
    }
    text += &format!("  {:<24} print this help\n", "-h, --help");
    text
}
