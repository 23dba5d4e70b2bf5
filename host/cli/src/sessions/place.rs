//! Where the sessions are: as the profile `headless` has it, whose sessions they are, and below `$DSH_HOME` where that
//! profile says nothing or cannot be read. Nothing is made on the way.

use std::borrow::Cow;
use std::path::PathBuf;

use dsh_profile::{Composition, Environment, Inputs, PluginData, Profile, Scope, Settings};
use dsh_store::Store;
use dsh_store::projcache::{ProjectionCache, Records};

use crate::boot::Place;
use crate::exit::Failure;
use crate::{open, report};

/// The stored sessions, and the directory that the command was started in.
pub(super) struct Sessions {
    pub(super) store: Store,
    started: PathBuf,
    home: PathBuf,
    data: PluginData,
}

impl Sessions {
    pub(super) fn open() -> Result<Self, Failure> {
        let place = Place::find(None)?;
        let rows = composed(&place).unwrap_or_else(|failure| {
            report::line(format_args!(
                "{}; looking for sessions in {} all the same",
                failure.message(),
                place.home.path().join("sessions").display()
            ));
            None
        });
        let row = rows.as_ref().and_then(|rows| rows.host(open::ROW));
        Ok(Self {
            store: open::store(row, place.home.path())?,
            home: place.home.path().to_owned(),
            data: PluginData::at(&place.home),
            started: place.cwd,
        })
    }

    /// Takes what is remembered of a log out of the projection cache, before events are taken out of the log: a state
    /// that knows events which are gone would be believed.
    pub(super) fn forget(&self, id: &str) {
        let forgotten = ProjectionCache::open(&self.home).and_then(|cache| cache.remove(id));
        if let Err(error) = forgotten {
            report::line(format_args!("{}: {error}", error.code()));
        }
    }

    /// What is remembered of all sessions' views. No log is looked at for it, and a cache that cannot be read is a line.
    pub(super) fn views(&self) -> Records {
        ProjectionCache::at(&self.home)
            .read()
            .unwrap_or_else(|error| {
                report::line(format_args!("{}: {error}", error.code()));
                Records::default()
            })
    }

    /// Removes what plugins kept for a session that is gone.
    pub(super) fn forget_data(&self, id: &str) {
        if let Err(error) = self.data.forget_session(id) {
            report::line(error);
        }
    }

    /// The working directory, as a header has it.
    pub(super) fn cwd(&self) -> Cow<'_, str> {
        self.started.to_string_lossy()
    }
}

/// The rows of the profile that one-shot runs use, where there is one.
fn composed(place: &Place) -> Result<Option<Composition>, Failure> {
    let Some(profile) = Profile::find(&place.home, "headless").map_err(Failure::of)? else {
        return Ok(None);
    };
    let tree = profile.compose(Scope::All(&[])).map_err(Failure::of)?;
    let env = Environment::process(std::env::vars_os())
        .with_files(&place.cwd, place.home.path())
        .map_err(Failure::of)?;
    let settings = Settings::load(&place.home).map_err(Failure::of)?;
    let inputs = Inputs {
        env: &env,
        home: &place.home,
        settings: &settings,
        cwd: &place.cwd,
    };
    tree.rows(&inputs).map(Some).map_err(Failure::of)
}
