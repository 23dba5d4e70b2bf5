//! Which values there are. `spec/session.md` §10.2.

use std::sync::Arc;

use dsh_session::projection::{ContextBreakdown, Title};
use dsh_store::projcache::made;

use super::native::HostUnit;
use super::unit::Unit;

/// The units, in the order of their registration.
#[derive(Default)]
pub struct Registry {
    units: Vec<Registered>,
}

struct Registered {
    unit: Arc<dyn Unit>,
    /// How often it was registered.
    count: usize,
}

/// What became of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It folds the key.
    First,
    /// Another one of its version does, which was there before; so many share it.
    Shared(usize),
}

impl Registry {
    /// Those that the host folds itself.
    #[must_use]
    pub fn host() -> Self {
        let units: [Arc<dyn dsh_session::projection::Unit>; 2] =
            [Arc::new(Title), Arc::new(ContextBreakdown)];
        let units = units.map(|unit| Registered {
            unit: Arc::new(HostUnit(unit)),
            count: 1,
        });
        Self {
            units: units.into(),
        }
    }

    /// Adds a unit. Where its key is there in its version, the one that was there
    /// goes on to fold it.
    ///
    /// # Errors
    /// A key that is taken by another version, or is none: what to do about it, for
    /// people.
    pub fn register(&mut self, unit: Arc<dyn Unit>) -> Result<Taken, String> {
        let key = unit.key();
        if made::is_key(key) {
            return Err(format!(
                "it folds {key:?}, and names of that kind are the cache's own; give the value another name"
            ));
        }
        let known = self.units.iter_mut().find(|known| known.unit.key() == key);
        match known {
            None => {
                self.units.push(Registered { unit, count: 1 });
                Ok(Taken::First)
            }
            Some(known) if known.unit.version() == unit.version() => {
                known.count += 1;
                Ok(Taken::Shared(known.count))
            }
            Some(known) => Err(format!(
                "it folds {key:?} in version {}, and another row or the host does in version {}; \
                 disable one of the two",
                unit.version(),
                known.unit.version()
            )),
        }
    }

    pub(super) fn into_units(self) -> impl Iterator<Item = Arc<dyn Unit>> {
        self.units.into_iter().map(|known| known.unit)
    }
}
