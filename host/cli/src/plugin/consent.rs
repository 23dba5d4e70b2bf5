//! What a person is shown, and what they decided.
//!
//! The decision is a pure function of the command line and of whether somebody can be asked; what the plugin wants is
//! only ever a default for a person's yes. Somebody can be asked where stdin and stderr are both terminals: an answer
//! that a script pipes in is no answer of a person, and a question that nobody sees is none.

use std::io::{self, IsTerminal, Write};

use dsh_plugin::Grants;
use dsh_plugin::want::{self, Want};
use serde_json::{Map, Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::look::Candidate;
use super::text::{json as json_text, shown, size};
use super::trust::Signature;
use super::words::DEFAULT_PROFILE;
use super::{Desk, Stop, given};
use crate::arguments::usage;
use crate::words::Words;

/// What the command line says of grants.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Said {
    /// Nothing: ask.
    Nothing,
    /// `--yes`: what it wants.
    Yes,
    /// `--none` or `--grant …`: exactly this.
    Exactly(Map<String, Value>),
}

/// What follows from it.
#[derive(Debug, PartialEq)]
pub(super) enum Way {
    /// Grant this, ask nobody.
    Grant(Map<String, Value>),
    /// Ask, and grant this on a yes.
    Ask(Map<String, Value>),
    /// Nobody can be asked.
    Refuse,
}

impl Said {
    pub(super) fn read(words: &Words) -> Result<Self, Stop> {
        if words.has("--yes") {
            return Ok(Self::Yes);
        }
        if words.has("--none") {
            return Ok(Self::Exactly(Map::new()));
        }
        if !words.has("--grant") {
            return Ok(Self::Nothing);
        }
        read_grants(words.values("--grant"), "--grant").map(Self::Exactly)
    }
}

/// Reads and checks grants that a person wrote.
pub(super) fn read_grants<'a>(
    written: impl IntoIterator<Item = &'a str>,
    place: &str,
) -> Result<Map<String, Value>, Stop> {
    let grants = given::grants(written).map_err(|error| usage(format_args!("{place}: {error}")))?;
    Grants::parse(&Value::Object(grants.clone()))
        .map_err(|error| usage(format_args!("{place}: {error}")))?;
    Ok(grants)
}

/// Decides how to go on; `wanted` is what a yes would grant.
pub(super) fn way(said: &Said, wanted: Map<String, Value>, somebody: bool) -> Way {
    match said {
        Said::Yes => Way::Grant(wanted),
        Said::Exactly(grants) => Way::Grant(grants.clone()),
        Said::Nothing if somebody => Way::Ask(wanted),
        Said::Nothing => Way::Refuse,
    }
}

/// Whether somebody sits there.
pub(super) fn somebody() -> bool {
    io::stdin().is_terminal() && io::stderr().is_terminal()
}

/// A yes or a no, from the terminal; anything but a yes is a no.
pub(super) fn ask(desk: &Desk, question: &str) -> bool {
    desk.progress.clear();
    let answer = desk.wait(async {
        // Before the question, so that nobody is faster.
        let interrupted = signal(SignalKind::interrupt());
        let mut stderr = io::stderr();
        let _ = write!(stderr, "{question} [y/N] ").and_then(|()| stderr.flush());
        let read = tokio::task::spawn_blocking(|| {
            let mut answer = String::new();
            io::stdin().read_line(&mut answer).map(|_| answer)
        });
        let interrupted = async {
            match interrupted {
                Ok(mut interrupted) => drop(interrupted.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = read => answer.ok().and_then(Result::ok).unwrap_or_default(),
            () = interrupted => {
                // Nothing is under way; only the line is not at its end.
                let _ = writeln!(io::stderr());
                std::process::exit(130)
            }
        }
    });
    matches!(answer.trim(), "y" | "Y" | "yes" | "Yes" | "YES")
}

/// Puts lines on stderr.
pub(super) fn show(desk: &Desk, block: &str) {
    desk.progress.clear();
    let _ = write!(io::stderr(), "{block}");
}

/// All wants as grants.
pub(super) fn all(wants: &[Want]) -> Map<String, Value> {
    wants
        .iter()
        .map(|want| (want.grant.clone(), want.parameters.clone()))
        .collect()
}

/// What its imports or exports need in order to be mounted, and `grants` have not.
pub(super) fn missing(wants: &[Want], grants: &Map<String, Value>) -> Vec<String> {
    let needed = |want: &&Want| {
        !matches!(want.because, want::Because::Manifest) && want.grant != "tool-names"
    };
    let lacking = |want: &&Want| {
        matches!(
            grants.get(&want.grant),
            None | Some(Value::Null | Value::Bool(false))
        )
    };
    wants
        .iter()
        .filter(needed)
        .filter(lacking)
        .map(|want| want.grant.clone())
        .collect()
}

/// Who it is and where it is from.
pub(super) fn about(candidate: &Candidate, source: &str, signature: &Signature) -> String {
    let mut text = format!(
        "{} {}",
        shown(candidate.name(), 140),
        shown(candidate.version(), 60)
    );
    if let Some(manifest) = &candidate.description.manifest
        && !manifest.plugin.description.is_empty()
    {
        text += &format!("   {}", shown(&manifest.plugin.description, 200));
    }
    text += "\n";
    let mut line = |name: &str, value: String| text += &format!("  {name:<9} {value}\n");
    let bytes = size(candidate.component.len() as u64);
    line("from", format!("{} ({bytes})", shown(source, 300)));
    line("sha256", candidate.given.clone());
    line("signed", signature.words());
    let rows: Vec<String> = candidate
        .rows
        .iter()
        .map(|row| {
            let config = if row.config.as_object().is_none_or(Map::is_empty) {
                String::new()
            } else {
                format!(" {}", json_text(&row.config, 200))
            };
            format!(
                "{}{config}{}",
                shown(&row.id, 64),
                if row.disabled { " (disabled)" } else { "" }
            )
        })
        .collect();
    line("rows", rows.join(", "));
    let tools: Vec<String> = candidate
        .tools()
        .iter()
        .map(|name| shown(name, 64))
        .collect();
    if !tools.is_empty() {
        line("tools", tools.join(", "));
    }
    if candidate.unchecked {
        let note = "its schema of `config` says more than this dsh checks, so a row's config is not held against it";
        line("note", note.to_owned());
    }
    if let Some(manifest) = &candidate.description.manifest
        && !manifest.limits.is_empty()
    {
        line("limits", limits(&manifest.limits));
        if !candidate.beyond.is_empty() {
            let names = candidate.beyond.join(", ");
            line(
                "note",
                format!(
                    "it asks for more {names} than a row gets; `limits` in a patch of yours would give it"
                ),
            );
        }
    }
    text
}

/// `memory 32MiB, call 20s`
pub(super) fn limits(limits: &Map<String, Value>) -> String {
    let limit = |(name, value): (&String, &Value)| {
        let value = value
            .as_str()
            .map_or_else(|| json_text(value, 60), |text| shown(text, 60));
        format!("{} {value}", shown(name, 40))
    };
    limits.iter().map(limit).collect::<Vec<_>>().join(", ")
}

/// What it wants, in words, with the grant that each is.
pub(super) fn wanted(wants: &[Want], also: &[String]) -> String {
    let mut text = String::new();
    if wants.is_empty() {
        text += &format!("It wants {}.\n", want::NOTHING);
    } else {
        text += "Given what it wants, it\n";
        text += &sentences(wants);
    }
    if !also.is_empty() {
        text += "Whatever it is given, it\n";
        for words in also {
            text += &format!("  - {words}\n");
        }
    }
    text
}

/// A line a sentence, and below them the grant.
pub(super) fn sentences(wants: &[Want]) -> String {
    let mut text = String::new();
    for want in wants {
        for words in &want.words {
            text += &format!("  - {words}\n");
        }
        text += &format!("      {}\n", given::written(&want.grant, &want.parameters));
    }
    text
}

/// Wants for programs.
pub(super) fn wants_json(wants: &[Want]) -> Value {
    let one = |want: &Want| {
        let because = match &want.because {
            want::Because::Import(name) => json!({"import": name}),
            want::Because::Export(name) => json!({"export": name}),
            _ => json!({"manifest": true}),
        };
        json!({"grant": want.grant, "parameters": want.parameters, "because": because, "words": want.words})
    };
    wants.iter().map(one).collect()
}

/// What a refusal where nobody can be asked is about.
pub(super) struct Unasked<'a> {
    /// `add`, `update`.
    pub(super) verb: &'a str,
    pub(super) profile: &'a str,
    /// What the command names: a source, a plugin.
    pub(super) object: &'a str,
    pub(super) name: &'a str,
    /// What is to be decided.
    pub(super) wants: &'a [Want],
    /// What it does beside, whatever it is given.
    pub(super) also: &'a [String],
    /// All that a yes would grant.
    pub(super) grants: &'a Map<String, Value>,
}

/// The refusal where nobody can be asked: both command lines that go on.
pub(super) fn refuse(about: &Unasked<'_>) -> Stop {
    let profile = if about.profile == DEFAULT_PROFILE {
        String::new()
    } else {
        format!("--profile {} ", given::quoted(about.profile))
    };
    let object = given::quoted(about.object);
    let verb = about.verb;
    let each: Vec<String> = about
        .grants
        .iter()
        .map(|(grant, what)| format!("--grant {}", given::written(grant, what)))
        .collect();
    let exactly = if each.is_empty() {
        "--none".to_owned()
    } else {
        each.join(" ")
    };
    let words = about
        .wants
        .iter()
        .flat_map(|want| &want.words)
        .chain(about.also);
    let words: Vec<&str> = words.map(String::as_str).collect();
    let words = if words.is_empty() {
        format!("does {}", want::NOTHING)
    } else {
        words.join("; ")
    };
    Stop::of(format_args!(
        "given what it wants, {} {}; nobody can be asked here, so nothing was done; to give it that: dsh plugin {verb} {profile}--yes {object}; to decide exactly: dsh plugin {verb} {profile}{exactly} {object}",
        shown(about.name, 140),
        shown(&words, 2000),
    ))
    .with("wants", wants_json(about.wants))
}

/// Refuses grants that the component could make nothing of.
pub(super) fn useful(
    candidate: &dsh_plugin::Description,
    grants: &Map<String, Value>,
    name: &str,
) -> Result<(), Stop> {
    for grant in grants.keys() {
        if let Some(lacking) = want::lacks(candidate, grant) {
            return Err(Stop::of(format_args!(
                "{} can make nothing of the grant {grant}: it lacks {}; leave it out",
                shown(name, 140),
                shown(&lacking, 200)
            )));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            other => panic!("{other} is no object"),
        }
    }

    #[test]
    fn nobody_but_a_person_decides() {
        let wanted = map(json!({"clock": true}));
        let less = map(json!({}));
        for (said, somebody, expected) in [
            (Said::Nothing, true, Way::Ask(wanted.clone())),
            (Said::Nothing, false, Way::Refuse),
            (Said::Yes, true, Way::Grant(wanted.clone())),
            (Said::Yes, false, Way::Grant(wanted.clone())),
            (Said::Exactly(less.clone()), true, Way::Grant(less.clone())),
            (Said::Exactly(less.clone()), false, Way::Grant(less)),
        ] {
            assert_eq!(
                way(&said, wanted.clone(), somebody),
                expected,
                "{said:?} {somebody}"
            );
        }
    }

    #[test]
    fn what_a_mount_would_lack_is_told_and_a_mere_wish_is_not() {
        let want = |grant: &str, because| Want {
            grant: grant.to_owned(),
            parameters: json!(true),
            because,
            words: Vec::new(),
        };
        let wants = [
            want(
                "http",
                want::Because::Import("dsh:plugin/http@0.1.0".to_owned()),
            ),
            want(
                "clock",
                want::Because::Import("dsh:plugin/clock@0.1.0".to_owned()),
            ),
            want("secret", want::Because::Manifest),
            want("tool-names", want::Because::Export("tool".to_owned())),
        ];
        assert_eq!(missing(&wants, &map(json!({"clock": true}))), ["http"]);
        assert!(missing(&wants, &map(json!({"clock": true, "http": ["https://a"]}))).is_empty());
    }
}
