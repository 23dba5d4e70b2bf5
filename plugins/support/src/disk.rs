//! Files, as components look at them before a step: each failure that only says
//! that there is no such file is no failure.

/// What a look at a file says of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Look {
    /// Bytes.
    pub size: u64,
    /// Changes when the content does.
    pub version: String,
}

/// An entry of a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// The last part of its path.
    pub name: String,
    /// What it is; a link may be either.
    pub kind: Kind,
}

/// What an entry is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A link, to whatever it is.
    Link,
    /// A pipe, a socket, a device.
    Other,
}

/// The files of the machine, as far as the row may see them.
pub trait Disk {
    /// Of a regular file, links followed; none where there is none.
    ///
    /// # Errors
    /// Why it could not be looked at.
    fn look(&self, path: &str) -> Result<Option<Look>, String>;

    /// At most `limit` bytes from its start, and what they were read of.
    ///
    /// # Errors
    /// Why it could not be read.
    fn read(&self, path: &str, limit: u32) -> Result<Option<(Vec<u8>, Look)>, String>;

    /// Whether there is anything of this name.
    fn exists(&self, path: &str) -> bool;

    /// A directory's entries; none where there is no directory.
    ///
    /// # Errors
    /// Why it could not be listed.
    fn list(&self, path: &str) -> Result<Vec<Listed>, String>;

    /// Tells people, in the host's log.
    fn warn(&self, message: &str);
}
