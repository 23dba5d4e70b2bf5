//! From a path as somebody wrote it to a descriptor and the canonical path of
//! what the descriptor holds.
//!
//! A decision about a path is worth nothing when the path may lead elsewhere a
//! moment later. So the kernel resolves first (`O_PATH`: no side effect on a
//! device, no wait on a pipe), the fence judges what was really reached, and
//! everything after goes through the descriptor. Links of `/proc` that jump
//! (`fd`, `cwd`, `root`) are not followed at all.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, ResolveFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::fence::{Fence, Refusal, canonical, is_secret};

/// As the kernel's own bound on links in a path.
const MAX_LINKS: usize = 40;

/// Deeper than any path that can be named at once.
const MAX_DEPTH: usize = 4096;

/// Something that is there, pinned; nothing was read yet.
#[derive(Debug)]
pub(crate) struct Pinned {
    pub(crate) fd: OwnedFd,
    pub(crate) stat: Stat,
    pub(crate) path: PathBuf,
}

impl Pinned {
    pub(crate) fn file_type(&self) -> FileType {
        FileType::from_raw_mode(self.stat.st_mode)
    }

    /// Opens what is pinned for reading; whoever swaps the path meanwhile
    /// changes nothing.
    pub(crate) fn open(&self) -> Result<File, Error> {
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        match rustix::fs::open(self_fd(&self.fd), flags, Mode::empty()) {
            Ok(fd) => Ok(File::from(fd)),
            Err(errno) => Err(Error::io(&self.path, errno)),
        }
    }

    /// A path by which this process reaches what is pinned.
    pub(crate) fn alias(&self) -> PathBuf {
        self_fd(&self.fd)
    }
}

/// A name in a directory that is pinned: where something may be made, replaced
/// or removed, whether it is there or not.
#[derive(Debug)]
pub(crate) struct Place {
    dir: OwnedFd,
    /// Directories to be made below `dir`.
    missing: Vec<OsString>,
    pub(crate) name: OsString,
    /// Canonical, of the place itself.
    pub(crate) path: PathBuf,
}

impl Place {
    /// The directory, with those that were missing made. No link is followed in
    /// what is made, so that nobody can slip one in.
    pub(crate) fn make_dir(&self) -> Result<OwnedFd, Error> {
        let mut dir = self
            .dir
            .try_clone()
            .map_err(|error| Error::io(&self.path, error))?;
        for name in &self.missing {
            match rustix::fs::mkdirat(&dir, name.as_os_str(), Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => {}
                Err(errno) => return Err(Error::io(&self.path, errno)),
            }
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            dir = rustix::fs::openat(&dir, name.as_os_str(), flags, Mode::empty())
                .map_err(|errno| Error::io(&self.path, errno))?;
        }
        Ok(dir)
    }

    /// The deepest directory that is there.
    pub(crate) fn held(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// The directory, if none is missing.
    pub(crate) fn dir(&self) -> Result<BorrowedFd<'_>, Error> {
        if self.missing.is_empty() {
            Ok(self.dir.as_fd())
        } else {
            Err(Error::NotFound(self.path.clone()))
        }
    }

    /// What is there now; nothing where a directory is missing.
    pub(crate) fn there(&self) -> Result<Option<Stat>, Error> {
        self.dir().map_or(Ok(None), |dir| self.stat(dir))
    }

    /// What is there now, not following a link.
    pub(crate) fn stat(&self, dir: BorrowedFd<'_>) -> Result<Option<Stat>, Error> {
        match rustix::fs::statat(
            dir,
            self.name.as_os_str(),
            rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
        ) {
            Ok(stat) => Ok(Some(stat)),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(Error::io(&self.path, errno)),
        }
    }

    /// Where the place is by now: its directory may have been moved.
    pub(crate) fn path_now(&self, dir: BorrowedFd<'_>) -> Result<PathBuf, Error> {
        Ok(fd_path(dir, &self.path)?.join(&self.name))
    }
}

/// The absolute path, not resolved. Refuses what the kernel could not take.
pub(crate) fn absolute(cwd: &Path, path: &str) -> Result<PathBuf, Error> {
    let bad = |reason| {
        Err(Error::BadPath {
            path: path.replace('\0', "\\0"),
            reason,
        })
    };
    if path.is_empty() {
        return bad("it is empty");
    }
    if path.contains('\0') {
        return bad("it has a NUL in it");
    }
    Ok(cwd.join(path))
}

/// Pins what is at a path, links followed, if it may be read.
pub(crate) fn pin(fence: &Fence, path: &Path) -> Result<Pinned, Error> {
    let fd = match open_path(path, OFlags::empty()) {
        Ok(fd) => fd,
        Err(errno) => {
            // What is not there outside of what was granted is not told either.
            let place = canonical(path);
            if fence.only.is_some()
                && let Err(reason) = fence.may_read(&place)
            {
                return Err(Error::Denied {
                    path: place,
                    reason,
                });
            }
            return Err(jump(path, errno));
        }
    };
    let stat = rustix::fs::fstat(&fd).map_err(|errno| Error::io(path, errno))?;
    let reached = fd_path(&fd, path)?;
    let refuse = |reason| {
        Err(Error::Denied {
            path: reached.clone(),
            reason,
        })
    };
    if let Err(reason) = fence.may_read(&reached) {
        return refuse(reason);
    }
    if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile
        && stat.st_nlink > 1
        && linked_secrets(&fence.home).contains(&(stat.st_dev, stat.st_ino))
    {
        return refuse(Refusal::Secret);
    }
    Ok(Pinned {
        fd,
        stat,
        path: reached,
    })
}

/// Finds the place that a path names. With `follow`, a link at its end is
/// followed, even to where nothing is.
pub(crate) fn place(path: &Path, follow: bool) -> Result<Place, Error> {
    let mut current = path.to_path_buf();
    for _ in 0..MAX_LINKS {
        let (parent, name) = split(&current)?;
        let (dir, missing) = deepest(&parent, path)?;
        let dir_path = fd_path(&dir, path)?;
        if follow && missing.is_empty() {
            match rustix::fs::readlinkat(&dir, name.as_os_str(), Vec::new()) {
                Ok(target) => {
                    current = dir_path.join(OsString::from_vec(target.into_bytes()));
                    continue;
                }
                // Not a link, or nothing.
                Err(Errno::INVAL | Errno::NOENT) => {}
                Err(errno) => return Err(Error::io(path, errno)),
            }
        }
        let full = missing
            .iter()
            .fold(dir_path, |at, name| at.join(name))
            .join(&name);
        return Ok(Place {
            dir,
            missing,
            name,
            path: full,
        });
    }
    Err(Error::io(path, Errno::LOOP))
}

/// Parent and name of a path that can name a file: `dir/`, `.` and `..` cannot.
fn split(path: &Path) -> Result<(PathBuf, OsString), Error> {
    let bytes = path.as_os_str().as_bytes();
    let at = bytes.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
    let name = &bytes[(at + 1).min(bytes.len())..];
    if name.is_empty() || name == b"." || name == b".." {
        return Err(Error::NotRegularFile(path.to_path_buf()));
    }
    let parent = if at == 0 {
        Path::new("/")
    } else {
        Path::new(OsStr::from_bytes(&bytes[..at]))
    };
    Ok((parent.to_path_buf(), OsStr::from_bytes(name).to_owned()))
}

/// Opens the deepest directory of a path that is there; the names that are not
/// come back. `..` behind a name that is not there leads nowhere.
fn deepest(parent: &Path, asked: &Path) -> Result<(OwnedFd, Vec<OsString>), Error> {
    let mut missing = Vec::new();
    let mut at = parent.to_path_buf();
    loop {
        match open_path(&at, OFlags::DIRECTORY) {
            Ok(dir) => {
                missing.reverse();
                return Ok((dir, missing));
            }
            Err(Errno::NOENT) => {
                // `file_name` skips a trailing `.` and is none for `..`.
                let Some(name) = at.file_name().map(OsStr::to_owned) else {
                    return Err(Error::NotFound(asked.to_path_buf()));
                };
                missing.push(name);
                if !at.pop() {
                    return Err(Error::NotFound(asked.to_path_buf()));
                }
            }
            Err(errno) => return Err(jump(asked, errno)),
        }
    }
}

fn open_path(path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::PATH | OFlags::CLOEXEC;
    match rustix::fs::openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_MAGICLINKS) {
        // Kernels before 5.6, and filters that do not know the call.
        Err(Errno::NOSYS | Errno::PERM) => rustix::fs::openat(CWD, path, flags, Mode::empty()),
        other => other,
    }
}

/// `ELOOP` under `/proc` is a link that jumps.
fn jump(path: &Path, errno: Errno) -> Error {
    if errno == Errno::LOOP && path.starts_with("/proc") {
        return Error::Denied {
            path: path.to_path_buf(),
            reason: Refusal::ProcessState,
        };
    }
    Error::io(path, errno)
}

fn self_fd(fd: &impl AsRawFd) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", fd.as_raw_fd()))
}

/// The canonical path of an open descriptor.
fn fd_path(fd: impl AsFd, asked: &Path) -> Result<PathBuf, Error> {
    std::fs::read_link(self_fd(&fd.as_fd())).map_err(|error| Error::io(asked, error))
}

/// Is this directory the one at `top`, or below it, by what they are rather than
/// by name? Says yes of what has no end and of what it cannot look at.
pub(crate) fn is_within(dir: BorrowedFd<'_>, top: &Path) -> bool {
    let Ok(top) = rustix::fs::stat(top) else {
        return false;
    };
    let identity = |stat: &Stat| (stat.st_dev, stat.st_ino);
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut last = None;
    let Ok(mut at) = dir.try_clone_to_owned() else {
        return true;
    };
    for _ in 0..MAX_DEPTH {
        let Ok(stat) = rustix::fs::fstat(&at) else {
            return true;
        };
        if identity(&stat) == identity(&top) {
            return true;
        }
        // The root is its own parent.
        if last == Some(identity(&stat)) {
            return false;
        }
        last = Some(identity(&stat));
        at = match rustix::fs::openat(&at, "..", flags, Mode::empty()) {
            Ok(parent) => parent,
            Err(_) => return true,
        };
    }
    true
}

/// Secrets of `$DSH_HOME` that have a second name somewhere, by device and
/// inode. Looked for only when a file with several names is read.
pub(crate) fn linked_secrets(home: &Path) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let mut open = vec![(home.to_path_buf(), 0)];
    while let Some((dir, depth)) = open.pop() {
        let Ok(entries) = std::fs::read_dir(&dir) else {
            continue;
        };
        for entry in entries.flatten() {
            let Ok(meta) = entry.metadata() else { continue };
            let path = entry.path();
            let inside = path.strip_prefix(home).unwrap_or(&path);
            if meta.is_file() && meta.nlink() > 1 && is_secret(inside) {
                found.push((meta.dev(), meta.ino()));
            }
            // Large trees without secrets but for locks of a session's own and
            // pictures, of which nobody else makes a second name.
            let bulk = ["sessions", "attachments", "plugins", "skills"]
                .iter()
                .any(|name| inside == Path::new(name));
            if meta.is_dir() && depth < 3 && !bulk {
                open.push((path, depth + 1));
            }
        }
    }
    found
}
