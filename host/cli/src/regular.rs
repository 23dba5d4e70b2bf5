//! Opens what a person names, if it is a file.
//!
//! A pipe would be waited for until somebody writes into it, and a device has no end, so neither is taken. To look
//! first and open then would leave a moment in which one becomes the other: it is opened so that nothing waits.

use std::fs::File;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file to be read; anything else is an error that says so.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::other("it is not a file"))
}
