//! Listing by headers alone: the first kilobyte of a file is normally enough, and no event is read. A session costs
//! four system calls (open, fstat, read, close) and one look for a log of the other encoding.
//!
//! Where upstream lets one bad session fail or vanish from the whole list, each is an entry of its own here, a header
//! or a damage (spec/session.md §9.7).

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::Header;

use crate::layout::{self, Compression};
use crate::load::{Place, check_identity};
use crate::scan::{NO_HEADER, corrupt, header, header_frame};
use crate::storage::{ReadSeek, Storage};
use crate::walk::{
    Spot, all_spots, damage, encoding_damage, flat_damage, parallel, twice, unreadable,
};
use crate::{Damage, DamageClass, Stage, StoreError, frame};

/// How many sessions a thread takes at a time.
const CHUNK: usize = 32;
/// How much is read first; a header needs a few hundred bytes.
const FIRST: usize = 1024;
/// How much is read at a time when that was not enough.
const STEP: usize = 8 * 1024;
/// A header longer than this is none; the file is not read on in search of its end.
const MAX_HEADER: usize = 1024 * 1024;

/// One stored session, or what stands where one should be.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The log.
    pub path: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// When it was last written, epoch milliseconds.
    pub modified_ms: i64,
    /// Its header, or why it cannot be opened.
    pub header: Result<Header, Damage>,
}

impl Entry {
    /// The session's id: the header's, else the one that the directory's name stands for.
    pub fn id(&self) -> Option<Arc<str>> {
        match &self.header {
            Ok(header) => Some(header.id.clone()),
            Err(_) => layout::id_of_path(&self.path).map(Into::into),
        }
    }
}

/// Lists a root.
pub(crate) fn list(
    storage: &dyn Storage,
    root: &Path,
    compression: Compression,
) -> Result<Vec<Entry>, StoreError> {
    let spots = all_spots(storage, root)?;
    let listing = Listing {
        storage,
        root,
        compression,
    };
    let entries = parallel(&spots, CHUNK, Reader::default, |reader, spot| {
        listing.at(reader, spot)
    });
    let mut entries: Vec<Entry> = entries.into_iter().flatten().collect();
    mark_duplicates(&mut entries);
    Ok(entries)
}

struct Listing<'a> {
    storage: &'a dyn Storage,
    root: &'a Path,
    compression: Compression,
}

impl Listing<'_> {
    /// What one place stands for: a session's logs, or what cannot be one.
    fn at(&self, reader: &mut Reader, spot: &Spot) -> Vec<Entry> {
        match spot {
            Spot::Flat(path) => vec![self.entry(path, Err(flat_damage()))],
            Spot::Unreadable(path, e) => vec![self.entry(path, Err(unreadable(e)))],
            Spot::Dir(dir) => {
                let mut found = Vec::with_capacity(1);
                for encoding in [Compression::None, Compression::Zstd] {
                    let path = dir.join(encoding.file_name());
                    if encoding == self.compression {
                        found.extend(self.own(reader, path));
                    } else if self.storage.metadata(&path).is_ok() {
                        found.push(self.entry(&path, Err(encoding_damage(self.compression))));
                    }
                }
                found
            }
        }
    }

    fn entry(&self, path: &Path, header: Result<Header, Damage>) -> Entry {
        let meta = self.storage.metadata(path).ok();
        Entry {
            path: path.to_owned(),
            bytes: meta.map_or(0, |m| m.len),
            modified_ms: meta.map_or(0, |m| m.modified_ms),
            header,
        }
    }

    /// A log of this root's encoding; nothing when there is none.
    fn own(&self, reader: &mut Reader, path: PathBuf) -> Option<Entry> {
        let (mut file, meta) = match self.storage.open_read_meta(&path) {
            Ok(opened) => opened,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return None,
            Err(e) => return Some(self.entry(&path, Err(unreadable(&e)))),
        };
        let header = reader
            .header(&mut *file, self.compression)
            .and_then(|header| {
                identified(self.storage, self.root, &path, header, self.compression)
            });
        Some(Entry {
            path,
            bytes: meta.len,
            modified_ms: meta.modified_ms,
            header,
        })
    }
}

/// A header that a session can have, in its place.
fn identified(
    storage: &dyn Storage,
    root: &Path,
    path: &Path,
    header: Header,
    compression: Compression,
) -> Result<Header, Damage> {
    if let Err(e) = header.check() {
        return Err(Damage {
            class: e.class().into(),
            stage: Stage::Interpret,
            offset: Some(0),
            seq: None,
            reason: e.to_string(),
        });
    }
    match check_identity(
        storage,
        path,
        &header,
        Place { root, id: None },
        compression,
    ) {
        Ok(None) => Ok(header),
        Ok(Some(damage)) => Err(damage),
        Err(e) => Err(damage(
            DamageClass::Identity,
            Stage::Identity,
            e.to_string(),
        )),
    }
}

/// Reads headers, one after the other, with what can be used again.
#[derive(Default)]
struct Reader {
    bytes: Vec<u8>,
    plaintext: Vec<u8>,
    context: zstd::bulk::Decompressor<'static>,
}

impl Reader {
    /// Reads on until the first line, or the first frame, is complete.
    fn header(
        &mut self,
        file: &mut dyn ReadSeek,
        compression: Compression,
    ) -> Result<Header, Damage> {
        let mut filled = 0;
        let mut step = FIRST;
        loop {
            if self.bytes.len() < filled + step {
                self.bytes.resize(filled + step, 0);
            }
            let got = match file.read(&mut self.bytes[filled..filled + step]) {
                Ok(got) => got,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(unreadable(&e)),
            };
            let before = filled;
            filled += got;
            let bytes = &self.bytes[..filled];
            match compression {
                Compression::None => {
                    if let Some(end) = bytes[before..].iter().position(|&b| b == b'\n') {
                        return header(&bytes[..before + end]);
                    }
                }
                Compression::Zstd => match frame::first(bytes) {
                    Ok(Some(end)) => {
                        let line = decoded(&mut self.context, &mut self.plaintext, &bytes[..end]);
                        return match line {
                            Some(line) => header(line),
                            None => header(&header_frame(&bytes[..end])?),
                        };
                    }
                    Ok(None) => {}
                    Err(at) => return Err(corrupt(at.offset as u64, None, at.reason)),
                },
            }
            if got == 0 {
                return Err(corrupt(0, None, NO_HEADER));
            }
            if filled > MAX_HEADER {
                return Err(corrupt(
                    0,
                    None,
                    format!("no header within the first {MAX_HEADER} bytes"),
                ));
            }
            step = STEP;
        }
    }
}

/// The line of a header frame as every writer of this format makes it, without setting up a decoder anew; whatever is
/// not just that is for [`header_frame`] to judge.
fn decoded<'a>(
    context: &mut zstd::bulk::Decompressor<'static>,
    plaintext: &'a mut Vec<u8>,
    frame: &[u8],
) -> Option<&'a [u8]> {
    if !frame.starts_with(&frame::HEAD) {
        return None;
    }
    plaintext.clear();
    plaintext.reserve(STEP);
    context.decompress_to_buffer(frame, plaintext).ok()?;
    let line = plaintext.strip_suffix(b"\n")?;
    (!line.contains(&b'\n')).then_some(line)
}

/// An id that is there twice names nothing.
fn mark_duplicates(entries: &mut [Entry]) {
    let mut seen: HashMap<Arc<str>, usize> = HashMap::new();
    for entry in entries.iter() {
        if let Ok(header) = &entry.header {
            *seen.entry(header.id.clone()).or_default() += 1;
        }
    }
    for entry in entries {
        if let Ok(header) = &entry.header
            && seen[&header.id] > 1
        {
            entry.header = Err(twice(&header.id));
        }
    }
}
