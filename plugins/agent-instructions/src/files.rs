//! The instruction files of directories, read once a version.

use std::collections::{BTreeMap, HashSet};

use guest_support::disk::{Disk, Look};
use guest_support::paths;

use crate::settings::Settings;
use crate::sha1;

/// A file with something in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) digest: String,
}

/// One place where a file may be.
#[derive(Clone, Debug)]
pub(crate) enum Found {
    /// None, or one that says nothing.
    Absent,
    There(File),
    /// It is there and cannot be shown, which changes nothing of what was.
    Unknown,
}

/// Contents by path and version. A hint: what the model was told is in the log.
#[derive(Default)]
pub(crate) struct Files {
    cache: BTreeMap<String, (Look, Found)>,
    warned: HashSet<String>,
}

impl Files {
    /// The files of a directory in the order of their names; of those that say
    /// the same, the first. The names that could not be told are the second list.
    pub(crate) fn of_directory(
        &mut self,
        directory: &str,
        settings: &Settings,
        disk: &impl Disk,
    ) -> (Vec<File>, Vec<String>) {
        let (mut files, mut unknown): (Vec<File>, Vec<String>) = Default::default();
        for name in settings.all_names() {
            match self.find(&paths::join(directory, name), settings.max_source, disk) {
                Found::There(file) if files.iter().any(|other| same(other, &file)) => {}
                Found::There(file) => files.push(file),
                Found::Unknown => unknown.push(name.to_owned()),
                Found::Absent => {}
            }
        }
        (files, unknown)
    }

    /// The file of this path.
    pub(crate) fn find(&mut self, path: &str, max: u32, disk: &impl Disk) -> Found {
        // The first time it is read without a look before, which is one call less.
        if let Some((known, found)) = self.cache.get(path) {
            match disk.look(path) {
                Ok(Some(look)) if look == *known => return found.clone(),
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.cache.remove(path);
                    return Found::Absent;
                }
                Err(why) => return self.unknown(path, &why, disk),
            }
        }
        let (bytes, look) = match disk.read(path, max.saturating_add(1)) {
            Ok(Some(read)) => read,
            Ok(None) => return Found::Absent,
            Err(why) => return self.unknown(path, &why, disk),
        };
        let found = if bytes.len() as u64 > max.into() {
            let why = format!("it has {} bytes, and {max} are read at most", look.size);
            self.unknown(path, &why, disk)
        } else if bytes.contains(&0) {
            self.unknown(path, "it is no text", disk)
        } else {
            read(path, &bytes)
        };
        self.cache.insert(path.to_owned(), (look, found.clone()));
        found
    }

    fn unknown(&mut self, path: &str, why: &str, disk: &impl Disk) -> Found {
        if self.warned.insert(path.to_owned()) {
            disk.warn(&format!("{path} is left out: {why}"));
        }
        Found::Unknown
    }
}

fn read(path: &str, bytes: &[u8]) -> Found {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Found::Absent;
    }
    Found::There(File {
        name: paths::name(path).to_owned(),
        text: text.to_owned(),
        digest: sha1::hex(bytes),
    })
}

fn same(one: &File, other: &File) -> bool {
    one.text.trim() == other.text.trim()
}
