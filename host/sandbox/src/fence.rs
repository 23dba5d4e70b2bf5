//! Where a session may write and what it may not read, as pure functions of
//! canonical paths.
//!
//! The decision knows nothing of the file system: whoever asks has resolved
//! links and `..` first (`resolve`), and asks again just before it acts. Two
//! rules stand above the mode. Nothing below `$DSH_HOME` is written, whatever
//! the workspace is; and its secrets are not read. `/proc/PID` is not read
//! either, because this process's environment and open files are in there.

use std::ffi::OsStr;
use std::fmt;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use crate::mode::Mode;
use crate::names::{self, Alias};

/// Why a path is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The mode writes nothing.
    ReadOnly,
    /// Not under the workspace or a temporary directory.
    Outside,
    /// Below `$DSH_HOME`, or a directory that holds it.
    Home,
    /// The workspace itself is not to be moved or removed.
    Root,
    /// Keys, credentials and locks of `dsh`, and what it keeps of all sessions.
    Secret,
    /// What the kernel shows of a process.
    ProcessState,
    /// Not below a directory that was granted.
    NotGranted,
    /// A link led to it, out of what it stands in, where nobody asked for it.
    LedOut,
    /// A link led to it, and its name says that it holds credentials.
    LedToSecret,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::ReadOnly => "write denied under read-only mode",
            Refusal::Outside => {
                "write denied under workspace-write mode: outside the workspace and the temporary directories"
            }
            Refusal::Home => "write denied under every mode: it would change dsh's own directory",
            Refusal::Root => "change denied under every mode: it is, or holds, the workspace's own directory",
            Refusal::Secret => "read denied under every mode: it holds credentials, keys, locks or views of sessions of dsh",
            Refusal::NotGranted => {
                "denied: the row's grant `workspace` names the directories that it may use, and this is in none of them"
            }
            Refusal::LedOut => {
                "not read before the model asks for it: a link leads there, out of the project (or out of the directory, where that is outside of it); put a file in the link's place"
            }
            Refusal::LedToSecret => {
                "not read before the model asks for it: a link leads there, and a file of this name holds credentials"
            }
            Refusal::ProcessState => {
                "read denied under every mode: it shows a process's memory, environment or open files"
            }
        })
    }
}

/// The places that a decision is about; all canonical.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fence {
    /// The session's working directory.
    pub root: PathBuf,
    /// `$DSH_HOME`.
    pub home: PathBuf,
    /// Where else it, or a part of it, is mounted.
    pub aliases: Vec<Alias>,
    /// Links on the way to it: who replaces one decides what `dsh` starts from.
    pub links: Vec<PathBuf>,
    /// `/tmp` and the operating system's own, which may be the same.
    pub temps: Vec<PathBuf>,
    /// Directories that a row's grant names: nothing else is read or written.
    /// None: the fence alone decides.
    pub only: Option<Vec<PathBuf>>,
}

/// Is this canonical path one of these directories, or below one?
#[must_use]
pub(crate) fn is_below(directories: &[PathBuf], path: &Path) -> bool {
    directories
        .iter()
        .any(|directory| path.starts_with(directory))
}

impl Fence {
    /// Resolves the places. What does not exist yet is resolved as far as it does.
    #[must_use]
    pub fn new(root: &Path, home: &Path, os_temp: &Path) -> Self {
        let mut temps = vec![canonical(Path::new("/tmp"))];
        let os_temp = canonical(os_temp);
        if !temps.contains(&os_temp) {
            temps.push(os_temp);
        }
        let reached = canonical(home);
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Fence {
            root: canonical(root),
            aliases: names::mounted(&mounts, &reached),
            links: names::links(home),
            home: reached,
            temps,
            only: None,
        }
    }

    /// The same fence for who may use these directories alone: absolute, or
    /// relative to the working directory. Resolved as far as they are there.
    #[must_use]
    pub fn within(&self, directories: &[String]) -> Self {
        let directories = directories.iter();
        Fence {
            only: Some(
                directories
                    .map(|directory| canonical(&self.root.join(directory)))
                    .collect(),
            ),
            ..self.clone()
        }
    }

    fn granted(&self, path: &Path) -> Result<(), Refusal> {
        match &self.only {
            Some(directories) if !is_below(directories, path) => Err(Refusal::NotGranted),
            _ => Ok(()),
        }
    }

    /// What this canonical path is called in `$DSH_HOME`, if it is there.
    fn inside(&self, path: &Path) -> Option<PathBuf> {
        if let Ok(inside) = path.strip_prefix(&self.home) {
            return Some(inside.to_path_buf());
        }
        self.aliases.iter().find_map(|alias| {
            let below = path.strip_prefix(&alias.path).ok()?;
            Some(alias.inside.join(below))
        })
    }

    /// Whatever must stay as it is, and where it is: `$DSH_HOME` by each of its
    /// names, and the links that lead to it.
    pub(crate) fn kept(&self) -> impl Iterator<Item = &Path> {
        let aliases = self.aliases.iter().map(|alias| alias.path.as_path());
        let links = self.links.iter().map(PathBuf::as_path);
        std::iter::once(self.home.as_path())
            .chain(aliases)
            .chain(links)
    }

    /// May a file be made, replaced or removed at this canonical path?
    pub fn may_write(&self, path: &Path, mode: Mode) -> Result<(), Refusal> {
        if self.inside(path).is_some() || self.links.iter().any(|link| link == path) {
            return Err(Refusal::Home);
        }
        self.granted(path)?;
        match mode {
            Mode::ReadOnly => Err(Refusal::ReadOnly),
            Mode::DangerFullAccess => Ok(()),
            Mode::WorkspaceWrite if path.starts_with(&self.root) => Ok(()),
            Mode::WorkspaceWrite if self.temps.iter().any(|temp| path.starts_with(temp)) => Ok(()),
            Mode::WorkspaceWrite => Err(Refusal::Outside),
        }
    }

    /// May what is at this canonical path be moved or removed, with all below it?
    pub fn may_move(&self, path: &Path, mode: Mode) -> Result<(), Refusal> {
        self.may_write(path, mode)?;
        if self.kept().any(|kept| kept.starts_with(path)) {
            return Err(Refusal::Home);
        }
        if self.root.starts_with(path) {
            return Err(Refusal::Root);
        }
        // One that was granted is not the row's to move.
        let whole = |directory: &PathBuf| directory.starts_with(path);
        if self.only.iter().flatten().any(whole) {
            return Err(Refusal::NotGranted);
        }
        Ok(())
    }

    /// May the file at this canonical path be read? Modes do not matter: reads
    /// are free but for these.
    pub fn may_read(&self, path: &Path) -> Result<(), Refusal> {
        self.granted(path)?;
        if self.inside(path).is_some_and(|inside| is_secret(&inside)) {
            return Err(Refusal::Secret);
        }
        if let Ok(inside) = path.strip_prefix("/proc")
            && let Some(Component::Normal(first)) = inside.components().next()
            && is_process(first)
        {
            return Err(Refusal::ProcessState);
        }
        Ok(())
    }
}

/// May a file be read that nobody asked for, by this path, where it leads to `reached`?
///
/// What a component reads of its own accord may go straight to the model, and a
/// link is content of the project: whoever wrote that must not choose which of a
/// person's files are sent. So a link of the project leads within it, one outside
/// of the project within its directory, and none to a file named like `.env`.
/// `directory` is where the path's own directory really is; all others than
/// `asked` are canonical.
pub(crate) fn may_volunteer(
    asked: &Path,
    reached: &Path,
    project: &Path,
    directory: &Path,
) -> Result<(), Refusal> {
    if asked == reached {
        return Ok(());
    }
    let name = reached.file_name().unwrap_or_default().as_bytes();
    if name == b".env" || name.starts_with(b".env.") || name.starts_with(b".credentials") {
        return Err(Refusal::LedToSecret);
    }
    let bound = if asked.starts_with(project) {
        project
    } else {
        directory
    };
    if reached.starts_with(bound) {
        Ok(())
    } else {
        Err(Refusal::LedOut)
    }
}

/// Is this path, relative to `$DSH_HOME`, one that only `dsh` itself reads?
/// Credentials and `.env` with whatever writers leave beside them, the machine
/// code cache with its key, what plugins keep, which is each one's own, views of
/// sessions, which say of every project what was asked there, pictures of all
/// sessions, and locks, since who can open a lock can hold it.
#[must_use]
pub fn is_secret(inside: &Path) -> bool {
    let mut names = inside.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.as_bytes()),
        _ => None,
    });
    let Some(first) = names.next() else {
        return false;
    };
    let second = names.next();
    first.starts_with(b".credentials")
        || first.starts_with(b".env")
        || first.starts_with(b".tmp")
        || first == b"cache"
        || first == b"storages"
        || first == b"attachments"
        || (first == b"plugins" && second == Some(b"data"))
        || inside.file_name().is_some_and(|name| {
            let name = name.as_bytes();
            name == b"lock" || name.ends_with(b".lock") || name.ends_with(b".key")
        })
}

fn is_process(name: &OsStr) -> bool {
    let name = name.as_bytes();
    name == b"self" || name == b"thread-self" || name.iter().all(u8::is_ascii_digit)
}

/// The canonical path; of what does not exist, its nearest existing ancestor's
/// with the rest behind it.
pub(crate) fn canonical(path: &Path) -> PathBuf {
    let mut rest = Vec::new();
    let mut at = path;
    loop {
        if let Ok(found) = at.canonicalize() {
            return rest.iter().rev().fold(found, |path, name| path.join(name));
        }
        match (at.parent(), at.file_name()) {
            (Some(parent), Some(name)) => {
                rest.push(name);
                at = parent;
            }
            _ => return path.to_path_buf(),
        }
    }
}

#[cfg(test)]
#[path = "fence_tests.rs"]
mod tests;
