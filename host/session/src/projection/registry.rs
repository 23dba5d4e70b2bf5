//! Which units there are, and their states over one log. `spec/session.md` §10.2.

use std::sync::Arc;

use super::rows::seq_number;
use super::{
    ContextBreakdown, ContextPressure, Look, Row, Rows, SessionStats, State, Title, TokenUsage,
    Unit,
};
use crate::{Error, Event, Json, Kind, Seq};

/// The units, in the order of their registration.
#[derive(Clone, Default)]
pub struct Registry {
    units: Vec<Registered>,
}

#[derive(Clone)]
struct Registered {
    unit: Arc<dyn Unit>,
    /// How often it was registered.
    count: usize,
}

impl Registry {
    /// No units.
    pub fn new() -> Registry {
        Registry::default()
    }

    /// The units of this crate, in upstream's order.
    pub fn standard() -> Registry {
        let units: [Arc<dyn Unit>; 5] = [
            Arc::new(TokenUsage),
            Arc::new(ContextPressure),
            Arc::new(ContextBreakdown),
            Arc::new(SessionStats),
            Arc::new(Title),
        ];
        Registry {
            units: units.map(|unit| Registered { unit, count: 1 }).into(),
        }
    }

    /// Adds a unit. One that is there already, by key and version, is counted once more.
    ///
    /// # Errors
    /// [`Error::ProjectionVersion`] when the key is taken by another version.
    pub fn register(&mut self, unit: Arc<dyn Unit>) -> Result<(), Error> {
        let same = |known: &&mut Registered| known.unit.key() == unit.key();
        match self.units.iter_mut().find(same) {
            None => self.units.push(Registered { unit, count: 1 }),
            Some(known) if known.unit.version() == unit.version() => known.count += 1,
            Some(known) => {
                return Err(Error::ProjectionVersion {
                    key: unit.key().to_owned(),
                    registered: known.unit.version(),
                    offered: unit.version(),
                });
            }
        }
        Ok(())
    }

    /// Takes one registration back; the unit is gone with its last one.
    pub fn unregister(&mut self, key: &str) {
        if let Some(at) = self.units.iter().position(|known| known.unit.key() == key) {
            self.units[at].count -= 1;
            if self.units[at].count == 0 {
                self.units.remove(at);
            }
        }
    }

    /// The states before the first event.
    pub fn start(&self) -> Projections {
        let cells = self.units.iter().map(|known| Cell {
            unit: known.unit.clone(),
            state: Ok(known.unit.init()),
        });
        Projections::new(cells.collect(), 0)
    }

    /// The first event that [`Registry::restore`] has to see: the lowest that a row is as of, so that the log's end can
    /// be judged too; 0 when a row is missing or of another version. `None` without units.
    pub fn restore_floor(&self, rows: &Rows) -> Option<Seq> {
        let needed = self.units.iter().map(|known| {
            let row = rows.get(known.unit.key());
            let row = row.filter(|row| row.version == known.unit.version());
            row.and_then(|row| row.as_of).map_or(0, |seq| seq.0 + 1)
        });
        needed.min().map(|needed| Seq(needed.saturating_sub(1)))
    }

    /// Goes on from rows: `events` are those from `base` to the end of a log whose next seq is `next`. All states come
    /// out as of that end.
    ///
    /// # Errors
    /// [`Error::ProjectionRestore`] when a row is missing, of another version, beyond the log's end or before `base`
    /// while `base` is not 0, or when its state is malformed: read again from 0, without the rows. Errors of `events`.
    pub fn restore(
        &self,
        rows: &Rows,
        base: Seq,
        next: Seq,
        events: impl IntoIterator<Item = Result<Arc<Event>, Error>>,
    ) -> Result<Projections, Error> {
        let (lowest, end) = (before(base), before(next.max(base)));
        let mut from = Vec::with_capacity(self.units.len());
        let mut cells = Vec::with_capacity(self.units.len());
        for known in &self.units {
            let unit = known.unit.clone();
            let refuse = |what| Error::ProjectionRestore {
                key: unit.key().to_owned(),
                base,
                what,
            };
            let row = rows.get(unit.key()).filter(|row| {
                row.version == unit.version() && lowest <= row.as_of && row.as_of <= end
            });
            let state = match row {
                Some(row) => unit
                    .parse(row.state.value(), row.as_of)
                    .ok_or_else(|| refuse("its cached state is malformed"))?,
                None if base.0 > 0 => {
                    return Err(refuse(
                        "its row is missing, of another version or not within the log",
                    ));
                }
                None => unit.init(),
            };
            from.push(row.and_then(|row| row.as_of).map_or(0, |seq| seq.0 + 1));
            cells.push(Cell {
                unit,
                state: Ok(state),
            });
        }
        let mut projections = Projections::new(cells, base.0);
        for event in events {
            let event = event?;
            projections.fold_from(&event, &from, &mut |_| {});
        }
        projections.next = projections.next.max(next.0);
        Ok(projections)
    }

    /// The views of those rows that fit, as they are; as of the lowest seq among them. `None` when none fits.
    pub fn view_checkpoint(&self, rows: &Rows) -> Option<Snapshot> {
        let mut snapshot: Option<Snapshot> = None;
        for known in &self.units {
            let unit = &known.unit;
            let row = rows
                .get(unit.key())
                .filter(|row| row.version == unit.version());
            let Some(row) = row.filter(|_| unit.is_visible()) else {
                continue;
            };
            let Some(state) = unit.parse(row.state.value(), row.as_of) else {
                continue;
            };
            let snapshot = snapshot.get_or_insert_with(|| Snapshot {
                as_of: row.as_of,
                values: Vec::new(),
            });
            snapshot.as_of = snapshot.as_of.min(row.as_of);
            snapshot.values.push((unit.key().into(), state.view()));
        }
        snapshot
    }
}

/// The seq before `next`.
fn before(next: Seq) -> Option<Seq> {
    next.0.checked_sub(1).map(Seq)
}

/// One unit over one log.
struct Cell {
    unit: Arc<dyn Unit>,
    /// The state, or why there is none any more.
    state: Result<Box<dyn State>, Error>,
}

/// The states of a registry's units over one log.
pub struct Projections {
    cells: Vec<Cell>,
    /// The cells that read a kind, by [`Kind::index`]; foreign kinds come last, all together.
    routes: Vec<Vec<usize>>,
    next: u64,
}

/// A value that clients see has changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Change<'a> {
    /// Whose.
    pub key: &'a str,
    /// What it is now.
    pub value: Json,
    /// By which event.
    pub seq: Seq,
}

/// All values that clients see.
#[derive(Clone, Debug, PartialEq)]
pub struct Snapshot {
    /// The last event in them; `None` before the first one.
    pub as_of: Option<Seq>,
    /// The values by key.
    pub values: Vec<(Arc<str>, Json)>,
}

impl Snapshot {
    /// The value of a key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let found = self.values.iter().find(|(name, _)| **name == *key);
        found.map(|(_, value)| value)
    }

    /// `{asOfSeq, values}`.
    pub fn json(&self) -> Json {
        Json::object(|o| {
            o.i64("asOfSeq", seq_number(self.as_of));
            o.object("values", |o| {
                for (key, value) in &self.values {
                    o.json(key, value);
                }
            });
        })
    }
}

impl Projections {
    fn new(cells: Vec<Cell>, next: u64) -> Projections {
        let foreign = Kind::KNOWN.len();
        let mut routes = vec![Vec::new(); foreign + 1];
        for (at, cell) in cells.iter().enumerate() {
            for kind in cell.unit.reads() {
                let route: &mut Vec<usize> = &mut routes[kind.index().unwrap_or(foreign)];
                if route.last() != Some(&at) {
                    route.push(at);
                }
            }
        }
        Projections {
            cells,
            routes,
            next,
        }
    }

    /// Folds the log's next event.
    pub fn fold(&mut self, event: &Event) {
        self.fold_from(event, &[], &mut |_| {});
    }

    /// Folds the log's next event and tells what clients have to hear of it, in the order of registration.
    pub fn fold_telling(&mut self, event: &Event, mut tell: impl FnMut(Change<'_>)) {
        self.fold_from(event, &[], &mut |cell: &Cell| {
            if let (true, Ok(state)) = (cell.unit.is_visible(), &cell.state) {
                tell(Change {
                    key: cell.unit.key(),
                    value: state.view(),
                    seq: event.seq,
                });
            }
        });
    }

    /// Folds an event into the cells that have not seen it: those whose `from` is not beyond it.
    fn fold_from(&mut self, event: &Event, from: &[u64], changed: &mut dyn FnMut(&Cell)) {
        self.next = event.seq.0 + 1;
        let route = event.kind.index().unwrap_or(Kind::KNOWN.len());
        let look = Look::new(event);
        for &at in &self.routes[route] {
            let cell = &mut self.cells[at];
            let reads = event.kind.is_known() || cell.unit.reads().contains(&event.kind);
            if !reads || from.get(at).is_some_and(|from| event.seq.0 < *from) {
                continue;
            }
            let Ok(state) = &mut cell.state else {
                continue;
            };
            match state.apply(&look) {
                Ok(true) => changed(cell),
                Ok(false) => {}
                Err(fault) => cell.state = Err(fault),
            }
        }
    }

    /// The last event folded.
    pub fn as_of(&self) -> Option<Seq> {
        before(Seq(self.next))
    }

    /// Why a unit has no value in this log.
    pub fn fault(&self, key: &str) -> Option<&Error> {
        let cell = self.cells.iter().find(|cell| cell.unit.key() == key)?;
        cell.state.as_ref().err()
    }

    /// The values that clients see.
    pub fn snapshot(&self) -> Snapshot {
        let visible = self.cells.iter().filter(|cell| cell.unit.is_visible());
        Snapshot {
            as_of: self.as_of(),
            values: visible
                .filter_map(|cell| Some((cell.unit.key().into(), cell.state.as_ref().ok()?.view())))
                .collect(),
        }
    }

    /// All states, for [`Registry::restore`].
    pub fn checkpoint(&self) -> Rows {
        let mut rows = Rows::default();
        for cell in &self.cells {
            if let Ok(state) = &cell.state {
                let row = Row {
                    version: cell.unit.version(),
                    as_of: self.as_of(),
                    state: state.json(self.as_of()),
                };
                rows.set(cell.unit.key(), row);
            }
        }
        rows
    }
}
