//! By which names `$DSH_HOME` is reached beside its canonical one.
//!
//! A path is compared as text, so a second name for the same directory is a
//! hole. There are two kinds. A file system that is mounted twice, or a bind
//! mount of the home, of what holds it or of a part of it, shows the same files
//! elsewhere: the kernel's table of mounts says where. And a home that is
//! reached through a link is forged by replacing the link, with no file of the
//! home touched: so those links stay as they are.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// As the kernel's own bound on links in a path.
const MAX_LINKS: usize = 40;

/// A place where `$DSH_HOME`, or a part of it, is mounted a second time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Alias {
    /// Where it is seen.
    pub path: PathBuf,
    /// What that is in `$DSH_HOME`; empty for all of it.
    pub inside: PathBuf,
}

/// A line of `/proc/self/mountinfo`: what of which file system is seen where.
struct Mount {
    device: String,
    root: PathBuf,
    at: PathBuf,
}

impl Mount {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ').skip(2);
        Some(Mount {
            device: fields.next()?.to_owned(),
            root: unescape(fields.next()?),
            at: unescape(fields.next()?),
        })
    }
}

/// Space, tab, newline and backslash stand as three octal digits.
fn unescape(field: &str) -> PathBuf {
    let bytes = field.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let digits = field.get(at + 1..at + 4).filter(|_| bytes[at] == b'\\');
        match digits.and_then(|digits| u8::from_str_radix(digits, 8).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 4;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    PathBuf::from(OsString::from_vec(plain))
}

/// Where this canonical path, or a part of what is below it, is seen besides,
/// by the kernel's table of mounts.
pub(crate) fn mounted(mountinfo: &str, home: &Path) -> Vec<Alias> {
    let mounts: Vec<Mount> = mountinfo.lines().filter_map(Mount::parse).collect();
    // A later mount covers an earlier one at the same place.
    let own = mounts
        .iter()
        .filter(|mount| home.starts_with(&mount.at))
        .max_by_key(|mount| mount.at.components().count());
    let Some(own) = own else { return Vec::new() };
    let below = home.strip_prefix(&own.at).unwrap_or(home);
    let stored = own.root.join(below);
    let mut found = Vec::new();
    for mount in mounts.iter().filter(|mount| mount.device == own.device) {
        let alias = if let Ok(below) = stored.strip_prefix(&mount.root) {
            Alias {
                // Component by component: nothing below is not a trailing slash.
                path: mount.at.join(below).components().collect(),
                inside: PathBuf::new(),
            }
        } else if let Ok(inside) = mount.root.strip_prefix(&stored) {
            Alias {
                path: mount.at.clone(),
                inside: inside.to_path_buf(),
            }
        } else {
            continue;
        };
        if !alias.path.starts_with(home) && !found.contains(&alias) {
            found.push(alias);
        }
    }
    found
}

/// The links on the way to a path, by where they really are.
pub(crate) fn links(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut at = PathBuf::from("/");
    let parts = |path: &Path| -> Vec<OsString> {
        let parts = path.components().rev();
        parts.map(|part| part.as_os_str().to_owned()).collect()
    };
    let mut ahead = parts(path);
    while let Some(part) = ahead.pop() {
        match Path::new(&part).components().next() {
            Some(Component::RootDir) => at = PathBuf::from("/"),
            Some(Component::ParentDir) => {
                at.pop();
            }
            Some(Component::Normal(name)) => {
                at.push(name);
                if found.len() < MAX_LINKS
                    && let Ok(target) = std::fs::read_link(&at)
                {
                    found.push(at.clone());
                    at.pop();
                    ahead.extend(parts(&target));
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "\
27 1 254:0 / / rw,relatime - ext4 /dev/vda rw
28 27 0:22 / /proc rw - proc proc rw
40 27 254:1 / /home rw - ext4 /dev/vdb rw
41 27 254:1 /u /mnt/all\\040of\\134u rw - ext4 /dev/vdb rw
42 27 254:1 /u/.dsh /srv/dsh rw - ext4 /dev/vdb rw
43 27 254:1 /u/.dsh/profiles/p /etc/p rw - ext4 /dev/vdb rw
44 27 254:1 /u/.dshx /srv/x rw - ext4 /dev/vdb rw
45 27 254:1 /v /mnt/v rw - ext4 /dev/vdb rw
46 27 254:2 /u/.dsh /mnt/other rw - ext4 /dev/vdc rw
47 27 254:0 /home/u/.dsh /mnt/covered rw - ext4 /dev/vda rw
48 27 254:1 /u/.dsh/skills /home/u/.dsh/skills rw - ext4 /dev/vdb rw
";

    #[test]
    fn a_home_is_known_by_every_mount_that_shows_it_or_a_part_of_it() {
        let found = mounted(TABLE, Path::new("/home/u/.dsh"));
        let found: Vec<_> = found
            .iter()
            .map(|alias| (alias.path.to_str().unwrap(), alias.inside.to_str().unwrap()))
            .collect();
        assert_eq!(
            found,
            [
                ("/mnt/all of\\u/.dsh", ""),
                ("/srv/dsh", ""),
                ("/etc/p", "profiles/p"),
            ]
        );
        assert_eq!(mounted("", Path::new("/h")), []);
        assert_eq!(mounted("nonsense\n\n1 2 3\n", Path::new("/h")), []);
    }

    #[test]
    fn the_links_on_the_way_are_found_where_they_really_are() {
        use std::os::unix::fs::symlink;
        let temp = tempfile::tempdir().unwrap();
        let base = temp.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/deep")).unwrap();
        symlink("real", base.join("one")).unwrap();
        symlink(base.join("one/deep"), base.join("real/two")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let links = |path: &str| {
            let found = super::links(&base.join(path));
            let shown = |path: &PathBuf| path.strip_prefix(&base).unwrap().display().to_string();
            found.iter().map(shown).collect::<Vec<_>>()
        };
        assert_eq!(links("real/deep/none"), [""; 0]);
        assert_eq!(links("one/two/x"), ["one", "real/two", "one"]);
        assert_eq!(links("real/../one/x"), ["one"]);
        assert_eq!(links("loop").len(), MAX_LINKS);
    }
}
