//! The imports `session` and `workspace`, as the traits that logic is written
//! against. A component that uses neither imports neither.

use crate::disk::{Disk, Kind, Listed, Look};
use crate::follow::Session;
use crate::{Error, log, session, workspace};

/// The host of the component.
#[derive(Clone, Copy, Debug)]
pub struct Host;

impl Session for Host {
    fn length(&self) -> u32 {
        session::length()
    }

    fn events(&self, first: u32, limit: u32, kinds: &[String]) -> Vec<String> {
        session::events(first, limit, kinds)
    }

    fn messages(&self, first: u32, limit: u32) -> Vec<String> {
        session::messages(first, limit)
    }
}

impl Disk for Host {
    fn look(&self, path: &str) -> Result<Option<Look>, String> {
        match workspace::stat(path) {
            Ok(metadata) if metadata.kind == workspace::Kind::File => Ok(Some(look(&metadata))),
            Ok(_) => Ok(None),
            Err(error) => nothing_there(error),
        }
    }

    fn read(&self, path: &str, limit: u32) -> Result<Option<(Vec<u8>, Look)>, String> {
        match workspace::read(path, 0.0, limit) {
            Ok(slice) => Ok(Some((slice.content, look(&slice.metadata)))),
            Err(error) => nothing_there(error),
        }
    }

    fn exists(&self, path: &str) -> bool {
        workspace::stat(path).is_ok()
    }

    fn list(&self, path: &str) -> Result<Vec<Listed>, String> {
        let entries = match workspace::list_dir(path) {
            Ok(entries) => entries,
            Err(error) => return nothing_there::<()>(error).map(|_| Vec::new()),
        };
        let listed = entries.into_iter().map(|entry| Listed {
            name: entry.name,
            kind: match entry.kind {
                workspace::Kind::File => Kind::File,
                workspace::Kind::Directory => Kind::Directory,
                workspace::Kind::Symlink => Kind::Link,
                workspace::Kind::Other => Kind::Other,
            },
        });
        Ok(listed.collect())
    }

    fn warn(&self, message: &str) {
        log::write(log::Level::Warn, message);
    }
}

fn look(metadata: &workspace::Metadata) -> Look {
    Look {
        size: metadata.size as u64,
        version: metadata.version.clone(),
    }
}

/// What stands for no file: none of the name, or something else than a file.
fn nothing_there<T>(error: Error) -> Result<Option<T>, String> {
    match error.code.as_str() {
        "FS_NOT_FOUND" | "FS_NOT_REGULAR_FILE" | "FS_NOT_DIRECTORY" => Ok(None),
        _ => Err(error.message),
    }
}
