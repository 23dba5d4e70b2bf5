//! The document read: never one that others may read.

use super::document::{self, Refs};
use super::{Stamp, Version};
use crate::{Error, file};
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// The open file, where there is one; one that others may read is an error.
pub(super) fn open(path: &Path) -> Result<Option<(File, Metadata)>, Error> {
    let file = match file::open_regular(path) {
        Ok(file) => file,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(Error::io("read", path, e)),
    };
    // Of the open file, so that what is checked is what is read.
    let metadata = file.metadata().map_err(|e| Error::io("read", path, e))?;
    let mode = mode_of(&metadata);
    if mode & 0o077 != 0 {
        return Err(Error::CredentialsMode {
            path: path.to_owned(),
            mode,
        });
    }
    Ok(Some((file, metadata)))
}

pub(super) fn load(path: &Path) -> Result<(Stamp, Refs), Error> {
    let Some((file, metadata)) = open(path)? else {
        return Ok((None, Refs::new()));
    };
    let text = file::read_open(file).map_err(|e| Error::io("read", path, e))?;
    let refs = match file::document(path, &text)? {
        Some(root) => document::refs(&root).map_err(|fault| file::at(path, fault))?,
        None => Refs::new(),
    };
    Ok((Some(stamp_of(&metadata)), refs))
}

pub(super) fn stamp_of(metadata: &Metadata) -> Version {
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(metadata);
    #[cfg(not(unix))]
    let number = 0;
    (
        metadata.modified().ok(),
        metadata.len(),
        mode_of(metadata),
        number,
    )
}

/// Permission bits; none where the system has no such thing.
fn mode_of(metadata: &Metadata) -> u32 {
    #[cfg(unix)]
    return std::os::unix::fs::PermissionsExt::mode(&metadata.permissions()) & 0o777;
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}
