//! From a profile's name to its rows, and from rows to mounted components.
//!
//! Booting is fail-soft: a row that cannot be used costs a line on stderr and
//! that row, unless `--strict` says otherwise.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use dsh_http::Proxies;
use dsh_plugin::{Component, Engine, EngineConfig, Grants, Limits, Mounted};
use dsh_profile::launch::Boot;
use dsh_profile::{
    Composition, Environment, Home, Implementation, Inputs, Packages, Profile, Row, Scope,
    Settings, Tree,
};
use serde_json::Value;

use crate::arguments::usage;
use crate::exit::Failure;
use crate::left_out::LeftOut;
use crate::unusable::Fault;
use crate::{embedded, report, row_config};

/// What every command that composes a profile knows.
pub(crate) struct Place {
    pub(crate) home: Home,
    pub(crate) cwd: PathBuf,
}

impl Place {
    /// `chosen` is the working directory that `--cwd` names; everything else is
    /// where the process was started.
    pub(crate) fn find(chosen: Option<&Path>) -> Result<Self, Failure> {
        let started = std::env::current_dir().map_err(|error| {
            Failure::of(format_args!("cannot tell the working directory: {error}"))
        })?;
        let cwd = match chosen {
            None => started.clone(),
            // As a shell would tell it after `cd`, so that it finds the same sessions.
            Some(chosen) => std::fs::canonicalize(chosen)
                .ok()
                .filter(|path| path.is_dir())
                .ok_or_else(|| {
                    usage(format_args!(
                        "--cwd: {} is no directory; make it first",
                        chosen.display()
                    ))
                })?,
        };
        let home = Home::resolve(
            std::env::var_os("DSH_HOME").as_deref(),
            std::env::var_os("HOME").as_deref(),
            &started,
        )
        .map_err(Failure::of)?;
        Ok(Self { home, cwd })
    }
}

/// The proxies of the environment that `dsh` was started in: no file of a project chooses
/// what requests go through.
pub(crate) fn proxies() -> Proxies {
    Proxies::from_env(|name| std::env::var_os(name).map(|value| value.to_string_lossy().into()))
}

/// Everything that a boot reads, composed and evaluated.
pub(crate) struct Composed {
    pub(crate) place: Place,
    pub(crate) env: Environment,
    pub(crate) rows: Composition,
    /// What the rows were made of, to make them again when the settings change.
    pub(crate) tree: Tree,
    /// The profile's name.
    pub(crate) profile: String,
    /// The profile's `dsh.lock`, for messages.
    pub(crate) lock: PathBuf,
    pub(crate) left_out: LeftOut,
}

/// Composes a profile for booting, in the current directory or in `cwd`; what
/// is left out is reported.
pub(crate) fn compose(boot: &Boot, cwd: Option<&Path>) -> Result<Composed, Failure> {
    let process = Environment::process(std::env::vars_os());
    compose_at(Place::find(cwd)?, process, boot)
}

/// As [`compose`], at a place and with the environment of a process that are given.
pub(crate) fn compose_at(
    place: Place,
    process: Environment,
    boot: &Boot,
) -> Result<Composed, Failure> {
    // Before anything is read from it, so that a home that cannot be is one line.
    let home = place.home.path();
    std::fs::create_dir_all(home).map_err(|error| {
        Failure::of(format_args!(
            "cannot make {}: {error}; set DSH_HOME to a directory that dsh may use",
            home.display()
        ))
    })?;
    let env = process
        .with_files(&place.cwd, place.home.path())
        .map_err(Failure::of)?;
    for warning in env.warnings() {
        report::line(warning);
    }
    let settings = Settings::load(&place.home).map_err(Failure::of)?;
    let profile = Profile::open(&place.home, &boot.profile).map_err(Failure::of)?;
    let scope = if boot.safe {
        Scope::Bundles
    } else {
        Scope::All(&boot.patches)
    };
    let left_out = LeftOut::new(boot.strict);
    let tree = profile.compose(scope).map_err(Failure::of)?;
    for warning in tree.warnings() {
        left_out.note(warning)?;
    }
    let inputs = Inputs {
        env: &env,
        home: &place.home,
        settings: &settings,
        cwd: &place.cwd,
    };
    let rows = tree.rows(&inputs).map_err(Failure::of)?;
    for problem in &rows.problems {
        let row = problem.row.as_deref();
        let providers = row.map(|row| tree.providers_of(row)).unwrap_or_default();
        left_out.served(&problem.message, providers)?;
    }
    for row in rows
        .rows
        .iter()
        .filter(|row| row.disabled && runs_all_the_same(row))
    {
        left_out.note(format_args!(
            "row {}: `disabled` has no effect on this part of the host; take it out of the patch",
            row.id
        ))?;
    }
    Ok(Composed {
        place,
        env,
        rows,
        tree,
        profile: profile.name().to_owned(),
        lock: profile.lock_path(),
        left_out,
    })
}

/// Parts of the host that a row switches off. Without `sandbox-policy` the mode
/// is the narrowest.
const SWITCHES: [&str; 5] = [
    "agent-default-model",
    "headless-runner",
    "sandbox-policy",
    "session-projection",
    "session-title",
];

/// Whether disabling the row would change nothing, which whoever did it must know.
pub(crate) fn runs_all_the_same(row: &Row) -> bool {
    matches!(&row.implementation, Implementation::Host(part) if !SWITCHES.contains(&part.as_str()))
}

/// Prints the composed tree.
pub(crate) fn dump(
    profile: &str,
    patches: &[PathBuf],
    safe: bool,
    strict: bool,
) -> Result<u8, Failure> {
    let place = Place::find(None)?;
    let scope = if safe {
        Scope::Bundles
    } else {
        Scope::All(patches)
    };
    print(&place, profile, scope, strict)
}

/// Prints the bundles alone.
pub(crate) fn dump_default(profile: &str) -> Result<u8, Failure> {
    print(&Place::find(None)?, profile, Scope::Bundles, false)
}

fn print(place: &Place, profile: &str, scope: Scope<'_>, strict: bool) -> Result<u8, Failure> {
    let tree = Profile::open(&place.home, profile)
        .and_then(|profile| profile.compose(scope))
        .map_err(Failure::of)?;
    let left_out = LeftOut::new(strict);
    for warning in tree.warnings() {
        left_out.note(warning)?;
    }
    for problem in tree.problems() {
        left_out.note(&problem.message)?;
    }
    left_out.report();
    report::product(&tree.dump())
}

/// A mounted row with what the profile said of it.
pub(crate) struct Mount {
    pub(crate) row: Row,
    pub(crate) mounted: Mounted,
}

/// What a run's components run on.
pub(crate) fn engine(composed: &Composed) -> Result<Engine, Failure> {
    Engine::new(EngineConfig {
        cache_dir: Some(composed.place.home.path().join("cache")),
        host_version: env!("CARGO_PKG_VERSION").to_owned(),
        home: Some(composed.place.home.path().to_owned()),
    })
    .map_err(Failure::of)
}

/// Mounts every component row, side by side, in row order.
pub(crate) async fn mount(composed: &Composed, engine: &Engine) -> Result<Vec<Mount>, Failure> {
    let rows: Vec<&Row> = composed.rows.components().collect();
    let packages = Packages::at(&composed.place.home);
    let mounts = side_by_side(&rows, |row| mount_row(engine, &packages, row));
    let mut mounted = Vec::with_capacity(rows.len());
    for (row, mount) in rows.into_iter().zip(mounts) {
        match mount {
            Ok(component) => mounted.push(Mount {
                row: row.clone(),
                mounted: component,
            }),
            Err(fault) => composed
                .left_out
                .row(row, &fault.text(row, &composed.lock))?,
        }
    }
    Ok(mounted)
}

/// Does the same for each on as many threads as there are processors, as most of
/// it is computing; answers in their order. The caller's thread waits.
fn side_by_side<'a, T, U, F>(all: &[&'a T], work: impl Fn(&'a T) -> F + Sync) -> Vec<U>
where
    T: Sync,
    U: Send,
    F: Future<Output = U>,
{
    let runtime = tokio::runtime::Handle::current();
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let mut answers = std::thread::scope(|scope| {
        let take = || {
            let mut answers = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(one) = all.get(at) else {
                    return answers;
                };
                answers.push((at, runtime.block_on(work(one))));
            }
        };
        let threads: Vec<_> = (0..threads.min(all.len()))
            .map(|_| scope.spawn(take))
            .collect();
        let answers = threads.into_iter().map(|thread| match thread.join() {
            Ok(answers) => answers,
            Err(panic) => std::panic::resume_unwind(panic),
        });
        answers.flatten().collect::<Vec<_>>()
    });
    answers.sort_unstable_by_key(|(at, _)| *at);
    answers.into_iter().map(|(_, answer)| answer).collect()
}

/// Mounts one component row as a run does.
pub(crate) async fn mount_row(
    engine: &Engine,
    packages: &Packages,
    row: &Row,
) -> Result<Mounted, Fault> {
    let component = load(engine, packages, row).await?;
    let schema = component
        .manifest()
        .and_then(|manifest| manifest.config.schema.as_ref());
    if let Some(fault) = schema.and_then(|schema| row_config::fault(schema, &row.config)) {
        return Err(Fault::Told(fault));
    }
    let limits = Limits::of(&component, &row.limits)?;
    let row = dsh_plugin::Row {
        id: row.id.clone(),
        component,
        config: row.config.to_string(),
        grants: Grants::parse(&grants_of(row))?,
        limits,
    };
    Ok(engine.mount(row).await?)
}

/// What a row may do. The tools of an installed plugin are taken by the names that
/// were granted to it: where the lock has none, there are none. Bundles and
/// patches name what they mount themselves.
fn grants_of(row: &Row) -> Value {
    let mut grants = row.grants.clone();
    if row.plugin.is_some()
        && row.locked_grants
        && let Some(members) = grants.as_object_mut()
        && !members.contains_key("tool-names")
    {
        members.insert("tool-names".to_owned(), Value::Array(vec![]));
    }
    grants
}

async fn load(engine: &Engine, packages: &Packages, row: &Row) -> Result<Arc<Component>, Fault> {
    let Implementation::Component(source) = &row.implementation else {
        return Err(Fault::Told("it mounts no component".to_owned()));
    };
    if let Some(plugin) = &row.plugin {
        let bytes = || {
            let bytes = packages.read(&plugin.digest);
            bytes.map_err(std::io::Error::other)
        };
        return Ok(engine.load_pinned(&plugin.digest, bytes).await?);
    }
    if !source.starts_with("dsh:") {
        return engine.load_file(Path::new(source)).await.map_err(|error| {
            let text = error.to_string();
            Fault::Told(if text.contains(source) {
                text
            } else {
                format!("{source}: {text}")
            })
        });
    }
    let found = embedded::find(source).ok_or_else(|| {
        Fault::Told(format!(
            "there is no component {source} in this build; it has {}",
            embedded::names().join(", ")
        ))
    })?;
    Ok(engine.load_embedded(found.wasm, found.code).await?)
}
