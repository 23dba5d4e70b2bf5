//! The routes of a run, kept as `settings.yaml` has them.
//!
//! Before a call is prepared the document's stamp is compared, which costs one `stat`.
//! Where it changed, the rows are evaluated again over the same layers, and an adapter
//! whose row came out different is mounted anew and put in the old one's place as a
//! whole: the next request sees the change, and a stream that runs keeps what it began
//! with. A document that cannot be read, or a row that cannot be mounted as it says,
//! costs a line, and what was last good stays (`spec/llm.md` §6.1, §8).
//!
//! Nothing but routes changes in a run: which model a session uses was chosen at its
//! start, and the other sections are read by the next one.

use std::collections::HashSet;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use dsh_model::{Gateway, ModelError, Models, Refresh, Registration};
use dsh_plugin::Engine;
use dsh_profile::{
    Composition, Environment, Home, Inputs, Packages, Row, Settings, Tree, Unserved,
};

use crate::boot::{Composed, Mount, mount_row};
use crate::exit::Failure;
use crate::models::{self, Nobody, Offer};
use crate::report;

/// The same routes twice: for the loop, and for calls beside it, which have adapter
/// instances of their own.
pub(crate) struct Routes {
    pub(crate) main: Arc<Models>,
    pub(crate) auxiliary: Arc<Models>,
}

/// Registers what the mounts serve. What is left out is noted.
pub(crate) fn routes(
    composed: &Composed,
    engine: &Engine,
    mounts: &[Mount],
    gateway: &Arc<Gateway>,
) -> Result<Routes, Failure> {
    let live = Arc::new(Live::of(composed, engine));
    let models = || {
        let refresh: Arc<dyn Refresh> = Arc::<Live>::clone(&live);
        Arc::new(Models::new(Arc::clone(gateway)).refreshed_by(refresh))
    };
    let routes = Routes {
        main: models(),
        auxiliary: models(),
    };
    let mut state = State {
        nobody: Place::of(&routes),
        seats: Vec::new(),
        told: HashSet::new(),
        routes: [
            Arc::downgrade(&routes.main),
            Arc::downgrade(&routes.auxiliary),
        ],
    };
    for row in &composed.rows.rows {
        let place = match mounts.iter().find(|mount| mount.row.id == row.id) {
            None if row.dormant => Place::of(&routes),
            None => continue,
            Some(mount) => match Place::taken(&routes, mount) {
                Ok(Some(place)) => place,
                Ok(None) => continue,
                Err(reason) => {
                    composed.left_out.row(row, &reason)?;
                    continue;
                }
            },
        };
        state.seats.push(Seat {
            row: row.clone(),
            place,
        });
    }
    state.nobody(&composed.rows.unserved);
    let problems = models::problems(&routes.main);
    state
        .told
        .extend(problems.into_iter().map(|(_, what)| what));
    let taken = composed.rows.unserved.iter();
    let taken = taken.filter(|one| one.taken_by.is_some());
    state.told.extend(taken.map(ToString::to_string));
    *live.state.try_lock().map_err(Failure::of)? = Some(state);
    Ok(routes)
}

struct Live {
    document: PathBuf,
    home: Home,
    cwd: PathBuf,
    env: Environment,
    tree: Tree,
    /// The profile's lock, for messages.
    lock: PathBuf,
    engine: Engine,
    /// Of the document that was read last.
    stamp: Mutex<Option<Stamp>>,
    state: tokio::sync::Mutex<Option<State>>,
}

/// Tells whether a file was changed: written anew, or another one in its place.
type Stamp = (u64, i64, i64, u64);

struct State {
    seats: Vec<Seat>,
    /// Of providers that no row serves.
    nobody: Place,
    /// Problems of routes that a person has read.
    told: HashSet<String>,
    routes: [std::sync::Weak<Models>; 2],
}

/// A row that serves routes, or would if it had any.
struct Seat {
    row: Row,
    place: Place,
}

/// What a row has registered, for the loop and for calls beside it.
struct Place([Registration; 2]);

impl Place {
    fn of(routes: &Routes) -> Self {
        Self([routes.main.place(), routes.auxiliary.place()])
    }

    /// With what a mount serves; none where it is no adapter.
    fn taken(routes: &Routes, mount: &Mount) -> Result<Option<Self>, String> {
        let register = |models: &Models| match Offer::of(&mount.row, &mount.mounted)? {
            None => Ok(None),
            Some(offer) => models
                .register(offer.adapter, &offer.grants)
                .map(Some)
                .map_err(|error| error.to_string()),
        };
        let pair = register(&routes.main)?.zip(register(&routes.auxiliary)?);
        Ok(pair.map(|(main, auxiliary)| Self([main, auxiliary])))
    }

    fn replace(&self, mount: &Mount) -> Result<(), String> {
        for registration in &self.0 {
            if let Some(offer) = Offer::of(&mount.row, &mount.mounted)? {
                let replaced = registration.replace(offer.adapter, &offer.grants);
                replaced.map_err(|error| error.to_string())?;
            }
        }
        Ok(())
    }

    fn empty(&self) -> Result<(), ModelError> {
        self.0
            .iter()
            .try_for_each(|registration| registration.replace(Nobody::default(), &[]))
    }
}

impl State {
    fn nobody(&self, unserved: &[Unserved]) {
        // What it had is free for it, and whoever serves one of them now comes first.
        let _ = self.nobody.empty();
        for (registration, models) in self.nobody.0.iter().zip(&self.routes) {
            if let Some(models) = models.upgrade() {
                let _ = registration.replace(Nobody::serves(unserved, &models), &[]);
            }
        }
    }

    /// Says what is wrong with routes now and was not before.
    fn tell(&mut self, unserved: &[Unserved]) {
        for one in unserved.iter().filter(|one| one.taken_by.is_some()) {
            if self.told.insert(one.to_string()) {
                report::line(one);
            }
        }
        let Some(models) = self.routes[0].upgrade() else {
            return;
        };
        for (provider, problem) in models::problems(&models) {
            if self.told.insert(problem.clone()) {
                report::line(format_args!(
                    "provider {provider} cannot be called: {problem}"
                ));
            }
        }
    }
}

impl Live {
    fn of(composed: &Composed, engine: &Engine) -> Self {
        let document = composed.place.home.path().join("settings.yaml");
        Self {
            stamp: Mutex::new(stamp(&document)),
            document,
            home: composed.place.home.clone(),
            cwd: composed.place.cwd.clone(),
            env: composed.env.clone(),
            tree: composed.tree.clone(),
            lock: composed.lock.clone(),
            engine: engine.clone(),
            state: tokio::sync::Mutex::new(None),
        }
    }

    fn is_new(&self) -> bool {
        let now = stamp(&self.document);
        let mut last = self.stamp.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *last, now) != now
    }

    fn rows(&self) -> Result<Composition, dsh_profile::Error> {
        let settings = Settings::load(&self.home)?;
        self.tree.rows(&Inputs {
            env: &self.env,
            home: &self.home,
            settings: &settings,
            cwd: &self.cwd,
        })
    }

    async fn take_up(&self, state: &mut State) {
        let rows = match self.rows() {
            Ok(rows) => rows,
            Err(error) => {
                report::line(format_args!(
                    "the settings were changed and cannot be used, so those before stay: {error}"
                ));
                return;
            }
        };
        for seat in &mut state.seats {
            let Some(row) = rows.rows.iter().find(|row| row.id == seat.row.id) else {
                continue;
            };
            if *row == seat.row || row.disabled {
                continue;
            }
            match self.seated(&seat.place, row).await {
                Ok(()) => seat.row = row.clone(),
                Err(reason) => report::line(format_args!(
                    "row {}: the settings were changed and it cannot follow them, so it goes on as before: {reason}",
                    row.id
                )),
            }
        }
        state.nobody(&rows.unserved);
        state.tell(&rows.unserved);
    }

    async fn seated(&self, place: &Place, row: &Row) -> Result<(), String> {
        if row.dormant {
            return place.empty().map_err(|error| error.to_string());
        }
        let packages = Packages::at(&self.home);
        let mounted = mount_row(&self.engine, &packages, row).await;
        let mounted = mounted.map_err(|fault| fault.text(row, &self.lock))?;
        place.replace(&Mount {
            row: row.clone(),
            mounted,
        })
    }
}

#[async_trait]
impl Refresh for Live {
    async fn refresh(&self) {
        if !self.is_new() {
            // One that is being taken up is waited for: what it changes counts for
            // this call too.
            drop(self.state.lock().await);
            return;
        }
        let mut state = self.state.lock().await;
        if let Some(state) = state.as_mut() {
            self.take_up(state).await;
        }
    }
}

/// None where there is no such file.
fn stamp(path: &std::path::Path) -> Option<Stamp> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.ino(), meta.mtime(), meta.mtime_nsec(), meta.len()))
}
