//! `dsh plugin info`: all that a component says of itself, from its sections alone. Nothing of it runs.
//!
//! So what only running it could tell (the tools that it lists, the events that it listens to) is here as the lock has
//! it from when it was added; of a file it is not told.

use std::path::Path;

use dsh_plugin::want;
use dsh_plugin::{Description, Offered, componentise};
use dsh_profile::{Installed, Packages};
use serde_json::{Value, json};

use super::source::Source;
use super::text::{json as json_text, shown, size};
use super::{Desk, Done, Report, Stop, consent, entry, fetch, given, names, what};
use crate::arguments::usage;
use crate::words::Words;

pub(super) fn run(desk: &Desk, words: &Words) -> Done {
    let word = words.one();
    let is_file = word.contains('/')
        || desk.place.cwd.join(word).exists()
        || Path::new(word)
            .extension()
            .is_some_and(|extension| extension == "wasm");
    if !is_file {
        let lock = desk.lock(&desk.profile()?)?;
        let plugin = names::plugin(&lock, word, &desk.name)?;
        let bytes = Packages::at(&desk.place.home)
            .read(&plugin.digest)
            .map_err(Stop::of)?;
        return told(&bytes, None, Some(plugin));
    }
    if word.starts_with("https:") {
        return Err(usage("dsh plugin info reads files; download it first, or see it with dsh plugin add, which asks before it adds").into());
    }
    let source = Source::read(word, &desk.place.cwd).map_err(usage)?;
    let fetched = fetch::component(desk, &source, super::DOWNLOAD).map_err(Stop::of)?;
    let refused = |error: &dyn std::fmt::Display| {
        Stop::of(format_args!("{}: {error}", shown(&source.text(), 300)))
    };
    if let Some(what) = what::told(&fetched.bytes) {
        return Err(refused(&what));
    }
    let given = dsh_profile::digest(&fetched.bytes);
    let made = componentise(fetched.bytes).map_err(|error| refused(&error))?;
    told(
        &made.component,
        Some((&source, &given, fetched.signature.as_deref())),
        None,
    )
    .map_err(|stop| {
        let message = format!("{}: {}", shown(&source.text(), 300), stop.failure.message());
        Stop::of(message)
    })
}

fn told(
    bytes: &[u8],
    file: Option<(&Source, &str, Option<&str>)>,
    installed: Option<&Installed>,
) -> Done {
    let description = Description::read(bytes).map_err(Stop::of)?;
    let wants = want::wants(&description, &Offered::default()).map_err(Stop::of)?;
    let also = want::also(&description, &Offered::default());
    let manifest = description.manifest.as_ref();
    let names = |interfaces: &[dsh_plugin::Interface]| -> Vec<String> {
        interfaces.iter().map(ToString::to_string).collect()
    };
    let (imports, exports) = (names(&description.imports), names(&description.exports));
    let signature = match file {
        Some((_, _, Some(came))) => dsh_profile::signature::key_of(came)
            .ok()
            .map(|id| json!({"key": null, "id": id.to_string(), "comment": null})),
        _ => None,
    };
    let json = json!({
        "name": manifest.map(|manifest| &manifest.plugin.name),
        "version": manifest.map(|manifest| &manifest.plugin.version),
        "description": manifest.map(|manifest| &manifest.plugin.description),
        "licence": description.licence(),
        "authors": description.authors(),
        "digest": description.digest,
        "fetched": file.map(|(_, given, _)| given).filter(|given| *given != description.digest),
        "size": description.size,
        "contract": description.contract,
        "imports": imports,
        "exports": exports,
        "wants": consent::wants_json(&wants),
        "also": also,
        "rows": manifest.map(|manifest| manifest.rows.iter().map(|row| json!({"id": row.id, "disabled": row.disabled, "config": row.config})).collect::<Vec<_>>()).unwrap_or_default(),
        "limits": manifest.map(|manifest| &manifest.limits),
        "unknown": manifest.map(|manifest| &manifest.unknown),
        "signature": signature,
        "installed": installed.map(entry::json),
    });
    let mut text = match manifest {
        Some(manifest) => format!("{} {}\n", shown(&manifest.plugin.name, 140), shown(&manifest.plugin.version, 60)),
        None => "a component without a manifest: it can be mounted by a row with `component:`, and not be added\n".to_owned(),
    };
    let mut line = |head: &str, value: &str| {
        if !value.is_empty() {
            text += &format!("  {head:<11} {value}\n");
        }
    };
    if let Some(manifest) = manifest {
        line("about", &shown(&manifest.plugin.description, 300));
    }
    let authors: Vec<String> = description
        .authors()
        .iter()
        .map(|author| shown(author, 100))
        .collect();
    line("authors", &authors.join(", "));
    line(
        "licence",
        &description
            .licence()
            .map(|licence| shown(licence, 100))
            .unwrap_or_default(),
    );
    line(
        "source",
        &installed
            .map(|plugin| shown(&plugin.source, 300))
            .or_else(|| file.map(|(source, _, _)| shown(&source.text(), 300)))
            .unwrap_or_default(),
    );
    line("size", &size(description.size));
    line("sha256", &description.digest);
    if let Some((_, given, _)) = file.filter(|(_, given, _)| *given != description.digest) {
        line("made of", &format!("a core module with the sha256 {given}"));
    }
    line(
        "contract",
        description.contract.as_deref().unwrap_or("none"),
    );
    if let Some(plugin) = installed {
        let signed = plugin.signature.as_ref().map_or_else(
            || "no".to_owned(),
            |signed| {
                format!(
                    "by key {} ({})",
                    entry::key_id(&signed.key),
                    shown(&signed.comment, 120)
                )
            },
        );
        line("signed", &signed);
        line(
            "state",
            if plugin.disabled {
                "disabled"
            } else {
                "enabled"
            },
        );
    } else if let Some(id) = signature
        .as_ref()
        .and_then(|signature| signature["id"].as_str())
    {
        line("signed", &format!("by key {id}, which was not checked"));
    } else {
        line("signed", "no");
    }
    let cut = |list: &[String]| {
        list.iter()
            .map(|name| shown(name, 120))
            .collect::<Vec<_>>()
            .join(", ")
    };
    line("imports", &cut(&imports));
    line("exports", &cut(&exports));
    let rows = installed.map_or_else(
        || {
            manifest
                .map(|manifest| {
                    manifest
                        .rows
                        .iter()
                        .map(|row| {
                            format!(
                                "{} {}",
                                shown(&row.id, 64),
                                json_text(&Value::Object(row.config.clone()), 200)
                            )
                        })
                        .collect::<Vec<_>>()
                })
                .unwrap_or_default()
        },
        |plugin| {
            plugin
                .rows
                .iter()
                .map(|row| {
                    format!(
                        "{} {}{}",
                        row.id,
                        json_text(&row.config, 200),
                        if row.disabled { " (disabled)" } else { "" }
                    )
                })
                .collect()
        },
    );
    line("rows", &rows.join(", "));
    if let Some(plugin) = installed {
        line("tools", &cut(&plugin.tools));
    }
    if let Some(manifest) = manifest {
        line("limits", &consent::limits(&manifest.limits));
        line("ignored", &cut(&manifest.unknown));
    }
    text += &consent::wanted(&wants, &also);
    if let Some(plugin) = installed {
        let granted = plugin.granted();
        let has: Vec<String> = granted
            .iter()
            .map(|(grant, what)| format!("    {}\n", given::written(grant, what)))
            .collect();
        text += &if has.is_empty() {
            "It has no grants.\n".to_owned()
        } else {
            format!("It has\n{}", has.concat())
        };
        for grant in consent::missing(&wants, &granted) {
            text += &format!("It lacks {grant}, without which it is left out of a run.\n");
        }
    }
    Ok(Report::new(text, json))
}
