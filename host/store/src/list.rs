//! Listing by headers alone: 8 KiB of a file are normally enough, and no event is read.
//!
//! Where upstream lets one bad session fail or vanish from the whole list, each is an entry of its own here, a header
//! or a damage (spec/session.md §9.7).

use std::collections::HashMap;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::Header;

use crate::layout::{self, Compression};
use crate::load::{Place, check_identity};
use crate::locate::projects;
use crate::scan::{NO_HEADER, corrupt, header, header_frame};
use crate::storage::{ReadSeek, Storage};
use crate::{Damage, DamageClass, Stage, StoreError, frame};

/// How much is read at a time.
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
            Err(_) => {
                let name = self.path.file_name()?.to_str()?;
                let is_log = [Compression::None, Compression::Zstd]
                    .iter()
                    .any(|c| c.file_name() == name);
                let segment = if is_log {
                    self.path.parent()?.file_name()?.to_str()?
                } else {
                    name.strip_suffix(".zstd")
                        .unwrap_or(name)
                        .strip_suffix(".jsonl")?
                };
                layout::decode_segment(segment).map(Into::into)
            }
        }
    }
}

fn damage(class: DamageClass, stage: Stage, reason: String) -> Damage {
    Damage {
        class,
        stage,
        offset: None,
        seq: None,
        reason,
    }
}

fn unreadable(e: &std::io::Error) -> Damage {
    damage(DamageClass::Unreadable, Stage::Open, e.to_string())
}

/// Lists a root.
pub(crate) fn list(
    storage: &dyn Storage,
    root: &Path,
    compression: Compression,
) -> Result<Vec<Entry>, StoreError> {
    let mut entries = Vec::new();
    for project in projects(storage, root)? {
        match storage.read_dir(&project) {
            Ok(names) => entries.extend(
                names
                    .iter()
                    .flat_map(|name| in_project(storage, root, name, compression)),
            ),
            Err(e) => entries.push(entry(storage, &project, Err(unreadable(&e)))),
        }
    }
    mark_duplicates(&mut entries);
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(entries)
}

fn entry(storage: &dyn Storage, path: &Path, header: Result<Header, Damage>) -> Entry {
    let meta = storage.metadata(path).ok();
    Entry {
        path: path.to_owned(),
        bytes: meta.map_or(0, |m| m.len),
        modified_ms: meta.map_or(0, |m| m.modified_ms),
        header,
    }
}

/// What one name in a project directory stands for: a session's logs, a file of the older layout, or nothing.
fn in_project(
    storage: &dyn Storage,
    root: &Path,
    name: &Path,
    compression: Compression,
) -> Vec<Entry> {
    let is_dir = match storage.metadata(name) {
        Ok(meta) => meta.is_dir,
        Err(_) => return Vec::new(),
    };
    if !is_dir {
        let text = name.to_string_lossy();
        if !text.ends_with(".jsonl") && !text.ends_with(".jsonl.zstd") {
            return Vec::new();
        }
        let reason = "a log directly in a project directory, an older layout; move it into a directory of its own";
        return vec![entry(
            storage,
            name,
            Err(damage(DamageClass::Layout, Stage::Open, reason.to_owned())),
        )];
    }
    let mut entries = Vec::new();
    for encoding in [compression, compression.other()] {
        let path = name.join(encoding.file_name());
        match storage.open_read(&path) {
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => entries.push(entry(storage, &path, Err(unreadable(&e)))),
            Ok(_) if encoding != compression => {
                let reason = format!(
                    "its encoding is not this store's ({})",
                    compression.file_name()
                );
                entries.push(entry(
                    storage,
                    &path,
                    Err(damage(DamageClass::Layout, Stage::Open, reason)),
                ));
            }
            Ok(mut file) => {
                let header = read_header(&mut *file, encoding)
                    .and_then(|header| identified(storage, root, &path, header, encoding));
                entries.push(entry(storage, &path, header));
            }
        }
    }
    entries
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

/// Reads on until the first line, or the first frame, is complete.
fn read_header(file: &mut dyn ReadSeek, compression: Compression) -> Result<Header, Damage> {
    let mut bytes = Vec::new();
    loop {
        let before = bytes.len();
        file.take(STEP as u64)
            .read_to_end(&mut bytes)
            .map_err(|e| unreadable(&e))?;
        match compression {
            Compression::None => {
                if let Some(end) = bytes[before..].iter().position(|&b| b == b'\n') {
                    return header(&bytes[..before + end]);
                }
            }
            Compression::Zstd => {
                let frames = frame::scan(&bytes);
                if let Some(first) = frames.complete.first() {
                    return header(&header_frame(&bytes[first.start..first.end])?);
                }
                if let Some(at) = frames.invalid {
                    return Err(corrupt(at.offset as u64, None, at.reason));
                }
            }
        }
        if bytes.len() == before {
            return Err(corrupt(0, None, NO_HEADER));
        }
        if bytes.len() > MAX_HEADER {
            return Err(corrupt(
                0,
                None,
                format!("no header within the first {MAX_HEADER} bytes"),
            ));
        }
    }
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
            let reason = format!(
                "session {:?} is there more than once; move one away",
                &*header.id
            );
            entry.header = Err(damage(DamageClass::Identity, Stage::Identity, reason));
        }
    }
}
