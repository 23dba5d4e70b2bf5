//! `docs/events/`, made from the table: a schema for each event, and a page that
//! lists all of upstream's bus. The test below compares what is there;
//! `cargo xtask events` writes it.

use std::fmt::Write;

use dsh_session::Json;

use super::absent::ABSENT;
use super::events::{EventSpec, OnFailure, events};

/// File names below `docs/events/` with what is in them.
fn pages() -> Vec<(String, String)> {
    let mut pages: Vec<_> = events()
        .iter()
        .map(|spec| (file(spec.name), schema(spec)))
        .collect();
    pages.push(("README.md".to_owned(), page()));
    pages
}

fn file(name: &str) -> String {
    format!("{}.schema.json", name.replace('/', "."))
}

fn rule(spec: &EventSpec) -> &'static str {
    match spec.on_failure {
        OnFailure::Refuse => "refuse",
        OnFailure::LeaveOut => "leave out",
    }
}

fn schema(spec: &EventSpec) -> String {
    let json = |text: &str| Json::normalise(text).unwrap_or_else(|_| Json::null());
    let json = Json::object(|schema| {
        schema
            .str("$schema", "https://json-schema.org/draft/2020-12/schema")
            .str("title", spec.name)
            .str("description", spec.when)
            .str("x-mode", spec.mode.as_str())
            .str("x-onFailure", rule(spec));
        if !spec.mode.only_tells() {
            schema.array("x-rewrites", |names| {
                for name in spec.rewrites {
                    names.str(name);
                }
            });
            schema.bool("x-outcomeChanges", spec.leaves);
        }
        schema.str("type", "object");
        schema.object("properties", |properties| {
            properties.json("payload", &json(spec.payload));
            if let Some(result) = spec.result {
                properties.json("result", &json(result));
            }
        });
    });
    let value: serde_json::Value = serde_json::from_str(json.as_str()).unwrap_or_default();
    let mut text = serde_json::to_string_pretty(&value).unwrap_or_default();
    text.push('\n');
    text
}

fn page() -> String {
    let mut out = HEAD.to_owned();
    for spec in events() {
        let changes = if spec.mode.only_tells() {
            "-".to_owned()
        } else {
            let mut changes: Vec<_> = spec
                .rewrites
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            changes.push("the result".to_owned());
            changes.join(", ")
        };
        let _ = writeln!(
            out,
            "| [`{}`]({}) | {} | {} | {changes} | {} |",
            spec.name,
            file(spec.name),
            spec.mode.as_str(),
            rule(spec),
            spec.when
        );
    }
    out.push_str(ABSENCE);
    for (name, mode, reason) in ABSENT {
        let _ = writeln!(out, "| `{name}` | {mode} | {reason} |");
    }
    out
}

const HEAD: &str = "\
# Events

What a component that exports `dispatch` can listen to. This page and the schemas beside it are \
made from the table in `host/agent/src/dispatch/table.rs` by `cargo xtask events`; a test fails \
where they are stale, and every payload that is sent in tests is checked against them. How a \
listener is written, granted and bounded is in [plugins.md](../plugins.md).

Modes: a **waterfall** is asked on the way in (`enter`, in row order) and, who left a `carry`, on \
the way out (`leave`, in reverse); **serial** is asked in row order (`decide`), the first answer \
wins; **parallel** is told to all at once, and the host waits for them; **emit** is told while the \
host goes on. The contract's fifth mode, bail, has no event.

When a listener fails (a trap, a bound, no JSON, another shape than the schema's, a change where \
none is allowed): *refuse* means that what was to be decided does not happen, also once the row \
is out of use, if the row may decide the event; *leave out* means that the run goes on without \
it. Members of a payload that are not named under \"may change\" stay as they were.

## Events of a run

| event | mode | on failure | may change | when |
| --- | --- | --- | --- | --- |
";

const ABSENCE: &str = "
## Events of upstream's bus that no run has

A component that subscribes to one is left out with a line.

| event | mode upstream | why not |
| --- | --- | --- |
";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;

    /// `DSH_WRITE_EVENTS=1`, which `cargo xtask events` sets, writes instead.
    #[test]
    fn docs_events_is_what_the_table_says() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/events");
        let pages = pages();
        if std::env::var_os("DSH_WRITE_EVENTS").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            for (name, text) in &pages {
                std::fs::write(folder.join(name), text).unwrap();
            }
        }
        for (name, text) in &pages {
            let there = std::fs::read_to_string(folder.join(name)).unwrap_or_default();
            assert!(
                there == *text,
                "docs/events/{name} is stale: run `cargo xtask events`"
            );
        }
        let there = std::fs::read_dir(&folder).unwrap();
        let there: BTreeSet<_> = there
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let made: BTreeSet<_> = pages.into_iter().map(|(name, _)| name).collect();
        assert_eq!(there, made, "docs/events/ has a file that no event has");
    }

    #[test]
    fn every_event_of_the_bus_is_raised_or_absent_for_a_reason() {
        let raised = events().iter().map(|spec| spec.name);
        let absent = ABSENT.iter().map(|(name, ..)| *name);
        let known: Vec<_> = raised.chain(absent).collect();
        let unique: BTreeSet<_> = known.iter().collect();
        assert_eq!(unique.len(), known.len());
        // The bus has 59, whose meaning to a person dsh-plugin has in words.
        assert_eq!(known.len(), 59);
        for name in known {
            assert!(dsh_plugin::want::event(name).is_some(), "{name}");
        }
        assert!(ABSENT.iter().all(|(.., reason)| reason.len() > 10));
    }
}
