//! Making a log that cannot be written to one that can.
//!
//! Two things may stand in the way. A torn tail or an open turn is what a crash leaves; the next resume mends both by
//! itself, and so does [`Store::repair`]. Damage is mended only when a person asks for it, because events are lost:
//! [`Store::mend`] writes a new log of the longest sound prefix and the closers, and keeps the damaged one beside it.
//!
//! The order of calls, under the session's lock: the new log is written under another name, synced, and read back; the
//! old one gets a second name, and that is made durable; then the new one takes the log's name, and that is made
//! durable. Stopped at any point, the log's name leads to the old log or to the new one, and the old one is never
//! without a name. The names are none that upstream or a listing takes for a log (spec/session.md §9.7), and the number
//! in the old one's counts up, so that a second repair keeps the first one's original.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dsh_session::{Event, OpenTurn, REPAIR_TEXTS, Seq};

use crate::load::{Inspection, Loaded, Place, Target, Torn, check_identity, load};
use crate::log_file::take_lock;
use crate::{Compression, Damage, DamageClass, Store, StoreError};

/// So many events make a frame of the new log.
const BATCH: usize = 4096;

/// What a repair does, or did.
#[derive(Debug, Clone)]
pub struct Repair {
    /// The log.
    pub path: PathBuf,
    /// Why it is not sound; `None` when it only ends early.
    pub damage: Option<Damage>,
    /// How many stored events are kept.
    pub kept: u64,
    /// What is not kept; `None` when nothing is lost.
    pub lost: Option<Lost>,
    /// The torn tail that is cut off; what is whole of it is kept.
    pub torn: Option<Torn>,
    /// The events that close the open turn.
    pub closers: Vec<Arc<Event>>,
    /// Where the damaged log is kept; `None` without damage, and before it is done.
    pub original: Option<PathBuf>,
}

impl Repair {
    /// Whether there is nothing to do.
    pub fn is_nothing(&self) -> bool {
        self.damage.is_none() && self.torn.is_none() && self.closers.is_empty()
    }
}

/// What a repair leaves out. It stays in the original.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// The seq of the first event that is not kept.
    pub from_seq: u64,
    /// How many events were read behind the sound ones; `None` when what is there cannot be read as events.
    pub events: Option<u64>,
    /// How many bytes of the file the damage begins before; `None` when it is not a matter of bytes.
    pub bytes: Option<u64>,
}

impl Store {
    /// What [`Store::mend`] would do. Changes nothing and takes no lock.
    ///
    /// # Errors
    /// As [`Store::mend`], but for [`StoreError::Locked`].
    pub fn plan_repair(&self, id: &str) -> Result<Repair, StoreError> {
        let path = self.find(id)?;
        let loaded = self.read(&Target::Id(id.to_owned()))?;
        self.plan(&path, id, &loaded)
    }

    /// Repairs a log, damaged or not. Afterwards it is sound and [`Store::resume`] takes it.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Locked`], [`StoreError::Layout`], [`StoreError::Io`];
    /// [`StoreError::Unrepairable`] when the header cannot be used or the log is not in its place, and
    /// [`StoreError::Damaged`] when it has no header.
    pub fn mend(&self, id: &str) -> Result<Repair, StoreError> {
        let path = self.find(id)?;
        let dir = path.parent().unwrap_or(self.root());
        let lock = take_lock(&*self.storage, dir, id)?;
        let loaded = self.read(&Target::Id(id.to_owned()))?;
        let mut repair = self.plan(&path, id, &loaded)?;
        if repair.damage.is_none() {
            // The ordinary repair takes the lock itself.
            drop(lock);
            self.repair(id)?;
            return Ok(repair);
        }
        let new = self.write_sound(dir, &loaded, &repair)?;
        let original = self.keep_original(dir, &path);
        let published = original.and_then(|original| {
            self.sync(dir)?;
            self.storage
                .rename(&new, &path)
                .map_err(StoreError::io("replace", &path))?;
            self.sync(dir)?;
            Ok(original)
        });
        match published {
            Ok(original) => repair.original = Some(original),
            Err(e) => {
                let _ = self.storage.remove_file(&new);
                return Err(e);
            }
        }
        Ok(repair)
    }

    fn sync(&self, dir: &Path) -> Result<(), StoreError> {
        self.storage
            .sync_dir(dir)
            .map_err(StoreError::io("sync", dir))
    }

    fn plan(&self, path: &Path, id: &str, loaded: &Loaded) -> Result<Repair, StoreError> {
        let Inspection {
            header,
            log,
            torn,
            damage,
            bytes,
            ..
        } = &loaded.inspection;
        let unrepairable = |damage: &Damage, advice: String| StoreError::Unrepairable {
            path: path.to_owned(),
            damage: Box::new(damage.clone()),
            advice,
        };
        let place = Place {
            root: self.root(),
            id: Some(id),
        };
        let compression = self.config.compression;
        let misplaced = match header.check() {
            Ok(()) => check_identity(&*self.storage, path, header, place, compression)?,
            Err(_) => None,
        };
        if let Some(misplaced) = misplaced {
            let advice = "move its directory to where it belongs, or a copy of the right one here";
            return Err(unrepairable(&misplaced, advice.to_owned()));
        }
        let kept = log.len();
        let Some(damage) = damage else {
            return Ok(Repair {
                path: path.to_owned(),
                damage: None,
                kept,
                lost: None,
                torn: *torn,
                closers: loaded.inspection.closers.clone(),
                original: None,
            });
        };
        if header.check().is_err() {
            let advice = format!(
                "its first line must be mended by hand, or its events read with: dsh sessions export {id}"
            );
            return Err(unrepairable(damage, advice));
        }
        if !matches!(
            damage.class,
            DamageClass::Corrupt | DamageClass::Unsupported
        ) {
            let advice = "see to what the reason names".to_owned();
            return Err(unrepairable(damage, advice));
        }
        let decoded = loaded.stored;
        let lost = Lost {
            from_seq: kept,
            events: (decoded > kept).then_some(decoded - kept),
            bytes: damage.offset.map(|offset| bytes.saturating_sub(offset)),
        };
        let mut open = OpenTurn::default();
        let mut last = None;
        for event in log.events_from(Seq(0)) {
            let event = event.map_err(|source| StoreError::Refused {
                id: id.to_owned(),
                source: Box::new(source),
            })?;
            open.fold(&event);
            last = Some(event);
        }
        let closers = last.map_or(Vec::new(), |last| {
            open.closers(last.seq, last.time, REPAIR_TEXTS)
        });
        Ok(Repair {
            path: path.to_owned(),
            damage: Some(damage.clone()),
            kept,
            lost: Some(lost),
            torn: None,
            closers,
            original: None,
        })
    }

    /// Writes the sound part and the closers under a name of their own, and reads them back.
    fn write_sound(
        &self,
        dir: &Path,
        loaded: &Loaded,
        repair: &Repair,
    ) -> Result<PathBuf, StoreError> {
        let encoding = self.encoding();
        let new = dir.join(match encoding.compression {
            Compression::None => "repairing.log",
            Compression::Zstd => "repairing.zst",
        });
        let result = (|| {
            // Under the lock, what has this name was left by a repair that was stopped.
            match self.storage.remove_file(&new) {
                Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
                _ => {}
            }
            let mut file = self.storage.create_new(&new)?;
            let header = loaded.inspection.header.line() + "\n";
            file.write_all(&encoding.text(&header)?)?;
            let kept = usize::try_from(repair.kept).unwrap_or(usize::MAX);
            let kept = loaded.decoded.iter().take(kept);
            let events = kept.filter_map(|stored| stored.event().cloned());
            let all: Vec<Arc<Event>> = events.chain(repair.closers.iter().cloned()).collect();
            for batch in all.chunks(BATCH) {
                file.write_all(&encoding.batch(batch)?)?;
            }
            file.sync()
        })();
        let checked = result
            .map_err(StoreError::io("write", &new))
            .and_then(|()| self.check(&new, repair));
        match checked {
            Ok(()) => Ok(new),
            Err(e) => {
                let _ = self.storage.remove_file(&new);
                Err(e)
            }
        }
    }

    /// Whether what was written is a sound log of what was to be kept.
    fn check(&self, new: &Path, repair: &Repair) -> Result<(), StoreError> {
        let found = load(&self.storage, new, None, 0)?.0.inspection;
        let expected = repair.kept + repair.closers.len() as u64;
        let count = found.log.len();
        let reason = match found.damage {
            Some(damage) => damage.to_string(),
            None if found.torn.is_some() || !found.closers.is_empty() => {
                "it does not end with a whole batch and a closed turn".to_owned()
            }
            None if count != expected => format!("it has {count} events, not {expected}"),
            None => return Ok(()),
        };
        Err(StoreError::TailChanged {
            path: new.to_owned(),
            reason: format!("the repaired log is not what was written: {reason}"),
        })
    }

    /// Gives the damaged log a second name, unless a repair that was stopped did so already.
    fn keep_original(&self, dir: &Path, path: &Path) -> Result<PathBuf, StoreError> {
        let suffix = match self.config.compression {
            Compression::None => "log",
            Compression::Zstd => "zst",
        };
        let inode = |path: &Path| {
            let revision = self.storage.metadata(path)?.revision;
            Ok((revision.0, revision.1))
        };
        let log = inode(path).map_err(StoreError::io("look at", path))?;
        for number in 1u64.. {
            let original = dir.join(format!("damaged-{number}.{suffix}"));
            match self.storage.link(path, &original) {
                Ok(()) => return Ok(original),
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                    if inode(&original).is_ok_and(|found: (u64, u64)| found == log) {
                        return Ok(original);
                    }
                }
                Err(e) => {
                    return Err(StoreError::io("keep as another name of the log", &original)(e));
                }
            }
        }
        Err(StoreError::io("keep", path)(
            io::ErrorKind::AlreadyExists.into(),
        ))
    }
}

#[cfg(test)]
#[path = "repair_tests.rs"]
mod tests;
