//! Finding a session's files by its id: every project directory may hold it (spec/session.md §9.7).

use std::io;
use std::path::{Path, PathBuf};

use crate::StoreError;
use crate::layout::{self, Compression};
use crate::storage::{self, Storage};
use crate::walk::projects;

/// Everything below a root that claims an id.
#[derive(Debug, Default)]
pub(crate) struct Located {
    /// Logs of the root's encoding.
    pub(crate) own: Vec<PathBuf>,
    /// Logs of the other encoding.
    pub(crate) other: Vec<PathBuf>,
    /// Files of the older layout, directly in a project directory.
    pub(crate) flat: Vec<PathBuf>,
}

/// Looks for an id in every project directory.
pub(crate) fn locate(
    storage: &dyn Storage,
    root: &Path,
    id: &str,
    compression: Compression,
) -> Result<Located, StoreError> {
    let segment = layout::encode_segment(id)?;
    let mut located = Located::default();
    for project in projects(storage, root)? {
        let dir = project.join(&segment);
        // One look tells for nearly all of many projects.
        if storage::exists(storage, &dir)
            .or_else(not_a_directory)
            .map_err(StoreError::io("look for", &dir))?
        {
            for (encoding, list) in [
                (compression, &mut located.own),
                (compression.other(), &mut located.other),
            ] {
                let path = dir.join(encoding.file_name());
                if storage::exists(storage, &path)
                    .or_else(not_a_directory)
                    .map_err(StoreError::io("look for", &path))?
                {
                    list.push(path);
                }
            }
        }
        for suffix in [".jsonl", ".jsonl.zstd"] {
            let path = project.join(format!("{segment}{suffix}"));
            let file = match storage.metadata(&path) {
                Ok(meta) => !meta.is_dir,
                Err(e) if e.kind() == io::ErrorKind::NotFound => false,
                Err(e) => not_a_directory(e).map_err(StoreError::io("look for", &path))?,
            };
            if file {
                located.flat.push(path);
            }
        }
    }
    Ok(located)
}

/// A file where a session's directory would be is no session; an id too long for a file name neither.
fn not_a_directory(e: io::Error) -> io::Result<bool> {
    match e.kind() {
        io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => Ok(false),
        _ => Err(e),
    }
}

impl Located {
    /// The one log that may be opened for writing; `None` when nothing claims the id.
    pub(crate) fn only(
        &self,
        id: &str,
        compression: Compression,
    ) -> Result<Option<&Path>, StoreError> {
        let refuse = |reason: String| {
            Err(StoreError::Layout {
                id: id.to_owned(),
                reason,
            })
        };
        if let Some(flat) = self.flat.first() {
            return refuse(format!(
                "{} lies directly in a project directory, an older layout; move it into a directory of its own",
                flat.display()
            ));
        }
        if let Some(other) = self.other.first() {
            return refuse(format!(
                "{} has another encoding than this store ({}); open it with the matching compression",
                other.display(),
                compression.file_name()
            ));
        }
        match self.own.as_slice() {
            [] => Ok(None),
            [one] => Ok(Some(one)),
            [one, two, ..] => refuse(format!(
                "it is there twice, at {} and {}; move one away",
                one.display(),
                two.display()
            )),
        }
    }
}
