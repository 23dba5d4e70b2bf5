//! `dsh models`: what can be called, and why what cannot be called cannot.
//!
//! Nothing is sent and nothing is made: adapters are mounted as a run mounts them and
//! asked for their routes. A credential is named, never shown; nor is any header.

mod gather;
mod text;

use crate::arguments::usage;
use crate::boot::Place;
use crate::exit::Failure;
use crate::report;
use crate::words::{Flag, Read, options, read};

const FLAGS: [Flag; 2] = [
    Flag {
        name: "--profile",
        value: "name",
        help: "the profile to look at; headless without it",
    },
    Flag {
        name: "--json",
        value: "",
        help: "print one JSON object (docs/schema/models.schema.json)",
    },
];

fn help() -> String {
    format!(
        "Usage: dsh models [options] [provider]\n\n\
         Lists each provider that is configured, or that one: where its requests go, with\n\
         which credential and whether that has a value, and its models with their context\n\
         window, output cap, reasoning efforts and inputs. `*` is the default model. What\n\
         cannot be called says why. Changes nothing and sends nothing.\n\n\
         Take one for a run with --model provider/model. How to add a provider:\n\
         docs/models.md.\n\n{}",
        options(&FLAGS)
    )
}

/// Runs `dsh models` with the words that follow it.
pub(crate) fn main(arguments: &[String]) -> Result<u8, Failure> {
    let words = match read(&FLAGS, arguments).map_err(|reason| usage(format_args!("{reason}")))? {
        Read::Help => return report::product(&help()),
        Read::Words(words) => words,
    };
    if let Some(word) = words.arguments.get(1) {
        return Err(usage(format_args!(
            "dsh models takes one provider, and here is {word:?} beside it"
        )));
    }
    let place = Place::find(None)?;
    let profile = words.value("--profile").unwrap_or("headless");
    let mut listing = gather::listing(&place, profile)?;
    if let Some(only) = words.arguments.first() {
        listing.only(only)?;
    }
    report::product(&if words.has("--json") {
        format!("{:#}\n", listing.json())
    } else {
        text::shown(&listing)
    })
}
