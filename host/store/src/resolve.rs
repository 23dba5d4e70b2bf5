//! From what a person wrote to an id: the whole id, the beginning of one, or `last`.
//!
//! Only names of directories are read. What a name promises is not checked here: opening the session does that.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::StoreError;
use crate::layout::{self, Compression};
use crate::locate::locate;
use crate::storage::Storage;
use crate::walk::{Spot, all_spots};

/// The word for the newest session.
pub const LAST: &str = "last";
/// How every minted id begins; people write what comes after.
const MINTED: &str = "session-";
/// How many candidates an error names.
const SHOWN: usize = 8;

/// The id that `text` means: exactly that one, else the one whose part after `session-` it is, else the only one that
/// begins so, with or without `session-`.
pub(crate) fn resolve(
    storage: &dyn Storage,
    root: &Path,
    compression: Compression,
    text: &str,
) -> Result<Arc<str>, StoreError> {
    if names_a_session(storage, root, compression, text)? {
        return Ok(text.into());
    }
    let minted = format!("{MINTED}{text}");
    if !text.is_empty() && names_a_session(storage, root, compression, &minted)? {
        return Ok(minted.into());
    }
    let mut found = BTreeSet::new();
    for spot in all_spots(storage, root)? {
        let Spot::Dir(dir) = spot else { continue };
        let name = dir.file_name().and_then(|name| name.to_str());
        let Some(id) = name.and_then(layout::decode_segment) else {
            continue;
        };
        let tail = id.strip_prefix(MINTED);
        if !id.starts_with(text) && !tail.is_some_and(|tail| tail.starts_with(text)) {
            continue;
        }
        // A directory without a log is no session: a first write that failed leaves one.
        let logs = [compression, compression.other()].map(|c| dir.join(c.file_name()));
        if logs.iter().any(|log| storage.metadata(log).is_ok()) {
            found.insert(id);
        }
    }
    let more = found.len().saturating_sub(SHOWN);
    match found.len() {
        0 => Err(StoreError::NotFound {
            id: text.to_owned(),
            root: root.to_owned(),
        }),
        1 => Ok(found.pop_first().unwrap_or_default().into()),
        _ => Err(StoreError::Ambiguous {
            text: text.to_owned(),
            candidates: found.into_iter().take(SHOWN).collect(),
            more,
        }),
    }
}

fn names_a_session(
    storage: &dyn Storage,
    root: &Path,
    compression: Compression,
    id: &str,
) -> Result<bool, StoreError> {
    match locate(storage, root, id, compression) {
        Ok(located) => {
            Ok(!(located.own.is_empty() && located.other.is_empty() && located.flat.is_empty()))
        }
        // A text that is too long for a name, or empty, may still be the beginning of an id, or is none.
        Err(StoreError::EmptyName { .. }) => Ok(false),
        Err(StoreError::Io { source, .. }) if source.kind() == io::ErrorKind::InvalidFilename => {
            Ok(false)
        }
        Err(e) => Err(e),
    }
}

#[cfg(test)]
#[path = "resolve_tests.rs"]
mod tests;
