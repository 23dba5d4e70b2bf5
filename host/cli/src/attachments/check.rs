//! Whether the pictures that the sessions of a home name can be shown.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use dsh_check::{Finding, Level};
use dsh_picture::{AttachmentId, Pictures};

/// Bytes of pictures whose digests are looked at: a check waits for nobody.
const MOST_BYTES: u64 = 128 << 20;
/// Damaged ones that are named.
const MOST_NAMED: usize = 5;

/// Looks at `attachments` of a home; nothing to say where there is none.
pub(crate) fn check(home: &Path) -> Vec<Finding> {
    let root = home.join("attachments");
    let mut found = Vec::new();
    let objects = root.join("v1/objects");
    for folder in [&root, &root.join("v1"), &objects] {
        match place(folder) {
            Place::Absent => return found,
            Place::Sound => {}
            Place::Finding(one) if one.level == Level::Wrong => return vec![one],
            Place::Finding(one) => found.push(one),
        }
    }
    found.extend(damaged(&root, &objects));
    found
}

enum Place {
    Absent,
    Sound,
    Finding(Finding),
}

fn place(folder: &Path) -> Place {
    let at = folder.display();
    let wrong = |why: &dyn std::fmt::Display| {
        Place::Finding(Finding::wrong(format_args!(
            "{at} {why}, so no picture can be attached or shown; move it away"
        )))
    };
    match folder.symlink_metadata() {
        Err(error) if error.kind() == ErrorKind::NotFound => Place::Absent,
        Err(error) => wrong(&format_args!("cannot be looked at ({error})")),
        Ok(what) if what.is_symlink() && !folder.is_dir() => {
            wrong(&"is a link that leads to no folder")
        }
        Ok(what) if what.is_symlink() => Place::Finding(Finding::warning(format_args!(
            "{at} is a link, so pictures are kept outside of the home, and whoever may write there can take them away; move that folder here if that was not meant"
        ))),
        Ok(what) if !what.is_dir() => wrong(&"is no folder"),
        Ok(_) => Place::Sound,
    }
}

/// The pictures that are not what their names say.
fn damaged(root: &Path, objects: &Path) -> Vec<Finding> {
    let pictures = Pictures::at(root);
    let (mut seen, mut bytes, mut faults) = (0_u64, 0_u64, Vec::new());
    let shards = fs::read_dir(objects).into_iter().flatten().flatten();
    for entry in shards.flat_map(|shard| fs::read_dir(shard.path()).into_iter().flatten().flatten())
    {
        let name = entry.file_name();
        let Ok(id) = AttachmentId::parse(&format!("sha256:{}", name.to_string_lossy())) else {
            continue;
        };
        bytes += entry.metadata().map_or(0, |metadata| metadata.len());
        if bytes > MOST_BYTES {
            break;
        }
        seen += 1;
        if let Err(error) = pictures.read(&id) {
            faults.push(error.to_string());
        }
    }
    let at = objects.display();
    if faults.is_empty() {
        return vec![Finding::ok(format_args!(
            "{at}: {seen} pictures are what their names say"
        ))];
    }
    let more = faults.len().saturating_sub(MOST_NAMED);
    let mut found: Vec<Finding> = faults
        .into_iter()
        .take(MOST_NAMED)
        .map(Finding::wrong)
        .collect();
    if more > 0 {
        found.push(Finding::wrong(format_args!(
            "{at}: {more} more pictures are damaged"
        )));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(home: &Path) -> Vec<Level> {
        check(home).into_iter().map(|one| one.level).collect()
    }

    #[test]
    fn pictures_that_cannot_be_shown_are_found_and_named() {
        let home = tempfile::tempdir().unwrap();
        let home = home.path();
        assert_eq!(levels(home), []);
        fs::write(home.join("attachments"), "").unwrap();
        let found = check(home);
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].what.contains("is no folder"), "{found:?}");
        fs::remove_file(home.join("attachments")).unwrap();

        // The digest of `a`, and a name that is none.
        let hex = "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb";
        let folder = home.join("attachments/v1/objects/ca");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(hex), "a").unwrap();
        fs::write(folder.join(".new-x"), "").unwrap();
        let found = check(home);
        assert_eq!(levels(home), [Level::Ok]);
        assert!(
            found[0]
                .what
                .ends_with(": 1 pictures are what their names say")
        );
        fs::write(folder.join(hex), "b").unwrap();
        let found = check(home);
        assert_eq!(levels(home), [Level::Wrong]);
        assert!(
            found[0].what.contains(&format!("{hex} is damaged")),
            "{found:?}"
        );
        for other in 0..9 {
            fs::write(folder.join(format!("{other}{}", &hex[1..])), "").unwrap();
        }
        assert_eq!(levels(home), [Level::Wrong; 6]);

        // A link is followed, which somebody may not have meant.
        fs::write(folder.join(hex), "a").unwrap();
        for other in 0..9 {
            fs::remove_file(folder.join(format!("{other}{}", &hex[1..]))).unwrap();
        }
        fs::rename(home.join("attachments"), home.join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("elsewhere", home.join("attachments")).unwrap();
        assert_eq!(levels(home), [Level::Warning, Level::Ok]);
        fs::remove_dir_all(home.join("elsewhere")).unwrap();
        assert_eq!(levels(home), [Level::Wrong]);
    }
}
