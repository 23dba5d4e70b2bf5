//! One writer a session, held by the operating system.
//!
//! The lock is `flock` on a file `lock` beside the log. `flock` belongs to the open
//! file description, so closing another descriptor of the same file does not drop it
//! (a POSIX record lock would be lost), and the kernel drops it when the process
//! dies, however it dies. Nothing but this module opens the file for writing. The file
//! stays when the lock is given back: removing it would let two processes lock two
//! different files of one name. Upstream looks only at `session.jsonl*`, so the file
//! does not disturb it (spec/session.md §9.6).
//!
//! The text inside, `{"pid":…,"host":"…","startedAt":…}`, is for the loser's message only.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::storage::{FILE_MODE, Held, Storage};

/// Name of the lock file inside a session's directory.
pub const LOCK_FILE: &str = "lock";

/// More than any honest holder writes; the file is somebody else's if it is longer.
const MAX_CONTENTS: u64 = 4096;

/// An exclusive OS lock; dropping it gives the lock back.
#[derive(Debug)]
pub(crate) struct FileLock(File);

impl Held for FileLock {}

impl Drop for FileLock {
    /// Closing alone is not enough: a child that another thread forked holds a copy of the descriptor until it execs.
    fn drop(&mut self) {
        let _ = self.0.unlock();
    }
}

pub(crate) fn try_lock(path: &Path, contents: &str) -> io::Result<Option<FileLock>> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(FILE_MODE)
        .open(path)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Ok(None),
        Err(TryLockError::Error(e)) => return Err(e),
    }
    // The lock holds whether or not its label can be written (a full disk must not stop a reader of the label).
    let _ = file
        .set_len(0)
        .and_then(|()| file.seek(SeekFrom::Start(0)))
        .and_then(|_| file.write_all(contents.as_bytes()));
    Ok(Some(FileLock(file)))
}

/// The label of a lock taken now by this process.
pub(crate) fn label() -> String {
    let host: String = rustix::system::uname()
        .nodename()
        .to_string_lossy()
        .chars()
        .filter(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_'))
        .collect();
    let started = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_millis());
    format!(
        "{{\"pid\":{},\"host\":\"{host}\",\"startedAt\":{started}}}\n",
        std::process::id()
    )
}

/// What the holder of a lock wrote into it, for a message: printable, one line, never long.
pub(crate) fn holder(storage: &dyn Storage, path: &Path) -> String {
    let mut text = Vec::new();
    let read = storage
        .open_read(path)
        .and_then(|file| file.take(MAX_CONTENTS).read_to_end(&mut text));
    let text: String = String::from_utf8_lossy(&text)
        .trim()
        .chars()
        .filter(|c| !c.is_control())
        .take(200)
        .collect();
    match read {
        Ok(_) if !text.is_empty() => text,
        _ => "unknown".to_owned(),
    }
}
