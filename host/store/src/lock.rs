//! One writer a session, held by the operating system.
//!
//! The lock is `flock` on a file `lock` beside the log. `flock` belongs to the open
//! file description, so closing another descriptor of the same file does not drop it
//! (a POSIX record lock would be lost), and the kernel drops it when the process
//! dies, however it dies. Nothing but this module opens the file for writing. The file
//! stays when the lock is given back, for two processes must not lock two different files of
//! one name. Only the holder may remove it, with the session that it guards; who opened it before
//! that and locks it after finds that it has lost its name, and begins again. Upstream looks only at `session.jsonl*`, so the file
//! does not disturb it (spec/session.md §9.6).
//!
//! The text inside, `{"pid":…,"host":"…","startedAt":…}`, is for the loser's message only.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use dsh_session::Json;
use rustix::fs::OFlags;
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::storage::{FILE_MODE, Held, Storage};

/// Name of the lock file inside a session's directory.
pub const LOCK_FILE: &str = "lock";

/// How long a lock is waited for whose holder has died.
const LINGER: Duration = Duration::from_secs(1);

/// More than any honest holder writes; the file is somebody else's if it is longer.
const MAX_CONTENTS: u64 = 4096;

/// An exclusive OS lock; dropping it gives the lock back.
#[derive(Debug)]
pub(crate) struct FileLock {
    file: File,
    path: PathBuf,
}

impl Held for FileLock {
    fn has_its_name(&self) -> io::Result<bool> {
        let ours = self.file.metadata()?;
        match std::fs::metadata(&self.path) {
            Ok(named) => Ok((named.dev(), named.ino()) == (ours.dev(), ours.ino())),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(e) => Err(e),
        }
    }
}

impl Drop for FileLock {
    /// Closing alone is not enough: a child that another thread forked holds a copy of the descriptor until it execs.
    fn drop(&mut self) {
        let _ = self.file.unlock();
    }
}

pub(crate) fn try_lock(path: &Path, contents: &str) -> io::Result<Option<FileLock>> {
    let end = Instant::now() + LINGER;
    loop {
        let Some(lock) = try_lock_once(path, end)? else {
            return Ok(None);
        };
        if !lock.has_its_name()? {
            // Its last holder took the file away after it was opened here.
            if Instant::now() < end {
                continue;
            }
            return Ok(None);
        }
        // The lock holds whether or not its label can be written (a full disk must not stop a reader of the label).
        let mut file = &lock.file;
        let _ = file
            .set_len(0)
            .and_then(|()| file.seek(SeekFrom::Start(0)))
            .and_then(|_| file.write_all(contents.as_bytes()));
        return Ok(Some(lock));
    }
}

/// Whether somebody holds the lock. Only looks: a shared lock, which is given
/// back at once, and no file is made.
pub(crate) fn is_held(path: &Path) -> bool {
    // A pipe in its place is not waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let Ok(file) = opened else {
        return false;
    };
    matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

fn try_lock_once(path: &Path, end: Instant) -> io::Result<Option<FileLock>> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)?;
    loop {
        match file.try_lock() {
            Ok(()) => {
                let path = path.to_owned();
                return Ok(Some(FileLock { file, path }));
            }
            Err(TryLockError::WouldBlock) if holder_is_gone(&mut file) && Instant::now() < end => {
                std::thread::sleep(Duration::from_millis(5));
            }
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(e)) => return Err(e),
        }
    }
}

/// Whether the process that labelled the lock is of this host and exists no more:
/// what holds the lock then is a child that it forked and that has not got to its
/// exec, which will be soon.
fn holder_is_gone(file: &mut File) -> bool {
    let mut text = String::new();
    let read = file
        .seek(SeekFrom::Start(0))
        .and_then(|_| file.take(MAX_CONTENTS).read_to_string(&mut text));
    let Some((pid, rest)) = text
        .strip_prefix("{\"pid\":")
        .and_then(|text| text.split_once(','))
    else {
        return false;
    };
    let ours = rest.starts_with(&format!("\"host\":\"{}\",", host()));
    let Some(pid) = pid.parse().ok().and_then(Pid::from_raw) else {
        return false;
    };
    read.is_ok() && ours && test_kill_process(pid) == Err(Errno::SRCH)
}

fn host() -> String {
    rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        .collect()
}

/// The label of a lock taken now by this process.
pub(crate) fn label() -> String {
    let host = host();
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_millis());
    format!(
        "{{\"pid\":{},\"host\":\"{host}\",\"startedAt\":{started}}}\n",
        std::process::id()
    )
}

/// Who holds a lock, for a message: printable, one line, never long.
pub(crate) fn holder(storage: &dyn Storage, path: &Path) -> String {
    let mut text = Vec::new();
    let read = storage
        .open_read(path)
        .and_then(|file| file.take(MAX_CONTENTS).read_to_end(&mut text));
    let text = String::from_utf8_lossy(&text);
    match read {
        Ok(_) => describe(&text).unwrap_or_else(|| raw(&text)),
        Err(_) => "who does not say".to_owned(),
    }
}

/// A [`label`] in words.
fn describe(text: &str) -> Option<String> {
    let label = Json::restore(text.trim()).ok()?;
    let pid = label.get("pid")?.u64()?;
    let host: String = label
        .get("host")?
        .text()?
        .chars()
        .filter(|c| !c.is_control())
        .take(100)
        .collect();
    let since = clock(label.get("startedAt")?.u64()? / 1000);
    Some(format!("pid {pid} on {host} since {since}"))
}

/// A label of somebody else's making.
fn raw(text: &str) -> String {
    let text: String = text
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    if text.is_empty() {
        "who does not say".to_owned()
    } else {
        text
    }
}

/// Seconds since the epoch as a date, `2026-11-30 01:22:33 UTC`.
fn clock(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days from 0000-03-01, so that a leap day is the last of its year; eras of 400 years.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let (date, month) = (day - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    let year = era * 400 + year + u64::from(month <= 2);
    format!(
        "{year:04}-{month:02}-{date:02} {:02}:{:02}:{:02} UTC",
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labelled(pid: &str, host: &str) -> File {
        let mut file = tempfile::tempfile().unwrap();
        write!(
            file,
            "{{\"pid\":{pid},\"host\":\"{host}\",\"startedAt\":1}}"
        )
        .unwrap();
        file
    }

    #[test]
    fn only_a_dead_process_of_this_host_counts_as_gone() {
        // Beyond any kernel's highest pid.
        let dead = "2000000000";
        let living = std::process::id().to_string();
        assert!(holder_is_gone(&mut labelled(dead, &host())));
        assert!(!holder_is_gone(&mut labelled(&living, &host())));
        assert!(!holder_is_gone(&mut labelled(dead, "elsewhere")));
        assert!(!holder_is_gone(&mut labelled("0", &host())));
        assert!(!holder_is_gone(&mut tempfile::tempfile().unwrap()));
    }

    #[test]
    fn the_holder_is_told_in_words() {
        let text = r#"{"pid":7,"host":"box","startedAt":1700000000000}"#;
        let told = describe(text).unwrap();
        assert_eq!(told, "pid 7 on box since 2023-11-14 22:13:20 UTC");
        assert_eq!(describe(&label()).unwrap().split(' ').next(), Some("pid"));
        assert_eq!(describe("somebody"), None);
        assert_eq!(raw(" some\u{7}body\n"), "somebody");
        assert_eq!(raw(""), "who does not say");
    }

    #[test]
    fn a_clock_knows_leap_days() {
        assert_eq!(clock(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(clock(951_782_399), "2000-02-28 23:59:59 UTC");
        assert_eq!(clock(951_782_400), "2000-02-29 00:00:00 UTC");
        assert_eq!(clock(4_107_542_400), "2100-03-01 00:00:00 UTC");
    }
}
