//! The checkpoint of a long log: what a full read of it found out, so that reopening reads only what came since.
//!
//! A file `checkpoint` beside the log, derived from it and of no meaning without it: where its frames begin, and the fold
//! of its events ([`Fold::write`]). It is believed only when its own hash holds, it is of this very file (device and
//! inode), the log still holds the bytes that stood at the end when it was made, and every event that it names reads back
//! from a frame whose checksum holds. Else it is passed over without a word and the log is read as a whole. It may be
//! deleted at any time; a failure to write one is nothing. Only who holds the session's lock writes or uses it: readers
//! ([`crate::Store::inspect`]) read the log.
//!
//! What lies between the frames named in it is not read again on reopening, so damage there shows when somebody asks for
//! an event of it: as an error, never as another event (see [`crate::archive`]).
//!
//! It is not synced: a torn one has another hash.

use std::collections::HashMap;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::{Archive, Event, Fold, Header, StretchScanner};

use crate::archive::FrameArchive;
use crate::frame::{self, QuickDecoder};
use crate::layout::Compression;
use crate::log_file::{Tail, tmp_name};
use crate::scan::{header, header_frame};
use crate::storage::{self, Storage};
use crate::survey::{FrameIndex, Survey, survey, threads};

/// The file's name. Upstream looks at `session.jsonl*` alone.
pub(crate) const FILE: &str = "checkpoint";
/// The version is part of it: a checkpoint of another one is none.
const MAGIC: &[u8; 16] = b"dsh-checkpoint-1";
/// Smaller logs are read as quickly as a checkpoint of theirs.
const SMALLEST: u64 = if cfg!(test) { 2048 } else { 1 << 20 };
/// A checkpoint is written anew when the log has grown by so much behind it.
const STEP: u64 = if cfg!(test) { 512 } else { 64 * 1024 };
/// A checkpoint larger than this is none of ours.
const LARGEST: u64 = 1 << 30;
/// So many bytes of the log hold its header; else there is no checkpoint.
const HEADER: u64 = 64 * 1024;

/// A log as its checkpoint and what came since say.
pub(crate) struct Reopened {
    pub(crate) survey: Survey,
    pub(crate) end: Tail,
    pub(crate) file: (u64, u64),
    /// How far the checkpoint itself went.
    covered: u64,
}

/// The checkpoint of a log that was just surveyed and that `end` is the end of, where it is worth one.
pub(crate) fn encode(survey: &Survey, end: &Tail, file: (u64, u64)) -> Option<Vec<u8>> {
    if end.len < SMALLEST {
        return None;
    }
    let mut bytes = MAGIC.to_vec();
    for number in [file.0, file.1, end.len, survey.index.end.1] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    put(&mut bytes, &end.last);
    put(&mut bytes, survey.header.line().as_bytes());
    let frames = survey.index.frames.iter();
    let frames: Vec<u8> = frames
        .flat_map(|(offset, seq)| [offset.to_le_bytes(), seq.to_le_bytes()].concat())
        .collect();
    put(&mut bytes, &frames);
    if !survey.fold.write(&mut bytes) {
        return None;
    }
    let hash = blake3::hash(&bytes);
    bytes.extend_from_slice(hash.as_bytes());
    Some(bytes)
}

/// Writes a checkpoint. A failure is nothing.
pub(crate) fn keep(storage: &dyn Storage, log: &Path, bytes: &[u8]) {
    let (tmp, path) = paths(log);
    let _ = storage::replace(storage, &tmp, &path, bytes);
}

fn put(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// The name that a checkpoint is written under, and its own.
fn paths(log: &Path) -> (PathBuf, PathBuf) {
    let path = log.with_file_name(FILE);
    (tmp_name(&path), path)
}

/// Cuts a number off.
fn number(bytes: &mut &[u8]) -> Option<u64> {
    let (number, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    Some(u64::from_le_bytes(*number))
}

/// Cuts off what [`put`] put.
fn take<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = usize::try_from(number(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(taken)
}

/// Reads the checkpoint of a log and what the log has behind it; `None` when there is none that fits.
pub(crate) fn read(storage: &Arc<dyn Storage>, log: &Path) -> Option<Reopened> {
    if Compression::of(log) != Compression::Zstd {
        return None;
    }
    let (_, path) = paths(log);
    let bytes = read_at(&**storage, &path, 0, LARGEST).ok()?;
    let (content, hash) = bytes.split_last_chunk::<32>()?;
    if blake3::hash(content) != *hash {
        return None;
    }
    let mut rest = content.strip_prefix(MAGIC)?;
    let rest = &mut rest;
    let file = (number(rest)?, number(rest)?);
    let (covered, events) = (number(rest)?, number(rest)?);
    let (last, line, frames) = (take(rest)?, take(rest)?, take(rest)?);

    let meta = storage.metadata(log).ok()?;
    if (meta.revision.0, meta.revision.1) != file || meta.len < covered {
        return None;
    }
    let header = stored_header(&**storage, log)?;
    if header.line().as_bytes() != line {
        return None;
    }
    // The end that the checkpoint is of, and what was written since, in one look.
    let from = covered.checked_sub(last.len() as u64)?;
    let grown = read_at(&**storage, log, from, meta.len - from).ok()?;
    let added = grown.strip_prefix(last)?;
    let frames = frames.as_chunks::<8>().0.as_chunks::<2>().0;
    let frames = frames
        .iter()
        .map(|[offset, seq]| (u64::from_le_bytes(*offset), u64::from_le_bytes(*seq)));
    let index = FrameIndex {
        frames: frames.collect(),
        end: (covered, events),
    };
    if !index.is_sound() {
        return None;
    }
    let archive = FrameArchive::new(storage.clone(), log, file, index.clone());
    let mut find = |seq| -> Option<Arc<Event>> {
        let piece = archive.piece(seq).ok()?;
        let at = usize::try_from(seq.0.checked_sub(piece.first.0)?).ok()?;
        piece.events.get(at).cloned()
    };
    let seed_length = header.seed_length.unwrap_or(0);
    let fold =
        Fold::read(rest, seed_length, &mut find).filter(|fold| fold.next_seq().0 == events)?;
    let mut survey = Survey {
        header,
        fold,
        kept: HashMap::new(),
        index,
    };
    go_on(&mut survey, added, covered)?;
    Some(Reopened {
        survey,
        end: Tail {
            len: meta.len,
            ..Tail::default().after(&grown)
        },
        file,
        covered,
    })
}

/// Up to `length` bytes from `offset` on.
fn read_at(storage: &dyn Storage, path: &Path, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut file = storage.open_read(path)?;
    file.seek(io::SeekFrom::Start(offset))?;
    let mut bytes = Vec::new();
    file.take(length).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The header of a log, from its first bytes.
fn stored_header(storage: &dyn Storage, log: &Path) -> Option<Header> {
    let bytes = read_at(storage, log, 0, HEADER).ok()?;
    let end = frame::first(&bytes).ok()??;
    header(&header_frame(&bytes[..end]).ok()?).ok()
}

/// Folds the frames behind a checkpoint.
fn go_on(survey: &mut Survey, added: &[u8], from: u64) -> Option<()> {
    let structure = frame::scan(added);
    if structure.torn.is_some() || structure.invalid.is_some() {
        return None;
    }
    let mut decoder = QuickDecoder::new().ok()?;
    let mut lines = StretchScanner::new(survey.header.id.clone());
    for frame in &structure.complete {
        let plaintext = decoder.decode(&added[frame.start..frame.end])?;
        if plaintext.is_empty() {
            continue;
        }
        let stretch = lines.read(plaintext, true)?;
        survey
            .index
            .frames
            .push((from + frame.start as u64, stretch.first.0));
        if !survey.fold.take(stretch, &mut survey.kept) {
            return None;
        }
    }
    survey.index.end = (from + added.len() as u64, survey.fold.next_seq().0);
    Some(())
}

/// Brings the checkpoint of a log up to its end, where that is worth it. For whoever holds the lock and is about to give
/// it back. Never fails.
pub(crate) fn refresh(storage: &Arc<dyn Storage>, log: &Path, end: &Tail) {
    if end.len < SMALLEST || Compression::of(log) != Compression::Zstd {
        return;
    }
    if let Some(known) = read(storage, log) {
        if known.end == *end
            && end.len - known.covered >= STEP
            && let Some(bytes) = encode(&known.survey, end, known.file)
        {
            keep(&**storage, log, &bytes);
        }
        return;
    }
    let Ok(meta) = storage.metadata(log) else {
        return;
    };
    let Ok(bytes) = storage::read(&**storage, log) else {
        return;
    };
    if Tail::default().after(&bytes) == *end
        && let Some(survey) = survey(&bytes, threads(bytes.len()), &mut ())
        && let Some(bytes) = encode(&survey, end, (meta.revision.0, meta.revision.1))
    {
        keep(&**storage, log, &bytes);
    }
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
