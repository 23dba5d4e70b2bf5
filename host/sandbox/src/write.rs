//! Changing files: the content goes to a new file beside the old one and takes
//! its name in one rename, so that a reader sees the one or the other and a
//! hard link elsewhere keeps what it had.
//!
//! The fence judges the place twice: when it is resolved, and again when the
//! new content is on disk and nothing but the rename is left. In between, the
//! directory is held open, so a link that somebody swaps in leads nowhere. The
//! guard is checked there too. Writers of this process take turns at a path; a
//! foreign process can still slip in between check and rename, but for a file
//! that must be absent the rename itself refuses.

use std::collections::hash_map::DefaultHasher;
use std::fs::File;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::fs::{AtFlags, FileType, Mode as Bits, OFlags, RenameFlags, Stat};
use rustix::io::Errno;

use crate::error::Error;
use crate::fence::Refusal;
use crate::files::{Files, metadata, version};
use crate::observe::{Expect, Intent, Operation};
use crate::resolve::{Place, is_within, place};
use dsh_plugin::port::{Guard, Metadata, Slice};

/// Bytes of one write.
const MAX_WRITE: usize = 64 << 20;

static TURNS: [Mutex<()>; 64] = [const { Mutex::new(()) }; 64];

fn turn(path: &Path) -> MutexGuard<'static, ()> {
    let mut hasher = DefaultHasher::new();
    path.hash(&mut hasher);
    let at = hasher.finish() % TURNS.len() as u64;
    TURNS[usize::try_from(at).unwrap_or(0)]
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
}

/// What the session's policy said of an intent. It counts for that file alone,
/// so a change that by now leads to another one does not take place.
pub(crate) struct Allowed {
    path: PathBuf,
    expect: Expect,
}

impl Allowed {
    pub(crate) fn new(intent: Intent, expect: Expect) -> Self {
        Self {
            path: intent.path,
            expect,
        }
    }

    fn is_of(&self, place: &Place) -> Result<(), Error> {
        if self.path == place.path {
            Ok(())
        } else {
            Err(Error::StaleVersion(place.path.clone()))
        }
    }

    /// Whether it may go away or elsewhere at all.
    fn may(&self, place: &Place) -> Result<(), Error> {
        self.is_of(place)?;
        match &self.expect {
            Expect::Refused => Err(Error::NotObserved(place.path.clone())),
            Expect::Denied(reason) => Err(Error::Vetoed {
                path: place.path.clone(),
                reason: reason.clone(),
            }),
            _ => Ok(()),
        }
    }
}

/// What the policy is asked for a change under this guard.
pub(crate) fn operation(guard: &Guard) -> Operation {
    match guard {
        Guard::Edit => Operation::Edit,
        Guard::Overwrite | Guard::Absent | Guard::Version(_) => Operation::Write,
    }
}

impl Files {
    /// What a change is about to do, for the policy; fails where the change
    /// would be refused whatever the policy says.
    pub(crate) fn intent(&self, operation: Operation, path: &str) -> Result<Intent, Error> {
        let content = matches!(operation, Operation::Write | Operation::Edit);
        let place = place(&self.absolute(path)?, content)?;
        if content {
            self.check_write(&place.path)?;
            self.check_identity(&place, place.held())?;
        } else {
            self.check_move(&place.path)?;
        }
        let there = place.there()?;
        if there.is_none() && operation == Operation::Edit {
            return Err(Error::NotFound(place.path));
        }
        if content {
            meets(&place, there.as_ref(), &Expect::Any)?;
        }
        Ok(Intent {
            operation,
            version: there.as_ref().map(version),
            path: place.path,
        })
    }

    pub(crate) fn write(
        &self,
        path: &str,
        content: &[u8],
        guard: &Guard,
        allowed: &Allowed,
    ) -> Result<Metadata, Error> {
        let place = place(&self.absolute(path)?, true)?;
        self.check_write(&place.path)?;
        self.check_identity(&place, place.held())?;
        if content.len() > MAX_WRITE {
            let what = format!("{} bytes to write, at most {MAX_WRITE}", content.len());
            return Err(Error::TooLarge {
                path: place.path,
                what,
            });
        }
        let _turn = turn(&place.path);
        // Before anything is made: a write that is refused leaves no directory.
        check_guard(&place, place.there()?.as_ref(), guard, allowed)?;

        let dir = place.make_dir()?;
        let dir = dir.as_fd();
        let temporary = Temporary::make(&place, dir, place.stat(dir)?.as_ref(), content)?;
        self.check_write(&place.path_now(dir)?)?;
        self.check_identity(&place, dir)?;
        let now = place.stat(dir)?;
        check_guard(&place, now.as_ref(), guard, allowed)?;
        let stat = temporary.take_name(&place, now.is_none())?;
        let metadata = metadata(&stat);
        self.policy.observed(&place.path, Some(&metadata.version));
        Ok(metadata)
    }

    pub(crate) fn remove(&self, path: &str, allowed: &Allowed) -> Result<(), Error> {
        let place = place(&self.absolute(path)?, false)?;
        self.check_move(&place.path)?;
        let _turn = turn(&place.path);
        let dir = place.dir()?;
        let Some(stat) = place.stat(dir)? else {
            return Err(Error::NotFound(place.path));
        };
        allowed.may(&place)?;
        let flags = match FileType::from_raw_mode(stat.st_mode) {
            FileType::Directory => AtFlags::REMOVEDIR,
            FileType::RegularFile => {
                meets(&place, Some(&stat), &allowed.expect)?;
                AtFlags::empty()
            }
            _ => AtFlags::empty(),
        };
        self.check_move(&place.path_now(dir)?)?;
        self.check_identity(&place, dir)?;
        rustix::fs::unlinkat(dir, place.name.as_os_str(), flags)
            .map_err(|errno| Error::io(&place.path, errno))?;
        self.policy.observed(&place.path, None);
        Ok(())
    }

    /// Never over something that is there: what it would lose, nobody has read.
    pub(crate) fn rename(
        &self,
        path: &str,
        to: &str,
        allowed: (&Allowed, &Allowed),
    ) -> Result<(), Error> {
        let from = place(&self.absolute(path)?, false)?;
        let to = place(&self.absolute(to)?, false)?;
        self.check_move(&from.path)?;
        self.check_move(&to.path)?;
        allowed.0.may(&from)?;
        allowed.1.may(&to)?;
        let (from_dir, to_dir) = (from.dir()?, to.dir()?);
        self.check_move(&from.path_now(from_dir)?)?;
        self.check_move(&to.path_now(to_dir)?)?;
        self.check_identity(&from, from_dir)?;
        self.check_identity(&to, to_dir)?;
        let (old, new) = (from.name.as_os_str(), to.name.as_os_str());
        match rustix::fs::renameat_with(from_dir, old, to_dir, new, RenameFlags::NOREPLACE) {
            Ok(()) => {}
            Err(Errno::EXIST) => return Err(Error::Exists(to.path)),
            Err(errno) => return Err(Error::io(&from.path, errno)),
        }
        self.policy.observed(&from.path, None);
        if let Ok(Some(stat)) = to.stat(to_dir) {
            self.policy.observed(&to.path, Some(&version(&stat)));
        }
        Ok(())
    }

    /// What a change under this guard would start from, with what the change
    /// itself would be refused for. The session has not read it by that.
    pub(crate) fn read_for(
        &self,
        path: &str,
        guard: &Guard,
        (offset, limit): (u64, u32),
        allowed: &Allowed,
    ) -> Result<Slice, Error> {
        let asked = self.absolute(path)?;
        let place = place(&asked, true)?;
        self.check_write(&place.path)?;
        check_guard(&place, place.there()?.as_ref(), guard, allowed)?;
        self.slice(&asked, offset, limit).map(|(_, slice)| slice)
    }

    fn check_write(&self, path: &Path) -> Result<(), Error> {
        let denied = |reason| Error::Denied {
            path: path.to_path_buf(),
            reason,
        };
        self.fence.may_write(path, (self.mode)()).map_err(denied)
    }

    /// The last look: whatever the path is called (a file system that takes
    /// capitals for small letters, a mount that came since), its directory is
    /// not below `$DSH_HOME`.
    fn check_identity(&self, place: &Place, dir: BorrowedFd<'_>) -> Result<(), Error> {
        if is_within(dir, &self.fence.home) {
            return Err(Error::Denied {
                path: place.path.clone(),
                reason: Refusal::Home,
            });
        }
        Ok(())
    }

    fn check_move(&self, path: &Path) -> Result<(), Error> {
        let denied = |reason| Error::Denied {
            path: path.to_path_buf(),
            reason,
        };
        self.fence.may_move(path, (self.mode)()).map_err(denied)
    }
}

/// Does what is there meet the writer's own guard, and the policy?
fn check_guard(
    place: &Place,
    there: Option<&Stat>,
    guard: &Guard,
    allowed: &Allowed,
) -> Result<(), Error> {
    allowed.is_of(place)?;
    let own = match guard {
        Guard::Edit if there.is_none() => return Err(Error::NotFound(place.path.clone())),
        Guard::Edit | Guard::Overwrite => Expect::Any,
        Guard::Absent => Expect::Absent,
        Guard::Version(version) => Expect::Version(version.clone()),
    };
    meets(place, there, &own)?;
    meets(place, there, &allowed.expect)
}

/// Is what is there what it is taken for?
fn meets(place: &Place, there: Option<&Stat>, expect: &Expect) -> Result<(), Error> {
    let path = place.path.clone();
    if there.is_some_and(|stat| FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile) {
        return Err(Error::NotRegularFile(path));
    }
    match (expect, there) {
        (Expect::Any, _) | (Expect::Absent | Expect::Unobserved, None) => Ok(()),
        (Expect::Absent, Some(_)) => Err(Error::Exists(path)),
        (Expect::Unobserved, Some(_)) | (Expect::Refused, _) => Err(Error::NotObserved(path)),
        (Expect::Version(expected), Some(stat)) if *expected == version(stat) => Ok(()),
        (Expect::Version(_), _) => Err(Error::StaleVersion(path)),
        (Expect::Denied(reason), _) => Err(Error::Vetoed {
            path,
            reason: reason.clone(),
        }),
    }
}

/// The new content under a name of its own; goes again unless it takes the
/// place's name.
struct Temporary<'a> {
    dir: BorrowedFd<'a>,
    name: String,
    file: File,
    named: bool,
}

impl<'a> Temporary<'a> {
    fn make(
        place: &Place,
        dir: BorrowedFd<'a>,
        old: Option<&Stat>,
        content: &[u8],
    ) -> Result<Self, Error> {
        let failed = |error: std::io::Error| Error::io(&place.path, error);
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // A new file's bits are the umask's to cut; an old one's come back below.
        let bits = Bits::from_raw_mode(if old.is_some() { 0o600 } else { 0o666 });
        let mut made = None;
        for _ in 0..16 {
            let name = format!(".dsh-{:016x}.tmp", random());
            match rustix::fs::openat(dir, name.as_str(), flags, bits) {
                Ok(fd) => {
                    made = Some(Temporary {
                        dir,
                        name,
                        file: File::from(fd),
                        named: false,
                    });
                    break;
                }
                Err(Errno::EXIST) => {}
                Err(errno) => return Err(failed(errno.into())),
            }
        }
        let mut made = made.ok_or_else(|| failed(Errno::EXIST.into()))?;
        made.file.write_all(content).map_err(failed)?;
        if let Some(old) = old {
            // Only a privileged process can keep another owner; no other needs to.
            let owner = Some(rustix::fs::Uid::from_raw(old.st_uid));
            let group = Some(rustix::fs::Gid::from_raw(old.st_gid));
            let _ = rustix::fs::fchown(&made.file, owner, group);
            let bits = Bits::from_raw_mode(old.st_mode & 0o777);
            rustix::fs::fchmod(&made.file, bits).map_err(|errno| failed(errno.into()))?;
        }
        made.file.sync_all().map_err(failed)?;
        Ok(made)
    }

    fn take_name(mut self, place: &Place, absent: bool) -> Result<Stat, Error> {
        let flags = if absent {
            RenameFlags::NOREPLACE
        } else {
            RenameFlags::empty()
        };
        let (old, new) = (self.name.as_str(), place.name.as_os_str());
        match rustix::fs::renameat_with(self.dir, old, self.dir, new, flags) {
            // A file system that cannot refuse to replace (some network ones).
            Err(Errno::INVAL | Errno::NOSYS) if absent => {
                rustix::fs::renameat(self.dir, old, self.dir, new)
                    .map_err(|errno| Error::io(&place.path, errno))?;
            }
            Err(Errno::EXIST) => return Err(Error::StaleVersion(place.path.clone())),
            Err(errno) => return Err(Error::io(&place.path, errno)),
            Ok(()) => {}
        }
        self.named = true;
        // The rename is there; whether it outlives a power cut is best effort.
        if let Ok(dir) = rustix::fs::openat(
            self.dir,
            ".",
            OFlags::RDONLY | OFlags::CLOEXEC,
            Bits::empty(),
        ) {
            let _ = rustix::fs::fsync(dir);
        }
        rustix::fs::fstat(&self.file).map_err(|errno| Error::io(&place.path, errno))
    }
}

impl Drop for Temporary<'_> {
    fn drop(&mut self) {
        if !self.named {
            let _ = rustix::fs::unlinkat(self.dir, self.name.as_str(), AtFlags::empty());
        }
    }
}

/// Only a name that is not taken yet: the standard library's hash keys are
/// random enough.
fn random() -> u64 {
    use std::hash::BuildHasher;
    std::collections::hash_map::RandomState::new()
        .build_hasher()
        .finish()
}

#[cfg(test)]
#[path = "write_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "home_tests.rs"]
mod home_tests;
