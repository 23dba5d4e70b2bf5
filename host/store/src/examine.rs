//! Reading a log for a report: what [`Store::inspect`] gives, and the hashes by which two readers compare what they
//! decoded.
//!
//! The hashes are of the stored events, before older shapes are upgraded: one line an event, and the same lines with
//! runs of chunks packed (spec/session.md §7).

use std::sync::Arc;

use dsh_session::{Event, Kind, Stored, rows};
use sha2::{Digest, Sha256};

use crate::load::{Inspection, Target};
use crate::{Store, StoreError};

/// A log with the hashes of its sound prefix.
#[derive(Debug, Clone)]
pub struct Report {
    /// What was read.
    pub inspection: Inspection,
    /// SHA-256, in lower-case hex, of the stored events with runs of chunks packed.
    pub packed_sha256: String,
    /// SHA-256, in lower-case hex, of the stored events, a line each.
    pub unpacked_sha256: String,
}

impl Store {
    /// [`Store::inspect`] with hashes. Changes nothing.
    ///
    /// # Errors
    /// As [`Store::inspect`].
    pub fn report(&self, target: &Target) -> Result<Report, StoreError> {
        let loaded = self.read(target)?;
        let mut hashes = Hashes::default();
        let sound = loaded.inspection.log.len();
        loaded
            .stored_to(sound, &mut |stored| hashes.add(stored))
            .map_err(|source| StoreError::Session {
                id: loaded.inspection.header.id.to_string(),
                source,
            })?;
        let (packed_sha256, unpacked_sha256) = hashes.finish();
        Ok(Report {
            inspection: loaded.inspection,
            packed_sha256,
            unpacked_sha256,
        })
    }
}

/// Both hashes, fed event by event.
#[derive(Default)]
pub(crate) struct Hashes {
    packed: Sha256,
    unpacked: Sha256,
    /// Chunks that may become one row; no row goes over another kind of event.
    run: Vec<Arc<Event>>,
    text: String,
}

impl Hashes {
    pub(crate) fn add(&mut self, stored: &Stored) {
        self.text.clear();
        stored.write_line(&mut self.text);
        self.text.push('\n');
        self.unpacked.update(&self.text);
        match stored.event() {
            Some(event) if event.kind == Kind::AssistantChunk => self.run.push(event.clone()),
            _ => {
                let line = std::mem::take(&mut self.text);
                self.end_run();
                self.packed.update(&line);
                self.text = line;
            }
        }
    }

    fn end_run(&mut self) {
        self.text.clear();
        rows::write_batch(&self.run, true, &mut self.text);
        self.packed.update(&self.text);
        self.run.clear();
    }

    /// Packed and unpacked.
    pub(crate) fn finish(mut self) -> (String, String) {
        self.end_run();
        (hex(self.packed), hex(self.unpacked))
    }
}

fn hex(hasher: Sha256) -> String {
    use std::fmt::Write as _;
    hasher.finalize().iter().fold(String::new(), |mut out, b| {
        let _ = write!(out, "{b:02x}");
        out
    })
}
