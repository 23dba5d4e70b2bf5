//! One unit over one log: its state, and how far it has come.
//!
//! The state changes only when a fold is over, so a caller who gives up in the
//! middle of one leaves the cell as it was.

use std::sync::Arc;

use dsh_session::projection::Row;
use dsh_session::{Event, Json, Seq};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::unit::{Fault, Stretch, Unit};

/// How often a fold is tried: the third failure puts a component's row out of use.
const TRIES: u32 = 3;

pub(super) struct Cell {
    pub(super) unit: Arc<dyn Unit>,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    state: Option<Json>,
    /// The first event that is not in the state.
    next: u64,
    /// What is shown of the state, once somebody has asked.
    view: Option<Json>,
    /// Whether the state is a cached one that nothing was folded into yet. A fault
    /// of one is not the log's.
    cached: bool,
    /// Why there is no value any more.
    fault: Option<Fault>,
}

impl Inner {
    fn as_of(&self) -> Option<Seq> {
        self.next.checked_sub(1).map(Seq)
    }
}

/// How far a cell has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum At {
    /// Everything before this is in its state.
    Next(u64),
    /// It has no value, and will not have one.
    Never,
}

/// A state that may be stored.
pub(super) struct Checkpoint {
    pub(super) row: Row,
    pub(super) view: Json,
}

impl Cell {
    pub(super) fn new(unit: Arc<dyn Unit>) -> Self {
        Self {
            unit,
            inner: Mutex::default(),
        }
    }

    /// Goes on from a cached state, if nothing was folded yet.
    pub(super) async fn restore(&self, row: Row) {
        let mut inner = self.inner.lock().await;
        if inner.state.is_none() && inner.next == 0 && inner.fault.is_none() {
            inner.next = row.as_of.map_or(0, |seq| seq.0 + 1);
            inner.state = Some(row.state);
            inner.cached = true;
        }
    }

    pub(super) async fn at(&self) -> At {
        let inner = self.inner.lock().await;
        match inner.fault {
            Some(_) => At::Never,
            None => At::Next(inner.next),
        }
    }

    /// Folds what is new to it of a piece of the log, which begins at `first`.
    ///
    /// # Errors
    /// [`Fault::Cancelled`]; any other fault is kept.
    pub(super) async fn take(
        &self,
        first: u64,
        events: &[Arc<Event>],
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let mut inner = self.inner.lock().await;
        let end = first + events.len() as u64;
        // Somebody else may have brought it further, or begun anew.
        if inner.fault.is_some() || inner.next >= end || inner.next < first {
            return Ok(());
        }
        let new = &events[usize::try_from(inner.next - first).unwrap_or(0)..];
        let read = |event: &&Arc<Event>| self.unit.reads(&event.kind);
        let new: Vec<Arc<Event>> = new.iter().filter(read).cloned().collect();
        let last = end.checked_sub(1).map(Seq);
        if new.is_empty() && !self.unit.sees_all() {
            inner.next = end;
            return Ok(());
        }
        self.fold(&mut inner, &new, last, cancel).await
    }

    async fn fold(
        &self,
        inner: &mut Inner,
        events: &[Arc<Event>],
        end: Option<Seq>,
        cancel: &CancellationToken,
    ) -> Result<(), Fault> {
        let mut tries = 0;
        loop {
            tries += 1;
            let stretch = Stretch {
                state: inner.state.as_ref(),
                as_of: inner.as_of(),
                events,
                end,
                cancel,
            };
            match self.unit.fold(stretch).await {
                Ok(state) => {
                    if inner.state.as_ref() != Some(&state) {
                        inner.view = None;
                    }
                    inner.state = Some(state);
                    inner.next = end.map_or(0, |seq| seq.0 + 1);
                    inner.cached = false;
                    return Ok(());
                }
                Err(Fault::Cancelled) => return Err(Fault::Cancelled),
                // From the start, without it: the caller sees how far that is.
                Err(Fault::NoValue(_) | Fault::Failed(_)) if inner.cached => {
                    *inner = Inner::default();
                    return Ok(());
                }
                Err(Fault::Failed(_)) if tries < TRIES => {}
                Err(fault) => {
                    inner.state = None;
                    inner.view = None;
                    inner.fault = Some(fault);
                    return Ok(());
                }
            }
        }
    }

    /// The view of the state as it is; none where there is no value.
    pub(super) async fn view(&self, cancel: &CancellationToken) -> Option<Json> {
        Some(self.checkpoint(cancel).await?.view)
    }

    /// The state as it is, with its view; none where there is no value.
    pub(super) async fn checkpoint(&self, cancel: &CancellationToken) -> Option<Checkpoint> {
        let mut inner = self.inner.lock().await;
        if inner.fault.is_some() {
            return None;
        }
        if inner.state.is_none() {
            let end = inner.as_of();
            self.fold(&mut inner, &[], end, cancel).await.ok()?;
        }
        let state = inner.state.clone()?;
        let as_of = inner.as_of();
        if inner.view.is_none() {
            match self.unit.view(&state, as_of, cancel).await {
                Ok(view) => inner.view = Some(view),
                Err(fault @ Fault::Out(_)) => {
                    inner.fault = Some(fault);
                    return None;
                }
                Err(Fault::NoValue(_) | Fault::Failed(_)) if inner.cached => {
                    *inner = Inner::default();
                    return None;
                }
                Err(_) => return None,
            }
        }
        Some(Checkpoint {
            row: Row {
                version: self.unit.version(),
                as_of,
                state,
            },
            view: inner.view.clone()?,
        })
    }

    /// Why there is no value.
    pub(super) async fn fault(&self) -> Option<Fault> {
        self.inner.lock().await.fault.clone()
    }
}
