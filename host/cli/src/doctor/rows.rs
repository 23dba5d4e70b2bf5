//! The profile and its rows: composed and mounted as a run does it, but that a
//! fault costs its line and nothing else.

use std::path::PathBuf;

use dsh_check::{Finding, Level};
use dsh_model::{CallConfig, Served};
use dsh_plugin::{Engine, EngineConfig, Mounted};
use dsh_profile::{
    Composition, CredentialStore, Environment, Home, Inputs, Packages, Profile, Row, Scope,
    Settings,
};
use futures_util::future::join_all;

use crate::boot::{Place, mount_row, runs_all_the_same};
use crate::credentials::place_of;
use crate::models::{self, Offer};
use crate::projections;
use crate::run::text;

/// The profile, and what is wrong with its own files.
pub(super) fn profile(home: &Home, name: &str) -> (Option<Profile>, Vec<Finding>) {
    match Profile::find(home, name) {
        Ok(Some(profile)) => {
            let at = profile.dir().display().to_string();
            (
                Some(profile),
                vec![Finding::ok(format_args!("{name} is in {at}"))],
            )
        }
        Ok(None) if name == "headless" => {
            let told = Finding::ok("headless is not there yet; the first run makes it");
            (Some(Profile::fresh(home)), vec![told])
        }
        Ok(None) => {
            let at = home.path().join("profiles").join(name).join("profile.yml");
            let told = Finding::wrong(format_args!(
                "profile {name:?} does not exist; make {} with the line `bundles: [base, headless]`, \
                 or take --profile headless",
                at.display()
            ));
            (None, vec![told])
        }
        Err(error) => (None, vec![Finding::wrong(error)]),
    }
}

/// A profile's rows, as far as they could be composed.
pub(super) struct Composed {
    pub(super) rows: Option<Composition>,
    lock: PathBuf,
    found: Vec<Finding>,
}

pub(super) fn compose(place: &Place, inherited: &Environment, profile: &Profile) -> Composed {
    let mut found = Vec::new();
    // What these say is told by the check of the home.
    let env = inherited.clone().with_files(&place.cwd, place.home.path());
    let env = env.unwrap_or_else(|_| inherited.clone());
    let settings = Settings::load(&place.home).unwrap_or_default();
    let inputs = Inputs {
        env: &env,
        home: &place.home,
        settings: &settings,
        cwd: &place.cwd,
    };
    let composed = profile.compose(Scope::All(&[])).and_then(|tree| {
        found.extend(tree.warnings().iter().map(Finding::warning));
        tree.rows(&inputs)
    });
    let rows = match composed {
        Ok(rows) => Some(rows),
        Err(error) => {
            found.push(Finding::wrong(format_args!(
                "{error}; nothing of this profile runs until it is mended"
            )));
            None
        }
    };
    if let Some(rows) = &rows {
        found.extend(
            rows.problems
                .iter()
                .map(|problem| Finding::wrong(&problem.message)),
        );
        found.extend(rows.unserved.iter().map(Finding::wrong));
        found.extend(projections::faults(rows).iter().map(Finding::warning));
        let idle = rows
            .rows
            .iter()
            .filter(|row| row.disabled && runs_all_the_same(row));
        found.extend(idle.map(|row| {
            Finding::warning(format_args!(
                "row {}: `disabled` has no effect on this part of the host; take it out of the patch",
                row.id
            ))
        }));
    }
    Composed {
        rows,
        lock: profile.lock_path(),
        found,
    }
}

/// Mounts every row side by side, and looks at what they make together. Machine
/// code is kept in `cache`, or nowhere.
pub(super) fn mounted(
    place: &Place,
    inherited: &Environment,
    composed: Composed,
    cache: Option<PathBuf>,
) -> Vec<(&'static str, Vec<Finding>)> {
    let Composed {
        rows,
        lock,
        mut found,
    } = composed;
    let Some(rows) = rows else {
        return vec![("rows", found)];
    };
    let tried = match mount(place, &rows, cache) {
        Ok(tried) => tried,
        Err(error) => {
            found.push(Finding::wrong(error));
            return vec![("rows", found)];
        }
    };
    let mut mounts: Vec<(&Row, Mounted)> = Vec::new();
    let mut offers = Vec::new();
    for (row, outcome) in tried {
        match outcome {
            Ok(mounted) => {
                found.push(Finding::ok(format_args!("row {} mounts", row.id)));
                match Offer::of(row, &mounted) {
                    Ok(None) => {}
                    Ok(Some(offer)) => {
                        found.extend(offer.routes().into_iter().filter_map(|route| {
                            let (provider, problem) = (route.provider, route.problem?);
                            Some(Finding::wrong(format_args!(
                                "provider {provider} cannot be called: {problem}"
                            )))
                        }));
                        offers.push(offer);
                    }
                    Err(reason) => {
                        found.push(Finding::wrong(format_args!("row {}: {reason}", row.id)));
                        continue;
                    }
                }
                found.extend(headers(row));
                mounts.push((row, mounted));
            }
            Err(fault) => {
                let reason = fault.text(row, &lock);
                let reason = reason
                    .strip_prefix(&format!("row {}: ", row.id))
                    .unwrap_or(&reason);
                found.push(Finding::wrong(format_args!("row {}: {reason}", row.id)));
            }
        }
    }
    vec![
        ("rows", found),
        ("model", model(place, inherited, &rows, &mounts, &offers)),
        ("tools", tools(&mounts)),
    ]
}

/// Of the headers that people wrote for a row's providers.
fn headers(row: &Row) -> Vec<Finding> {
    let keys = models::keys_in_headers(&row.config).into_iter();
    let keys = keys.map(|(provider, header)| {
        Finding::warning(format_args!(
            "provider {provider}: the header {header} holds a value itself, which is shown where the \
             provider repeats it; keep the key with `dsh credentials set NAME`, and write \
             apiKeyEnv: NAME and '{{credential}}' in its place"
        ))
    });
    keys.collect()
}

type Tried<'a> = Vec<(&'a Row, Result<Mounted, crate::unusable::Fault>)>;

fn mount<'a>(
    place: &Place,
    rows: &'a Composition,
    cache_dir: Option<PathBuf>,
) -> Result<Tried<'a>, String> {
    let runtime = runtime()?;
    let engine = Engine::new(EngineConfig {
        cache_dir,
        host_version: env!("CARGO_PKG_VERSION").to_owned(),
        home: Some(place.home.path().to_owned()),
    })
    .map_err(|error| error.to_string())?;
    let packages = Packages::at(&place.home);
    let rows: Vec<&Row> = rows.components().collect();
    let mounts = join_all(rows.iter().map(|row| mount_row(&engine, &packages, row)));
    Ok(rows.iter().copied().zip(runtime.block_on(mounts)).collect())
}

fn model(
    place: &Place,
    inherited: &Environment,
    rows: &Composition,
    mounts: &[(&Row, Mounted)],
    offers: &[Offer],
) -> Vec<Finding> {
    let row = rows.host("agent-default-model");
    let default = text(row, "provider").zip(text(row, "model"));
    let served: Vec<Served> = mounts
        .iter()
        .flat_map(|(row, mounted)| {
            mounted.grants().routes().iter().map(|route| Served {
                row: row.id.clone(),
                provider: route.provider.clone(),
                credential: route.credential.clone(),
            })
        })
        .collect();
    let env = inherited.clone().with_files(&place.cwd, place.home.path());
    let store = env.and_then(|env| CredentialStore::open(&place.home, env));
    let fault = default.and_then(|(provider, model)| {
        fault(offers, provider, model, text(row, "reasoningEffort")).unwrap_or_else(Some)
    });
    let mut found = dsh_model::check(default, &served, |name| {
        let store = store.as_ref().map_err(ToString::to_string)?;
        let found = store.resolve(name).map_err(|error| error.to_string())?;
        Ok(found.map(|(_, source)| place_of(source, place)))
    });
    if let (Some((provider, model)), Some(fault)) = (default, fault) {
        // In the place of the word that it is served.
        found.retain(|one| one.level != Level::Ok);
        found.push(Finding::wrong(format_args!(
            "row agent-default-model: {provider}/{model} cannot be called: {fault}"
        )));
    }
    found
}

/// Why a call of the default model would be refused before anything is sent.
fn fault(
    offers: &[Offer],
    provider: &str,
    model: &str,
    effort: Option<&str>,
) -> Result<Option<String>, String> {
    let of = |offer: &Offer| {
        let mut routes = offer.routes().into_iter();
        routes.find(|route| route.provider == provider)
    };
    let Some((offer, route)) = offers.iter().find_map(|one| Some((one, of(one)?))) else {
        return Ok(None);
    };
    if route.problem.is_some() {
        return Ok(route.problem);
    }
    Ok(runtime()?.block_on(offer.fault(CallConfig {
        provider: provider.to_owned(),
        model: model.to_owned(),
        reasoning_effort: effort.map(str::to_owned),
        ..CallConfig::default()
    })))
}

fn runtime() -> Result<tokio::runtime::Runtime, String> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))
}

fn tools(mounts: &[(&Row, Mounted)]) -> Vec<Finding> {
    dsh_agent::check(mounts.iter().map(|(row, mounted)| {
        let names = mounted.tools().iter().map(|tool| tool.name.as_str());
        (row.id.as_str(), names.collect())
    }))
}
