//! `dsh credentials list`: names, where they have values, and who wants them.
//!
//! Nothing is mounted: which routes want which name stands in the rows' grants.

use std::collections::BTreeMap;

use dsh_plugin::Grants;
use dsh_profile::{
    Composition, CredentialStore, Environment, Inputs, Profile, Scope, Settings, Source,
};
use serde_json::{Value, json};

use super::place_of;
use crate::boot::Place;
use crate::exit::Failure;
use crate::report;
use crate::words::Words;

/// One name.
struct Known {
    name: String,
    /// Strongest first.
    layers: Vec<Source>,
    routes: Vec<String>,
    /// Why its value cannot be used.
    problem: Option<String>,
}

pub(super) fn run(place: &Place, words: &Words) -> Result<u8, Failure> {
    if let Some(word) = words.arguments.first() {
        return Err(crate::arguments::usage(format_args!(
            "dsh credentials list takes no {word:?}"
        )));
    }
    let env = Environment::process(std::env::vars_os())
        .with_files(&place.cwd, place.home.path())
        .map_err(Failure::of)?;
    for warning in env.warnings() {
        report::line(warning);
    }
    let store = CredentialStore::open(&place.home, env.clone()).map_err(Failure::of)?;
    let profile = words.value("--profile").unwrap_or("headless");
    let wanted = match rows(place, &env, profile) {
        Ok(rows) => wanted(&rows),
        Err(error) => {
            report::line(format_args!("{error}; which routes want a key is not told"));
            BTreeMap::new()
        }
    };
    let known = known(&store, &wanted)?;
    let text = if words.has("--json") {
        format!("{}\n", object(place, profile, &known))
    } else {
        text(place, &known)
    };
    report::product(&text)
}

fn rows(place: &Place, env: &Environment, name: &str) -> Result<Composition, dsh_profile::Error> {
    let profile = match Profile::find(&place.home, name)? {
        Some(profile) => profile,
        None if name == "headless" => Profile::fresh(&place.home),
        None => Profile::open(&place.home, name)?,
    };
    let settings = Settings::load(&place.home)?;
    let inputs = Inputs {
        env,
        home: &place.home,
        settings: &settings,
        cwd: &place.cwd,
    };
    profile.compose(Scope::All(&[]))?.rows(&inputs)
}

/// Names, and the providers that they are for.
fn wanted(rows: &Composition) -> BTreeMap<String, Vec<String>> {
    let mut wanted: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for row in rows.components() {
        let Ok(grants) = Grants::parse(&row.grants) else {
            continue;
        };
        // Grants list what the catalogue ships too; who wants a key is who is configured.
        let configured = row.config.get("providers").and_then(Value::as_object);
        let is_configured =
            |provider: &str| configured.is_none_or(|all| all.contains_key(provider));
        for route in grants
            .routes()
            .iter()
            .filter(|route| is_configured(&route.provider))
        {
            if let Some(name) = &route.credential {
                let providers = wanted.entry(name.clone()).or_default();
                if !providers.contains(&route.provider) {
                    providers.push(route.provider.clone());
                }
            }
        }
    }
    wanted
}

fn known(
    store: &CredentialStore,
    wanted: &BTreeMap<String, Vec<String>>,
) -> Result<Vec<Known>, Failure> {
    let mut names = store.names();
    names.extend(wanted.keys().cloned());
    names.sort();
    names.dedup();
    let mut known = Vec::new();
    for name in names {
        let routes = wanted.get(&name).cloned().unwrap_or_default();
        let (layers, problem) = match store.layers(&name) {
            Ok(layers) => {
                let value = store.resolve(&name).map_err(Failure::of)?;
                let checked = value.map(|(value, _)| {
                    dsh_model::check_key(&name, &dsh_model::Secret::new(value.expose()))
                });
                (
                    layers,
                    checked.and_then(Result::err).map(|failure| failure.message),
                )
            }
            // A name that configuration made up.
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        known.push(Known {
            name,
            layers,
            routes,
            problem,
        });
    }
    Ok(known)
}

fn object(place: &Place, profile: &str, known: &[Known]) -> Value {
    let credentials: Vec<Value> = known
        .iter()
        .map(|one| {
            let layers: Vec<&str> = one.layers.iter().map(|source| source.as_str()).collect();
            json!({
                "name": one.name,
                "source": layers.first(),
                "layers": layers,
                "wantedBy": one.routes,
                "problem": one.problem,
            })
        })
        .collect();
    json!({
        "profile": profile,
        "file": place_of(Source::File, place),
        "credentials": credentials,
    })
}

fn text(place: &Place, known: &[Known]) -> String {
    if known.is_empty() {
        return "no credential is kept, and no route wants one\n".to_owned();
    }
    let width = known
        .iter()
        .map(|one| one.name.len())
        .max()
        .unwrap_or_default();
    let lines = known.iter().map(|one| {
        let from = match &one.layers[..] {
            [] => format!("missing: dsh credentials set {}", one.name),
            [source] => place_of(*source, place),
            [source, rest @ ..] => {
                let rest: Vec<String> =
                    rest.iter().map(|source| place_of(*source, place)).collect();
                format!("{}, before {}", place_of(*source, place), rest.join(", "))
            }
        };
        let routes = match one.routes.is_empty() {
            true => "for no route".to_owned(),
            false => format!("for {}", one.routes.join(", ")),
        };
        let problem = one
            .problem
            .as_ref()
            .map(|problem| format!("; {problem}"))
            .unwrap_or_default();
        format!("{:<width$}  {routes}  {from}{problem}", one.name)
    });
    lines.map(|line| report::plain(&line) + "\n").collect()
}
