//! Which skills there are: folders with a `SKILL.md`, and files `NAME.md`, one
//! level below a root. Only their first bytes are read, once a version.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashSet};

use guest_support::disk::{Disk, Kind, Look};
use guest_support::paths;
use guest_support::words::{one_line, start};

use crate::front;

/// Front matter ends within so many bytes.
const HEAD: u32 = 64 * 1024;

/// Entries of a root that are looked at.
const MAX_ENTRIES: usize = 1_000;

/// Characters of a description that the catalogue shows.
const MAX_DESCRIPTION: usize = 500;

/// One skill.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Skill {
    pub(crate) name: String,
    /// On one line, cut.
    pub(crate) description: String,
    /// Its file.
    pub(crate) path: String,
    /// What its relative paths start from; none of a file that stands alone.
    pub(crate) folder: Option<String>,
    /// Whether the model may ask for it.
    pub(crate) model: bool,
    /// Whether a person may call it by `/name`.
    pub(crate) person: bool,
}

/// What is known of files by version. A hint.
#[derive(Default)]
pub(crate) struct Scanner {
    cache: BTreeMap<String, (Look, Option<Skill>)>,
    warned: HashSet<String>,
}

impl Scanner {
    /// Every skill by name; the first root that has a name has it for all.
    pub(crate) fn skills(&mut self, roots: &[String], disk: &impl Disk) -> BTreeMap<String, Skill> {
        let mut skills: BTreeMap<String, Skill> = BTreeMap::new();
        for root in roots {
            let mut entries = match disk.list(root) {
                Ok(entries) => entries,
                Err(why) => {
                    self.warn(root, &why, disk);
                    continue;
                }
            };
            if entries.len() > MAX_ENTRIES {
                let why = format!(
                    "it has {} entries; the first {MAX_ENTRIES} are looked at",
                    entries.len()
                );
                self.warn(root, &why, disk);
                entries.truncate(MAX_ENTRIES);
            }
            for entry in entries {
                // What is hidden is somebody's bookkeeping, as `.system` is.
                if entry.name.starts_with('.') {
                    continue;
                }
                let Some(skill) = self.entry(root, &entry.name, entry.kind, disk) else {
                    continue;
                };
                match skills.entry(skill.name.clone()) {
                    Entry::Vacant(free) => {
                        free.insert(skill);
                    }
                    // A nearer folder's is meant to stand before a farther one's.
                    Entry::Occupied(first) if paths::is_below(root, &first.get().path) => {
                        let why = format!("{} has its name already", first.get().path);
                        self.warn(&skill.path, &why, disk);
                    }
                    Entry::Occupied(_) => {}
                }
            }
        }
        skills
    }

    fn entry(&mut self, root: &str, name: &str, kind: Kind, disk: &impl Disk) -> Option<Skill> {
        let path = paths::join(root, name);
        let inside = || paths::join(&path, "SKILL.md");
        let alone = name.ends_with(".md");
        match kind {
            Kind::Directory => self.skill(&inside(), Some(&path), disk),
            Kind::File if alone => self.skill(&path, None, disk),
            Kind::Link => {
                let folder = self.skill(&inside(), Some(&path), disk);
                folder.or_else(|| alone.then(|| self.skill(&path, None, disk))?)
            }
            Kind::File | Kind::Other => None,
        }
    }

    fn skill(&mut self, path: &str, folder: Option<&str>, disk: &impl Disk) -> Option<Skill> {
        if let Some((known, skill)) = self.cache.get(path) {
            match disk.look(path) {
                Ok(Some(look)) if look == *known => return skill.clone(),
                Ok(Some(_)) => {}
                Ok(None) => {
                    self.cache.remove(path);
                    return None;
                }
                Err(why) => {
                    self.warn(path, &why, disk);
                    return None;
                }
            }
        }
        let (bytes, look) = match disk.read(path, HEAD) {
            Ok(read) => read?,
            Err(why) => {
                self.warn(path, &why, disk);
                return None;
            }
        };
        let skill = match read(&bytes, path, folder) {
            Ok(skill) => Some(skill),
            Err(why) => {
                // What is changed and still broken is told of again.
                self.warned.remove(path);
                self.warn(path, &why, disk);
                None
            }
        };
        self.cache.insert(path.to_owned(), (look, skill.clone()));
        skill
    }

    fn warn(&mut self, path: &str, why: &str, disk: &impl Disk) {
        if self.warned.insert(path.to_owned()) {
            disk.warn(&format!("{path} is left out: {why}"));
        }
    }
}

fn read(bytes: &[u8], path: &str, folder: Option<&str>) -> Result<Skill, String> {
    if bytes.contains(&0) {
        return Err("it is no text".to_owned());
    }
    let (front, _) = front::read(&String::from_utf8_lossy(bytes))?;
    let mut description = one_line(&front.description);
    if let Some(when) = front.when_to_use {
        description = format!("{description} {}", one_line(&when));
    }
    Ok(Skill {
        name: front.name,
        description: cut(&description),
        path: path.to_owned(),
        folder: folder.map(str::to_owned),
        model: front.model,
        person: front.person,
    })
}

fn cut(description: &str) -> String {
    match description.char_indices().nth(MAX_DESCRIPTION) {
        None => description.to_owned(),
        Some(_) => {
            let kept = description.char_indices().nth(MAX_DESCRIPTION - 1);
            format!("{}…", start(description, kept.map_or(0, |(at, _)| at)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_is_cut_at_its_500th_character() {
        let all = "é".repeat(500);
        assert_eq!(cut(&all), all);
        let more = cut(&format!("{all}é"));
        assert_eq!((more.chars().count(), more.ends_with('…')), (500, true));
    }
}
