//! The rows of the profile as a run would have them, for commands that look at them.

use std::path::PathBuf;

use dsh_plugin::Mounted;
use dsh_profile::{Composition, Environment, Inputs, Packages, Profile, Row, Scope, Settings};
use futures_util::future::join_all;

use super::{Desk, Stop};
use crate::boot;

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
    pub(super) fn mount(&self, desk: &Desk) -> Result<Vec<(&Row, Result<Mounted, String>)>, Stop> {
        let engine = desk.engine()?;
        let rows: Vec<&Row> = self.composition.components().collect();
        let packages = Packages::at(&desk.place.home);
        let mounts = rows
            .iter()
            .map(|row| boot::mount_row(&engine, &packages, row));
        let mounts = desk.wait(join_all(mounts));
        let told = rows.into_iter().zip(mounts).map(|(row, mount)| {
            let mount = mount.map_err(|fault| fault.text(row, &self.lock));
            (row, mount)
        });
        Ok(told.collect())
    }
}
