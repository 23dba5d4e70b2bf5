//! The instruction files of directories, read once a version.

use std::collections::{BTreeMap, HashSet};

use guest_support::disk::{Disk, Look};
use guest_support::paths;
use guest_support::words::start;

use crate::settings::Settings;
use crate::sha1;

/// Bytes of texts that one message is made of, and that are kept between two: a
/// component's memory has a bound, and what is over it would cost the turn.
const MAX_HELD: usize = 4 << 20;

/// A file with something in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct File {
    pub(crate) name: String,
    /// As much of it as a message has place for.
    pub(crate) text: String,
    /// Of the whole.
    pub(crate) digest: String,
    cut: bool,
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
    /// Bytes of texts that were given out for this message.
    given: usize,
}

impl Files {
    /// What is asked for from here on is for another message.
    pub(crate) fn begin(&mut self) {
        self.given = 0;
    }

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
            match self.find(&paths::join(directory, name), settings, disk) {
                Found::There(file) if files.iter().any(|other| same(other, &file)) => {}
                Found::There(file) => files.push(file),
                Found::Unknown => unknown.push(name.to_owned()),
                Found::Absent => {}
            }
        }
        (files, unknown)
    }

    /// The file of this path.
    pub(crate) fn find(&mut self, path: &str, settings: &Settings, disk: &impl Disk) -> Found {
        let found = self.find_any(path, settings, disk);
        if let Found::There(file) = &found {
            let given = self.given.saturating_add(file.text.len());
            if given > MAX_HELD {
                let why = format!(
                    "more specific instructions fill the {MAX_HELD} bytes that are held at once"
                );
                return self.unknown(path, &why, disk);
            }
            self.given = given;
        }
        found
    }

    fn find_any(&mut self, path: &str, settings: &Settings, disk: &impl Disk) -> Found {
        let max = settings.max_source;
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
            read(path, &bytes, settings.max)
        };
        if self.held() > MAX_HELD {
            self.cache.clear();
        }
        self.cache.insert(path.to_owned(), (look, found.clone()));
        found
    }

    pub(crate) fn held(&self) -> usize {
        let texts = self.cache.values().map(|(_, found)| match found {
            Found::There(file) => file.text.len(),
            Found::Absent | Found::Unknown => 0,
        });
        texts.sum()
    }

    fn unknown(&mut self, path: &str, why: &str, disk: &impl Disk) -> Found {
        if self.warned.insert(path.to_owned()) {
            disk.warn(&format!("{path} is left out: {why}"));
        }
        Found::Unknown
    }
}

fn read(path: &str, bytes: &[u8], max: usize) -> Found {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.trim().is_empty() {
        return Found::Absent;
    }
    // With its frame it is too long all the same, so that the cut is told.
    let shown = start(text, max);
    Found::There(File {
        name: paths::name(path).to_owned(),
        text: shown.to_owned(),
        digest: sha1::hex(bytes),
        cut: shown.len() < text.len(),
    })
}

fn same(one: &File, other: &File) -> bool {
    one.digest == other.digest || !one.cut && !other.cut && one.text.trim() == other.text.trim()
}
