//! The cold part of a long log: events that are decoded from their frame when somebody asks.
//!
//! A frame is read again as it was read first: its checksum must hold, its lines must be sound and continue the log, and
//! there must be as many events as the index says. A file that was changed meanwhile gives an error, never other events.

use std::collections::VecDeque;
use std::io::{Read, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use dsh_session::scan::LineScanner;
use dsh_session::{Archive, Error, Event, Piece, Seq, Stored};

use crate::frame;
use crate::storage::{ReadSeek, Storage};
use crate::survey::FrameIndex;

/// So many decoded frames stay in memory: neighbours are mostly asked for together.
const CACHED: usize = 4;

/// The events of a file of frames, up to where it ended when it was opened.
pub(crate) struct FrameArchive {
    storage: Arc<dyn Storage>,
    path: PathBuf,
    /// Device and inode of the file that the index is of.
    file: (u64, u64),
    index: FrameIndex,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    open: Option<Box<dyn ReadSeek>>,
    cache: VecDeque<Piece>,
}

impl FrameArchive {
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        path: &Path,
        file: (u64, u64),
        index: FrameIndex,
    ) -> Self {
        Self {
            storage,
            path: path.to_owned(),
            file,
            index,
            state: Mutex::default(),
        }
    }

    fn read(&self, state: &mut State, seq: Seq) -> Result<Piece, String> {
        let (bytes, first, count) = self.index.find(seq.0).ok_or("it is in no frame")?;
        let io = |e: std::io::Error| e.to_string();
        if state.open.is_none() {
            let revision = self.storage.metadata(&self.path).map_err(io)?.revision;
            if (revision.0, revision.1) != self.file {
                return Err("the file was replaced by another".to_owned());
            }
            state.open = Some(self.storage.open_read(&self.path).map_err(io)?);
        }
        let file = state.open.as_mut().ok_or("it is not open")?;
        file.seek(SeekFrom::Start(bytes.start)).map_err(io)?;
        let mut encoded = Vec::new();
        let length = bytes.end - bytes.start;
        file.take(length).read_to_end(&mut encoded).map_err(io)?;
        let plaintext = frame::decode(&encoded, frame::MAX_FRAME_PLAINTEXT).map_err(io)?;
        let mut lines = LineScanner::new(first);
        for line in plaintext.split_inclusive(|&b| b == b'\n') {
            let line = line.strip_suffix(b"\n").ok_or("its last line has no end")?;
            if !matches!(lines.line(line), Ok(true)) {
                return Err("a line of it is not what it was".to_owned());
            }
        }
        let events: Option<Arc<[Arc<Event>]>> = lines
            .into_events()
            .into_iter()
            .map(|stored| match stored {
                Stored::Sound(event) => Some(event),
                Stored::Odd { .. } => None,
            })
            .collect();
        match events.filter(|events| events.len() as u64 == count) {
            Some(events) => Ok(Piece {
                first: Seq(first),
                events,
            }),
            None => Err("its events are not what they were".to_owned()),
        }
    }
}

impl Archive for FrameArchive {
    fn end(&self) -> Seq {
        Seq(self.index.end.1)
    }

    fn piece(&self, seq: Seq) -> Result<Piece, Error> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let holds = |piece: &&Piece| {
            let end = piece.first.0 + piece.events.len() as u64;
            (piece.first.0..end).contains(&seq.0)
        };
        if let Some(piece) = state.cache.iter().find(holds) {
            return Ok(piece.clone());
        }
        let piece = self
            .read(&mut state, seq)
            .map_err(|reason| Error::Archive {
                seq,
                reason: format!("{}: {reason}", self.path.display()),
            })?;
        state.cache.truncate(CACHED - 1);
        state.cache.push_front(piece.clone());
        Ok(piece)
    }
}

#[cfg(test)]
#[path = "archive_tests.rs"]
mod tests;
