//! `dsh doctor`: everything that is wrong, and what to do about it.
//!
//! Each crate checks what it knows ([`dsh_check::Finding`]); here the checks are
//! run side by side and printed, a line a finding, those that are as they should
//! be too. Nothing is repaired and nothing is made: what writes is a run, or a
//! command that the finding names. The one exception is the cache, which is
//! tried by using it. Nothing is sent.

mod rows;

use std::thread;

use dsh_check::{Finding, Level};
use dsh_profile::{Environment, Profile, check_home, check_installed, for_profile};
use dsh_store::projcache::ProjectionCache;
use serde_json::json;

use crate::arguments::usage;
use crate::boot::{Place, proxies};
use crate::exit::Failure;
use crate::words::{Flag, Read, Words, options, read};
use crate::{attachments, embedded, open, report, run};

const FLAGS: [Flag; 2] = [
    Flag {
        name: "--profile",
        value: "name",
        help: "the profile to look at; headless without it",
    },
    Flag {
        name: "--json",
        value: "",
        help: "print one JSON object (docs/schema/doctor.schema.json)",
    },
];

fn help() -> String {
    format!(
        "Usage: dsh doctor [options]\n\n\
         Looks at dsh's files and at this machine: the home and who may change it, the\n\
         profile and its plugins, every component, the model's key, stored sessions, the\n\
         sandbox, the cache, the trust roots. Prints a line for each, with what to do where\n\
         something is wrong. Changes nothing and sends nothing.\n\n\
         Ends with 0 when nothing is wrong (warnings are not), else with 1.\n\n{}",
        options(&FLAGS)
    )
}

/// Runs `dsh doctor` with the words that follow it.
pub(crate) fn main(arguments: &[String]) -> Result<u8, Failure> {
    let words = match read(&FLAGS, arguments).map_err(|reason| usage(format_args!("{reason}")))? {
        Read::Help => return report::product(&help()),
        Read::Words(words) => words,
    };
    if let Some(word) = words.arguments.first() {
        return Err(usage(format_args!("dsh doctor takes no {word:?}")));
    }
    let place = Place::find(None)?;
    let profile = words.value("--profile").unwrap_or("headless");
    let sections = examine(&place, profile);
    let wrong = sections
        .iter()
        .any(|(_, found)| found.iter().any(|one| one.level == Level::Wrong));
    report::product(&shown(&words, &place, profile, &sections))?;
    Ok(u8::from(wrong))
}

/// What each check found, by its name.
type Sections = Vec<(&'static str, Vec<Finding>)>;

/// Runs all checks at once.
fn examine(place: &Place, name: &str) -> Sections {
    let home = &place.home;
    let inherited = Environment::process(std::env::vars_os());
    let (profile, found) = rows::profile(home, name);
    let composed = profile
        .as_ref()
        .map(|profile| rows::compose(place, &inherited, profile));
    let guard = composed
        .as_ref()
        .and_then(|composed| composed.rows.as_ref())
        .is_none_or(run::guards_home);
    let row = composed
        .as_ref()
        .and_then(|composed| composed.rows.as_ref()?.host("session-persistence-jsonl"));
    let store = open::store(row, home.path());
    let cache = home.path().join("cache");
    thread::scope(|scope| {
        let files = scope.spawn(|| check_home(home, &inherited, &place.cwd));
        let sessions = scope.spawn(|| {
            let mut found = match &store {
                Ok(store) => dsh_store::check(store),
                Err(failure) => vec![Finding::wrong(failure.message())],
            };
            found.push(ProjectionCache::at(home.path()).check());
            found
        });
        let pictures = scope.spawn(|| attachments::check(home.path()));
        let http = scope.spawn(|| dsh_http::check(&proxies()));
        let sandbox = scope.spawn(|| match run::machine(&inherited, home.path(), guard) {
            Ok(sandbox) => sandbox.check(&place.cwd),
            Err(failure) => vec![Finding::wrong(failure.message())],
        });
        let plugins = scope.spawn(|| {
            let check = |profile: &Profile| check_installed(home, profile);
            profile.as_ref().map(check).unwrap_or_default()
        });
        // A cache that something is wrong with is not used: a run would mend it.
        let engine = dsh_plugin::check(&cache, &embedded::codes());
        let sound = engine.iter().all(|one| one.level != Level::Wrong);
        let cache = Some(cache).filter(|cache| sound && cache.is_dir());
        let mounted = match composed {
            Some(composed) => rows::mounted(place, &inherited, composed, cache),
            None => Vec::new(),
        };
        // A check that panicked is a finding too: the others are still told.
        let done = |check: thread::ScopedJoinHandle<'_, Vec<Finding>>| {
            check
                .join()
                .unwrap_or_else(|_| vec![Finding::wrong("this check failed; please report it")])
        };
        let mut sections = vec![
            ("home", [done(files), done(pictures)].concat()),
            ("profile", found),
            ("plugins", done(plugins)),
        ];
        sections.extend(mounted);
        sections.extend([
            ("sessions", done(sessions)),
            ("sandbox", done(sandbox)),
            ("engine", engine),
            ("http", done(http)),
        ]);
        once(&mut sections);
        // The commands that are named are about this profile.
        for one in sections.iter_mut().flat_map(|(_, found)| found) {
            one.what = for_profile(name, &one.what);
        }
        sections
    })
}

/// What two checks came across is told once, whatever each adds behind it.
fn once(sections: &mut Sections) {
    let mut told: Vec<String> = Vec::new();
    for (_, found) in sections {
        found.retain(|one| {
            let what = one.what.split(';').next().unwrap_or_default();
            let new = one.level == Level::Ok || !told.iter().any(|known| known == what);
            told.push(what.to_owned());
            new
        });
    }
}

fn shown(words: &Words, place: &Place, profile: &str, sections: &Sections) -> String {
    let all = || {
        sections
            .iter()
            .flat_map(|(check, found)| found.iter().map(move |one| (check, one)))
    };
    let count = |level| all().filter(|(_, one)| one.level == level).count();
    let wrong = count(Level::Wrong);
    if words.has("--json") {
        let findings: Vec<_> = all()
            .map(|(check, one)| json!({"check": check, "level": one.level.as_str(), "what": one.what}))
            .collect();
        let whole = json!({
            "ok": wrong == 0,
            "home": place.home.path().to_string_lossy(),
            "profile": profile,
            "findings": findings,
        });
        return format!("{whole:#}\n");
    }
    let mut text = String::new();
    for (check, one) in all() {
        text += &format!("{:<8} {check:<9} {}\n", one.level, report::plain(&one.what));
    }
    let warnings = count(Level::Warning);
    let plural = if warnings == 1 { "" } else { "s" };
    text + &format!(
        "{wrong} wrong, {warnings} warning{plural}, {} ok\n",
        count(Level::Ok)
    )
}
