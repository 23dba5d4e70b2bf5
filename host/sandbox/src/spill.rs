//! Where output too long for the model is kept: a private directory (0700) of
//! this process below the operating system's temporary one, a directory in it
//! per session, files 0600. Made when first needed, never removed: the log
//! refers to it (spec/cli.md §3).

use std::fs::{DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

/// Bytes of one spill file.
pub(crate) const MAX_SPILL: usize = 64 << 20;

/// The spill directory of a process.
#[derive(Debug)]
pub(crate) struct SpillRoot {
    temp: PathBuf,
    made: Mutex<Option<PathBuf>>,
}

impl SpillRoot {
    pub(crate) fn new(temp: PathBuf) -> Self {
        SpillRoot {
            temp,
            made: Mutex::new(None),
        }
    }

    /// A session's directory, if it has one yet.
    pub(crate) fn existing(&self, session: &str) -> Option<PathBuf> {
        let made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        made.as_ref()
            .map(|root| root.join(segment(session)))
            .filter(|dir| dir.is_dir())
    }

    /// Makes a new file for a session.
    pub(crate) fn create(&self, session: &str, name: &str) -> io::Result<(File, PathBuf)> {
        let dir = self.session_dir(session)?;
        let suffix = format!("-{}", plain(name));
        let file = tempfile::Builder::new()
            .prefix("")
            .rand_bytes(12)
            .suffix(&suffix)
            .tempfile_in(dir)?;
        file.keep().map_err(|error| error.error)
    }

    /// Keeps a whole text.
    pub(crate) fn store(&self, session: &str, name: &str, content: &[u8]) -> io::Result<PathBuf> {
        let (mut file, path) = self.create(session, name)?;
        file.write_all(content)?;
        Ok(path)
    }

    fn session_dir(&self, session: &str) -> io::Result<PathBuf> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        // Temporary directories are swept by others.
        let root = match made.take().filter(|root| root.is_dir()) {
            Some(root) => root,
            None => {
                let private = std::fs::Permissions::from_mode(0o700);
                let mut builder = tempfile::Builder::new();
                builder
                    .prefix("dsh-spill-")
                    .permissions(private)
                    .tempdir_in(&self.temp)?
                    .keep()
            }
        };
        *made = Some(root.clone());
        let dir = root.join(segment(session));
        match DirBuilder::new().mode(0o700).create(&dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
            _ => Ok(dir),
        }
    }
}

fn segment(session: &str) -> String {
    let digest = Sha256::digest(session.as_bytes());
    let hex: String = digest
        .iter()
        .take(8)
        .map(|byte| format!("{byte:02x}"))
        .collect();
    format!("session-{hex}")
}

/// A file name that is nothing but one.
fn plain(name: &str) -> String {
    let name = Path::new(name)
        .file_name()
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default();
    let keep = |c: char| {
        if c.is_ascii_alphanumeric() || "._-".contains(c) {
            c
        } else {
            '_'
        }
    };
    let plain: String = name.chars().take(80).map(keep).collect();
    if plain.is_empty() {
        "output.txt".to_owned()
    } else {
        plain
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bits(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn a_spill_file_is_private_and_below_its_session_s_directory() {
        let temp = tempfile::tempdir().unwrap();
        let spill = SpillRoot::new(temp.path().to_path_buf());
        assert_eq!(spill.existing("s"), None);
        let path = spill
            .store("s", "../../e vil/name?.txt", b"content")
            .unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"content");
        assert!(path.to_str().unwrap().ends_with("-name_.txt"));
        let dir = path.parent().unwrap();
        assert_eq!(spill.existing("s").as_deref(), Some(dir));
        assert_eq!(dir.parent().unwrap().parent(), Some(temp.path()));
        assert_eq!(
            (bits(&path), bits(dir), bits(dir.parent().unwrap())),
            (0o600, 0o700, 0o700)
        );
        let other = spill.store("t", "x", b"").unwrap();
        assert_ne!(other.parent(), Some(dir));
    }

    #[test]
    fn a_swept_directory_is_made_again() {
        let temp = tempfile::tempdir().unwrap();
        let spill = SpillRoot::new(temp.path().to_path_buf());
        let path = spill.store("s", "x", b"").unwrap();
        std::fs::remove_dir_all(path.parent().unwrap().parent().unwrap()).unwrap();
        assert!(spill.store("s", "x", b"").unwrap().is_file());
    }
}
