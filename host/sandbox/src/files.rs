//! Reading: metadata, slices of files, directories. Reads are free but for
//! what the fence keeps to `dsh` itself.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{FileType, Stat};

use crate::error::Error;
use crate::fence::{Fence, canonical, may_volunteer};
use crate::mode::Mode;
use crate::observe::WritePolicy;
use crate::resolve::{absolute, pin};
use dsh_plugin::port::{DirEntry, FileKind, Metadata, Slice};

/// Bytes of one slice, however many were asked for.
const MAX_SLICE: usize = 16 << 20;

/// Entries of a directory that are listed at once.
const MAX_ENTRIES: usize = 100_000;

/// The files of an agent's session. Every method blocks.
pub(crate) struct Files {
    pub(crate) fence: Fence,
    pub(crate) mode: Arc<dyn Fn() -> Mode + Send + Sync>,
    pub(crate) policy: Arc<dyn WritePolicy>,
    /// Whether reading a file counts as the session's having read it.
    pub(crate) observed: bool,
}

impl Files {
    pub(crate) fn absolute(&self, path: &str) -> Result<PathBuf, Error> {
        absolute(&self.fence.root, path)
    }

    pub(crate) fn stat(&self, path: &str) -> Result<Metadata, Error> {
        Ok(metadata(&pin(&self.fence, &self.absolute(path)?)?.stat))
    }

    pub(crate) fn read(&self, path: &str, offset: u64, limit: u32) -> Result<Slice, Error> {
        let asked = self.absolute(path)?;
        match self.slice(&asked, offset, limit) {
            Ok((path, slice)) => {
                if self.observed {
                    self.policy.observed(&path, Some(&slice.metadata.version));
                } else {
                    self.volunteer(&asked, path)?;
                }
                Ok(slice)
            }
            Err(error) => {
                if self.observed && matches!(error, Error::NotFound(_)) {
                    self.observe_absence(&asked);
                }
                Err(error)
            }
        }
    }

    /// Reads without anybody's having read it; with the file's canonical path.
    pub(crate) fn slice(
        &self,
        asked: &Path,
        offset: u64,
        limit: u32,
    ) -> Result<(PathBuf, Slice), Error> {
        let pinned = pin(&self.fence, asked)?;
        if pinned.file_type() != FileType::RegularFile {
            return Err(Error::NotRegularFile(pinned.path));
        }
        let file = pinned.open()?;
        // From before the bytes: a change while they are read makes the version
        // stale rather than the content wrong.
        let stat = rustix::fs::fstat(&file).map_err(|errno| Error::io(&pinned.path, errno))?;
        let content =
            slice(&file, offset, limit as usize).map_err(|error| Error::io(&pinned.path, error))?;
        Ok((
            pinned.path,
            Slice {
                content,
                metadata: metadata(&stat),
            },
        ))
    }

    /// Refuses what a link leads to and nobody asked for.
    fn volunteer(&self, asked: &Path, reached: PathBuf) -> Result<(), Error> {
        if *asked == reached {
            return Ok(());
        }
        let root = &self.fence.root;
        let marked = |directory: &&Path| directory.join(".git").symlink_metadata().is_ok();
        let project = root.ancestors().find(marked).unwrap_or(root);
        let directory = canonical(asked.parent().unwrap_or(asked));
        may_volunteer(asked, &reached, project, &directory).map_err(|reason| Error::Denied {
            path: reached,
            reason,
        })
    }

    fn observe_absence(&self, path: &Path) {
        if let Ok(place) = crate::resolve::place(path, true) {
            self.policy.observed(&place.path, None);
        }
    }

    pub(crate) fn list_dir(&self, path: &str) -> Result<Vec<DirEntry>, Error> {
        self.list_up_to(path, MAX_ENTRIES)
    }

    /// Refuses a directory of more entries.
    pub(crate) fn list_up_to(&self, path: &str, max: usize) -> Result<Vec<DirEntry>, Error> {
        let pinned = pin(&self.fence, &self.absolute(path)?)?;
        if pinned.file_type() != FileType::Directory {
            return Err(Error::NotDirectory(pinned.path));
        }
        let failed = |error| Error::io(&pinned.path, error);
        let mut entries = Vec::new();
        for entry in std::fs::read_dir(pinned.alias()).map_err(failed)? {
            if entries.len() == max {
                let what = format!("a directory of more than {max} entries");
                return Err(Error::TooLarge {
                    path: pinned.path,
                    what,
                });
            }
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            let kind = if kind.is_file() {
                FileKind::File
            } else if kind.is_dir() {
                FileKind::Directory
            } else if kind.is_symlink() {
                FileKind::Symlink
            } else {
                FileKind::Other
            };
            entries.push(DirEntry {
                name: entry.file_name().to_string_lossy().into_owned(),
                kind,
            });
        }
        entries.sort_unstable_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }
}

fn slice(file: &File, offset: u64, limit: usize) -> std::io::Result<Vec<u8>> {
    let limit = limit.min(MAX_SLICE);
    let mut content = Vec::new();
    let mut chunk = vec![0; limit.min(64 << 10)];
    while content.len() < limit {
        let want = chunk.len().min(limit - content.len());
        let Some(at) = offset.checked_add(content.len() as u64) else {
            break;
        };
        match file.read_at(&mut chunk[..want], at) {
            Ok(0) => break,
            Ok(got) => content.extend_from_slice(&chunk[..got]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            // An offset that no file reaches.
            Err(error) if error.kind() == std::io::ErrorKind::InvalidInput => break,
            Err(error) => return Err(error),
        }
    }
    Ok(content)
}

pub(crate) fn metadata(stat: &Stat) -> Metadata {
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => FileKind::File,
        FileType::Directory => FileKind::Directory,
        FileType::Symlink => FileKind::Symlink,
        _ => FileKind::Other,
    };
    Metadata {
        kind,
        size: u64::try_from(stat.st_size).unwrap_or(0),
        version: version(stat),
    }
}

/// Device, inode, size and time of the last change of content. Not the time of
/// the last change of the inode: `chmod +x` leaves the content as it was read.
pub(crate) fn version(stat: &Stat) -> String {
    format!(
        "{:x}-{:x}-{:x}-{:x}.{:x}",
        stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime, stat.st_mtime_nsec
    )
}

#[cfg(test)]
#[path = "files_tests.rs"]
pub(crate) mod tests;

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
