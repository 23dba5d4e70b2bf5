//! What is stored, by names and headers alone: a large store is looked at as
//! quickly as it is listed.

use dsh_check::Finding;

use crate::Store;
use crate::lock::{LOCK_FILE, holder, is_held};
use crate::storage::Disk;

/// How many of a kind are named one by one.
const NAMED: usize = 5;

/// Lists a store's sessions: which cannot be opened, which another process
/// writes. Keeps no lock, and makes nothing.
pub fn check(store: &Store) -> Vec<Finding> {
    let (root, at) = (store.root(), store.root().display());
    if root.symlink_metadata().is_err() {
        return vec![Finding::ok(format_args!(
            "there are no sessions yet ({at})"
        ))];
    }
    let entries = match store.list() {
        Ok(entries) => entries,
        Err(error) => {
            return vec![Finding::wrong(format_args!(
                "the sessions in {at} cannot be listed: {error}; make it a directory of yours"
            ))];
        }
    };
    let mut found = Vec::new();
    let damaged: Vec<_> = entries
        .iter()
        .filter(|entry| entry.header.is_err())
        .collect();
    for entry in damaged.iter().take(NAMED) {
        let Err(damage) = &entry.header else { continue };
        let id = entry.id();
        found.push(Finding::wrong(format_args!(
            "{}: {damage}; look at it with `dsh sessions check {}`",
            entry.path.display(),
            id.as_deref().unwrap_or("ID")
        )));
    }
    if let Some(more) = damaged.len().checked_sub(NAMED).filter(|more| *more > 0) {
        found.push(Finding::wrong(format_args!(
            "{more} more sessions in {at} cannot be opened; see them with `dsh sessions list`"
        )));
    }
    let held: Vec<_> = entries
        .iter()
        .filter_map(|entry| Some(entry.path.parent()?.join(LOCK_FILE)))
        .filter(|lock| is_held(lock))
        .collect();
    for lock in held.iter().take(NAMED) {
        found.push(Finding::ok(format_args!(
            "{} is held by {}; that session is being written",
            lock.display(),
            holder(&Disk, lock)
        )));
    }
    if damaged.is_empty() {
        let count = entries.len();
        found.insert(
            0,
            Finding::ok(format_args!("{count} sessions in {at} can be listed")),
        );
    }
    found
}

#[cfg(test)]
mod tests {
    use dsh_check::Level;

    use super::*;
    use crate::StoreConfig;

    #[test]
    fn a_damaged_log_and_a_held_lock_are_told_and_nothing_is_made() {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().join("sessions");
        let store = Store::open(StoreConfig::new(&root)).unwrap();
        assert_eq!(check(&store)[0].level, Level::Ok);
        assert!(!root.exists());

        let dir = root.join("--w--/bad");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("session.jsonl"), "nonsense\n").unwrap();
        let lock = dir.join(LOCK_FILE);
        let found = check(&store);
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].level, Level::Wrong);
        assert!(
            found[0].what.contains("dsh sessions check bad"),
            "{found:?}"
        );
        assert!(!lock.exists());

        let held = crate::lock::try_lock(&lock, &crate::lock::label())
            .unwrap()
            .unwrap();
        let found = check(&store);
        assert!(found[1].what.contains("is held by pid"), "{found:?}");
        drop(held);
        std::fs::remove_file(&lock).unwrap();
        let bits = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &lock, bits).unwrap();
        assert_eq!(check(&store).len(), 1, "a pipe is not waited for");
        std::fs::remove_file(&lock).unwrap();
        std::fs::write(&lock, "{}").unwrap();
        // What a writer left behind holds nothing.
        assert_eq!(check(&store).len(), 1);
    }
}
