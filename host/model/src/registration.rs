//! Who added which routes, and may change them. `spec/llm.md` §3.2.
//!
//! A registration is replaced as a whole: what is new is checked first, with its own
//! old routes counted as free, and put in place in one step. A call that was prepared
//! holds its route, so it ends as it began.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use crate::adapter::Adapter;
use crate::error::ModelError;
use crate::models::Entry;
use crate::outgoing::RouteGrant;
use crate::route::Route;

/// All routes, in order of registration.
#[derive(Default)]
pub(crate) struct Entries {
    all: RwLock<Vec<Arc<Entry>>>,
    next: AtomicU64,
}

/// The routes that one [`Models::register`](crate::Models::register) added.
pub struct Registration {
    entries: Arc<Entries>,
    id: u64,
    disposed: AtomicBool,
}

impl Entries {
    pub(crate) fn all(&self) -> Vec<Arc<Entry>> {
        self.all
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    pub(crate) fn add(
        self: &Arc<Self>,
        adapter: &Arc<dyn Adapter>,
        grants: &[RouteGrant],
    ) -> Result<Registration, ModelError> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let new = read(id, adapter, grants)?;
        if new.is_empty() {
            return Err(ModelError::InvalidAdapter(String::from(
                "it serves no route",
            )));
        }
        self.put(id, new)?;
        Ok(self.registration(id))
    }

    pub(crate) fn place(self: &Arc<Self>) -> Registration {
        self.registration(self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn registration(self: &Arc<Self>, id: u64) -> Registration {
        Registration {
            entries: Arc::clone(self),
            id,
            disposed: AtomicBool::new(false),
        }
    }

    /// Puts these in the place of what the registration had: behind all earlier ones.
    fn put(&self, id: u64, new: Vec<Arc<Entry>>) -> Result<(), ModelError> {
        let mut all = self.all.write().unwrap_or_else(PoisonError::into_inner);
        let taken = |entry: &&Arc<Entry>| {
            let others = all.iter().filter(|other| other.registration != id);
            let mut names = others.map(|other| &other.route.provider);
            names.any(|name| *name == entry.route.provider)
        };
        if let Some(entry) = new.iter().find(taken) {
            return Err(ModelError::DuplicateAdapter {
                route: entry.route.provider.clone(),
            });
        }
        all.retain(|entry| entry.registration != id);
        let later = all.iter().position(|entry| entry.registration > id);
        let at = later.unwrap_or(all.len());
        all.splice(at..at, new);
        Ok(())
    }
}

/// An adapter's routes with their grants, checked among themselves.
fn read(
    registration: u64,
    adapter: &Arc<dyn Adapter>,
    grants: &[RouteGrant],
) -> Result<Vec<Arc<Entry>>, ModelError> {
    let mut new: Vec<Arc<Entry>> = Vec::new();
    for text in adapter.list_routes() {
        let route = Route::parse(&text)?;
        let grant = grants
            .iter()
            .find(|grant| grant.provider == route.provider)
            .cloned();
        if new
            .iter()
            .any(|entry| entry.route.provider == route.provider)
        {
            return Err(ModelError::DuplicateAdapter {
                route: route.provider,
            });
        }
        new.push(Arc::new(Entry {
            route,
            grant,
            adapter: Arc::clone(adapter),
            registration,
        }));
    }
    Ok(new)
}

impl Registration {
    /// Puts other routes in the place of those that it has, all or none; they may be
    /// another adapter's, and there may be none.
    ///
    /// # Errors
    /// [`ModelError::RegistrationDisposed`], [`ModelError::InvalidAdapter`],
    /// [`ModelError::DuplicateAdapter`]; then nothing changed.
    pub fn replace(
        &self,
        adapter: impl Adapter + 'static,
        grants: &[RouteGrant],
    ) -> Result<(), ModelError> {
        if self.disposed.load(Ordering::Acquire) {
            return Err(ModelError::RegistrationDisposed);
        }
        let adapter: Arc<dyn Adapter> = Arc::new(adapter);
        self.entries.put(self.id, read(self.id, &adapter, grants)?)
    }

    /// Takes its routes away; calls that were prepared run to their end.
    pub fn dispose(&self) {
        self.disposed.store(true, Ordering::Release);
        // Nothing is new, so nothing can be taken.
        let _ = self.entries.put(self.id, Vec::new());
    }
}

impl std::fmt::Debug for Registration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Registration")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "registration_tests.rs"]
mod tests;
