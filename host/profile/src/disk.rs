//! The file operations that a change of a profile is made of.
//!
//! They stand behind a trait so that a test can stop a change at each of them,
//! and take back what the system had not made durable by then.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::Path;

pub(crate) trait Disk: fmt::Debug + Send + Sync {
    /// Makes a directory, 0700, where there is none; its parent has to exist.
    fn make_dir(&self, dir: &Path) -> io::Result<()>;
    /// Writes a new file, 0600; one that is there, or a link, is an error. It is
    /// not durable yet.
    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<()>;
    /// Makes a file's bytes, or a directory's names, durable.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// Gives a file another name, in place of what has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file.
    fn remove(&self, file: &Path) -> io::Result<()>;
}

#[derive(Debug)]
pub(crate) struct Real;

impl Disk for Real {
    fn make_dir(&self, dir: &Path) -> io::Result<()> {
        match fs::DirBuilder::new().mode(0o700).create(dir) {
            // A link would lead what is written out of the home.
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                if fs::symlink_metadata(dir)?.is_dir() {
                    Ok(())
                } else {
                    Err(io::Error::new(
                        io::ErrorKind::NotADirectory,
                        "a link or a file is there; dsh keeps it as a directory of its own",
                    ))
                }
            }
            made => made,
        }
    }

    fn write(&self, file: &Path, bytes: &[u8]) -> io::Result<()> {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(file)?
            .write_all(bytes)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, file: &Path) -> io::Result<()> {
        fs::remove_file(file)
    }
}

/// A name for a draft of `name`.
pub(crate) fn draft(name: &str) -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static DRAFTS: AtomicU32 = AtomicU32::new(0);
    let number = DRAFTS.fetch_add(1, Ordering::Relaxed);
    format!(".{name}.{}-{number}.draft", std::process::id())
}

/// Whether a file is a draft, of whichever process.
pub(crate) fn is_draft(file_name: &str) -> bool {
    file_name.starts_with('.') && file_name.ends_with(".draft")
}

/// Puts a file in place whole and durable, or leaves what is there.
pub(crate) fn replace(disk: &dyn Disk, dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let draft = dir.join(draft(name));
    let written = disk
        .write(&draft, bytes)
        .and_then(|()| disk.sync(&draft))
        .and_then(|()| disk.rename(&draft, &dir.join(name)));
    if written.is_err() {
        let _ = disk.remove(&draft);
    }
    written?;
    disk.sync(dir)
}
