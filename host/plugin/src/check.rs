//! Whether components can run here, and start quickly.
//!
//! The cache is opened as a run opens it, and one small entry is written and
//! read back: a full disk, a directory that others can write and a key that
//! cannot be read all show. Without a directory nothing is made.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use dsh_check::Finding;

use crate::aot;
use crate::cache::{Cache, KEY_FILE};
use crate::engine;

/// The entry that shows whether entries can be kept.
const PROBE: &str = "doctor.probe";

/// Starts an engine and tries the cache in this directory. `embedded` are the
/// components that are built into the program, with their machine code.
pub fn check(cache_dir: &Path, embedded: &[(&str, &[u8])]) -> Vec<Finding> {
    let engine = match engine::wasmtime_engine() {
        Ok(engine) => engine,
        Err(error) => {
            return vec![Finding::wrong(format_args!(
                "components cannot run on this machine: {error}"
            ))];
        }
    };
    let fingerprint = aot::fingerprint(&engine);
    let foreign: Vec<&str> = embedded
        .iter()
        .filter(|(_, code)| aot::unpack(code, &fingerprint).is_none())
        .map(|(name, _)| *name)
        .collect();
    let mut found = vec![if foreign.is_empty() {
        Finding::ok(format_args!(
            "the engine starts, and {} built-in components have machine code for this CPU",
            embedded.len()
        ))
    } else {
        Finding::warning(format_args!(
            "machine code of {} built-in components ({}) was made for another CPU; each is \
             compiled once, into {}",
            foreign.len(),
            foreign.join(", "),
            cache_dir.display()
        ))
    }];
    found.push(cache(cache_dir));
    found
}

fn cache(dir: &Path) -> Finding {
    let at = dir.display();
    if dir.symlink_metadata().is_err() {
        return Finding::ok(format_args!("there is no cache yet; a run makes {at}"));
    }
    let lost = "components that are not built in are compiled anew in each run";
    let key = dir.join(KEY_FILE);
    if key.metadata().is_ok_and(|meta| meta.mode() & 0o077 != 0) {
        let key = key.display();
        return Finding::wrong(format_args!(
            "{key} can be read by others, who could make machine code that dsh takes for its own; \
             remove it: the next run makes another"
        ));
    }
    let cache = match Cache::open(dir) {
        Ok(cache) => cache,
        Err(error) => {
            return Finding::wrong(format_args!(
                "the cache {at} cannot be used: {error}; {lost}; remove it, or make it a directory \
                 of yours alone (chmod 700)"
            ));
        }
    };
    let tried = cache.put(PROBE, &[&[0; 4096]]).and_then(|()| {
        let back = cache.get(PROBE);
        back.ok_or_else(|| std::io::Error::other("what was written does not come back"))
    });
    let _ = std::fs::remove_file(dir.join(PROBE));
    match tried {
        Ok(_) => Finding::ok(format_args!("the cache {at} is usable")),
        Err(error) => Finding::wrong(format_args!(
            "the cache {at} cannot be written: {error}; {lost}; make room, or remove it (nothing \
             is lost but time)"
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use dsh_check::Level;

    use super::*;

    #[test]
    fn a_cache_is_tried_and_left_as_it_was() {
        let temp = tempfile::tempdir().unwrap();
        let dir = temp.path().join("cache");
        let found = check(&dir, &[]);
        assert!(found.iter().all(|one| one.level == Level::Ok), "{found:?}");
        assert!(!dir.exists(), "it was made");

        std::fs::create_dir(&dir).unwrap();
        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o700)).unwrap();
        assert_eq!(cache(&dir).level, Level::Ok);
        let names: Vec<_> = dir
            .read_dir()
            .unwrap()
            .map(|one| one.unwrap().file_name())
            .collect();
        assert_eq!(names, ["key"]);

        let key = dir.join("key");
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert!(cache(&dir).what.contains("can be read by others"));
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();

        std::fs::set_permissions(&dir, std::fs::Permissions::from_mode(0o777)).unwrap();
        let loose = cache(&dir);
        assert_eq!(loose.level, Level::Wrong);
        assert!(loose.what.contains("chmod 700"), "{loose:?}");
        let file = temp.path().join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(cache(&file).level, Level::Wrong);
    }

    #[test]
    fn machine_code_of_another_cpu_is_told() {
        let found = check(Path::new("/none"), &[("dsh:x", b"nonsense")]);
        assert_eq!(found[0].level, Level::Warning);
        assert!(found[0].what.contains("dsh:x"), "{found:?}");
    }
}
