//! The writing end of one session.

use std::path::Path;
use std::sync::Arc;

use dsh_session::{Event, Seq};

use crate::StoreError;

/// Writes one session's log behind its back. `Send + Sync`; share it in an `Arc`.
///
/// Events are queued and written as batches; only [`Writer::flush`] says that they are
/// durable. Dropping it writes what is queued (blocking) and gives the lock back.
pub struct Writer {
    _private: (),
}

impl Writer {
    /// Queues the next event. Never blocks on the disk.
    ///
    /// # Errors
    /// [`StoreError::Sequence`] when the event does not continue the log, [`StoreError::Closed`], and
    /// what stopped the writer for good ([`StoreError::TailChanged`], [`StoreError::AlreadyExists`]).
    pub fn enqueue(&self, event: Arc<Event>) -> Result<(), StoreError> {
        let _ = event;
        todo!()
    }

    /// Waits until everything that is queued, also meanwhile, is durable. Writes at once.
    ///
    /// # Errors
    /// Why it could not be written; the events stay queued and a later flush tries again.
    pub async fn flush(&self) -> Result<(), StoreError> {
        todo!()
    }

    /// [`Writer::flush`] for callers outside a runtime.
    ///
    /// # Errors
    /// As [`Writer::flush`].
    pub fn flush_blocking(&self) -> Result<(), StoreError> {
        todo!()
    }

    /// Flushes, then gives the lock back. Later calls fail with [`StoreError::Closed`].
    ///
    /// # Errors
    /// As [`Writer::flush`]; the writer stays open then.
    pub async fn close(&self) -> Result<(), StoreError> {
        todo!()
    }

    /// Where the log is or will be.
    pub fn path(&self) -> &Path {
        todo!()
    }

    /// The seq that the first event that is not yet durable has.
    pub fn durable_seq(&self) -> Seq {
        todo!()
    }

    /// Why background writing is paused, if it is.
    pub fn paused(&self) -> Option<StoreError> {
        todo!()
    }
}
