//! Reading a person's files: whole, as UTF-8, and never more than a
//! configuration can be, so that a wrong path cannot fill the memory.

use crate::Error;
use crate::yaml::{self, Fault, Node};
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

const MOST_BYTES: u64 = 8 << 20;

/// The text; an error where the file is missing. A pipe has none to wait for,
/// unless it is one that this process was handed (`--patch <(…)`).
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    let handed = path.starts_with("/dev/fd") || path.starts_with("/proc/self/fd");
    std::fs::metadata(path)
        .and_then(|meta| {
            if meta.is_file() || handed || path == Path::new("/dev/stdin") {
                File::open(path)
            } else {
                Err(io::Error::new(
                    io::ErrorKind::InvalidInput,
                    "not a regular file",
                ))
            }
        })
        .and_then(read_open)
        .map_err(|e| Error::io("read", path, e))
}

/// The text, none where there is no such file.
pub(crate) fn read_optional(path: &Path) -> Result<Option<String>, Error> {
    match read(path) {
        Err(Error::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// Opens a regular file; a pipe, which would be waited for, is an error.
pub(crate) fn open_regular(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt;
    let file = File::options()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits().cast_signed())
        .open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(
        io::ErrorKind::InvalidInput,
        "not a regular file",
    ))
}

/// The rest of an open file.
pub(crate) fn read_open(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        let message = format!("larger than {} MiB", MOST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, message));
    }
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "not UTF-8 text"))
}

/// The document of a text that was read from `path`.
pub(crate) fn document(path: &Path, text: &str) -> Result<Option<Node>, Error> {
    yaml::parse(text).map_err(|fault| at(path, fault))
}

/// A fault with its file.
pub(crate) fn at(path: &Path, fault: Fault) -> Error {
    Error::Document {
        path: path.to_owned(),
        line: fault.line,
        message: fault.message,
    }
}
