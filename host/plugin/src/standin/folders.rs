//! The grant `dir`: folders of this machine, for components that are ordinary
//! programs.
//!
//! A folder is opened once, when its row is mounted, and held: what is put in its
//! place later is another folder. One that is `$DSH_HOME`, lies in it or holds it
//! is refused, to read as to change, since keys, logs and other plugins' data are
//! there. Inside of a folder no path leads out of it, links included.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags};

use crate::component::Description;
use crate::error::Error;
use crate::grants::DirGrant;

/// A folder that was granted, held open.
pub(crate) struct Folder {
    /// As the grant has it, which is its name inside, too.
    pub(crate) path: String,
    pub(crate) write: bool,
    file: File,
}

impl Folder {
    /// A path to the folder that is held, whatever its name leads to now.
    pub(super) fn held(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.file.as_raw_fd()))
    }
}

/// Opens what a row was granted. `home` is `$DSH_HOME`.
///
/// # Errors
/// A folder that is not there, is none, or is too near to `home`.
pub(crate) fn open(
    row: &str,
    component: &Description,
    grants: &[DirGrant],
    home: Option<&Path>,
) -> Result<Vec<Folder>, Error> {
    let uses = component
        .imports
        .iter()
        .any(|import| import.name().starts_with("wasi:filesystem/"));
    if !uses || grants.is_empty() {
        return Ok(vec![]);
    }
    // Without links, as what is opened is asked for too.
    let home = home.map(|home| home.canonicalize().unwrap_or_else(|_| home.to_owned()));
    let home = home.as_deref();
    grants
        .iter()
        .map(|grant| {
            open_one(grant, home).map_err(|reason| Error::Folder {
                row: row.to_owned(),
                path: grant.path.clone(),
                reason,
            })
        })
        .collect()
}

fn open_one(grant: &DirGrant, home: Option<&Path>) -> Result<Folder, String> {
    let flags = OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::RDONLY;
    let file = rustix::fs::open(&grant.path, flags, Mode::empty())
        .map_err(|error| format!("it cannot be opened: {error}"))?;
    let folder = Folder {
        path: grant.path.clone(),
        write: grant.write,
        file: file.into(),
    };
    // Of what was opened, not of what its name leads to by now.
    let real = std::fs::read_link(folder.held())
        .map_err(|error| format!("it cannot be told which folder it is: {error}"))?;
    match home {
        Some(home) if !apart(&real, home) => Err(format!(
            "it is, holds or lies in dsh's own folder {}, which no plugin may see",
            home.display()
        )),
        _ => Ok(folder),
    }
}

/// Whether neither of two absolute paths without links lies in the other.
pub(super) fn apart(one: &Path, other: &Path) -> bool {
    !one.starts_with(other) && !other.starts_with(one)
}
