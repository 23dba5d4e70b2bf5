//! Walking a root: which files claim to be sessions (spec/session.md §9.7), and working on many of them at once.
//!
//! Names come with their kind, so that walking costs a call a directory and none a session. Nearly all the time of a
//! listing goes into system calls that touch one file each, so these are spread over threads; results keep their order.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::layout::Compression;
use crate::storage::{EntryKind, Storage};
use crate::{Damage, DamageClass, Stage, StoreError};

/// How many threads work on one listing at most; they wait for the same locks in the kernel.
const MAX_THREADS: usize = 8;

/// A place below the root that a session claims.
#[derive(Debug)]
pub(crate) enum Spot {
    /// A directory of its own.
    Dir(PathBuf),
    /// A log directly in a project directory, as an older layout had it.
    Flat(PathBuf),
    /// A project directory that cannot be read.
    Unreadable(PathBuf, io::Error),
}

/// The directories below the root, ordered by name; none when the root is absent.
pub(crate) fn projects(storage: &dyn Storage, root: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let mut entries = match storage.read_entries(root) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(StoreError::io("list", root)(e)),
    };
    // What cannot be looked at may be a project: taking it for none would let a session seem absent.
    entries.retain(|entry| entry.kind != EntryKind::File);
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(entries
        .into_iter()
        .map(|entry| root.join(entry.name))
        .collect())
}

/// What a project directory holds, ordered by name.
pub(crate) fn spots(storage: &dyn Storage, project: &Path) -> Vec<Spot> {
    let mut entries = match storage.read_entries(project) {
        Ok(entries) => entries,
        // It went away between two looks.
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Vec::new(),
        Err(e) => return vec![Spot::Unreadable(project.to_owned(), e)],
    };
    entries.sort_by(|a, b| a.name.cmp(&b.name));
    let spot = |entry: crate::storage::DirEntry| {
        let path = project.join(&entry.name);
        match entry.kind {
            EntryKind::Dir => Some(Spot::Dir(path)),
            EntryKind::File => {
                let name = entry.name.to_string_lossy();
                let flat = name.ends_with(".jsonl") || name.ends_with(".jsonl.zstd");
                flat.then_some(Spot::Flat(path))
            }
            EntryKind::Other => None,
        }
    };
    entries.into_iter().filter_map(spot).collect()
}

/// Everything below a root.
pub(crate) fn all_spots(storage: &dyn Storage, root: &Path) -> Result<Vec<Spot>, StoreError> {
    let projects = projects(storage, root)?;
    Ok(projects
        .iter()
        .flat_map(|project| spots(storage, project))
        .collect())
}

/// Why a session cannot be opened that lies where none should.
pub(crate) fn flat_damage() -> Damage {
    let reason = "a log directly in a project directory, an older layout; move it into a directory of its own";
    damage(DamageClass::Layout, Stage::Open, reason.to_owned())
}

/// Why a log cannot be opened that has the encoding of other roots.
pub(crate) fn encoding_damage(own: Compression) -> Damage {
    let reason = format!("its encoding is not this store's ({})", own.file_name());
    damage(DamageClass::Layout, Stage::Open, reason)
}

pub(crate) fn unreadable(e: &io::Error) -> Damage {
    damage(DamageClass::Unreadable, Stage::Open, e.to_string())
}

/// An id that is there twice names nothing.
pub(crate) fn twice(id: &str) -> Damage {
    let reason = format!("session {id:?} is there more than once; move one away");
    damage(DamageClass::Identity, Stage::Identity, reason)
}

pub(crate) fn damage(class: DamageClass, stage: Stage, reason: String) -> Damage {
    Damage {
        class,
        stage,
        offset: None,
        seq: None,
        reason,
    }
}

/// Maps items on several threads, `chunk` of them at a time; each thread has a context of its own.
pub(crate) fn parallel<T: Sync, C, R: Send>(
    items: &[T],
    chunk: usize,
    context: impl Fn() -> C + Sync,
    work: impl Fn(&mut C, &T) -> R + Sync,
) -> Vec<R> {
    let chunks = items.len().div_ceil(chunk);
    let threads = cores().clamp(1, MAX_THREADS).min(chunks);
    if threads <= 1 {
        let mut context = context();
        return items.iter().map(|item| work(&mut context, item)).collect();
    }
    let next = AtomicUsize::new(0);
    let worker = || {
        let mut context = context();
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(items) = items.chunks(chunk).nth(index) else {
                return done;
            };
            let results: Vec<R> = items.iter().map(|item| work(&mut context, item)).collect();
            done.push((index, results));
        }
    };
    let mut done = thread::scope(|scope| {
        // A thread that cannot be had leaves its share to the others.
        let others: Vec<_> = (1..threads)
            .filter_map(|_| thread::Builder::new().spawn_scoped(scope, worker).ok())
            .collect();
        let mut done = worker();
        for other in others {
            match other.join() {
                Ok(results) => done.extend(results),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        done
    });
    done.sort_unstable_by_key(|(index, _)| *index);
    done.into_iter().flat_map(|(_, results)| results).collect()
}

/// How many cores there are; asking reads files, so it is done once.
fn cores() -> usize {
    static CORES: OnceLock<usize> = OnceLock::new();
    *CORES.get_or_init(|| thread::available_parallelism().map_or(1, usize::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_of_many_threads_keep_the_order_of_the_items() {
        for len in [0, 1, 7, 1000] {
            let items: Vec<usize> = (0..len).collect();
            let doubled = parallel(&items, 3, || (), |(), item| item * 2);
            assert_eq!(doubled, items.iter().map(|i| i * 2).collect::<Vec<_>>());
        }
    }

    #[test]
    fn an_item_that_takes_long_comes_out_in_its_place() {
        if cores() < 2 {
            return;
        }
        let others = AtomicUsize::new(0);
        let numbers = parallel(
            &[0, 1, 2, 3],
            1,
            || (),
            |(), item| {
                // The first one ends after all others, which only another thread can have done.
                while *item == 0 && others.load(Ordering::SeqCst) < 3 {
                    thread::yield_now();
                }
                others.fetch_add(1, Ordering::SeqCst);
                *item
            },
        );
        assert_eq!(numbers, [0, 1, 2, 3]);
    }
}
