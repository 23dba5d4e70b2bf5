//! The rows of the profile as a run would have them, for commands that look at them.

use std::collections::HashMap;
use std::path::PathBuf;

use dsh_plugin::Mounted;
use dsh_profile::{Composition, Environment, Inputs, Packages, Profile, Row, Scope, Settings};
use futures_util::future::join_all;

use super::{Desk, Stop};
use crate::boot;

/// A row, and it mounted, or why it cannot be.
pub(super) type Mount<'a> = (&'a Row, Result<Mounted, String>);

/// A composed profile. Nothing is reported: what was left out is in `composition.problems`.
pub(super) struct Rows {
    pub(super) composition: Composition,
    /// Where the profile's lock is.
    lock: PathBuf,
}

impl Rows {
    /// Composes what a run without `--patch` would have.
    pub(super) fn compose(desk: &Desk) -> Result<Self, Stop> {
        let place = &desk.place;
        let profile = Profile::open(&place.home, &desk.name).map_err(Stop::of)?;
        let tree = profile.compose(Scope::All(&[])).map_err(Stop::of)?;
        let env = Environment::process(std::env::vars_os())
            .with_files(&place.cwd, place.home.path())
            .map_err(Stop::of)?;
        let settings = Settings::load(&place.home).map_err(Stop::of)?;
        let inputs = Inputs {
            env: &env,
            home: &place.home,
            settings: &settings,
            cwd: &place.cwd,
        };
        let composition = tree.rows(&inputs).map_err(Stop::of)?;
        Ok(Self {
            composition,
            lock: profile.lock_path(),
        })
    }

    /// Mounts each enabled component row as a run would, with why where it cannot be.
    pub(super) fn mount(&self, desk: &Desk) -> Result<Vec<Mount<'_>>, Stop> {
        let engine = desk.engine()?;
        let rows: Vec<&Row> = self.composition.components().collect();
        let packages = Packages::at(&desk.place.home);
        let mounts = rows
            .iter()
            .map(|row| boot::mount_row(&engine, &packages, row));
        let mounts = desk.wait(join_all(mounts));
        let mut names = Names::default();
        let told = rows.into_iter().zip(mounts).map(|(row, mount)| {
            let mount = mount.map_err(|fault| fault.text(row, &self.lock));
            let mount = mount.and_then(|mount| match names.take(&row.id, &mount) {
                Some(clash) => Err(clash),
                None => Ok(mount),
            });
            (row, mount)
        });
        Ok(told.collect())
    }
}

/// Names that a run gives to the first row that brings them.
#[derive(Default)]
struct Names {
    tools: HashMap<String, String>,
    providers: HashMap<String, String>,
}

impl Names {
    /// Takes a row's names; why it is left out where one is taken.
    fn take(&mut self, id: &str, mount: &Mounted) -> Option<String> {
        let tools = mount.tools().iter().map(|tool| tool.name.clone());
        take(&mut self.tools, id, tools, "tool").or_else(|| {
            let providers = mount.routes().iter().filter_map(|route| provider(route));
            take(&mut self.providers, id, providers, "provider")
        })
    }
}

fn take(
    taken: &mut HashMap<String, String>,
    id: &str,
    names: impl Iterator<Item = String>,
    what: &str,
) -> Option<String> {
    let mut clash = None;
    for name in names {
        match taken.get(&name) {
            Some(other) => {
                clash = Some(format!("its {what} {name} is one of row {other} already"));
            }
            None => drop(taken.insert(name, id.to_owned())),
        }
    }
    clash
}

/// The provider of a route.
pub(super) fn provider(route: &str) -> Option<String> {
    let route: serde_json::Value = serde_json::from_str(route).ok()?;
    Some(route.get("provider")?.as_str()?.to_owned())
}
